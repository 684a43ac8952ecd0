//! One token a line, as hotset's own exporter and Hugging Face recordings write it.
//!
//! The first line may be a header, `{"type": "header", "model", "num_experts", "top_k", ...}`.
//! Then `{"seq", "pos", "tok", "phase", "experts": {"<layer>": [ids, best first]}}`, and where
//! recorded `"weights": {"<layer>": [...]}` and `"step"`.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::lines::{Rows, at_line, each_line, json_line};
use super::nested::{IdList, WeightList};
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "jsonl",
    description: "one token a line: seq, pos, tok, phase, experts by layer, best first (what \
                  'trace export' writes)",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    extensions: &["jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    if sniff.has_keys(&["type"]) && sniff.first_line().contains("\"header\"") {
        return Ok(Claim::Possible);
    }
    let lists = sniff
        .first_line()
        .split("\"experts\"")
        .nth(1)
        .is_some_and(|rest| rest.trim_start_matches([':', ' ']).starts_with('{'));
    let token = ["seq", "pos", "tok", "phase"].iter().any(|key| sniff.has_keys(&[key]));
    Claim::Possible.when(sniff.is_json() && lists && token)
}

/// The header's facts.
#[derive(Debug, Default, Deserialize)]
struct Header {
    model: Option<String>,
    num_experts: Option<u32>,
    top_k: Option<u32>,
    engine: Option<String>,
    engine_version: Option<String>,
    #[serde(default)]
    expert_bytes: std::collections::BTreeMap<u32, u64>,
}

/// The buffers that a token is read into, and what was read.
#[derive(Default)]
struct Token {
    sequence: u32,
    position: Option<u32>,
    token_id: Option<u32>,
    step: Option<u32>,
    phase: Option<Phase>,
    ids: Vec<u16>,
    weights: Vec<f32>,
    /// Layer and ids of each list, in the order of the line.
    layers: Vec<(u32, u32)>,
    weight_layers: Vec<(u32, u32)>,
    header: bool,
    /// A key that means nothing here.
    unknown: Option<String>,
}

impl Token {
    fn clear(&mut self) {
        self.ids.clear();
        self.weights.clear();
        self.layers.clear();
        self.weight_layers.clear();
        self.sequence = 0;
        (self.position, self.token_id, self.step) = (None, None, None);
        (self.phase, self.header, self.unknown) = (None, false, None);
    }
}

