//! What can be wrong with a replay's settings.

use hotset_policies::{CacheError, PolicyError};
use thiserror::Error;

/// Why a replay cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SimError {
    /// A capacity that is not a count, a share or a size.
    #[error("capacity '{text}' is not a number of slots (384), a share (25%) or a size (40GiB)")]
    CapacityText {
        /// What was given.
        text: String,
    },
    /// A capacity that holds nothing.
    #[error("capacity {text} is less than one slot{detail}")]
    CapacityZero {
        /// What was given.
        text: String,
        /// Why that is less than one slot; empty where it is plain.
        detail: String,
    },
    /// A capacity beyond the model.
    #[error("capacity {text} is more than all {experts} experts: give at most 100%")]
    CapacityOver {
        /// What was given.
        text: String,
        /// Experts in all.
        experts: u32,
    },
    /// A host cache under a policy that needs more than the experts that it is asked for.
    #[error(
        "policy '{policy}' cannot run in host memory, which hears of no future, weights or training: \
         give `HostMemory::policy` as lru, page-cache or another that learns as it runs"
    )]
    HostPolicy {
        /// The policy.
        policy: String,
    },
    /// A curve of host memory under a cache that one pass cannot run.
    #[error(
        "host memory at every size is counted in one pass under a cache that only evicts and \
         fetches, by a policy that learns as it runs: not '{policy}' with these settings"
    )]
    HostCurve {
        /// The upper cache's policy.
        policy: String,
    },
    /// A host cache beside copies of another size.
    #[error(
        "host memory over disk holds experts as they are, and miss handler '{handler}' copies smaller \
         ones too: give another `Serving::misses`, or leave `HostMemory::capacity` out"
    )]
    HostMisses {
        /// The handler.
        handler: &'static str,
    },
    /// A host cache beside a prefill that goes past the accelerator's.
    #[error(
        "a cache in host memory follows the accelerator's plans, and prefill '{mode}' makes none: \
         give `Serving::prefill` as on-demand, or leave `HostMemory::capacity` out"
    )]
    HostPrefill {
        /// The mode.
        mode: &'static str,
    },
    /// A size in bytes, but the experts' size is not known.
    #[error(
        "capacity {text} needs the size of an expert, which the trace lacks: give `Compare::expert_bytes`"
    )]
    ExpertSizeUnknown {
        /// What was given.
        text: String,
    },
    /// No step of the phase that was asked for.
    #[error("the trace has no {phase} tokens")]
    NoTokens {
        /// The phase.
        phase: &'static str,
    },
    /// A column that a policy or a predictor needs.
    #[error(
        "{what} '{name}' needs the column '{column}', which this trace lacks; importers that \
         give it, where it was recorded: {importers} (docs/recording.md says by what)"
    )]
    MissingColumn {
        /// What needs it: a policy, a prefetcher.
        what: &'static str,
        /// Its name.
        name: String,
        /// The column.
        column: &'static str,
        /// Importers that give it.
        importers: String,
    },
    /// Conversations are compared by vectors of more numbers than a store takes.
    #[error(
        "{what} '{name}' compares conversations by {dimension} numbers here; at most {most} are \
         possible: another likeness (by=in, by=out, by=routes) may have fewer"
    )]
    TooWide {
        /// What compares them: a policy, a prefetcher.
        what: &'static str,
        /// Its name.
        name: String,
        /// Numbers of a vector.
        dimension: usize,
        /// The most.
        most: usize,
    },
    /// More accesses than positions of 32 bits can number.
    #[error(
        "the bound '{bound}' can look ahead over at most 2^32 - 2 accesses, the trace has more"
    )]
    TooLongForBound {
        /// The bound.
        bound: &'static str,
    },
    /// Whole layers on the host, but every layer has slots of its own.
    #[error(
        "whole layers on the host (cpu-layers) leave their slots to the others: it needs the global \
         scope"
    )]
    CpuLayersNeedGlobal,
    /// A policy that is trained, without a training part.
    #[error(
        "policy '{policy}' is trained on a part of the trace and replayed over the rest: give \
         `Training::share` 50%"
    )]
    NeedsTraining {
        /// The policy.
        policy: String,
    },
    /// A prefetcher that is not one.
    #[error("prefetch '{text}': {reason}")]
    PrefetchText {
        /// What was given.
        text: String,
        /// Why not.
        reason: String,
    },
    /// Predictions made further ahead than the trace has them.
    #[error("prefetch {asked} layers ahead; the trace has them for 1 to {recorded}")]
    Lookahead {
        /// Layers asked for.
        asked: usize,
        /// Layers recorded.
        recorded: usize,
    },
    /// A prefetch past the last layer.
    #[error(
        "prefetch {asked} layers ahead, but the trace has {layers} layers: lookahead is at most {}",
        .layers - 1
    )]
    LookaheadPastEnd {
        /// Layers asked for.
        asked: usize,
        /// Layers of the trace.
        layers: usize,
    },
    /// Nothing to predict.
    #[error("the trace has one layer: there is none further on to prefetch for")]
    OneLayer,
    /// More picoseconds than the clock can count.
    #[error(
        "the run would take up to {days} days on link '{link}', more than the clock counts (106): \
         check `TimeModel::compute`, `Compare::expert_bytes` and the link's rate"
    )]
    TooLong {
        /// The link.
        link: String,
        /// Days, one thing after another.
        days: u64,
    },
    /// Copies are taken back as time goes by, which is another time on every link.
    #[error(
        "'cancel=true' depends on when copies run, so it needs exactly one link with timelines and \
         copies in order: give one `Compare::links`, and leave `Compare::timelines` and `TimeModel::copies` out"
    )]
    CancelNeedsOneLink,
    /// A device was to carry out what none does.
    #[error("no live engine does {what}: leave it out, or replay it without a device")]
    NoDevice {
        /// What.
        what: &'static str,
    },
    /// A budget in bytes, but the experts' size is not known.
    #[error(
        "a prefetch budget needs the size of an expert, which the trace lacks: give `Compare::expert_bytes`"
    )]
    BudgetNeedsSize,
    /// A predictor that does not learn in the run, and was not trained before it.
    #[error(
        "prefetcher '{name}' learns nothing in the run (learn=trained) and must be trained on a part of the \
         trace: give `Training::share` 50%"
    )]
    UntrainedPredictor {
        /// The predictor.
        name: String,
    },
    /// A bound replays the accesses as they are.
    #[error(
        "'{policy}' is a bound over the recorded accesses and cannot be combined with prefetch or \
         with misses that the host serves"
    )]
    BoundAlone {
        /// The bound.
        policy: String,
    },
    /// What a bound does not admit has no place in host memory.
    #[error(
        "'belady-bypass' keeps no cache that host memory could lie under: take belady, or leave \
         `HostMemory::capacity` out"
    )]
    BoundOverDisk,
    /// A replay in full is of one setting.
    #[error("give one policy, one scope and one capacity; 'compare' takes several")]
    OneSetting,
    /// One access at a time has no events to hang copies on.
    #[error("{what} needs event semantics")]
    EventsOnly {
        /// What was asked for.
        what: &'static str,
    },
    /// A prefill mode that is not one.
    #[error("prefill '{text}' is none of on-demand, bypass, streamed")]
    PrefillText {
        /// What was given.
        text: String,
    },
    /// Too few slots for two whole layers.
    #[error(
        "a streamed prefill borrows {needed} slots (two layers' experts) for its buffers, the \
         cache has {slots}"
    )]
    NoRoomToStream {
        /// Slots of two layers.
        needed: u32,
        /// Slots that there are.
        slots: u32,
    },
    /// Buffers cannot be borrowed from a layer's own slots.
    #[error("a streamed prefill borrows slots for whole layers: it needs the global scope")]
    StreamedNeedsGlobal,
    /// A schedule that cannot be read.
    #[error("'{text}' is not TOKENS:CAPACITY, as in 1000:25%")]
    ScheduleText {
        /// What was given.
        text: String,
    },
    /// A schedule that goes back.
    #[error("a schedule's tokens must ascend: {after} after {before}")]
    ScheduleOrder {
        /// The earlier entry.
        before: u64,
        /// The later entry.
        after: u64,
    },
    /// A schedule for tokens that do not run.
    #[error(
        "the change of capacity at token {token} lies past the end of the run of {tokens} tokens"
    )]
    SchedulePastEnd {
        /// When it would change.
        token: u64,
        /// Tokens of the run.
        tokens: u64,
    },
    /// No sequence runs.
    #[error("concurrency 0 runs nothing: give at least 1")]
    ConcurrencyZero,
    /// More sequences at once than there are.
    #[error("concurrency {asked} is more than the trace's {sequences} sequences")]
    ConcurrencyOver {
        /// Sequences asked for.
        asked: u32,
        /// Sequences that there are.
        sequences: usize,
    },
    /// A trace that cannot be cut into a training and a tested part.
    #[error(
        "cannot train on {percent}% of {sequences} sequences and test on the rest: each part needs \
         at least one"
    )]
    TrainingPart {
        /// Share of the sequences asked for.
        percent: f64,
        /// Sequences in all.
        sequences: usize,
    },
    /// A schedule of capacities in adaptive scope.
    #[error("an adaptive split is for one capacity: leave the schedule out, or use another scope")]
    AdaptiveSchedule,
    /// A trace that could not be shuffled.
    #[error("cannot shuffle the trace: {0}")]
    Shuffle(String),
    /// A journal that this run cannot go on with.
    #[error("journal {}: {problem}", .path.display())]
    Journal {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Something that would take too much memory; nothing was allocated for it.
    #[error(
        "{what} would take {bytes} bytes of memory, but may take {limit}: give `Compare::policy_memory` \
         to allow more"
    )]
    Memory {
        /// What.
        what: String,
        /// Bytes that it would take.
        bytes: u64,
        /// Bytes that it may take.
        limit: u64,
    },
    /// A trace that is not what it says, or not what it was when it was opened.
    #[error("{0}")]
    Trace(String),
    /// Too few or too many resamples.
    #[error("{asked} resamples: give 100 to 100000")]
    Resamples {
        /// Resamples asked for.
        asked: usize,
    },
    /// A sample that is none.
    #[error("a sample of {percent}% is none: give `Compare::sample` above 0% and up to 100%")]
    SampleShare {
        /// Share asked for.
        percent: f64,
    },
    /// A trace that no sequences can be drawn from.
    #[error(
        "the trace has one sequence, and an interval needs how sequences differ: leave `Compare::sample` out"
    )]
    SampleOfOne,
    /// A sample of fewer than two sequences.
    #[error(
        "{percent}% of {sequences} sequences are {chosen}, and an interval needs at least 2: give \
         `Compare::sample` {least}% or more"
    )]
    SampleTooSmall {
        /// Share asked for.
        percent: f64,
        /// Sequences of the trace.
        sequences: usize,
        /// Sequences that the share is.
        chosen: usize,
        /// The least whole share that is enough.
        least: u64,
    },
    /// Steps in which several sequences run together.
    #[error(
        "a sample counts each sequence by itself, and steps of this run hold several: {}",
        if *.recorded {
            "give `Serving::composition` 1 to run the recorded requests one after another"
        } else {
            "leave `Serving::composition` out, or `Compare::sample`"
        }
    )]
    SampleOfBatches {
        /// Whether the trace recorded those steps.
        recorded: bool,
    },
    /// A rule for misses that means more than the trace has.
    #[error(
        "miss handler '{handler}' asks for more than the trace has: {most} {what}; give at most {most}"
    )]
    MissOver {
        /// The handler with its parameters.
        handler: String,
        /// The most that is possible.
        most: u32,
        /// Of what.
        what: &'static str,
    },
    /// Nothing to compare.
    #[error("no way to handle misses: give at least one `Serving::misses`")]
    NoMisses,
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An unknown policy or wrong parameters.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An impossible cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl From<hotset_traces::Error> for SimError {
    fn from(error: hotset_traces::Error) -> Self {
        Self::Trace(error.to_string())
    }
}

impl SimError {
    /// The trace has no predictions to prefetch from.
    pub(crate) fn missing_predictions(trace: &hotset_traces::Trace) -> Self {
        Self::missing_column(trace, "prefetcher", "ahead", "predictions")
    }

    /// A column that `what` called `name` needs, and who gives it.
    pub(crate) fn missing_column(
        trace: &hotset_traces::Trace,
        what: &'static str,
        name: &str,
        column: &'static str,
    ) -> Self {
        let columns = trace.columns();
        let info = columns.iter().find(|info| info.name == column);
        let importers = info.map(|info| info.importers.join(", ")).unwrap_or_default();
        Self::MissingColumn { what, name: name.to_owned(), column, importers }
    }
}
