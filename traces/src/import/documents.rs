//! JSON documents one after another, each a reply of a server or a list of them.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Error;

/// All replies of all documents, in order.
pub(super) fn documents<T: for<'de> Deserialize<'de>>(
    from: impl Read,
) -> impl Iterator<Item = Result<T, Error>> {
    let documents = serde_json::Deserializer::from_reader(from).into_iter::<OneOrMany<T>>();
    documents.flat_map(|document| match document {
        Ok(OneOrMany(replies)) => replies.into_iter().map(Ok).collect(),
        Err(e) => vec![Err(e)],
    })
}

/// A reply, or the list of them that several prompts or answers come as.
struct OneOrMany<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reply or a list of replies")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMany<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|reply| OneOrMany(vec![reply]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany<T>, A::Error> {
        let mut replies = Vec::new();
        while let Some(reply) = seq.next_element()? {
            replies.push(reply);
        }
        Ok(OneOrMany(replies))
    }
}
