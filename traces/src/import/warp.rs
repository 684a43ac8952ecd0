//! warp's tokens: `{"tok": n, "layers": [[ids], ...]}` a line, each layer's ids ascending.
//!
//! The order of the router's scores is not recorded; the trace keeps the ids as they are.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::json;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::lines::{Rows, at_line, each_line, json_line};
use super::nested::IdLists;
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "warp",
    description: "warp's tokens: a line {\"tok\":n,\"layers\":[[ids],...]} each, ids ascending",
    columns: &["ids", "positions", "phases"],
    extensions: &["jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Likely.when(sniff.has_keys(&["tok", "layers"]))
}

/// A line; its ids are appended to the list.
struct Line<'a>(&'a mut Vec<u16>);

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = (u32, (u32, u32));

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = (u32, (u32, u32));

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a token {\"tok\", \"layers\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Key {
            Tok,
            Layers,
            #[serde(other)]
            Other,
        }
        let (mut token, mut lists) = (None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Tok => token = Some(map.next_value()?),
                Key::Layers => lists = Some(map.next_value_seed(IdLists(&mut *self.0))?),
                Key::Other => drop(map.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        let missing = |name| <A::Error as serde::de::Error>::missing_field(name);
        Ok((token.ok_or_else(|| missing("tok"))?, lists.ok_or_else(|| missing("layers"))?))
    }
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut ids = Vec::new();
    let mut shape = None;
    let source = each_line(input, |line, text| {
        ids.clear();
        let (token, lists) = json_line(input, line, text, Line(&mut ids))?;
        let before = *shape.get_or_insert(lists);
        if before != lists || lists.1 == 0 {
            let problem = format!(
                "{} layers of top-{}, {} of top-{} in the lines before it",
                lists.0, lists.1, before.0, before.1
            );
            return Err(at_line(input, line, problem));
        }
        // A key that is there twice would add its ids twice.
        if ids.len() != lists.0 as usize * lists.1 as usize {
            return Err(at_line(input, line, "key \"layers\" is there twice"));
        }
        if rows.last_position().is_none_or(|last| last >= token) {
            let layers = Numbering::Unknown;
            rows.collector().layers(input, layers, &vec![lists.1; lists.0 as usize])?;
            rows.sequence(None)?;
        }
        rows.push(&ids, token, Phase::Decode)
    })?;
    rows.flush()?;
    into.read(source);
    into.facts.insert("rank_order".to_owned(), json!("not recorded: ids ascend"));
    Ok(())
}
