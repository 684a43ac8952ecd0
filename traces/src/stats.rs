//! What a trace is like: its size, its locality, how skewed and how soon its experts are reused.
//!
//! Each figure's definition stands at its field. All are exact, and the same on every machine.

use rayon::prelude::*;
use serde::Serialize;

use crate::column::IdColumn;
use crate::column_info::ColumnInfo;
use crate::math::ln;
use crate::reuse::ReuseHistogram;
use crate::sequence::Phase;
use crate::shape::Shape;
use crate::trace::Trace;

/// Statistics of a whole trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// The trace's name.
    pub name: String,
    /// The routing's digest, 32 hexadecimal digits.
    pub digest: String,
    /// The digest of everything that a replay can see.
    pub content_digest: String,
    /// MoE layers.
    pub layers: usize,
    /// Experts a layer.
    pub experts: Spread,
    /// Experts a token uses in a layer.
    pub top_k: Spread,
    /// Experts over all layers.
    pub total_experts: u32,
    /// Experts that a token uses over all layers.
    pub experts_per_token: u32,
    /// Bytes of all experts together; absent where a layer's expert bytes are not recorded.
    pub total_expert_bytes: Option<u64>,
    /// Tokens in all.
    pub tokens: usize,
    /// Selections in all: tokens times experts a token.
    pub accesses: u64,
    /// Tokens of each phase.
    pub tokens_by_phase: PhaseTokens,
    /// How many sequences there are.
    pub sequences: usize,
    /// Tokens a sequence.
    pub sequence_tokens: Spread,
    /// Sequences marked as having fallen into a loop; absent where that was not recorded.
    pub sequences_with_repetition: Option<usize>,
    /// Share (0 to 1) of decode tokens' selections that the token before them in the same sequence
    /// made too, in the same layer; absent without such a token.
    pub locality: Option<f64>,
    /// Distinct experts that a layer uses over the whole trace.
    pub distinct_experts: Spread,
    /// Distinct experts that a layer uses within one sequence, over all layers and sequences.
    pub distinct_experts_in_sequence: Spread,
    /// How unequally experts are chosen.
    pub popularity: Popularity,
    /// How soon experts are used again.
    pub reuse: Reuse,
    /// Which columns the trace has.
    pub columns: Vec<ColumnInfo>,
}

/// Smallest, mean and largest of some counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest.
    pub max: u64,
}

/// Tokens of each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseTokens {
    /// Tokens of prompts.
    pub prefill: usize,
    /// Generated tokens.
    pub decode: usize,
    /// Drafted tokens that were checked.
    pub verify: usize,
}

/// How unequally experts are chosen, over all layers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Popularity {
    /// Share (0 to 1) of all selections that go to each layer's most used tenth of experts
    /// (rounded up to whole experts).
    pub top_10_percent: f64,
    /// The same of the most used quarter.
    pub top_25_percent: f64,
    /// Entropy of a layer's selections over the logarithm of its experts, mean of the layers: 1
    /// where all are used equally, 0 where one is used alone. Layers of one expert count as 1.
    pub normalised_entropy: f64,
}

/// How soon experts are used again: exact LRU stack distances over all layers, in the order token,
/// layer, rank. A distance is the least capacity in slots of an LRU cache that hits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reuse {
    /// Share (0 to 1) of accesses to an expert never used before.
    pub cold_share: f64,
    /// Half of all reuses are at most this far, in distinct experts; absent without a reuse.
    pub p50: Option<u64>,
    /// 90% of all reuses are at most this far.
    pub p90: Option<u64>,
    /// 99% of all reuses are at most this far.
    pub p99: Option<u64>,
}

