//! Rows of all files into a trace: layers, sequences, what is left out and said.

use std::ops::Range;

use super::cells::File;
use super::passes::Met;
use super::store::{Head, NO_PHASE, NO_TOKEN, Row, Rows as Stored};
use crate::error::Result;
use crate::import::collect::Collector;
use crate::import::input::Input;
use crate::import::layers::Numbering;
use crate::import::lines::Rows;
use crate::trace::Phase;

/// Rows alike from the beginning on that make a profiling pass.
const DUMMIES: u64 = 16;

/// Makes a trace of what was read.
pub(super) fn finish(
    inputs: &[Input<'_>],
    files: Vec<File>,
    mut stored: Stored,
    into: &mut Collector<'_>,
) -> Result<()> {
    let Some(input) = inputs.first() else { return Ok(()) };
    if stored.len() == 0 {
        return Err(input.error("lines", "none has a token's experts in a layer"));
    }
    state(input, &files, into)?;
    let mut kept: Vec<Range<u64>> = Vec::new();
    let mut dummies = 0;
    for file in &files {
        let first = profiling(&mut stored, file)?;
        dummies += first - file.rows.start;
        kept.push(first..file.rows.end);
    }
    if dummies > 0 {
        into.note(format!(
            "{dummies} rows at the beginning are left out: passes of {DUMMIES} or more rows that \
             are all alike, as an engine's profiling writes them"
        ));
    }
    let joined = joins(&stored, &kept);
    let shared = files.iter().all(|file| file.shared_expert);
    let plan = Plan::new(&stored, &kept, joined, shared.into());
    notes(&files, into);
    if kept.iter().all(Range::is_empty) {
        return Err(input.error("rows", "all are alike, as an engine's profiling writes them"));
    }
    if joined {
        same_lengths(inputs, &kept)?;
    }
    let numbers: Vec<u32> = plan.slots.iter().map(|&slot| stored.slots[slot].layer).collect();
    let cut = plan.shared as u32;
    let top_ks: Vec<u32> = plan.slots.iter().map(|&slot| stored.slots[slot].top_k - cut).collect();
    if plan.shared > 0 {
        into.note(
            "the last expert of every row is the shared one beside the routed: it is left out",
        );
    }
    if let Some(stated) = files.iter().find_map(|file| file.stated.top_k)
        && let Some(at) = top_ks.iter().position(|&k| k != stated)
    {
        let (number, k) = (numbers[at], top_ks[at]);
        return Err(input.error(
            format!("layer {number}"),
            format!(
                "{k} experts a token, the file says top-k {stated}: a shared expert beside the \
                 routed ones, or padding, is no routing; write the {stated} routed ids alone"
            ),
        ));
    }
    into.layers(input, Numbering::Numbered(&numbers), &top_ks)?;
    emit(input, &files, &mut stored, &kept, &plan, into)
}

/// Whether lines are in no order in which tokens could be told: numbers fall, yet none of them
/// comes twice, or most tokens lack layers.
pub(super) fn is_scattered(files: &[File], stored: &Stored) -> bool {
    let told = |file: &File| file.met.numbered && !file.met.steps;
    let alone = |file: &File| file.met.falls && !file.met.crowded;
    let whole: Vec<Range<u64>> = files.iter().map(|file| file.rows.clone()).collect();
    if files.is_empty() || !files.iter().all(told) {
        return false;
    }
    let plan = Plan::new(stored, &whole, false, 0);
    let most = stored.len().saturating_sub(stored.having(&plan.slots));
    files.iter().any(alone) || (!joins(stored, &whole) && 2 * most > stored.len())
}

/// What the files say of their model.
fn state(input: &Input<'_>, files: &[File], into: &mut Collector<'_>) -> Result<()> {
    for file in files {
        if let (Some(before), Some(now)) = (into.stated_experts, file.stated.experts)
            && before != now
        {
            let problem = format!("{now} experts in one input, {before} in another");
            return Err(input.error("experts", problem));
        }
        into.stated_experts = into.stated_experts.or(file.stated.experts);
        if into.stated_name.is_none() {
            into.stated_name.clone_from(&file.stated.model);
        }
    }
    Ok(())
}

/// The first row of a file behind its profiling passes: whole passes whose rows are all alike, or
/// where passes cannot be told, rows alike.
fn profiling(stored: &mut Stored, file: &File) -> Result<u64> {
    let (mut row, mut other) = (Row::default(), Row::default());
    let mut first = file.rows.start;
    // Passes of one row each, or one pass: nothing tells where a pass ends.
    let untold = !file.met.batches || !file.met.restarts;
    while first < file.rows.end {
        stored.read(first, &mut row)?;
        let mut end = first + 1;
        let mut same_pass = true;
        while end < file.rows.end {
            stored.read(end, &mut other)?;
            if !alike(&row, &other) {
                same_pass = other.head.step != row.head.step;
                break;
            }
            if !untold && other.head.step != row.head.step {
                break;
            }
            end += 1;
        }
        if end - first < DUMMIES || !(same_pass || untold) {
            break;
        }
        first = end;
    }
    Ok(first)
}

fn alike(a: &Row, b: &Row) -> bool {
    let weights = a.weights.len() == b.weights.len()
        && a.weights.iter().zip(&b.weights).all(|(a, b)| a.to_bits() == b.to_bits());
    a.ids == b.ids && a.has == b.has && weights
}

/// Whether several files are layers of one recording: none has a layer of another.
fn joins(stored: &Stored, kept: &[Range<u64>]) -> bool {
    let mut seen = vec![false; stored.slots.len()];
    for rows in kept {
        for (slot, count) in stored.coverage(rows.clone()).into_iter().enumerate() {
            if count > 0 && std::mem::replace(&mut seen[slot], true) {
                return false;
            }
        }
    }
    kept.len() > 1
}

fn same_lengths(inputs: &[Input<'_>], kept: &[Range<u64>]) -> Result<()> {
    let len = |rows: &Range<u64>| rows.end - rows.start;
    let first = len(&kept[0]);
    match kept.iter().position(|rows| len(rows) != first) {
        None => Ok(()),
        Some(at) => {
            let other = len(&kept[at]);
            Err(inputs[at].error(
                "rows",
                format!(
                    "{other} tokens, the first input has {first}: inputs with other layers each \
                     are joined by row, so that all must have the same tokens"
                ),
            ))
        }
    }
}

/// What is kept of the rows.
struct Plan {
    /// The slots that are layers of the trace, by rising layer.
    slots: Vec<usize>,
    joined: bool,
    /// Experts at the end of each list that are not routed: a fused shared one.
    shared: usize,
}

impl Plan {
    /// Layers that fewer than half of the tokens have are no layers of all tokens.
    fn new(stored: &Stored, kept: &[Range<u64>], joined: bool, shared: usize) -> Self {
        let mut counts = vec![0; stored.slots.len()];
        for rows in kept {
            for (slot, count) in stored.coverage(rows.clone()).into_iter().enumerate() {
                counts[slot] += count;
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut slots: Vec<usize> = (0..counts.len())
            .filter(|&slot| counts[slot] > 0 && 2 * counts[slot] >= most)
            .collect();
        slots.sort_by_key(|&slot| stored.slots[slot].layer);
        Self { slots, joined, shared }
    }
}

fn notes(files: &[File], into: &mut Collector<'_>) {
    let sum = |of: fn(&File) -> u64| files.iter().map(of).sum::<u64>();
    let copies = sum(|file| file.met.copies);
    if copies > 0 {
        into.note(format!("{copies} cells come twice, alike: the copies are dropped"));
    }
    if files.iter().any(|file| file.met.padded) {
        into.note("rows are padded with -1 behind their experts: the padding is left out");
    }
    if let Some(word) = files.iter().find_map(|file| file.met.other_phase.as_ref()) {
        into.note(format!(
            "the phase {word:?} is not known (prefill and decode are): its tokens are taken as \
             decode tokens"
        ));
    } else if files.iter().any(|file| file.met.no_phase) {
        into.note("the phase is not recorded: all tokens are taken as decode tokens");
    }
    if files.iter().any(|file| file.met.restarts) {
        into.note(
            "numbers of tokens begin again with each forward pass: they are taken as rows of a \
             pass, positions are counted on",
        );
    } else if files.iter().any(|file| !file.met.numbered) {
        into.note("no column numbers the tokens: they are counted in the order of the file");
    }
    // One such object a file is its header.
    let others = sum(|file| file.others.saturating_sub(1));
    if others > 0 {
        into.note(format!("{others} lines have no layer or no experts and are left out"));
    }
}

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

fn emit(
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
