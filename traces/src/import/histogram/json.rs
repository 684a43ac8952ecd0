//! Counts as JSON: a matrix [layer][expert], or objects by layer and expert, at any depth.
//!
//! Which numbers are counts their key says (`expert_popularity`, `layer_expert_counts`,
//! `expert_frequencies`), or that all are whole under numbers of layers and experts. Several (of
//! tasks, samples, groups) are added up.

use serde_json::{Map, Value};

use super::columns::Sum;
use super::info::{ExpertCounts, HistogramInfo};
use crate::error::Result;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::named::{self, Kind};
use crate::import::sniff::Sniff;

pub(super) const INFO: HistogramInfo = HistogramInfo {
    name: "json-counts",
    description: "counts as JSON: [layer][expert], {layer: {expert: n}} or {layer: {\
                  expert_frequencies: [n]}}, of tasks or samples added up",
    recognise,
    fuzz: FuzzTarget::Json,
    reader: read,
};

/// Parts of names that say that numbers are counts.
const COUNTS: [&str; 10] = [
    "count",
    "popularit",
    "freq",
    "hits",
    "usage",
    "activations",
    "selections",
    "load",
    "collect",
    "tokens_per",
];
/// Parts of names that say that they are none.
const NONE: [&str; 12] = [
    "score",
    "share",
    "prob",
    "ratio",
    "norm",
    "weight",
    "rate",
    "mean",
    "map",
    "placement",
    "rank",
    "scale",
];
/// Bytes of a file of counts, at most: each number takes a value in memory.
const MAX_FILE: u64 = 64 << 20;
/// Lists and objects inside each other, at most.
const MAX_DEPTH: usize = 12;

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    if !sniff.is_json() || sniff.document_has_keys(&["choices"]) {
        return Ok(Claim::No);
    }
    let text = sniff.text();
    // A layer, an expert and a count in each object.
    if named::kind(sniff) == Some(Kind::Counts) {
        return Ok(Claim::No);
    }
    let (mut named, mut nested) = (false, 0);
    let mut parts = text.split('"').skip(1);
    while let (Some(key), Some(after)) = (parts.next(), parts.next()) {
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        named |= is_count(key) && value.is_some_and(|value| value.starts_with(['[', '{']));
        nested += usize::from(layer_of(key).is_some() || expert_of(key).is_some());
    }
    // {layer: {expert: n}} without any name.
    let bare = !named && nested > 2 && by_number(text);
    if !named && !bare && rows_repeat(text) {
        return Ok(Claim::Sure);
    }
    Claim::Possible.when(bare || named)
}

/// Whether the text begins as `{"0": {"0": 1`.
fn by_number(text: &str) -> bool {
    let flat: String = text.chars().filter(|c| !c.is_whitespace()).take(64).collect();
    let mut parts = flat.split('"');
    let opens = |part: Option<&str>, with: &str| part == Some(with);
    opens(parts.next(), "{")
        && parts.next().is_some_and(|key| layer_of(key).is_some())
        && opens(parts.next(), ":{")
        && parts.next().is_some_and(|key| expert_of(key).is_some())
        && parts.next().is_some_and(|rest| {
            let value = rest.trim_start_matches(':');
            let end = value.find([',', '}']).unwrap_or(value.len());
            value[..end].parse::<u64>().is_ok()
        })
}

/// Whether the text is one list of whole numbers for each layer, `{"0": [5, 0, 5, ..], ..}`, all of
/// one length, with a number twice in some: counts, for a token has an expert once.
fn rows_repeat(text: &str) -> bool {
    // The last list may be cut.
    let Some(end) = text.rfind(']') else { return false };
    let whole = format!("{}}}", &text[..=end]);
    let Ok(Value::Object(map)) = serde_json::from_str(&whole) else { return false };
    let mut length = None;
    let mut repeats = false;
    for (key, value) in &map {
        let (Some(_), Value::Array(row)) = (layer_of(key), value) else { return false };
        let Some(row) = row.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>() else {
            return false;
        };
        if *length.get_or_insert(row.len()) != row.len() {
            return false;
        }
        repeats |= row.iter().enumerate().any(|(at, count)| row[..at].contains(count));
    }
    map.len() > 1 && repeats
}

fn is_count(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    COUNTS.iter().any(|part| key.contains(part)) && !NONE.iter().any(|part| key.contains(part))
}

