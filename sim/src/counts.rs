//! What a replay counts, by phase and window.

use hotset_traces::{Phase, Shape};
use serde::{Deserialize, Serialize};

use crate::sequence_counts::SequenceCounts;

/// Part of a run: before the cache has first been full (or over the warm-up tokens), and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    /// The whole run.
    All,
    /// Until the cache was full, or over the warm-up.
    Cold,
    /// The rest.
    Steady,
}

impl Window {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Cold => "cold",
            Self::Steady => "steady",
        }
    }

    /// Whether the steady (else the cold) part of a run belongs to it.
    #[must_use]
    pub fn includes(self, steady: bool) -> bool {
        match self {
            Self::All => true,
            Self::Cold => !steady,
            Self::Steady => steady,
        }
    }
}

/// More than any run counts; 65,536 layers of it can still be added up.
const MOST_COUNTED: u64 = 1 << 46;

/// Counts of one phase in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Tokens that ran.
    pub tokens: u64,
    /// Distinct experts asked for, over all events.
    pub accesses: u64,
    /// Of those, in a slot when the event began, its copy complete or on its way.
    pub hits: u64,
    /// Experts copied because they were asked for, by layer, those served through the transient
    /// buffer included; of a streamed prefill, all of a layer's experts.
    pub demand_fetches: Vec<u64>,
    /// Experts copied because they were predicted, by layer.
    pub prefetches: Vec<u64>,
    /// Prefetched experts that were asked for before they left.
    pub prefetches_used: u64,
    /// Prefetched experts that left before they were asked for.
    pub prefetches_wasted: u64,
    /// Prefetches whose copies were taken back before they began; not counted as prefetches.
    #[serde(default)]
    pub prefetches_cancelled: u64,
    /// Misses that the host's cores served where the experts lie.
    pub host_served: u64,
    /// Of those, whose output was added a layer later.
    #[serde(default)]
    pub deferred: u64,
    /// Misses that were not computed at all.
    #[serde(default)]
    pub dropped: u64,
    /// Misses for which a resident expert stood in.
    #[serde(default)]
    pub substituted: u64,
    /// Misses that came as smaller copies, which no slot keeps, by layer; not among `demand_fetches`.
    #[serde(default)]
    pub low_precision: Vec<u64>,
    /// The size of those as a share of the whole, in millionths; 0 without any.
    #[serde(default)]
    pub low_size_ppm: u32,
    /// Router weight that went to dropped and substituted experts, in billionths of a token's weight
    /// in a layer.
    #[serde(default)]
    pub lost_weight: u64,
    /// Experts copied again because a streamed prefill had overwritten their slots.
    pub refetches: u64,
    /// What the tiers under the accelerator's memory did; nothing where there are none.
    #[serde(default)]
    pub tiers: TierCounts,
    /// Misses that found no slot and went through the transient buffer.
    pub unplaced: u64,
    /// Events that needed more experts than their pool has slots.
    pub overflow_events: u64,
}

/// What the tiers under the accelerator's memory did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierCounts {
    /// Experts that were to be copied up or computed by the host, and lay in host memory.
    pub host_hits: u64,
    /// Those that did not: read from disk because they were asked for, by layer.
    pub reads: Vec<u64>,
    /// Experts read from disk because they were predicted, or lay behind one that was read, by layer.
    pub reads_ahead: Vec<u64>,
    /// Experts that left the accelerator and took a slot in host memory: copies downwards.
    pub kept: u64,
}

impl TierCounts {
    fn new(layers: usize) -> Self {
        Self { reads: vec![0; layers], reads_ahead: vec![0; layers], ..Self::default() }
    }

    /// Experts asked of host memory that it did not have.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.reads.iter().sum()
    }

    /// Experts read from disk that nobody had asked for.
    #[must_use]
    pub fn ahead(&self) -> u64 {
        self.reads_ahead.iter().sum()
    }

    /// Those of one layer alone, as far as they are counted by layer.
    pub(crate) fn of_layer(&self, layer: usize) -> Self {
        let only = |of: &[u64]| {
            let each = of.iter().enumerate();
            each.map(|(index, &count)| if index == layer { count } else { 0 }).collect()
        };
        let (reads, reads_ahead) = (only(&self.reads), only(&self.reads_ahead));
        Self { reads, reads_ahead, ..Self::default() }
    }

    /// Whether they can be those of so many layers; a journal of an earlier version has none.
    fn is_possible(&self, layers: usize) -> bool {
        let counted = |of: &Vec<u64>| {
            (of.is_empty() || of.len() == layers) && of.iter().all(|&n| n <= MOST_COUNTED)
        };
        counted(&self.reads) && counted(&self.reads_ahead) && self.host_hits <= MOST_COUNTED
    }

    fn add(&mut self, other: &Self) {
        let Self { host_hits, reads, reads_ahead, kept } = other;
        self.host_hits += host_hits;
        add_each(&mut self.reads, reads);
        add_each(&mut self.reads_ahead, reads_ahead);
        self.kept += kept;
    }
}

