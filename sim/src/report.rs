//! Results: one versioned schema from which every output format is rendered.
//!
//! Every figure is defined in `docs/metrics.md`.

use hotset_policies::miss::MissHandler;
use hotset_traces::{Phase, Trace};
use serde::Serialize;

use crate::open_loop::OpenLoop;
use crate::placing::Placed;
use crate::prices::{Breakdown, Prices, SplitPrice};
use crate::{
    CopyOrder, PhaseFilter, SampleSummary, Sampled, Scope, Semantics, Serving, Shuffle, Tiered,
    TrainingSplit, Wait, Window,
};

/// The schema's name and version.
pub const SCHEMA: &str = "hotset/1";

/// A comparison's results with what made them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The trace.
    pub trace: TraceSummary,
    /// The flags.
    pub settings: Settings,
    /// One row a policy, scope, capacity, phase and window.
    pub rows: Vec<Row>,
    /// What a reader must know to read the rows right.
    pub warnings: Vec<String>,
}

/// Which trace was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceSummary {
    /// Its name.
    pub name: String,
    /// Digest of the routing.
    pub digest: String,
    /// Digest of everything that a replay can see.
    pub content_digest: String,
    /// MoE layers.
    pub layers: usize,
    /// Experts of a layer (the most, where layers differ).
    pub experts: u32,
    /// Experts over all layers.
    pub total_experts: u32,
    /// Experts that a token uses in a layer (the most, where layers differ).
    pub top_k: u32,
    /// Tokens of all phases.
    pub tokens: usize,
    /// Sequences.
    pub sequences: usize,
}

impl TraceSummary {
    /// The summary of a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let layers = trace.shape().layers();
        Self {
            name: trace.name().to_owned(),
            digest: trace.digest().to_owned(),
            content_digest: trace.content_digest().to_owned(),
            layers: layers.len(),
            experts: layers.iter().map(|layer| layer.experts).max().unwrap_or(0),
            total_experts: trace.shape().total_experts(),
            top_k: layers.iter().map(|layer| layer.top_k).max().unwrap_or(0),
            tokens: trace.tokens(),
            sequences: trace.sequences().len(),
        }
    }
}

/// The flags that made a result: with the trace, enough to make it again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// hotset's version.
    pub hotset: &'static str,
    /// Policies as given.
    pub policies: Vec<String>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Capacities as given.
    pub capacities: Vec<String>,
    /// Links.
    pub links: Vec<String>,
    /// Steps replayed.
    pub phase: PhaseFilter,
    /// Semantics.
    pub semantics: Semantics,
    /// Tokens that count as cold; absent: until the cache has first been full.
    pub warmup_tokens: Option<u64>,
    /// Whether the trace's own steps ran (`recorded`) or one request after another with prompts
    /// in chunks of this many tokens (`composed`).
    pub steps: String,
    /// Bytes of an expert by layer; 0 where unknown.
    pub expert_bytes: Vec<u64>,
    /// Compute a token, ms; absent: prices are of transfers alone, or kernels have prices of
    /// their own.
    pub compute_ms_per_token: Option<f64>,
    /// Bytes that a step reads for each layer beside the experts, where kernels are priced by the
    /// memory that they read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense_bytes_per_layer: Option<u64>,
    /// What the engine does beside evicting; of several ways to handle misses the first.
    pub serving: Serving,
    /// The ways to handle misses where several were compared, as given and with what was left open
    /// filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<(String, MissHandler)>,
    /// Order of the copies.
    pub copies: CopyOrder,
    /// What kernels wait for.
    pub wait: Wait,
    /// Whether what runs beside each other slows each other down.
    pub contention: bool,
    /// Host threads that serve experts; absent: the most that the link was measured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_threads: Option<u32>,
    /// What experts are read from where host memory does not hold them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// The machine whose kernels these are, where whoever asked named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The counts by which trained policies placed, where they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// What was permuted before the replay; the trace's digest is that of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<Shuffle>,
    /// Which of the trace's sequences were replayed for the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleSummary>,
    /// The parts trained on and tested on: all rows are of the tested part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<TrainingSplit>,
}

