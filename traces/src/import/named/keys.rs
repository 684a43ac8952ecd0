//! The keys of JSON's objects, by the table of names.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Visitor};

use super::names::{Known, Names};

/// Objects inside objects, at most.
pub(super) const MAX_DEPTH: usize = 16;

/// What keys mean: objects of a file have the same in the same order, so the last answers are
/// looked at first.
pub(super) struct Keys<'a> {
    names: &'a Names,
    seen: Vec<(String, Option<Known>)>,
}

/// Keys that are remembered.
const MAX_SEEN: usize = 256;

impl<'a> Keys<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Self { names, seen: Vec::new() }
    }

    fn find(&mut self, at: usize, key: &str) -> Option<Known> {
        match self.seen.get(at) {
            Some((seen, known)) if seen == key => *known,
            _ => {
                let known = self.names.find(key);
                if at < self.seen.len() {
                    self.seen[at] = (key.to_owned(), known);
                } else if at == self.seen.len() && at < MAX_SEEN {
                    self.seen.push((key.to_owned(), known));
                }
                known
            }
        }
    }
}

/// What a key means.
pub(super) struct KeyOf {
    pub(super) known: Option<Known>,
    /// The name, where it is not known.
    pub(super) name: Option<String>,
}

/// Reads a key, the so-manieth of its object.
pub(super) struct KeySeed<'a, 'n> {
    pub(super) keys: &'a mut Keys<'n>,
    pub(super) at: usize,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = KeyOf;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyOf, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_> {
    type Value = KeyOf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<KeyOf, E> {
        let known = self.keys.find(self.at, key);
        // Names of small headers are wanted for messages; those of many lines are not.
        let name = (known.is_none() && self.at < MAX_DEPTH).then(|| key.to_owned());
        Ok(KeyOf { known, name })
    }
}