impl Bucket {
    fn new(layers: usize) -> Self {
        let none = || vec![0; layers];
        Self {
            demand_fetches: none(),
            prefetches: none(),
            low_precision: none(),
            tiers: TierCounts::new(layers),
            ..Self::default()
        }
    }

    /// Whether sums over it stay within 64 bits, and it has these layers.
    fn is_possible(&self, layers: usize) -> bool {
        let copies =
            || self.demand_fetches.iter().chain(&self.prefetches).chain(&self.low_precision);
        self.demand_fetches.len() == layers
            && self.prefetches.len() == layers
            && (self.low_precision.is_empty() || self.low_precision.len() == layers)
            && self.hits <= self.accesses
            && self.tiers.is_possible(layers)
            && copies().chain([&self.tokens, &self.accesses]).all(|&count| count <= MOST_COUNTED)
    }

    /// Accesses that were not hits.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.accesses - self.hits
    }

    /// Experts copied because they were asked for.
    #[must_use]
    pub fn demanded(&self) -> u64 {
        self.demand_fetches.iter().sum()
    }

    /// Experts copied because they were predicted.
    #[must_use]
    pub fn prefetched(&self) -> u64 {
        self.prefetches.iter().sum()
    }

    /// Experts moved: every copy.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.demanded() + self.prefetched()
    }

    /// Bytes of a smaller copy of an expert of so many.
    #[must_use]
    pub fn low_bytes(&self, bytes: u64) -> u64 {
        low_bytes(bytes, self.low_size_ppm)
    }

    /// Bytes copied, smaller copies with them, of layers whose experts have these sizes.
    #[must_use]
    pub fn moved_bytes(&self, shape: &Shape) -> u128 {
        let sum = |copies: &[u64], of: &dyn Fn(u64) -> u64| -> u128 {
            let layers = copies.iter().zip(shape.layers());
            layers.map(|(&n, layer)| u128::from(n) * u128::from(of(layer.expert_bytes))).sum()
        };
        let whole = |bytes| bytes;
        sum(&self.demand_fetches, &whole)
            + sum(&self.prefetches, &whole)
            + sum(&self.low_precision, &|bytes| self.low_bytes(bytes))
    }

    /// Adds another's. The pattern names every counter, so that a new one that is not added here
    /// does not compile.
    fn add(&mut self, other: &Self) {
        let Self {
            tokens,
            accesses,
            hits,
            demand_fetches,
            prefetches,
            prefetches_used,
            prefetches_wasted,
            prefetches_cancelled,
            host_served,
            deferred,
            dropped,
            substituted,
            low_precision,
            low_size_ppm,
            lost_weight,
            refetches,
            tiers,
            unplaced,
            overflow_events,
        } = other;
        self.tokens += tokens;
        self.accesses += accesses;
        self.hits += hits;
        add_each(&mut self.demand_fetches, demand_fetches);
        add_each(&mut self.prefetches, prefetches);
        self.prefetches_used += prefetches_used;
        self.prefetches_wasted += prefetches_wasted;
        self.prefetches_cancelled += prefetches_cancelled;
        self.host_served += host_served;
        self.deferred += deferred;
        self.dropped += dropped;
        self.substituted += substituted;
        add_each(&mut self.low_precision, low_precision);
        self.low_size_ppm = self.low_size_ppm.max(*low_size_ppm);
        self.lost_weight = self.lost_weight.saturating_add(*lost_weight);
        self.refetches += refetches;
        self.tiers.add(tiers);
        self.unplaced += unplaced;
        self.overflow_events += overflow_events;
    }
}

/// Bytes of a copy of this share of an expert, in millionths, rounded up.
pub(crate) fn low_bytes(bytes: u64, size_ppm: u32) -> u64 {
    let share = (u128::from(bytes) * u128::from(size_ppm)).div_ceil(1_000_000);
    u64::try_from(share).unwrap_or(bytes)
}