/// One policy at one size in one phase and window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The policy as given.
    pub policy: String,
    /// Scope of its slots.
    pub scope: Scope,
    /// Slots over all layers.
    pub capacity_slots: u32,
    /// Slots over all experts, 0 to 1.
    pub capacity_share: f64,
    /// Phase of the tokens counted.
    pub phase: Phase,
    /// Part of the run counted.
    pub window: Window,
    /// Semantics of the counts.
    pub semantics: Semantics,
    /// What becomes of misses, as given, where several ways were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss: Option<String>,
    /// Tokens counted.
    pub tokens: u64,
    /// Distinct experts asked for over all events (sequential: all accesses).
    pub accesses: u64,
    /// Of those, in a slot when the event began: its copy complete, or still on its way (a late prefetch,
    /// which the timeline waits for).
    pub hits: u64,
    /// The others.
    pub misses: u64,
    /// hits / accesses; absent without accesses.
    pub hit_rate: Option<f64>,
    /// Copies of experts that were asked for.
    pub demand_fetches: u64,
    /// Of the misses, those that went through the transient buffer, not admitted.
    pub unplaced: u64,
    /// Events with more distinct experts than their pool has slots.
    pub overflow_events: u64,
    /// Copies of experts that were predicted.
    pub prefetches: u64,
    /// Of those, asked for before they left.
    pub prefetches_used: u64,
    /// Prefetched experts that left before they were asked for.
    pub prefetches_wasted: u64,
    /// Prefetches whose copies were taken back before they began, not among `prefetches`.
    pub prefetches_cancelled: u64,
    /// Misses that the host's cores served.
    pub host_served: u64,
    /// Misses that came as smaller copies, which no slot keeps.
    #[serde(skip_serializing_if = "is_zero")]
    pub low_precision: u64,
    /// Copies of experts whose slots a streamed prefill had overwritten.
    pub refetches: u64,
    /// Experts copied a token.
    pub moved_per_token: f64,
    /// MiB copied a token; absent where the experts' size is unknown.
    pub mib_per_token: Option<f64>,
    /// What the row is held against: `belady`, MIN with forced admission, or `belady-bypass` where that is no
    /// bound (an event needs more than its pool has, a policy or the host leaves misses out).
    pub bound: &'static str,
    /// Misses of that bound at the same slots, phase and window; for a cache that began with
    /// experts placed, those of the phase's whole run less the experts placed, for each of them can
    /// have spared it one.
    pub belady_misses: u64,
    /// misses / belady_misses: 1 is the optimum; absent if the bound has none.
    pub belady_ratio: Option<f64>,
    /// What the engine goes without, where it changes what the model computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// What host memory and the disk under it did; absent where host memory holds everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Tiered>,
    /// What the cache held before the first step; absent where it began empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    /// How sure its figures are for the whole trace; absent where nothing was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// Prices on each link; empty where the experts' size is unknown.
    pub links: Vec<LinkPrice>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a token costs over one link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkPrice {
    /// The link.
    pub link: String,
    /// Compute (if given) and every transfer, one after another: the upper bound, in ms.
    pub serial_ms_per_token: f64,
    /// The timeline: compute, copies and host beside each other. Absent in sequential semantics.
    pub timeline_ms_per_token: Option<f64>,
    /// Compute, demand, and what prefetch exceeds compute by.
    pub prefetch_hidden_ms_per_token: f64,
    /// The longer of compute and all transfers: the lower bound.
    pub perfect_ms_per_token: f64,
    /// Where the timeline's time went.
    pub time: Option<Breakdown>,
    /// How far the splits of misses are from the best ones; absent where they are not judged, or
    /// nobody measured the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitPrice>,
}

impl LinkPrice {
    /// Prices of `tokens` tokens, each.
    #[must_use]
    pub fn per_token(link: &str, prices: &Prices, tokens: u64) -> Self {
        let ms = |ps: u128| ps as f64 / 1e9 / tokens as f64;
        Self {
            link: link.to_owned(),
            serial_ms_per_token: ms(prices.serial),
            timeline_ms_per_token: prices.timeline.map(ms),
            prefetch_hidden_ms_per_token: ms(prices.prefetch_hidden),
            perfect_ms_per_token: ms(prices.perfect),
            time: prices.breakdown(tokens),
            split: prices.spent.and_then(|spent| SplitPrice::of(&spent.splits, tokens)),
        }
    }
}
