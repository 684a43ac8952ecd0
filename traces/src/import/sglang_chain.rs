//! Requests out of passes: which rows of SGLang's records belong together.
//!
//! An extend pass says how many tokens each request adds; a decode pass has one row for each
//! running request. SGLang's batch keeps its order: who has ended leaves, who is new comes behind.
//! So decode rows are the running requests in their order, less those that have ended; where that
//! does not hold, a row goes on with the request that ran last of those whose next position it is.

use std::collections::{BTreeMap, BTreeSet};

use super::collect::Collector;
use super::input::Input;
use crate::error::Result;
use crate::sequence::Phase;
use crate::spool::Spool;

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
    /// Every request, where it stands.
    waiting: BTreeSet<Stand>,
    /// By rank: its batch in the order that it has, as far as is known. Some may have moved on.
    running: BTreeMap<i64, Vec<Stand>>,
    ambiguous: u64,
    limit: u64,
}

/// Where a request goes on, and where it last ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stand {
    rank: i64,
    next: u32,
    step: u32,
    /// In the batch of that step.
    place: usize,
    sequence: usize,
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
        let (waiting, running) = (BTreeSet::new(), BTreeMap::new());
        Self { ids, rows: 0, sequences: Vec::new(), waiting, running, ambiguous: 0, limit }
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
        parts.retain(|(from, _)| !pass.padding.contains(from));
        let mut starts = Vec::with_capacity(parts.len());
        for &(from, _) in &parts {
            match u32::try_from(pass.positions[from]) {
                Ok(position) => starts.push(position),
                Err(_) => return refuse(format!("position {}", pass.positions[from])),
            }
        }
        let mut known = self.in_batch(pass, &parts, &starts);
        let mut moved: Vec<Stand> = Vec::with_capacity(parts.len());
        for (place, ((from, count), position)) in parts.into_iter().zip(starts).enumerate() {
            let stood = known.remove(&place).or_else(|| self.resume(pass, position));
            let (sequence, new) = match stood {
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
            let next = position.saturating_add(count as u32);
            moved.push(Stand { rank: pass.rank, next, step: pass.step, place, sequence });
        }
        self.waiting.extend(&moved);
        let running = self.running.entry(pass.rank).or_default();
        if pass.mode != Mode::Extend {
            running.clear();
        }
        running.append(&mut moved);
        Ok(())
    }

    /// The requests of the parts that are decode rows, by part: those of the batch whose next
    /// position it is, in their order. Empty where the batch was not kept in order.
    fn in_batch(
        &mut self,
        pass: &Pass<'_>,
        parts: &[(usize, usize)],
        starts: &[u32],
    ) -> BTreeMap<usize, usize> {
        let running = self.running.get(&pass.rank).map_or(&[][..], Vec::as_slice);
        let running: Vec<Stand> =
            running.iter().filter(|stand| self.waiting.contains(stand)).copied().collect();
        let nexts: BTreeSet<u32> = running.iter().map(|stand| stand.next).collect();
        let row = |&part: &usize| parts[part].1 == 1 && nexts.contains(&starts[part]);
        let rows: Vec<usize> = match pass.mode {
            Mode::Decode | Mode::Mixed => (0..parts.len()).filter(row).collect(),
            Mode::Extend | Mode::Idle => Vec::new(),
        };
        let positions: Vec<u32> = rows.iter().map(|&row| starts[row]).collect();
        let Some((stands, unsure)) = in_order(&running, &positions) else {
            return BTreeMap::new();
        };
        self.ambiguous += unsure;
        let take = |stand: Stand| {
            self.waiting.remove(&stand);
            stand.sequence
        };
        rows.into_iter().zip(stands.into_iter().map(take)).collect()
    }

    /// Who goes on at this position: of those that ran last, the first in the batch.
    fn resume(&mut self, pass: &Pass<'_>, position: u32) -> Option<usize> {
        if position == 0 {
            return None;
        }
        let at = Stand { rank: pass.rank, next: position, step: 0, place: 0, sequence: 0 };
        let end = Stand { step: u32::MAX, place: usize::MAX, sequence: usize::MAX, ..at };
        let last = *self.waiting.range(at..=end).next_back()?;
        let first = *self.waiting.range(Stand { step: last.step, ..at }..=last).next()?;
        self.ambiguous += u64::from(first != last);
        self.waiting.remove(&first);
        Some(first.sequence)
    }

    pub(super) fn finish(self) -> Chained {
        Chained { ids: self.ids, sequences: self.sequences, ambiguous: self.ambiguous }
    }
}