impl Stats {
    /// Computes all statistics; some seconds for a hundred million accesses.
    pub fn of(trace: &Trace) -> Self {
        let (histogram, (counts, (locality, in_sequence))) = rayon::join(
            || ReuseHistogram::of(trace),
            || (selections(trace), (locality(trace), distinct_in_sequences(trace))),
        );
        let shape = trace.shape();
        let accesses = histogram.accesses();
        let per_layer: Vec<&[u64]> = (0..shape.layers().len())
            .map(|l| &counts[shape.key_base(l) as usize..][..shape.layers()[l].experts as usize])
            .collect();
        let in_phase = |phase: Phase| trace.phases().iter().filter(|&&p| p == phase as u8).count();
        let flags = trace.sequences().iter().map(|s| s.has_repetition);
        let distinct = |counts: &&[u64]| counts.iter().filter(|&&n| n > 0).count() as u64;
        Self {
            name: trace.name().to_owned(),
            digest: trace.digest().to_owned(),
            content_digest: trace.content_digest().to_owned(),
            layers: shape.layers().len(),
            experts: Spread::of(shape.layers().iter().map(|l| u64::from(l.experts))),
            top_k: Spread::of(shape.layers().iter().map(|l| u64::from(l.top_k))),
            total_experts: shape.total_experts(),
            experts_per_token: shape.experts_per_token(),
            total_expert_bytes: shape.total_bytes(),
            tokens: trace.tokens(),
            accesses,
            tokens_by_phase: PhaseTokens {
                prefill: in_phase(Phase::Prefill),
                decode: in_phase(Phase::Decode),
                verify: in_phase(Phase::Verify),
            },
            sequences: trace.sequences().len(),
            sequence_tokens: Spread::of(trace.sequences().iter().map(|s| s.rows.len() as u64)),
            sequences_with_repetition: flags
                .collect::<Option<Vec<bool>>>()
                .map(|flags| flags.into_iter().filter(|&flag| flag).count()),
            locality,
            distinct_experts: Spread::of(per_layer.iter().map(distinct)),
            distinct_experts_in_sequence: in_sequence,
            popularity: Popularity::of(&per_layer, accesses),
            reuse: Reuse {
                cold_share: histogram.cold as f64 / accesses as f64,
                p50: histogram.percentile(50),
                p90: histogram.percentile(90),
                p99: histogram.percentile(99),
            },
            columns: trace.columns(),
        }
    }
}

impl Spread {
    /// Of no counts at all, everything is 0.
    fn of(counts: impl Iterator<Item = u64>) -> Self {
        let (mut n, mut sum, mut min, mut max) = (0u64, 0u64, u64::MAX, 0);
        for count in counts {
            (n, sum, min, max) = (n + 1, sum + count, min.min(count), max.max(count));
        }
        Self { min: if n == 0 { 0 } else { min }, mean: sum as f64 / n.max(1) as f64, max }
    }
}

impl Popularity {
    fn of(per_layer: &[&[u64]], accesses: u64) -> Self {
        let (mut top_10, mut top_25, mut entropy) = (0, 0, 0.0);
        for counts in per_layer {
            let mut sorted = counts.to_vec();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            top_10 += sorted[..sorted.len().div_ceil(10)].iter().sum::<u64>();
            top_25 += sorted[..sorted.len().div_ceil(4)].iter().sum::<u64>();
            let total: u64 = sorted.iter().sum();
            let share = |&n: &u64| n as f64 / total as f64;
            let used = sorted.iter().take_while(|&&n| n > 0).map(share);
            let bits: f64 = used.map(|p| -p * ln(p)).sum();
            entropy += if counts.len() == 1 { 1.0 } else { bits / ln(counts.len() as f64) };
        }
        Self {
            top_10_percent: top_10 as f64 / accesses as f64,
            top_25_percent: top_25 as f64 / accesses as f64,
            normalised_entropy: entropy / per_layer.len() as f64,
        }
    }
}

/// Selections of each expert, by dense key.
fn selections(trace: &Trace) -> Vec<u64> {
    let shape = trace.shape();
    let mut counts = vec![0u64; shape.total_experts() as usize];
    for_each_layer(shape, trace.ids(), 0..trace.tokens(), |layer, ids| {
        let base = shape.key_base(layer);
        ids.iter().for_each(|id| counts[(base + id) as usize] += 1);
    });
    counts
}

/// Walks rows, layer by layer.
fn for_each_layer<'a>(
    shape: &Shape,
    ids: IdColumn<'a>,
    rows: std::ops::Range<usize>,
    mut visit: impl FnMut(usize, IdColumn<'a>),
) {
    for row in rows {
        let start = row * shape.row_len();
        for (index, layer) in shape.layers().iter().enumerate() {
            let from = start + shape.row_offset(index);
            visit(index, ids.slice(from..from + layer.top_k as usize));
        }
    }
}

