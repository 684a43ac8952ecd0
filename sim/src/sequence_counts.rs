//! The counts of one sequence.

use hotset_traces::Phase;
use serde::{Deserialize, Serialize};

/// One sequence in one phase and part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceCounts {
    /// The sequence's place in what was replayed.
    pub sequence: u32,
    /// Phase of the tokens.
    pub phase: Phase,
    /// Whether it counts as steady.
    pub steady: bool,
    /// Tokens that ran.
    pub tokens: u64,
    /// Distinct experts asked for.
    pub accesses: u64,
    /// Of those, resident.
    pub hits: u64,
    /// Time over each link in picoseconds: on the timeline where there is one, else one thing after
    /// another. Empty where the experts' size is unknown.
    pub ps: Vec<u64>,
}

impl SequenceCounts {
    /// Whether a replay over so many links can have counted it, nothing above `most`.
    pub(crate) fn is_possible(&self, links: usize, most: u64) -> bool {
        (self.ps.is_empty() || self.ps.len() == links)
            && self.hits <= self.accesses
            && self.accesses.max(self.tokens) <= most
    }

    /// Adds another's. The pattern names every part, so that a new one that is not added here does
    /// not compile.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { sequence: _, phase: _, steady: _, tokens, accesses, hits, ps } = other;
        self.tokens += tokens;
        self.accesses += accesses;
        self.hits += hits;
        self.ps.iter_mut().zip(ps).for_each(|(sum, ps)| *sum = sum.saturating_add(*ps));
    }

    /// By which they are in order.
    pub(crate) fn key(&self) -> (u32, u8, bool) {
        (self.sequence, self.phase as u8, self.steady)
    }
}