/// Who of a batch goes on at these positions if it keeps its order: the first that can, and at
/// how many of the positions another could, too. `None`: the order was not kept.
fn in_order(running: &[Stand], positions: &[u32]) -> Option<(Vec<Stand>, u64)> {
    let mut forward = running.iter();
    let find = |&position: &u32| forward.find(|stand| stand.next == position).copied();
    let first: Vec<Stand> = positions.iter().map(find).collect::<Option<_>>()?;
    // The last that can, from behind: where both are one, no other could.
    let mut backward = running.iter().rev();
    let mut unsure = 0;
    for (&position, stand) in positions.iter().zip(&first).rev() {
        unsure += u64::from(backward.find(|other| other.next == position)? != stand);
    }
    Some((first, unsure))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::import::ImportOptions;

    /// A pass: its mode, the tokens of each prompt, then positions and token ids of all.
    type Step<'a> = (Mode, &'a [i32], &'a [i32], &'a [i32]);

    /// Requests out of passes of one rank: by request, the token ids in their order.
    fn chained(passes: &[Step<'_>]) -> (Vec<Vec<u32>>, u64) {
        let options = ImportOptions::default();
        let into = Collector::new(&options, 0).unwrap();
        let input = Input::bytes(Path::new("a.pt"), &[]);
        let mut chains = Chains::new(&into);
        for (step, &(mode, extends, positions, token_ids)) in passes.iter().enumerate() {
            let ids = vec![0; positions.len()];
            let padding = &BTreeSet::new();
            let step = step as u32;
            let (ids, row_len) = (&ids[..], 1);
            let pass =
                Pass { step, rank: 0, mode, extends, positions, token_ids, ids, row_len, padding };
            chains.add(&input, &pass).unwrap();
        }
        let Chained { sequences, ambiguous, .. } = chains.finish();
        let tokens = |tokens: &Vec<Token>| tokens.iter().map(|token| token.token_id).collect();
        (sequences.iter().map(tokens).collect(), ambiguous)
    }

    #[test]
    fn who_came_first_is_first_in_the_batch() {
        // Two prompts of one length, in two passes; the later one does not take the first's row.
        let (requests, ambiguous) = chained(&[
            (Mode::Extend, &[2], &[0, 1], &[10, 11]),
            (Mode::Extend, &[2], &[0, 1], &[20, 21]),
            (Mode::Decode, &[], &[2, 2], &[12, 22]),
            (Mode::Decode, &[], &[3, 3], &[13, 23]),
        ]);
        assert_eq!(requests, [[10, 11, 12, 13], [20, 21, 22, 23]]);
        assert_eq!(ambiguous, 0);
    }

    #[test]
    fn the_order_tells_who_ended() {
        // Of the two at position 2 the one before the long prompt ends: its row was before it.
        let (requests, ambiguous) = chained(&[
            (
                Mode::Extend,
                &[2, 4, 2],
                &[0, 1, 0, 1, 2, 3, 0, 1],
                &[10, 11, 30, 31, 32, 33, 20, 21],
            ),
            (Mode::Decode, &[], &[4, 2], &[34, 22]),
            // One more joins behind those that run.
            (Mode::Extend, &[3], &[0, 1, 2], &[40, 41, 42]),
            (Mode::Decode, &[], &[5, 3, 3], &[35, 23, 43]),
        ]);
        let [ended, long, short, later] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(ended, &[10, 11]);
        assert_eq!(long, &[30, 31, 32, 33, 34, 35]);
        assert_eq!(short, &[20, 21, 22, 23]);
        assert_eq!(later, &[40, 41, 42, 43]);
        assert_eq!(ambiguous, 0);
        // Side by side, nothing tells.
        let (_, ambiguous) =
            chained(&[(Mode::Extend, &[1, 1], &[0, 0], &[1, 2]), (Mode::Decode, &[], &[1], &[3])]);
        assert_eq!(ambiguous, 1);
    }

    #[test]
    fn chunks_and_a_batch_that_changed_its_order() {
        // A prompt in two chunks, between them a step of the one that runs; then both swap places.
        let (requests, ambiguous) = chained(&[
            (Mode::Extend, &[1], &[0], &[10]),
            (Mode::Extend, &[2], &[0, 1], &[20, 21]),
            (Mode::Decode, &[], &[1], &[11]),
            (Mode::Mixed, &[2, 1], &[2, 3, 2], &[22, 23, 12]),
            (Mode::Decode, &[], &[4, 3], &[24, 13]),
            (Mode::Decode, &[], &[4, 5], &[14, 25]),
        ]);
        assert_eq!(requests, [vec![10, 11, 12, 13, 14], vec![20, 21, 22, 23, 24, 25]]);
        assert_eq!(ambiguous, 0);
    }
}