fn locality(trace: &Trace) -> Option<f64> {
    let (shape, ids) = (trace.shape(), trace.ids());
    let row_len = shape.row_len();
    let count = |sequence: &crate::Sequence| {
        let (mut kept, mut all) = (0u64, 0u64);
        // The row in which each expert was last seen, by dense key.
        let mut seen = vec![usize::MAX; shape.total_experts() as usize];
        for row in sequence.rows.clone() {
            let decode = row > sequence.rows.start && trace.phase(row) == Phase::Decode;
            all += if decode { row_len as u64 } else { 0 };
            for_each_layer(shape, ids, row..row + 1, |layer, ids| {
                let base = shape.key_base(layer);
                for id in ids.iter() {
                    let last = std::mem::replace(&mut seen[(base + id) as usize], row);
                    kept += u64::from(decode && last == row - 1);
                }
            });
        }
        (kept, all)
    };
    let add = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
    let (kept, all) = trace.sequences().par_iter().map(count).reduce(|| (0, 0), add);
    (all > 0).then(|| kept as f64 / all as f64)
}

fn distinct_in_sequences(trace: &Trace) -> Spread {
    let shape = trace.shape();
    let count = |sequence: &crate::Sequence| {
        let mut seen = vec![false; shape.total_experts() as usize];
        let mut distinct = vec![0u64; shape.layers().len()];
        for_each_layer(shape, trace.ids(), sequence.rows.clone(), |layer, ids| {
            let base = shape.key_base(layer);
            for id in ids.iter() {
                let new = !std::mem::replace(&mut seen[(base + id) as usize], true);
                distinct[layer] += u64::from(new);
            }
        });
        distinct
    };
    let counts: Vec<Vec<u64>> = trace.sequences().par_iter().map(count).collect();
    Spread::of(counts.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::full_trace;
    use crate::{Ids, TraceBuilder};

    #[test]
    fn a_hand_worked_trace() {
        // One layer of 4 experts, top-2; rows {0,1} {1,2} {1,2} {3,0}.
        let shape = Shape::uniform(1, 4, 2).unwrap();
        let ids = Ids::U8(vec![0, 1, 1, 2, 2, 1, 3, 0]);
        let stats = Stats::of(&TraceBuilder::new("t", shape, ids).build().unwrap());
        // Kept from the row before: 1 of 2, 2 of 2, 0 of 2.
        assert_eq!(stats.locality, Some(0.5));
        assert_eq!(stats.distinct_experts, Spread { min: 4, mean: 4.0, max: 4 });
        // Expert 1 has 3 of 8 selections: one expert is both a tenth and a quarter of four.
        assert_eq!(stats.popularity.top_10_percent, 0.375);
        assert_eq!(stats.popularity.top_25_percent, 0.375);
        // -(3/8 ln 3/8 + 2 * 2/8 ln 2/8 + 1/8 ln 1/8) / ln 4 = 0.952819...
        assert!((stats.popularity.normalised_entropy - 0.952_819_531_114_783).abs() < 1e-12);
        // Distances: 1 at 1; 2 at 1; 1 at 2; 0 after {1, 2, 3} at 4.
        assert_eq!((stats.reuse.p50, stats.reuse.p90), (Some(1), Some(4)));
        assert_eq!(stats.reuse.cold_share, 0.5);
        assert_eq!((stats.accesses, stats.tokens), (8, 4));
    }

    #[test]
    fn mixed_layers_phases_and_labels() {
        let stats = Stats::of(&full_trace());
        assert_eq!(stats.tokens_by_phase, PhaseTokens { prefill: 3, decode: 3, verify: 1 });
        assert_eq!(stats.sequence_tokens, Spread { min: 2, mean: 7.0 / 3.0, max: 3 });
        assert_eq!(stats.sequences_with_repetition, Some(1));
        assert_eq!(stats.experts, Spread { min: 4, mean: 6.0, max: 8 });
        assert_eq!(stats.total_expert_bytes, Some(12_000));
        // Each decode row shares one of its two experts in layer 0 and none in layer 1.
        assert_eq!(stats.locality, Some(1.0 / 3.0));
        assert!(serde_json::to_string(&stats).unwrap().contains(r#""verify":1"#));
    }
}
