//! Rows on their way into a trace, in its order, each with all its layers.

use std::ops::Range;

use super::cells::File;
use super::met::Met;
use super::plan::Plan;
use super::store::{Head, NO_PHASE, NO_TOKEN, Row, Rows as Stored};
use crate::error::Result;
use crate::import::collect::Collector;
use crate::import::input::Input;
use crate::import::lines::Rows;
use crate::sequence::Phase;

/// Rows in the order of the trace: sequence after sequence, each as it ran.
fn order(stored: &mut Stored, rows: &[Range<u64>]) -> Result<(Vec<u32>, bool)> {
    let mut counts: Vec<u32> = Vec::new();
    let (mut interleaved, mut last) = (false, None);
    for row in rows.iter().cloned().flatten() {
        let sequence = stored.head(row)?.sequence as usize;
        if counts.len() <= sequence {
            counts.resize(sequence + 1, 0);
        }
        interleaved |= last != Some(sequence) && counts[sequence] > 0;
        counts[sequence] += 1;
        last = Some(sequence);
    }
    let mut at = 0;
    for count in &mut counts {
        at += std::mem::replace(count, at);
    }
    let mut order = vec![0; at as usize];
    for row in rows.iter().cloned().flatten() {
        let next = &mut counts[stored.head(row)?.sequence as usize];
        order[*next as usize] = row as u32;
        *next += 1;
    }
    Ok((order, interleaved))
}

/// Gives the rows to the collector, in the order of the trace.
pub(super) fn emit(
    input: &Input<'_>,
    files: &[File],
    stored: &mut Stored,
    kept: &[Range<u64>],
    plan: &Plan,
    into: &mut Collector<'_>,
) -> Result<()> {
    if stored.len() > u64::from(u32::MAX) {
        return Err(input.error("rows", "over 2^32 of them"));
    }
    let of_rows = if plan.joined { &kept[..1] } else { kept };
    let (order, interleaved) = order(stored, of_rows)?;
    let passes = files.iter().any(|file| file.met.batches && file.next_pass > 1);
    let several = files.iter().any(|file| file.met.steps) || passes || interleaved;
    let with_weights = stored.all_weighted();
    if !with_weights && stored.any_weighted() {
        into.note("weights are left out: not all experts have them");
    }
    // Tokens one after another, each with all its layers: a pass begins where numbers do.
    let by_number = files.iter().all(|file| {
        let Met { restarts, batches, steps, .. } = file.met;
        restarts && !batches && !steps && file.next_sequence == 1
    });
    let several = several || by_number;
    let counted = files.iter().any(|file| file.met.restarts || !file.met.numbered);
    let mut out = Out {
        parts: Vec::new(),
        spare: Vec::new(),
        ids: Vec::new(),
        weights: Vec::new(),
        incomplete: 0,
        broken: false,
        all_experts: true,
        checked: 0,
    };
    let mut rows = Rows::new(input, into);
    let (mut sequence, mut position) = (None, 0);
    let (mut run, mut before) = (0u32, None);
    for row in order {
        let head = stored.head(row.into())?;
        if !out.gather(stored, kept, plan, row.into())? {
            continue;
        }
        if sequence != Some(head.sequence) {
            sequence = Some(head.sequence);
            position = 0;
            rows.sequence(None)?;
        }
        let Head { mut step, token_id, phase, .. } = head;
        if by_number {
            run += u32::from(before.is_some_and(|before| head.position <= before));
            before = Some(head.position);
            step = run;
        }
        let at = if counted { position } else { head.position };
        position += 1;
        rows.push(&out.ids, at, Phase::ALL.get(phase as usize).copied().unwrap_or(Phase::Decode))?;
        debug_assert!(phase == NO_PHASE || phase < 3);
        if several {
            rows.step(step);
        }
        if token_id != NO_TOKEN {
            rows.token_id(token_id);
        }
        if with_weights {
            rows.weights(&out.weights);
        }
    }
    rows.flush()?;
    out.say(input, into, plan)
}

/// A row on its way out, and what was seen of all.
struct Out {
    /// The row in each file that it is joined of, and buffers for them.
    parts: Vec<Row>,
    spare: Vec<Row>,
    ids: Vec<u16>,
    weights: Vec<f32>,
    incomplete: u64,
    /// A weight is no number.
    broken: bool,
    /// Every row so far had experts 0, 1, 2, ... in this order.
    all_experts: bool,
    checked: u64,
}

impl Out {
    /// Gathers a row's layers; false where it lacks one.
    fn gather(
        &mut self,
        stored: &mut Stored,
        kept: &[Range<u64>],
        plan: &Plan,
        row: u64,
    ) -> Result<bool> {
        self.parts.clear();
        let files = if plan.joined { kept.len() } else { 1 };
        for file in 0..files {
            let at = if file == 0 { row } else { kept[file].start + (row - kept[0].start) };
            let mut part = self.spare.pop().unwrap_or_default();
            stored.read(at, &mut part)?;
            self.parts.push(part);
        }
        let found = self.join(stored, plan);
        self.spare.append(&mut self.parts);
        if found {
            self.broken |= self.weights.iter().any(|weight| !weight.is_finite());
            self.checked += 1;
        } else {
            self.incomplete += 1;
        }
        Ok(found)
    }

    /// The kept layers of all parts of a row, by rising layer.
    fn join(&mut self, stored: &Stored, plan: &Plan) -> bool {
        self.ids.clear();
        self.weights.clear();
        for &slot in &plan.slots {
            let Some((part, at)) = self.parts.iter().find_map(|part| {
                let mut at = 0;
                for &has in &part.has {
                    if usize::from(has) == slot {
                        return Some((part, at));
                    }
                    at += stored.slots[usize::from(has)].top_k as usize;
                }
                None
            }) else {
                return false;
            };
            let k = stored.slots[slot].top_k as usize - plan.shared;
            let ids = &part.ids[at..at + k];
            self.all_experts &= ascending(ids) && k > 1;
            self.ids.extend_from_slice(ids);
            if let Some(weights) = part.weights.get(at..at + k) {
                self.weights.extend_from_slice(weights);
            }
        }
        true
    }

    /// What was left out; a refusal where rows hold every expert.
    fn say(self, input: &Input<'_>, into: &mut Collector<'_>, plan: &Plan) -> Result<()> {
        if self.all_experts && self.checked > 0 {
            return Err(input.error(
                "experts",
                "every token has all experts of every layer, in order: these are shares or \
                 probabilities of each expert, not the experts that were chosen",
            ));
        }
        if self.broken {
            into.no_weights("some of them are no numbers");
        }
        if self.incomplete > self.checked {
            return Err(input.error(
                "rows",
                format!(
                    "{} of {} tokens lack some of the {} layers: cells are not in an order in \
                     which tokens can be told. Sort them by token, or name a column of requests \
                     or steps (`ImportOptions::columns`)",
                    self.incomplete,
                    self.incomplete + self.checked,
                    plan.slots.len()
                ),
            ));
        }
        if self.incomplete > 0 {
            into.note(format!(
                "{} tokens are left out: they lack some of the {} layers",
                self.incomplete,
                plan.slots.len()
            ));
        }
        Ok(())
    }
}

fn ascending(ids: &[u16]) -> bool {
    ids.iter().enumerate().all(|(at, &id)| usize::from(id) == at)
}
