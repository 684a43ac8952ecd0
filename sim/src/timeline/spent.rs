//! Where a run's time went.

use std::ops::AddAssign;

use hotset_traces::Phase;
use serde::{Deserialize, Serialize};

use crate::Window;

/// A run's time on the compute stream, in picoseconds by what it was spent on, and what the other
/// engines did beside it. The wall time is the sum of the first seven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Kernels, as long as they take alone.
    pub compute: u64,
    /// What kernels took longer because copies ran beside them.
    pub slowed: u64,
    /// Waiting for experts that were missing: at most what those copies take on an idle link.
    pub demand: u64,
    /// Waiting that prefetch caused: its copies arrived late, or demands queued behind them.
    pub prefetch: u64,
    /// Waiting for the host's cores after every copy had arrived.
    pub host: u64,
    /// Waiting for experts that the disk had not given yet.
    #[serde(default)]
    pub disk: u64,
    /// Waiting for copies that nobody needed yet where the phase or the window ended.
    pub drained: u64,
    /// Host cores at work, as long as that takes alone.
    pub host_work: u64,
    /// Experts that a prefetch brought, asked for before they had arrived.
    pub late: u64,
    /// What events with misses take from their routing to the end of their kernel, where splits are
    /// judged.
    #[serde(default)]
    pub splits: Splits,
}

/// Sums over events with misses, in picoseconds: each from its routing to the end of its kernel, the
/// same residents, by how the misses are split between link and host. Zero where splits are not
/// judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splits {
    /// As the rule split them.
    pub rule: u64,
    /// As ends first.
    pub best: u64,
    /// As would end first if link and host did not slow each other; they do.
    pub uncontended: u64,
    /// All fetched.
    pub fetch_all: u64,
    /// All by the host.
    pub host_all: u64,
}

impl AddAssign for Splits {
    fn add_assign(&mut self, other: Self) {
        let Self { rule, best, uncontended, fetch_all, host_all } = other;
        for (sum, more) in [
            (&mut self.rule, rule),
            (&mut self.best, best),
            (&mut self.uncontended, uncontended),
            (&mut self.fetch_all, fetch_all),
            (&mut self.host_all, host_all),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Spent {
    /// The time on the clock.
    #[must_use]
    pub fn wall(&self) -> u64 {
        let Self { compute, slowed, demand, prefetch, host, disk, drained, .. } = *self;
        [compute, slowed, demand, prefetch, host, disk, drained]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

impl AddAssign for Spent {
    /// The pattern names every part, so that a new one that is not added here does not compile.
    fn add_assign(&mut self, other: Self) {
        let Self {
            compute,
            slowed,
            demand,
            prefetch,
            host,
            disk,
            drained,
            host_work,
            late,
            splits,
        } = other;
        self.splits += splits;
        for (sum, more) in [
            (&mut self.compute, compute),
            (&mut self.slowed, slowed),
            (&mut self.demand, demand),
            (&mut self.prefetch, prefetch),
            (&mut self.host, host),
            (&mut self.disk, disk),
            (&mut self.drained, drained),
            (&mut self.host_work, host_work),
            (&mut self.late, late),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// One step's time on the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTime {
    /// From its first kernel to the end of its last, in picoseconds.
    pub ps: u64,
    /// Experts that it waited to be copied.
    pub copies: u32,
    /// Experts that it prefetched.
    pub prefetches: u32,
    /// What it ran.
    pub phase: Phase,
    /// Whether it counts as steady.
    pub steady: bool,
}

/// A replay's times over one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// `[phase][cold, steady][layer]`.
    cells: Vec<Spent>,
    layers: usize,
    /// Each step in order, if they were asked for.
    pub steps: Vec<StepTime>,
}

impl Times {
    pub(super) fn new(layers: usize) -> Self {
        Self { cells: vec![Spent::default(); 6 * layers], layers, steps: Vec::new() }
    }

    /// Whether these can be the times of a replay over so many layers. A file from which times are
    /// read may hold anything.
    pub(crate) fn are_possible(&self, layers: usize) -> bool {
        self.layers == layers && self.cells.len() == 6 * layers
    }

    #[inline(always)]
    pub(super) fn row_of(&self, phase: Phase, steady: bool) -> usize {
        (2 * phase as usize + usize::from(steady)) * self.layers
    }

    #[inline(always)]
    pub(super) fn cell(&mut self, index: usize) -> &mut Spent {
        &mut self.cells[index]
    }

    /// Number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// One layer of one phase and window.
    #[must_use]
    pub fn layer(&self, phase: Phase, window: Window, layer: usize) -> Spent {
        let mut sum = Spent::default();
        for steady in [false, true] {
            if window.includes(steady) {
                sum += self.cells[self.row_of(phase, steady) + layer];
            }
        }
        sum
    }

    /// One phase and window.
    #[must_use]
    pub fn bucket(&self, phase: Phase, window: Window) -> Spent {
        let mut sum = Spent::default();
        (0..self.layers).for_each(|layer| sum += self.layer(phase, window, layer));
        sum
    }

    /// The times of one phase's and window's steps, ascending; empty if steps were not asked for.
    #[must_use]
    pub fn sorted_steps(&self, phase: Phase, window: Window) -> Vec<u64> {
        let of = |step: &&StepTime| step.phase == phase && window.includes(step.steady);
        let mut times: Vec<u64> = self.steps.iter().filter(of).map(|step| step.ps).collect();
        times.sort_unstable();
        times
    }
}

/// The smallest of the ascending `sorted` that `percent` of them do not exceed (nearest rank);
/// `None` without any.
#[must_use]
pub fn percentile(sorted: &[u64], percent: f64) -> Option<u64> {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times: Vec<u64> = (1..=10).collect();
        let at = |percent| percentile(&times, percent);
        assert_eq!([0.0, 50.0, 90.0, 99.0, 100.0].map(at).map(Option::unwrap), [1, 5, 9, 10, 10]);
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(percentile(&[7], 99.0), Some(7));
    }
}
