//! What a sequence cost: the units that are resampled.

use hotset_sim::{Steps, Times};
use hotset_traces::{Phase, Trace};

/// Sums over the decode steps of one sequence (and of its repeats).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tokens that ran.
    pub tokens: u64,
    /// Experts asked for.
    pub accesses: u64,
    /// Experts copied because they were asked for: the misses.
    pub misses: u64,
    /// Experts copied because they were predicted.
    pub prefetches: u64,
    /// Time on the timeline of each link, in picoseconds.
    pub wall_ps: Vec<u64>,
}

impl Tally {
    /// Adds another's. The pattern names every part, so that a new one that is not added here does
    /// not compile.
    pub fn add(&mut self, other: &Self) {
        let Self { tokens, accesses, misses, prefetches, wall_ps } = other;
        self.tokens += tokens;
        self.accesses += accesses;
        self.misses += misses;
        self.prefetches += prefetches;
        self.wall_ps.resize(wall_ps.len().max(self.wall_ps.len()), 0);
        self.wall_ps.iter_mut().zip(wall_ps).for_each(|(sum, ps)| *sum += ps);
    }

    /// Experts copied.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.misses + self.prefetches
    }
}

/// One tally for each sequence of a trace whose decode steps ran one sequence after another.
/// `times` are of the links, with steps kept.
pub(crate) fn by_sequence(trace: &Trace, steps: &Steps, times: &[Times]) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); trace.sequences().len()];
    let row_len = trace.shape().row_len() as u64;
    let rows = (0..steps.len())
        .map(|step| (steps.row(steps.places(step).start), steps.places(step).len() as u64))
        .filter(|&(row, _)| trace.phase(row) == Phase::Decode);
    for (index, (row, tokens)) in rows.enumerate() {
        let tally = &mut tallies[trace.sequence_of(row)];
        tally.tokens += tokens;
        tally.accesses += tokens * row_len;
        tally.wall_ps.resize(times.len(), 0);
        for (sum, times) in tally.wall_ps.iter_mut().zip(times) {
            *sum += times.steps[index].ps;
        }
        if let Some(times) = times.first() {
            tally.misses += u64::from(times.steps[index].copies);
            tally.prefetches += u64::from(times.steps[index].prefetches);
        }
    }
    tallies
}
