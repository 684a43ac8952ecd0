//! Rows of all files into a trace: layers, sequences, what is left out and said.

use std::ops::Range;

use super::cells::File;
use super::emit::emit;
use super::plan::{Plan, joins};
use super::store::{Row, Rows as Stored};
use crate::error::Result;
use crate::import::collect::Collector;
use crate::import::input::Input;
use crate::import::layers::Numbering;

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
        if let (Some(before), Some(now)) = (into.stated.experts, file.stated.experts)
            && before != now
        {
            let problem = format!("{now} experts in one input, {before} in another");
            return Err(input.error("experts", problem));
        }
        into.stated.experts = into.stated.experts.or(file.stated.experts);
        if into.stated.name.is_none() {
            into.stated.name.clone_from(&file.stated.model);
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
