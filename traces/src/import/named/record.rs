//! One line or object: what its columns say, whatever they are called and however they are written.

use std::collections::HashMap;

use super::names::{self, Known, Meaning};
use crate::trace::Phase;

/// What a value is before its meaning is known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
}

impl Scalar<'_> {
    /// The whole number that it is.
    fn whole(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number),
            Self::Float(number) => whole(number),
            Self::Text(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| whole(text.parse().ok()?))
            }
        }
    }

    fn float(self) -> Option<f32> {
        match self {
            Self::Int(number) => Some(number as f32),
            Self::Float(number) => Some(number as f32),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// The best value so far of a meaning that several columns may have.
#[derive(Debug, Clone, Copy)]
struct Best<T> {
    priority: u16,
    value: T,
}

/// Names of requests, each with a number in order of appearance.
#[derive(Default)]
pub(in crate::import) struct Requests {
    numbers: HashMap<Box<str>, u32>,
    last: String,
    number: u32,
}

impl Requests {
    fn number(&mut self, name: &str) -> u32 {
        if self.last == name && !self.numbers.is_empty() {
            return self.number;
        }
        let next = self.numbers.len() as u32;
        self.number = match self.numbers.get(name) {
            Some(&number) => number,
            None => *self.numbers.entry(name.into()).or_insert(next),
        };
        name.clone_into(&mut self.last);
        self.number
    }
}

/// A list of numbers, flat or in rows.
#[derive(Debug, Default)]
pub(in crate::import) struct List<T> {
    pub(in crate::import) values: Vec<T>,
    /// Lengths of the rows, where it is a list of lists.
    pub(super) rows: Vec<usize>,
    priority: u16,
    /// Whether it is one number and no list.
    pub(super) single: bool,
    /// Numbers of the columns that the values stand in, rising, where each has one of its own.
    pub(in crate::import) columns: Vec<u32>,
}

impl<T> List<T> {
    fn clear(&mut self) {
        self.values.clear();
        self.rows.clear();
        self.columns.clear();
        (self.priority, self.single) = (u16::MAX, false);
    }

    /// Adds the value of one column: columns e0, e1, ... are in the order of their numbers.
    fn put(&mut self, known: Known, value: T) {
        let Some(number) = known.number else { return self.values.push(value) };
        let at = self.columns.partition_point(|&column| column <= number);
        self.columns.insert(at, number);
        self.values.insert(at.min(self.values.len()), value);
    }

    /// Makes room for a column of this priority; false where a better one is there.
    pub(super) fn begin(&mut self, known: Known) -> bool {
        if known.number.is_some() {
            // Columns e0, e1, ... are one list.
            if known.priority < self.priority {
                self.clear();
                self.priority = known.priority;
            }
            return known.priority == self.priority;
        }
        if known.priority >= self.priority {
            return false;
        }
        self.clear();
        self.priority = known.priority;
        true
    }
}

/// What one line says.
#[derive(Default)]
pub(in crate::import) struct Record {
    sequence: Option<Best<u32>>,
    step: Option<Best<i64>>,
    phase: Option<Phase>,
    position: Option<Best<i64>>,
    token: Option<Best<i64>>,
    token_id: Option<Best<i64>>,
    layer: Option<Best<i64>>,
    rank: Option<Best<i64>>,
    pub(in crate::import) count: Option<f64>,
    count_priority: u16,
    pub(in crate::import) experts: Option<i64>,
    pub(super) top_k: Option<i64>,
    pub(super) model: Option<String>,
    /// The token's column has its text, not its number.
    pub(super) token_texts: bool,
    /// A word in the phase's column that names none; kept over records, the first one.
    pub(super) other_phase: Option<String>,
    pub(in crate::import) ids: List<i64>,
    pub(super) weights: List<f32>,
}

/// Where a cell belongs, once it is settled which column means what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) struct Place {
    pub(super) sequence: Option<u32>,
    pub(super) step: Option<i64>,
    pub(in crate::import) phase: Option<Phase>,
    pub(super) token: Option<i64>,
    /// The token is a position: it does not begin again with every pass.
    pub(super) is_position: bool,
    pub(super) token_id: Option<i64>,
}

impl Record {
    pub(super) fn clear(&mut self) {
        let (mut ids, mut weights) =
            (std::mem::take(&mut self.ids), std::mem::take(&mut self.weights));
        ids.clear();
        weights.clear();
        let (token_texts, other_phase) = (self.token_texts, self.other_phase.take());
        *self = Self {
            ids,
            weights,
            token_texts,
            other_phase,
            count_priority: u16::MAX,
            ..Self::default()
        };
    }

    /// What a record inside this one inherits.
    pub(super) fn inherit(&mut self, outer: &Self) {
        self.sequence = outer.sequence;
        self.step = outer.step;
        self.phase = outer.phase;
        self.layer = outer.layer;
        (self.position, self.token, self.token_id) = (outer.position, outer.token, outer.token_id);
    }

    /// Whether it says nothing of where its experts belong, so that the records in it are a
    /// sequence of their own.
    pub(super) fn is_container(&self) -> bool {
        let numbers = [self.step, self.position, self.token, self.token_id, self.layer];
        self.sequence.is_none() && self.phase.is_none() && numbers.iter().all(Option::is_none)
    }

    /// Takes in one value; an error says what is wrong with it.
    pub(super) fn set(
        &mut self,
        known: Known,
        value: Scalar<'_>,
        requests: &mut Requests,
    ) -> Result<(), String> {
        let Known { meaning, priority, .. } = known;
        let best = |slot: &mut Option<Best<i64>>, value: Option<i64>| {
            if let Some(value) = value
                && slot.is_none_or(|before| priority < before.priority)
            {
                *slot = Some(Best { priority, value });
            }
        };
        match meaning {
            Meaning::Sequence => {
                if self.sequence.is_none_or(|before| priority < before.priority) {
                    let number = match value {
                        Scalar::Text(text) => requests.number(text),
                        Scalar::Int(number) => requests.number(&number.to_string()),
                        Scalar::Float(number) => requests.number(&number.to_string()),
                    };
                    self.sequence = Some(Best { priority, value: number });
                }
            }
            Meaning::Phase => {
                let found = match value {
                    Scalar::Text(text) => names::phase(text),
                    other => other.whole().and_then(|n| names::phase(&n.to_string())),
                };
                if let Scalar::Text(word) = value
                    && found.is_none()
                    && self.other_phase.is_none()
                {
                    self.other_phase = Some(word.chars().take(40).collect());
                }
                self.phase = self.phase.or(found);
            }
            Meaning::IsPrefill | Meaning::IsDecode => {
                let flag = match value {
                    Scalar::Text(text) => names::flag(text),
                    other => other.whole().and_then(|n| names::flag(&n.to_string())),
                };
                let prefill = flag.map(|flag| flag == (meaning == Meaning::IsPrefill));
                let found = prefill.map(|p| if p { Phase::Prefill } else { Phase::Decode });
                self.phase = self.phase.or(found);
            }
            Meaning::Layer => {
                let number = match value {
                    Scalar::Text(text) => names::layer_number(text),
                    other => other.whole(),
                };
                best(&mut self.layer, number);
            }
            Meaning::Step => best(&mut self.step, value.whole()),
            Meaning::Position => best(&mut self.position, value.whole()),
            // Texts of tokens may be digits.
            Meaning::Token if self.token_texts => {}
            Meaning::Token => best(&mut self.token, value.whole()),
            Meaning::TokenId => best(&mut self.token_id, value.whole()),
            Meaning::Rank => best(&mut self.rank, value.whole()),
            Meaning::Experts => return self.expert(known, value),
            Meaning::Weights => {
                if self.weights.begin(known) {
                    self.weights.single = known.number.is_none();
                    match value {
                        Scalar::Text(text) if text.parse::<f32>().is_err() => {
                            self.weights.single = false;
                            floats(text, &mut self.weights.values);
                        }
                        other => self.weights.put(known, other.float().unwrap_or(f32::NAN)),
                    }
                }
            }
            Meaning::Count => {
                let number = match value {
                    Scalar::Int(number) => Some(number as f64),
                    Scalar::Float(number) => Some(number),
                    Scalar::Text(text) => text.trim().parse().ok(),
                };
                if let Some(number) = number.filter(|_| priority < self.count_priority) {
                    (self.count, self.count_priority) = (Some(number), priority);
                }
            }
            Meaning::StatedExperts => self.experts = self.experts.or(value.whole()),
            Meaning::StatedTopK => self.top_k = self.top_k.or(value.whole()),
            Meaning::Model => {
                if let Scalar::Text(text) = value
                    && self.model.is_none()
                {
                    self.model = Some(text.to_owned());
                }
            }
        }
        Ok(())
    }

    fn expert(&mut self, known: Known, value: Scalar<'_>) -> Result<(), String> {
        if !self.ids.begin(known) {
            return Ok(());
        }
        self.ids.single = known.number.is_none();
        if let Some(id) = value.whole() {
            self.ids.put(known, id);
            return Ok(());
        }
        let text = match value {
            Scalar::Text(text) => text,
            Scalar::Int(number) => return Err(no_id(&number.to_string())),
            Scalar::Float(number) => return Err(no_id(&number.to_string())),
        };
        if is_nothing(text) {
            self.ids.put(known, -1);
            return Ok(());
        }
        self.ids.single = false;
        ints(text, &mut self.ids.values)
    }

    /// The layer's number.
    pub(in crate::import) fn layer(&self) -> Option<i64> {
        self.layer.map(|best| best.value)
    }

    pub(super) fn rank(&self) -> Option<i64> {
        self.rank.map(|best| best.value)
    }

    /// Settles which column is the token's number: a position, else its index, else its id, else
    /// the step.
    pub(in crate::import) fn place(&self) -> Place {
        let value = |best: Option<Best<i64>>| best.map(|best| best.value);
        let (position, token) = (value(self.position), value(self.token));
        let (token_id, step) = (value(self.token_id), value(self.step));
        let (token, token_id, step) = match (position, token, token_id) {
            (Some(position), token, token_id) => (Some(position), token_id.or(token), step),
            (None, Some(token), token_id) => (Some(token), token_id, step),
            // Beside a step it is the token's text; alone it counts tokens.
            (None, None, Some(id)) if step.is_some() => (None, Some(id), step),
            (None, None, Some(index)) => (Some(index), None, step),
            (None, None, None) => (step, None, None),
        };
        let sequence = self.sequence.map(|best| best.value);
        let phase = self.phase;
        Place { sequence, step, phase, token, is_position: position.is_some(), token_id }
    }
}

/// What tables have where no number is.
fn is_nothing(text: &str) -> bool {
    let words = ["nan", "none", "null", "na", "n/a", "<na>"];
    words.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// Why a text is no id.
pub(super) fn no_id(text: &str) -> String {
    let start: String = text.chars().take(20).collect();
    match text.parse::<f64>() {
        Ok(number) if number.fract() != 0.0 => format!(
            "{start} is not an expert id but a fraction: scores, shares or probabilities of experts \
             do not say which were chosen"
        ),
        _ => format!("{start:?} is not an expert id"),
    }
}

/// The whole numbers in a text such as `[3, 8]`, `3 8 1`, `3;8`, `3|8`.
pub(super) fn ints(text: &str, into: &mut Vec<i64>) -> Result<(), String> {
    for part in parts(text) {
        let number = part.parse().ok().or_else(|| whole(part.parse().ok()?));
        let number = number.or(is_nothing(part).then_some(-1));
        into.push(number.ok_or_else(|| no_id(part))?);
    }
    Ok(())
}

fn floats(text: &str, into: &mut Vec<f32>) {
    into.extend(parts(text).map(|part| part.parse().unwrap_or(f32::NAN)));
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    let between = |c: char| {
        c.is_whitespace()
            || matches!(c, ',' | ';' | '|' | '/' | '+' | '[' | ']' | '(' | ')' | '{' | '}' | '"')
    };
    text.split(between).filter(|part| !part.is_empty())
}
