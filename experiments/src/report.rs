//! Rows of results: an arm against LRU, charged over each link.

use hotset_cost_models::Link;
use hotset_traces::Shape;
use serde::Serialize;

use crate::run::{LinkSums, Outcome};
use crate::{Arm, Interval, Protocol, Resamples, Role};

/// All arms under one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// Share of repeats that was asked for; absent: the sequences ran as they lie.
    pub repetition_asked: Option<f64>,
    /// Share of the tested sequences that repeat a document.
    pub repetition: f64,
    /// Sequences that were tested, repeats included.
    pub tested_sequences: usize,
    /// LRU first.
    pub rows: Vec<ArmRow>,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmRow {
    /// `POLICY` or `POLICY/PREFETCH`.
    pub arm: String,
    /// What it is there for.
    pub role: Role,
    /// Tokens.
    pub tokens: u64,
    /// Experts asked for.
    pub accesses: u64,
    /// hits / accesses.
    pub hit_rate: f64,
    /// Hit rate minus LRU's, in points.
    pub hit_points: Interval,
    /// MissHandler over LRU's, minus 1.
    pub misses_change: Interval,
    /// Experts copied because they were asked for.
    pub demand_fetches: u64,
    /// Experts copied because they were predicted.
    pub prefetches: u64,
    /// Of those, asked for before they left.
    pub prefetches_used: u64,
    /// The others.
    pub prefetches_wasted: u64,
    /// Experts copied a token.
    pub moved_per_token: f64,
    /// Experts copied, over LRU's.
    pub moved_ratio: Interval,
    /// Prices.
    pub links: Vec<ArmLink>,
}

/// What an arm costs over one link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmLink {
    /// The link.
    pub link: String,
    /// Compute and every transfer, one after another.
    pub serial_ms_per_token: f64,
    /// Compute, copies and waiting beside each other.
    pub timeline_ms_per_token: f64,
    /// Compute, demand, and what prefetch exceeds compute by.
    pub prefetch_hidden_ms_per_token: f64,
    /// The longer of compute and all transfers.
    pub perfect_ms_per_token: f64,
    /// Timeline minus LRU's, ms a token.
    pub timeline_change_ms: Interval,
    /// Timeline over LRU's, minus 1.
    pub timeline_change: Interval,
    /// What a point of hit rate is worth if nothing else moves: a hundredth of a token's accesses,
    /// each a copy on the idle link, ms a token.
    pub point_worth_ms: f64,
    /// What a point more than LRU's saved in fact, ms a token; absent where hit rates are equal.
    pub point_saved_ms: Option<f64>,
    /// Prefetched experts asked for before they had arrived, over those used; absent without any.
    pub late_share: Option<f64>,
}

/// An arm that could not run on this trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The arm.
    pub arm: String,
    /// What is missing, and who records it.
    pub reason: String,
}

/// Figures of an outcome, for units drawn so often.
pub(crate) struct Figures<'a> {
    pub arm: &'a Outcome,
    pub lru: &'a Outcome,
    /// The sequences that were tested: what is drawn.
    pub units: &'a [usize],
}

impl Figures<'_> {
    fn sum(&self, of: &Outcome, drawn: &[u32], value: impl Fn(&crate::Tally) -> u64) -> f64 {
        let tallies = self.units.iter().map(|&unit| &of.tallies[unit]);
        drawn.iter().zip(tallies).map(|(&n, tally)| f64::from(n) * value(tally) as f64).sum()
    }

    pub fn hit_points(&self, drawn: &[u32]) -> f64 {
        let hit = |of: &Outcome| {
            let accesses = self.sum(of, drawn, |tally| tally.accesses);
            1.0 - self.sum(of, drawn, |tally| tally.misses) / accesses
        };
        100.0 * (hit(self.arm) - hit(self.lru))
    }

    fn ratio(&self, drawn: &[u32], value: impl Fn(&crate::Tally) -> u64 + Copy) -> f64 {
        self.sum(self.arm, drawn, value) / self.sum(self.lru, drawn, value)
    }

    pub fn wall_ms(&self, of: &Outcome, drawn: &[u32], link: usize) -> f64 {
        let tokens = self.sum(of, drawn, |tally| tally.tokens);
        let wall = |tally: &crate::Tally| tally.wall_ps.get(link).copied().unwrap_or(0);
        self.sum(of, drawn, wall) / 1e9 / tokens
    }
}

/// One arm's row.
pub(crate) fn row(
    protocol: &Protocol,
    shape: &Shape,
    arm: &Arm,
    figures: &Figures<'_>,
    draws: &Resamples,
) -> ArmRow {
    let counts = figures.arm.counts;
    let hit_points = draws.interval(|drawn| figures.hit_points(drawn));
    let links = protocol.links.iter().enumerate().map(|(index, link)| {
        let sums = &figures.arm.prices[index];
        let of = LinkRow { shape, link, index, draws, hit_points: hit_points.estimate };
        of.row(sums, figures)
    });
    ArmRow {
        arm: arm.name.clone(),
        role: arm.role(),
        tokens: counts.tokens,
        accesses: counts.accesses,
        hit_rate: counts.hit_rate(),
        hit_points,
        misses_change: draws.interval(|drawn| figures.ratio(drawn, |tally| tally.misses) - 1.0),
        demand_fetches: counts.demand_fetches,
        prefetches: counts.prefetches,
        prefetches_used: counts.prefetches_used,
        prefetches_wasted: counts.prefetches - counts.prefetches_used,
        moved_per_token: counts.moved() as f64 / counts.tokens.max(1) as f64,
        moved_ratio: draws.interval(|drawn| figures.ratio(drawn, crate::Tally::moved)),
        links: links.collect(),
    }
}

/// What an arm's row over one link needs beside its figures.
struct LinkRow<'a> {
    shape: &'a Shape,
    link: &'a Link,
    /// Its place among the protocol's links.
    index: usize,
    draws: &'a Resamples,
    /// Hit rate minus LRU's, in points.
    hit_points: f64,
}

impl LinkRow<'_> {
    fn row(&self, sums: &LinkSums, figures: &Figures<'_>) -> ArmLink {
        let Self { shape, link, index, draws, hit_points } = *self;
        let counts = figures.arm.counts;
        let ms = |ps: u128| ps as f64 / 1e9 / counts.tokens.max(1) as f64;
        let wall = |of, drawn: &[u32]| figures.wall_ms(of, drawn, index);
        let change = draws.interval(|drawn| wall(figures.arm, drawn) - wall(figures.lru, drawn));
        let worth: f64 = shape
            .layers()
            .iter()
            .map(|layer| f64::from(layer.top_k) * link.demand_ps(layer.expert_bytes, 1) as f64)
            .sum();
        ArmLink {
            link: link.name.clone(),
            serial_ms_per_token: ms(sums.serial),
            timeline_ms_per_token: ms(sums.timeline),
            prefetch_hidden_ms_per_token: ms(sums.prefetch_hidden),
            perfect_ms_per_token: ms(sums.perfect),
            timeline_change_ms: change,
            timeline_change: draws
                .interval(|drawn| wall(figures.arm, drawn) / wall(figures.lru, drawn) - 1.0),
            point_worth_ms: worth / 100.0 / 1e9,
            point_saved_ms: (hit_points.abs() > 1e-9).then(|| -change.estimate / hit_points),
            late_share: (counts.prefetches_used > 0)
                .then(|| sums.late as f64 / counts.prefetches_used as f64),
        }
    }
}
