//! Rows that come one by one (a line, a record), handed on in blocks.

use std::collections::HashSet;

use serde::de::DeserializeSeed;

use super::collect::{Collector, Precision};
use super::input::Input;
use crate::error::{Error, Result};
use crate::sequence::Phase;

/// Ids that are held back until they are handed on.
const BLOCK: usize = 1 << 16;

/// Rows on their way into a trace.
pub(super) struct Rows<'a, 'b, 'c> {
    input: Input<'a>,
    into: &'b mut Collector<'c>,
    ids: Vec<u16>,
    positions: Vec<u32>,
    phases: Vec<u8>,
    steps: Vec<u32>,
    token_ids: Vec<u32>,
    weights: Vec<f32>,
    /// Tokens of the sequence so far, and how many of them its prompt has.
    seen: u32,
    prompt: u32,
    last: Option<u32>,
    /// Numbers of the sequences so far, where they have some: as many as sequences are kept.
    numbers: HashSet<u32>,
}

impl<'a, 'b, 'c> Rows<'a, 'b, 'c> {
    pub(super) fn new(input: &Input<'a>, into: &'b mut Collector<'c>) -> Self {
        Self {
            input: *input,
            into,
            ids: Vec::new(),
            positions: Vec::new(),
            phases: Vec::new(),
            steps: Vec::new(),
            token_ids: Vec::new(),
            weights: Vec::new(),
            seen: 0,
            prompt: 0,
            last: None,
            numbers: HashSet::new(),
        }
    }

    pub(super) fn collector(&mut self) -> &mut Collector<'c> {
        self.into
    }

    /// Ends the sequence and begins one. The tokens of a numbered one must lie together: a number
    /// that comes again is refused.
    pub(super) fn sequence(&mut self, id: Option<u32>) -> Result<()> {
        if let Some(id) = id.filter(|&id| !self.numbers.insert(id)) {
            let problem = format!(
                "sequence {id} comes again after another; the tokens of a sequence must lie \
                 together: sort the file by sequence"
            );
            return Err(self.input.error(format!("token {}", self.tokens()), problem));
        }
        self.flush()?;
        (self.seen, self.prompt, self.last) = (0, 0, None);
        self.into.sequence(&self.input, id)?;
        Ok(())
    }

    /// Tokens of all inputs so far.
    fn tokens(&self) -> u64 {
        self.into.rows() + self.positions.len() as u64
    }

    /// Whether the sequence has no tokens yet.
    pub(super) fn at_start(&self) -> bool {
        self.seen == 0
    }

    /// The position of the last token of this sequence.
    pub(super) fn last_position(&self) -> Option<u32> {
        self.last
    }

    /// One token: its ids in all layers of the file.
    pub(super) fn push(&mut self, ids: &[u16], position: u32, phase: Phase) -> Result<()> {
        if self.ids.len() + ids.len() > BLOCK {
            self.flush()?;
        }
        self.ids.extend_from_slice(ids);
        self.positions.push(position);
        self.phases.push(phase as u8);
        if phase == Phase::Prefill && self.prompt == self.seen {
            self.prompt += 1;
        }
        self.seen = self.seen.saturating_add(1);
        self.last = Some(position);
        Ok(())
    }

    /// The vocabulary id of the token that was pushed.
    pub(super) fn token_id(&mut self, id: u32) {
        self.token_ids.push(id);
    }

    /// The step of the token that was pushed.
    pub(super) fn step(&mut self, step: u32) {
        self.steps.push(step);
    }

    /// The weights of the token that was pushed.
    pub(super) fn weights(&mut self, weights: &[f32]) {
        self.weights.extend_from_slice(weights);
    }

    /// Hands on what is held back.
    pub(super) fn flush(&mut self) -> Result<()> {
        let Self { input, into, .. } = self;
        if !self.ids.is_empty() {
            into.ids(input, &self.ids)?;
        }
        into.places(&self.positions, &self.phases)?;
        into.steps(&self.steps)?;
        into.token_ids(&self.token_ids)?;
        if !self.weights.is_empty() {
            into.weights(Precision::F32, &self.weights)?;
        }
        into.prompt(self.prompt);
        self.ids.clear();
        self.positions.clear();
        self.phases.clear();
        self.steps.clear();
        self.token_ids.clear();
        self.weights.clear();
        Ok(())
    }
}

/// Visits every line that is not blank, with its number from 1.
pub(super) fn each_line(
    input: &Input<'_>,
    mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<serde_json::Value> {
    let mut stream = input.stream()?;
    let (mut line, mut number) = (Vec::new(), 0);
    while let Some(text) = stream.line(&mut line)? {
        number += 1;
        if !text.trim_ascii().is_empty() {
            visit(number, text)?;
        }
    }
    stream.source()
}

/// An error in a line.
pub(super) fn at_line(input: &Input<'_>, number: u64, problem: impl Into<String>) -> Error {
    input.error(format!("line {number}"), problem)
}

/// A line of JSON, read by `seed`.
pub(super) fn json_line<'de, S: DeserializeSeed<'de>>(
    input: &Input<'_>,
    number: u64,
    text: &'de [u8],
    seed: S,
) -> Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut deserializer).and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    value.map_err(|e| at_line(input, number, e.to_string()))
}

/// A whole number in a column of a text line.
pub(super) fn number<T: std::str::FromStr>(
    input: &Input<'_>,
    line: u64,
    name: &str,
    text: Option<&str>,
) -> Result<T> {
    let parsed = text.and_then(|text| text.trim().parse().ok());
    parsed.ok_or_else(|| {
        let start: String = text.unwrap_or_default().chars().take(20).collect();
        at_line(input, line, format!("column {name}: {start:?} is not a number that fits there"))
    })
}

/// A line as text.
pub(super) fn utf8<'a>(input: &Input<'_>, line: u64, text: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(text).map_err(|_| at_line(input, line, "not UTF-8 text"))
}