fn add_each(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// The counts of a whole replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// `[phase][cold, steady]`.
    buckets: Vec<[Bucket; 2]>,
    layers: usize,
    /// `[phase][layer]`: accesses and hits, where they are counted by layer.
    by_layer: Vec<(u64, u64)>,
    /// Each sequence by itself, in their order, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sequences: Vec<SequenceCounts>,
}

impl Counts {
    /// Nothing counted yet, for a model with this many MoE layers.
    #[must_use]
    pub fn new(layers: usize) -> Self {
        let pair = || [Bucket::new(layers), Bucket::new(layers)];
        let buckets = Phase::ALL.iter().map(|_| pair()).collect();
        Self { buckets, layers, by_layer: Vec::new(), sequences: Vec::new() }
    }

    /// Counts accesses and hits by layer too.
    #[must_use]
    pub(crate) fn with_layers(mut self) -> Self {
        self.by_layer = vec![(0, 0); Phase::ALL.len() * self.layers];
        self
    }

    /// Nothing counted, of the same layers and in the same detail.
    pub(crate) fn none(&self) -> Self {
        let none = Self::new(self.layers);
        if self.by_layer.is_empty() { none } else { none.with_layers() }
    }

    /// Adds the counts of another part of the same run.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { buckets, layers: _, by_layer, sequences: _ } = other;
        for (sums, more) in self.buckets.iter_mut().flatten().zip(buckets.iter().flatten()) {
            sums.add(more);
        }
        for (sum, more) in self.by_layer.iter_mut().zip(by_layer) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }

    /// With each sequence's own.
    pub(crate) fn with_sequences(mut self, sequences: Vec<SequenceCounts>) -> Self {
        self.sequences = sequences;
        self
    }

    /// Each sequence by itself, in their order; empty unless a sample was replayed.
    #[must_use]
    pub fn sequences(&self) -> &[SequenceCounts] {
        &self.sequences
    }

    pub(crate) fn sequences_mut(&mut self) -> &mut [SequenceCounts] {
        &mut self.sequences
    }

    /// Whether these can be the counts of a replay over so many layers and links. A file from which
    /// counts are read may hold anything.
    pub(crate) fn are_possible(&self, layers: usize, links: usize) -> bool {
        let by_layer = Phase::ALL.len() * layers;
        self.layers == layers
            && self.buckets.len() == Phase::ALL.len()
            && self.buckets.iter().flatten().all(|bucket| bucket.is_possible(layers))
            && (self.by_layer.is_empty() || self.by_layer.len() == by_layer)
            && self.by_layer.iter().all(|(accesses, hits)| hits <= accesses)
            && self.sequences.iter().all(|of| of.is_possible(links, MOST_COUNTED))
    }

    /// Accesses and hits of one layer in one phase, zero where a replay does not count them (one
    /// without timelines, prefetch and the like).
    #[must_use]
    pub fn layer(&self, phase: Phase, layer: usize) -> (u64, u64) {
        self.by_layer.get(phase as usize * self.layers + layer).copied().unwrap_or_default()
    }

    #[inline(always)]
    pub(crate) fn add_layer(&mut self, phase: Phase, layer: usize, accesses: u32, hits: u32) {
        let count = &mut self.by_layer[phase as usize * self.layers + layer];
        count.0 += u64::from(accesses);
        count.1 += u64::from(hits);
    }

    /// The counts of one phase and window.
    #[must_use]
    pub fn bucket(&self, phase: Phase, window: Window) -> Bucket {
        let [cold, steady] = &self.buckets[phase as usize];
        let mut sum = Bucket::new(self.layers);
        if window != Window::Steady {
            sum.add(cold);
        }
        if window != Window::Cold {
            sum.add(steady);
        }
        sum
    }

    /// The counts of all phases together.
    #[must_use]
    pub fn total(&self) -> Bucket {
        let mut sum = Bucket::new(self.layers);
        for pair in &self.buckets {
            pair.iter().for_each(|bucket| sum.add(bucket));
        }
        sum
    }

    #[inline(always)]
    pub(crate) fn bucket_mut(&mut self, phase: Phase, steady: bool) -> &mut Bucket {
        &mut self.buckets[phase as usize][usize::from(steady)]
    }
}
