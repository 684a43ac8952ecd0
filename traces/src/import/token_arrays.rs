//! What arrays with a row a token have in common, whoever named them: sequences as runs of equal
//! numbers, how long prompts are, weights, and the numbers of layers.

use serde_json::{Map, Value, json};

use super::array::{Dtype, Place};
use super::arrays::{AnyArray, column_u32, mismatch};
use super::collect::{Collector, Precision, sequence_limit};
use super::input::Input;
use crate::error::Result;

/// Runs of equal numbers, which must rise: sequence number and tokens.
pub(super) fn runs(
    input: &Input<'_>,
    name: &str,
    tokens: usize,
    array: Option<AnyArray<'_>>,
) -> Result<Option<Vec<(u32, u64)>>> {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    let mut row = 0u64;
    let limit = sequence_limit(input.open()?.len());
    let there = column_u32(input, name, tokens, array, &mut |block| {
        for run in block.chunk_by(|a, b| a == b) {
            let (count, known) = (run.len() as u64, runs.len() as u64);
            match runs.last_mut() {
                Some((id, before)) if *id == run[0] => *before += count,
                Some((id, _)) if *id > run[0] => {
                    let problem =
                        format!("row {row} has {} after {id}; sequences must rise", run[0]);
                    return Err(input.error(format!("array {name}"), problem));
                }
                _ if known >= limit => {
                    let problem = format!("over {limit} sequences, too many for a file this small");
                    return Err(input.error(format!("array {name}"), problem));
                }
                _ => runs.push((run[0], count)),
            }
            row += count;
        }
        Ok(())
    })?;
    Ok(there.then_some(runs))
}

/// Counts the prompt tokens with which each sequence begins.
pub(super) struct Prompts<'a> {
    runs: &'a [(u32, u64)],
    lengths: Vec<u32>,
    /// The run that the next token belongs to, and its tokens seen.
    at: usize,
    seen: u64,
}

impl<'a> Prompts<'a> {
    pub(super) fn new(runs: &'a [(u32, u64)]) -> Self {
        Self { runs, lengths: vec![0; runs.len()], at: 0, seen: 0 }
    }

    pub(super) fn see<T>(&mut self, block: &[T], prompt: impl Fn(&T) -> bool) {
        for value in block {
            while self.runs.get(self.at).is_some_and(|run| self.seen == run.1) {
                (self.at, self.seen) = (self.at + 1, 0);
            }
            let Some(length) = self.lengths.get_mut(self.at) else { return };
            if u64::from(*length) == self.seen && prompt(value) {
                *length += 1;
            }
            self.seen += 1;
        }
    }

    pub(super) fn lengths(self) -> Vec<u32> {
        self.lengths
    }
}

/// Weights of `[T, L, K]`.
pub(super) fn weights(
    input: &Input<'_>,
    name: &str,
    shape: [usize; 3],
    mut array: AnyArray<'_>,
    into: &mut Collector<'_>,
) -> Result<()> {
    if array.shape != shape || !matches!(array.dtype, Dtype::U8 | Dtype::F16 | Dtype::F32) {
        return Err(mismatch(input, name, &format!("{shape:?} of u8, f16 or f32"), &array));
    }
    let place = Place { path: input.path(), name };
    let row = shape[1] * shape[2];
    match array.dtype {
        Dtype::U8 => array.blocks::<u8>(place, row, |w| into.weights(Precision::U8, w)),
        Dtype::F16 => array.blocks::<u16>(place, row, |w| into.weights(Precision::F16, w)),
        _ => array.blocks::<f32>(place, row, |w| into.weights(Precision::F32, w)),
    }
}

/// The layers' numbers, where the file has as many of them as layers.
pub(super) fn layer_numbers(
    input: &Input<'_>,
    info: &Map<String, Value>,
    key: &str,
    layers: usize,
) -> Result<Option<Vec<u32>>> {
    let list = match info.get(key) {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        _ => return Ok(None),
    };
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let numbers: Option<Vec<u32>> = list.iter().map(number).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == layers);
    numbers.map(Some).ok_or_else(|| {
        input.error("info", format!("{key} does not number the {layers} layers of the ids"))
    })
}

/// What provenance says of a recording's own facts.
pub(super) fn fact(into: &mut Collector<'_>, key: &str, value: &str) {
    into.facts.insert(key.to_owned(), json!(value));
}