fn read(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut found = Found::default();
    for input in inputs {
        let stream = input.stream()?;
        let mut limited = std::io::Read::take(stream, MAX_FILE);
        let documents = serde_json::Deserializer::from_reader(&mut limited).into_iter::<Value>();
        for (index, document) in documents.enumerate() {
            let place = format!("document {}", index + 1);
            let document = document.map_err(|e| input.error(&place, e.to_string()))?;
            found.walk(&document, None, None, 0).map_err(|problem| input.error(place, problem))?;
        }
        if limited.limit() == 0 {
            let most = MAX_FILE >> 20;
            return Err(input.error("file", format!("over {most} MiB: no file of counts is")));
        }
    }
    let several = found.matrices;
    let mut counts = found.sum.finish();
    counts.tokens = (found.tokens > 0).then_some(found.tokens);
    counts.notes.clear();
    if several > counts.layers.len() as u64 {
        counts.notes.push("counts of several tasks, samples or groups are added up".to_owned());
    }
    Ok(counts)
}

#[derive(Default)]
struct Found {
    sum: Sum,
    tokens: u64,
    /// Rows of counts that were added.
    matrices: u64,
}

/// A layer's number in a key: `3`, `layer_3`.
fn layer_of(key: &str) -> Option<i64> {
    if let Ok(number) = key.parse() {
        return Some(number);
    }
    let digits = key.trim_start_matches(|c: char| !c.is_ascii_digit());
    let word = key[..key.len() - digits.len()].to_ascii_lowercase();
    let word = word.trim_end_matches(['_', '.', '-', ' ']);
    let path = word.ends_with("layers") || word.ends_with("layer") || word == "blk" || word == "l";
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok().filter(|_| path)
}

/// An expert's number in a key: `17`, `expert_17`.
fn expert_of(key: &str) -> Option<i64> {
    let digits = key.trim_start_matches(|c: char| !c.is_ascii_digit());
    let word = key[..key.len() - digits.len()].to_ascii_lowercase();
    let known =
        ["", "expert", "experts", "e"].contains(&word.trim_end_matches(['_', '.', '-', ' ']));
    digits.parse().ok().filter(|_| known)
}

impl Found {
    /// Looks for counts in a value; `layer` and `name` are those of the keys above it.
    fn walk(
        &mut self,
        value: &Value,
        layer: Option<i64>,
        name: Option<&str>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("over {MAX_DEPTH} levels of lists and objects"));
        }
        let counted = name.is_none_or(is_count);
        match value {
            Value::Array(rows)
                if rows.iter().all(Value::is_array) && name.is_some_and(is_count) =>
            {
                for (layer, row) in (0..).zip(rows) {
                    self.walk(row, Some(layer), name, depth + 1)?;
                }
            }
            Value::Array(row)
                if counted
                    && (name.is_some() || layer.is_some())
                    && row.iter().all(Value::is_number) =>
            {
                if let Some(layer) = layer {
                    self.row(layer, row.iter().zip(0..).map(|(count, expert)| (expert, count)))?;
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.walk(value, None, None, depth + 1)?;
                }
            }
            Value::Object(map) => self.object(map, layer, name, depth)?,
            _ => {}
        }
        Ok(())
    }

    fn object(
        &mut self,
        map: &Map<String, Value>,
        layer: Option<i64>,
        name: Option<&str>,
        depth: usize,
    ) -> Result<(), String> {
        let numbers = !map.is_empty() && map.keys().all(|key| expert_of(key).is_some());
        if let Some(layer) = layer
            && numbers
            && name.is_none_or(is_count)
            && map.values().all(Value::is_number)
        {
            let row = map.iter().filter_map(|(key, count)| Some((expert_of(key)?, count)));
            return self.row(layer, row);
        }
        self.tokens(map);
        let named =
            ["layer", "layer_id", "layer_idx"].iter().find_map(|key| map.get(*key)?.as_i64());
        let layer = named.or(layer);
        for (key, value) in map {
            let number = layer_of(key);
            // Names of groups (tasks, subjects) stand between a count's name and its numbers.
            let below = match number {
                Some(_) => name,
                None if value.is_object() && !is_count(key) => None,
                None => Some(key.as_str()),
            };
            self.walk(value, number.or(layer), below, depth + 1)?;
        }
        Ok(())
    }

    /// Tokens that are stated beside counts: in all, or of prompts and answers.
    fn tokens(&mut self, map: &Map<String, Value>) {
        let number = |name: &str| map.get(name).and_then(Value::as_u64);
        let whole = number("total_input_tokens").or(number("seqlen"));
        let parts = number("n_tokens_prefill").zip(number("n_tokens_generated"));
        let parts = parts.map(|(prompt, answer)| prompt.saturating_add(answer));
        self.tokens = self.tokens.saturating_add(whole.or(parts).unwrap_or(0));
    }

    fn row<'v>(
        &mut self,
        layer: i64,
        counts: impl Iterator<Item = (i64, &'v Value)>,
    ) -> Result<(), String> {
        self.matrices += 1;
        for (expert, count) in counts {
            self.sum.add(layer, expert, count.as_f64().unwrap_or(f64::NAN))?;
        }
        Ok(())
    }
}
