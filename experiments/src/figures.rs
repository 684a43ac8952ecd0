//! Figures of one arm against another, for sequences drawn again and again.

use crate::run::{Outcome, Runs};

/// Figures of an outcome against another's, for units drawn so often.
pub(crate) struct Figures<'a> {
    pub arm: &'a Outcome,
    /// What it is compared with.
    pub reference: &'a Outcome,
    /// The sequences that were tested: what is drawn.
    pub units: &'a [usize],
    pub runs: Runs,
}

impl Figures<'_> {
    fn sum(&self, of: &Outcome, drawn: &[u32], value: impl Fn(&crate::Tally) -> u64) -> f64 {
        let tallies = of.tallies(self.runs);
        let tallies = self.units.iter().map(|&unit| &tallies[unit]);
        drawn.iter().zip(tallies).map(|(&n, tally)| f64::from(n) * value(tally) as f64).sum()
    }

    /// Sequences that have any run that counts.
    pub fn sequences(&self) -> usize {
        let tallies = self.arm.tallies(self.runs);
        self.units.iter().filter(|&&unit| tallies[unit].tokens > 0).count()
    }

    pub fn hit_points(&self, drawn: &[u32]) -> f64 {
        let hit = |of: &Outcome| {
            let accesses = self.sum(of, drawn, |tally| tally.accesses);
            1.0 - self.sum(of, drawn, |tally| tally.misses) / accesses
        };
        100.0 * (hit(self.arm) - hit(self.reference))
    }

    /// A sum over the other's.
    pub fn ratio(&self, drawn: &[u32], value: impl Fn(&crate::Tally) -> u64 + Copy) -> f64 {
        self.sum(self.arm, drawn, value) / self.sum(self.reference, drawn, value)
    }

    /// Timeline over the other's, minus 1.
    pub fn timeline_change(&self, drawn: &[u32], link: usize) -> f64 {
        self.wall_ms(self.arm, drawn, link) / self.wall_ms(self.reference, drawn, link) - 1.0
    }

    pub fn wall_ms(&self, of: &Outcome, drawn: &[u32], link: usize) -> f64 {
        let tokens = self.sum(of, drawn, |tally| tally.tokens);
        let wall = |tally: &crate::Tally| tally.wall_ps.get(link).copied().unwrap_or(0);
        self.sum(of, drawn, wall) / 1e9 / tokens
    }
}
