//! Requests out of passes: which rows of SGLang's records belong together.
//!
//! An extend pass says how many tokens each request adds; a decode pass has one row for each
//! running request. A row goes on with the request of its rank whose next position it is, the one
//! that ran last before others, in the order of the batch.

use std::collections::{BTreeMap, BTreeSet};

use super::collect::Collector;
use super::input::Input;
use crate::error::Result;
use crate::spool::Spool;
use crate::trace::Phase;

/// What a pass does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Extend,
    Decode,
    /// Some requests extend, others decode.
    Mixed,
    Idle,
}

impl Mode {
    pub(super) fn new(number: Option<i64>) -> Result<Self, &'static str> {
        match number {
            Some(1) => Ok(Self::Extend),
            Some(2) => Ok(Self::Decode),
            Some(3) => Ok(Self::Mixed),
            Some(4) => Ok(Self::Idle),
            Some(_) => Err("a speculative forward mode: its rows cannot be chained to requests"),
            None => Err("no forward_mode"),
        }
    }
}

/// The tokens of one record.
pub(super) struct Pass<'a> {
    pub(super) step: u32,
    pub(super) rank: i64,
    pub(super) mode: Mode,
    pub(super) extends: &'a [i32],
    pub(super) positions: &'a [i32],
    pub(super) token_ids: &'a [i32],
    pub(super) ids: &'a [u16],
    pub(super) row_len: usize,
    pub(super) padding: &'a BTreeSet<usize>,
}

/// A token of a request.
pub(super) struct Token {
    /// Its row in the spooled ids.
    pub(super) row: u32,
    pub(super) position: u32,
    pub(super) step: u32,
    pub(super) token_id: u32,
    pub(super) phase: Phase,
}

/// The requests, in the order in which they began.
pub(super) struct Chains {
    ids: Spool,
    rows: u32,
    sequences: Vec<Vec<Token>>,
    /// By rank and next position: who may go on there, and when each last ran.
    waiting: BTreeMap<(i64, u32), Vec<(u32, usize)>>,
    ambiguous: u64,
    limit: u64,
}

/// All requests, and their ids in the order of the passes.
pub(super) struct Chained {
    pub(super) ids: Spool,
    pub(super) sequences: Vec<Vec<Token>>,
    pub(super) ambiguous: u64,
}

impl Chains {
    pub(super) fn new(into: &Collector<'_>) -> Self {
        let (ids, limit) = (into.spool(), into.sequence_limit());
        Self { ids, rows: 0, sequences: Vec::new(), waiting: BTreeMap::new(), ambiguous: 0, limit }
    }

    pub(super) fn add(&mut self, input: &Input<'_>, pass: &Pass<'_>) -> Result<()> {
        let refuse = |problem: String| Err(input.error("records", problem));
        let count = pass.positions.len();
        // Requests of this pass: their first token and how many.
        let mut parts: Vec<(usize, usize)> = Vec::new();
        match pass.mode {
            Mode::Idle => return Ok(()),
            Mode::Decode => parts.extend((0..count).map(|token| (token, 1))),
            Mode::Extend | Mode::Mixed => {
                let mut at = 0usize;
                for &length in pass.extends {
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    let end = at.checked_add(length).filter(|&end| end <= count);
                    let Some(end) = end else {
                        return refuse(format!(
                            "extend_seq_lens add up to more than {count} tokens"
                        ));
                    };
                    if length > 0 {
                        parts.push((at, length));
                    }
                    at = end;
                }
                if (at..count).any(|token| !pass.padding.contains(&token)) {
                    return refuse(format!("extend_seq_lens add up to {at} of {count} tokens"));
                }
            }
        }
        let mut moved: Vec<(u32, usize)> = Vec::new();
        for (from, count) in parts {
            if pass.padding.contains(&from) {
                continue;
            }
            let Ok(position) = u32::try_from(pass.positions[from]) else {
                return refuse(format!("position {}", pass.positions[from]));
            };
            let (sequence, new) = match self.resume(pass, position) {
                Some(sequence) => (sequence, false),
                None if (self.sequences.len() as u64) < self.limit => {
                    self.sequences.push(Vec::new());
                    (self.sequences.len() - 1, true)
                }
                None => return refuse(format!("over {} requests", self.limit)),
            };
            let decode =
                count == 1 && (pass.mode == Mode::Decode || pass.mode == Mode::Mixed && !new);
            let phase = if decode { Phase::Decode } else { Phase::Prefill };
            for token in from..from + count {
                let expected = i64::from(position) + (token - from) as i64;
                if i64::from(pass.positions[token]) != expected {
                    let found = pass.positions[token];
                    return refuse(format!("position {found} where {expected} follows"));
                }
                self.sequences[sequence].push(Token {
                    row: self.rows,
                    position: position.saturating_add((token - from) as u32),
                    step: pass.step,
                    token_id: pass.token_ids[token].max(0) as u32,
                    phase,
                });
                self.ids.extend(&pass.ids[token * pass.row_len..][..pass.row_len])?;
                self.rows = self.rows.saturating_add(1);
            }
            moved.push((position.saturating_add(count as u32), sequence));
        }
        for (next, sequence) in moved {
            self.waiting.entry((pass.rank, next)).or_default().push((pass.step, sequence));
        }
        Ok(())
    }

    /// Who goes on at this position: of those that ran last, the first in the batch.
    fn resume(&mut self, pass: &Pass<'_>, position: u32) -> Option<usize> {
        if position == 0 {
            return None;
        }
        let key = (pass.rank, position);
        let waiting = self.waiting.get_mut(&key)?;
        let latest = waiting.last()?.0;
        let first = waiting.partition_point(|&(step, _)| step < latest);
        if waiting.len() - first > 1 {
            self.ambiguous += 1;
        }
        let (_, sequence) = waiting.remove(first);
        if waiting.is_empty() {
            self.waiting.remove(&key);
        }
        Some(sequence)
    }

    pub(super) fn finish(self) -> Chained {
        Chained { ids: self.ids, sequences: self.sequences, ambiguous: self.ambiguous }
    }
}