impl<'de> DeserializeSeed<'de> for &mut Token {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Token {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a token {\"seq\", \"pos\", \"experts\", ...} or a header")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match &*key {
                "seq" => self.sequence = map.next_value()?,
                "pos" => self.position = Some(map.next_value()?),
                "tok" => self.token_id = map.next_value()?,
                "step" => self.step = map.next_value()?,
                "phase" => {
                    let name = map.next_value::<Cow<'_, str>>()?;
                    let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name);
                    self.phase = Some(phase.ok_or_else(|| {
                        A::Error::custom(format!("phase {name:?} is not prefill, decode or verify"))
                    })?);
                }
                "experts" => {
                    map.next_value_seed(ByLayer(&mut self.layers, Lists::Ids(&mut self.ids)))?;
                }
                "weights" => {
                    let lists = Lists::Weights(&mut self.weights);
                    map.next_value_seed(ByLayer(&mut self.weight_layers, lists))?;
                }
                // People write it on every line.
                "type" => self.header = map.next_value::<Cow<'_, str>>()? == "header",
                other => {
                    self.unknown.get_or_insert_with(|| other.to_owned());
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Where the lists of an object `{"<layer>": [...]}` go.
enum Lists<'a> {
    Ids(&'a mut Vec<u16>),
    Weights(&'a mut Vec<f32>),
}

/// An object by layer: each layer and its list's length are noted in order.
struct ByLayer<'a>(&'a mut Vec<(u32, u32)>, Lists<'a>);

impl<'de> DeserializeSeed<'de> for ByLayer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ByLayer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of lists by layer number")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let layer = key
                .parse()
                .map_err(|_| A::Error::custom(format!("layer {key:?} is not a number")))?;
            let count = match &mut self.1 {
                Lists::Ids(ids) => map.next_value_seed(IdList(ids))?,
                Lists::Weights(weights) => map.next_value_seed(WeightList(weights))?,
            };
            self.0.push((layer, count));
        }
        Ok(())
    }
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut token = Token::default();
    let mut layers: Vec<(u32, u32)> = Vec::new();
    let (mut sequence, mut unknown, mut without_phase) = (None, None, false);
    let source = each_line(input, |line, text| {
        token.clear();
        json_line(input, line, text, &mut token)?;
        if token.header {
            let stated = stated(text, rows.collector());
            return stated.map_err(|problem| at_line(input, line, problem));
        }
        unknown = unknown.take().or(token.unknown.take());
        without_phase |= token.phase.is_none();
        if token.layers.is_empty() {
            return Err(at_line(input, line, "no experts"));
        }
        if layers.is_empty() {
            layers.clone_from(&token.layers);
            layers.sort_unstable();
            let numbers: Vec<u32> = layers.iter().map(|layer| layer.0).collect();
            let top_ks: Vec<u32> = layers.iter().map(|layer| layer.1).collect();
            rows.collector().layers(input, Numbering::Numbered(&numbers), &top_ks)?;
        }
        in_order(&mut token.ids, &mut token.layers, &layers, "experts")
            .map_err(|problem| at_line(input, line, problem))?;
        if sequence != Some(token.sequence) {
            sequence = Some(token.sequence);
            rows.sequence(sequence)?;
        }
        let next = rows.last_position().map_or(0, |last| last.saturating_add(1));
        let position = token.position.unwrap_or(next);
        rows.push(&token.ids, position, token.phase.unwrap_or(Phase::Decode))?;
        if let Some(id) = token.token_id {
            rows.token_id(id);
        }
        if let Some(step) = token.step {
            rows.step(step);
        }
        if !token.weight_layers.is_empty() {
            in_order(&mut token.weights, &mut token.weight_layers, &layers, "weights")
                .map_err(|problem| at_line(input, line, problem))?;
            rows.weights(&token.weights);
        }
        Ok(())
    })?;
    rows.flush()?;
    if let Some(key) = unknown {
        into.note(format!("the key {key:?} means nothing in {} and is passed over", INFO.name));
    }
    if without_phase && into.options.phase.is_none() {
        into.note("tokens without a phase count as decode (`ImportOptions::phase` gives all one)");
    }
    into.read(source);
    Ok(())
}

/// Brings a line's lists into the order of the layers.
fn in_order<T: Copy>(
    values: &mut Vec<T>,
    found: &mut [(u32, u32)],
    layers: &[(u32, u32)],
    what: &str,
) -> Result<(), String> {
    if found == layers {
        return Ok(());
    }
    let mut starts: Vec<(u32, u32, usize)> = Vec::new();
    let mut at = 0;
    for &(layer, count) in found.iter() {
        starts.push((layer, count, at));
        at += count as usize;
    }
    starts.sort_unstable();
    let sorted: Vec<(u32, u32)> = starts.iter().map(|start| (start.0, start.1)).collect();
    if sorted != layers {
        let differs = sorted.iter().zip(layers).find(|(found, layer)| found != layer);
        return Err(match differs {
            Some(((layer, k), (before, before_k))) => format!(
                "{what}: layer {layer} has {k} of them, where the first token has layer {before} \
                 with {before_k}"
            ),
            None => {
                format!("{what}: {} layers, the first token has {}", sorted.len(), layers.len())
            }
        });
    }
    let old = values.clone();
    values.clear();
    for (_, count, start) in starts {
        values.extend_from_slice(&old[start..start + count as usize]);
    }
    Ok(())
}

/// Takes in what a header states: of the first line here, of a note in other files.
pub(super) fn stated(text: &[u8], into: &mut Collector<'_>) -> Result<(), String> {
    let header: Header = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    if let (Some(stated), Some(asked)) = (header.top_k, into.options.top_k)
        && stated != asked
    {
        return Err(format!(
            "`ImportOptions::top_k` says {asked}, the header {stated}: give \
             `ImportOptions::top_k` {stated}, or leave it out"
        ));
    }
    into.stated.experts = into.stated.experts.max(header.num_experts);
    into.stated.name = into.stated.name.take().or(header.model);
    into.stated.bytes.extend(header.expert_bytes);
    for (key, text) in [("engine", header.engine), ("engine_version", header.engine_version)] {
        if let Some(text) = text {
            into.facts.insert(key.to_owned(), Value::String(text));
        }
    }
    Ok(())
}
