//! llama.cpp, nvmoe's raw records: `{"l": layer, "t": tokens, "e": [[ids], ...]}` a callback.
//!
//! The last layer of a prompt has only the tokens whose output is needed, so lists are aligned to
//! the last token.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line, json_line};
use super::llama_csv::Passes;
use super::nested::IdLists;
use super::sniff::Sniff;
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "llama-nvmoe",
    description: "llama.cpp, nvmoe's raw records: {\"l\":layer,\"t\":tokens,\"e\":[[ids],...]}",
    columns: &["ids", "positions", "phases"],
    extensions: &["jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Likely.when(sniff.has_keys(&["l", "t", "e"]))
}

/// A record; its ids are appended to the list.
struct Record<'a>(&'a mut Vec<u16>);

/// Layer, tokens, lists and their length.
type Read = (u32, u64, (u32, u32));

impl<'de> DeserializeSeed<'de> for Record<'_> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Record<'_> {
    type Value = Read;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a record {\"l\", \"t\", \"e\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Key {
            L,
            T,
            E,
            #[serde(other)]
            Other,
        }
        let (mut layer, mut tokens, mut lists) = (None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::L => layer = Some(map.next_value()?),
                Key::T => tokens = Some(map.next_value()?),
                Key::E => lists = Some(map.next_value_seed(IdLists(&mut *self.0))?),
                Key::Other => drop(map.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        let missing = |name| <A::Error as serde::de::Error>::missing_field(name);
        Ok((
            layer.ok_or_else(|| missing("l"))?,
            tokens.ok_or_else(|| missing("t"))?,
            lists.ok_or_else(|| missing("e"))?,
        ))
    }
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut passes = Passes::default();
    let mut ids = Vec::new();
    let source = each_line(input, |line, text| {
        ids.clear();
        let (layer, tokens, (lists, k)) = json_line(input, line, text, Record(&mut ids))?;
        if tokens != u64::from(lists) || lists == 0 || k == 0 {
            let problem = format!("says {tokens} tokens, has {lists} lists of {k} ids");
            return Err(at_line(input, line, problem));
        }
        // A key that is there twice would add its ids twice.
        if ids.len() != lists as usize * k as usize {
            return Err(at_line(input, line, "key \"e\" is there twice"));
        }
        passes.layer(input, &mut rows, layer)?;
        for (index, ids) in ids.chunks_exact(k as usize).enumerate() {
            let token = index as i64 - i64::from(lists);
            passes.batch.add(|problem| at_line(input, line, problem), token, layer, ids, &[])?;
        }
        Ok(())
    })?;
    passes.end(input, &mut rows)?;
    passes.finish(&mut rows)?;
    into.read(source);
    Ok(())
}
