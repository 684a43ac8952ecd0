//! Rows of results: an arm against LRU, charged over each link.

use hotset_cost_models::Link;
use hotset_traces::Shape;
use serde::Serialize;

use crate::figures::Figures;
use crate::run::LinkSums;
use crate::{Arm, Comparison, Interval, Protocol, Resamples, Role};

/// All arms under one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// Share of repeats that was asked for; absent: the sequences ran as they lie.
    pub repetition_asked: Option<f64>,
    /// Share of the tested sequences that repeat a document.
    pub repetition: f64,
    /// Sequences that were tested, repeats included.
    pub tested_sequences: usize,
    /// Of these, what repeats what.
    pub repeats: Repeats,
    /// LRU first.
    pub rows: Vec<ArmRow>,
    /// All arms against LRU, then against each other arm that was asked for.
    pub comparisons: Vec<Comparison>,
}

/// Tested sequences by what they have to do with those before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeats {
    /// Of a document that was not there before.
    pub new: usize,
    /// Another part of a document that was there before: other tokens, other routes.
    pub same_document: usize,
    /// A sequence that ran before: the same tokens and the same routes again.
    pub same_sequence: usize,
}

impl Block {
    /// The comparisons with one arm, in the order of the others' rows.
    pub fn against<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a Comparison> {
        self.comparisons.iter().filter(move |compared| compared.against == arm)
    }
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
    /// Misses over LRU's, minus 1.
    pub misses_change: Interval,
    /// Experts copied because they were asked for.
    pub demand_fetches: u64,
    /// Experts copied because they were predicted.
    pub prefetches: u64,
    /// Of those, asked for before they left.
    pub prefetches_used: u64,
    /// Evicted before anything asked for them.
    pub prefetches_wasted: u64,
    /// All that nothing asked for: those evicted, and those still held when the run ended.
    pub prefetches_unused: u64,
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
        prefetches_wasted: counts.prefetches_wasted,
        prefetches_unused: counts.prefetches - counts.prefetches_used,
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
        let change =
            draws.interval(|drawn| wall(figures.arm, drawn) - wall(figures.reference, drawn));
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
            timeline_change: draws.interval(|drawn| figures.timeline_change(drawn, index)),
            point_worth_ms: worth / 100.0 / 1e9,
            point_saved_ms: (hit_points.abs() > 1e-9).then(|| -change.estimate / hit_points),
            late_share: (counts.prefetches_used > 0)
                .then(|| sums.late as f64 / counts.prefetches_used as f64),
        }
    }
}
