//! Advice: of many ways to run a cache over one trace, which are fastest over a link, what each is
//! bound by, and whether any of them beats plain LRU by more than sequences differ.
//!
//! Every setting is replayed by the machinery of a comparison and timed on the same units
//! ([`units`]); intervals and tests are paired over these units, and the tests of all settings of
//! one answer are one family.

mod grid;
mod judge;
mod run;
mod sentence;
mod units;

use hotset_policies::miss::MissHandler;
use hotset_sim::{
    Breakdown, Compare, Named, OpenLoop, PhaseFilter, Prefetch, ReplayProgress, Scope, SimError,
    TraceSummary,
};
use hotset_traces::{Phase, Trace};
use serde::Serialize;

use crate::{ExperimentError, Interval, Tested};

pub(crate) use run::unit_times;
pub use sentence::leading;

/// What is to be advised on.
#[derive(Debug, Clone)]
pub struct Advise {
    /// Policies, scopes, capacities, links and all else that the settings share. What it serves by is
    /// replaced by each of the following.
    pub compare: Compare,
    /// Ways to handle misses.
    pub misses: Vec<Named<MissHandler>>,
    /// Prefetch sources.
    pub prefetches: Vec<Named<Prefetch>>,
}

/// Settings ranked, an answer for each link and capacity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The answers in a sentence each, the first the one that was asked for.
    pub answer: Vec<String>,
    /// The trace.
    pub trace: TraceSummary,
    /// hotset's version.
    pub hotset: &'static str,
    /// Steps that were replayed.
    pub phase: PhaseFilter,
    /// The phase whose tokens count.
    pub ranked_by: Phase,
    /// How the steps came about.
    pub steps: String,
    /// What the intervals are over: `sequences`, `groups of sequences` or `stretches of steps`.
    pub units: &'static str,
    /// How many of them.
    pub unit_count: usize,
    /// Draws of the bootstrap; absent with too few units for one.
    pub resamples: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
    /// Share of the sequences, in percent, that was trained on and does not count; absent where
    /// nothing is trained.
    pub train: Option<f64>,
    /// By link, then capacity.
    pub answers: Vec<Answer>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// The settings over one link at one capacity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The link.
    pub link: String,
    /// The capacity as it was given.
    pub capacity: String,
    /// Slots of plain LRU.
    pub capacity_slots: u32,
    /// The same over all experts, 0 to 1.
    pub capacity_share: f64,
    /// Place in `rows` of the fastest that computes what the model does; absent where none beats plain
    /// LRU beyond noise.
    pub best: Option<usize>,
    /// Settings beside the best whose time is within noise of it.
    pub alike: usize,
    /// Plain LRU: one pool, every miss fetched, nothing prefetched.
    pub plain: Ranked,
    /// What a cache that knows the future takes, every miss fetched, in ms a token.
    pub belady_ms_per_token: f64,
    /// All others, fastest first.
    pub rows: Vec<Ranked>,
}

/// What a setting's time mostly is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundBy {
    /// Waiting for copies.
    Link,
    /// Waiting for copies from storage.
    Disk,
    /// Waiting for the host's cores.
    Host,
    /// Kernels.
    Gpu,
    /// Waiting for misses that no policy could spare: they are at most a quarter more than Belady's.
    Capacity,
}

impl BoundBy {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Disk => "disk",
            Self::Host => "host",
            Self::Gpu => "gpu",
            Self::Capacity => "capacity",
        }
    }
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The policy as given.
    pub policy: String,
    /// Scope of its slots.
    pub scope: Scope,
    /// Slots over all layers.
    pub capacity_slots: u32,
    /// What becomes of misses, as given.
    pub miss: String,
    /// The same with what the link's rates filled in.
    pub miss_in_full: String,
    /// What is prefetched, as given.
    pub prefetch: String,
    /// Timeline, with the interval of 95% of the resamples; without draws both ends are null.
    pub ms_per_token: Interval,
    /// Timeline over plain LRU's, minus 1, on the same units; Holm's family are the answer's rows.
    pub change: Tested,
    /// Whether the interval of its time over the best's holds 1; false for the best itself.
    pub like_the_best: bool,
    /// What it is bound by.
    pub bound_by: BoundBy,
    /// hits / accesses; absent without accesses.
    pub hit_rate: Option<f64>,
    /// Experts copied a token.
    pub moved_per_token: f64,
    /// MiB copied a token.
    pub mib_per_token: f64,
    /// Misses over those of Belady's bound at the same slots; absent if that has none.
    pub belady_ratio: Option<f64>,
    /// Where its time goes.
    pub time: Option<Breakdown>,
    /// What the model goes without; absent where it computes what it always does.
    pub open_loop: Option<OpenLoop>,
    /// What reproduces it; empty until whoever knows how it is typed says.
    pub command: String,
}

/// Replays all settings, in parallel over rayon's current pool, and ranks them; the result does not
/// depend on the number of threads.
///
/// # Errors
/// Nothing to charge by (links, sizes); what a comparison of any of the settings would refuse.
pub fn advise(
    trace: &Trace,
    request: &Advise,
    progress: &impl ReplayProgress,
) -> Result<Advice, ExperimentError> {
    trace.check_digests().map_err(SimError::from)?;
    let compare = &request.compare;
    if compare.links.is_empty() {
        return Err(ExperimentError::NoLink);
    }
    let known = |layer: &hotset_traces::LayerShape| layer.expert_bytes > 0;
    if compare.expert_bytes.is_none() && !trace.shape().layers().iter().all(known) {
        return Err(ExperimentError::SizeUnknown);
    }
    let grid = grid::Grid::of(trace, request)?;
    progress.begin(grid.replays() as u64);
    let ran = run::run(trace, &grid, progress)?;
    Ok(judge::judge(trace, request, &grid, &ran))
}
