//! What a step needs of each layer and what of it misses, measured from a trace.
//!
//! Batches of unrelated sequences and windows of one sequence's consecutive tokens need different
//! numbers of experts, so both are replayed as an engine would run them: so many sequences at
//! once, so many tokens of each in a step. LRU's misses at every capacity come from one pass.
//! Without a trace counts may stand in, or nothing but the model's shape.

mod chance;
mod counted;
mod measured;
mod need;
mod place;
mod recorded;
mod shape;
mod stack;
#[cfg(test)]
mod tests;
mod tiers;
mod unions;

use std::collections::BTreeMap;
use std::sync::Mutex;

use hotset_cost_models::Model;
use hotset_sim::{ReplayProgress, TraceSummary};
use hotset_traces::{Histogram, Phase, Trace};
use rayon::prelude::*;
use serde::Serialize;

use crate::PlanError;
use chance::union_of_uniform;
use counted::{Counted, lock};
use measured::{Measured, decode_rows};
pub use need::{RoutingNeed, Spread, StepKind};
use place::place;
pub use recorded::{LeftOut, RecordedTrace, Recordings};
use shape::{MeanLayer, alike, in_words, layers_of};
pub(crate) use tiers::HostCache;
pub use unions::Unions;

/// How a model's tokens choose experts.
#[derive(Debug)]
pub struct Routing<'a> {
    source: Source<'a>,
    mean: MeanLayer,
    watch: Watch<'a>,
}

#[derive(Debug)]
enum Source<'a> {
    /// Every expert as likely as any other, every token independent.
    Uniform,
    /// No trace: what recorded traces of other models have in common.
    Recorded(&'static Recordings),
    /// An engine's counts of this model's experts.
    Histogram { counted: Counted, name: String, format: &'static str, uses: u64 },
    /// A trace, of this model or of another one.
    Trace {
        trace: &'a Trace,
        stand_in: bool,
        curves: Mutex<BTreeMap<StepKind, Measured>>,
        replayed: Mutex<tiers::Replayed>,
    },
}

/// What the routing rests on, for results.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RoutingSummary {
    /// Every expert alike, as asked.
    Uniform,
    /// No trace was given: recorded traces of other models stand in.
    Recorded {
        /// The models that were recorded.
        traces: Vec<String>,
        /// How they stand in.
        how: &'static str,
        /// How well they tell of one of their own that is left out.
        left_out: LeftOut,
    },
    /// Counts without order.
    Histogram {
        /// The file's name.
        name: String,
        /// Its format.
        format: &'static str,
        /// Uses of experts that it counts.
        uses: u64,
        /// How counts stand for routing.
        how: &'static str,
    },
    /// A trace with the model's layers, experts and top-k.
    OwnTrace {
        /// The trace.
        trace: TraceSummary,
    },
    /// Another model's trace.
    StandIn {
        /// The trace.
        trace: TraceSummary,
        /// How it stands in.
        how: &'static str,
    },
}

/// Who may stop what is measured of a trace.
#[derive(Clone, Copy)]
struct Watch<'a>(&'a dyn ReplayProgress);

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

const COUNTS: &str = "the most used experts pinned, the others copied at every use; tokens choose on \
                      their own, so that batches and drafts need more than recorded ones";
const HOW: &str = "misses at the same place between one step's experts and all, on a logarithmic scale; \
                   distinct experts as the trace's relate to uniform routing of its own shape";
const RECORDED: &str = "the mean of LRU's misses in recorded traces at the same place between one \
                        step's experts and all, on a logarithmic scale; distinct experts as theirs \
                        relate to uniform routing";

impl<'a> Routing<'a> {
    fn of(source: Source<'a>, mean: MeanLayer) -> Self {
        Self { source, mean, watch: Watch(&()) }
    }

    /// Stops measuring the trace, within a part of a second, when `progress` says so: what was asked
    /// for then is [`PlanError::Interrupted`].
    #[must_use]
    pub fn watched_by(self, progress: &'a dyn ReplayProgress) -> Self {
        Self { watch: Watch(progress), ..self }
    }

    /// # Errors
    /// [`PlanError::Interrupted`] where somebody asked to stop.
    pub(crate) fn check_watch(&self) -> Result<(), PlanError> {
        if self.watch.0.cancelled() { Err(PlanError::Interrupted) } else { Ok(()) }
    }

    /// Routing without a trace: recorded traces of other models stand in.
    #[must_use]
    pub fn recorded(model: &Model) -> Self {
        Self::of(Source::Recorded(Recordings::builtin()), MeanLayer::of(&layers_of(model)))
    }

    /// Every expert alike. Misses are then too many, as real routing is skewed and repeats itself.
    #[must_use]
    pub fn uniform(model: &Model) -> Self {
        Self::of(Source::Uniform, MeanLayer::of(&layers_of(model)))
    }

    /// Routing as an engine counted it: how often each expert was used.
    ///
    /// # Errors
    /// [`PlanError::Trace`] naming both numbers where the layers or experts are not the model's;
    /// [`PlanError::Setting`] for counts that its top-k cannot give.
    pub fn of_histogram(model: &Model, histogram: &Histogram) -> Result<Self, PlanError> {
        let mean = MeanLayer::of(&layers_of(model));
        let source = Source::Histogram {
            counted: Counted::of_histogram(model, histogram)?,
            name: histogram.name.clone(),
            format: histogram.format,
            uses: histogram.total(),
        };
        Ok(Self::of(source, mean))
    }

    /// Routing as `trace` has it; `stand_in` lets another model's trace stand for this one's.
    ///
    /// # Errors
    /// [`PlanError::OtherModel`], [`PlanError::Setting`] for a trace without decode tokens.
    pub fn of_trace(model: &Model, trace: &'a Trace, stand_in: bool) -> Result<Self, PlanError> {
        let of_model = layers_of(model);
        let mean = MeanLayer::of(&of_model);
        let same = alike(trace.shape().layers(), &of_model);
        if !same && !stand_in {
            return Err(PlanError::OtherModel {
                trace: trace.name().to_owned(),
                trace_shape: in_words(trace.shape().layers()),
                model: model.name.clone(),
                model_shape: in_words(&of_model),
            });
        }
        if trace.phases().iter().all(|phase| *phase != Phase::Decode as u8) {
            let why = format!("'{}' has no decode tokens", trace.name());
            return Err(PlanError::setting("`Routing::of_trace`", why));
        }
        let curves = Mutex::new(BTreeMap::new());
        let replayed = Mutex::default();
        let source = Source::Trace { trace, stand_in: !same, curves, replayed };
        Ok(Self::of(source, mean))
    }

    /// Measures these kinds of steps, in parallel; asked again, they cost nothing.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn prepare(&self, kinds: &[StepKind]) -> Result<(), PlanError> {
        let Source::Trace { trace, curves, .. } = &self.source else { return Ok(()) };
        let known = |kind: &StepKind| lock(curves).contains_key(kind);
        let missing: Vec<StepKind> = kinds.iter().copied().filter(|kind| !known(kind)).collect();
        let measured: Vec<(StepKind, Measured)> = missing
            .par_iter()
            .map(|&kind| Ok((kind, Measured::of(trace, kind, self.watch.0)?)))
            .collect::<Result<_, PlanError>>()?;
        lock(curves).extend(measured);
        Ok(())
    }

    /// Whether this trace can make such steps.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn supports(&self, kind: StepKind) -> Result<(), PlanError> {
        let StepKind { users, tokens } = kind;
        let Source::Trace { trace, .. } = &self.source else { return Ok(()) };
        let long_enough = |sequence: &std::ops::Range<usize>| {
            decode_rows(trace, sequence.clone()).len() >= tokens as usize
        };
        let sequences = trace.sequences().iter().filter(|s| long_enough(&s.rows)).count();
        if (users as usize) <= sequences {
            return Ok(());
        }
        Err(PlanError::Users { trace: trace.name().to_owned(), users, tokens, sequences })
    }

    /// What a step of this kind needs of a layer when `share` of its experts have a slot.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn need(&self, kind: StepKind, share: f64) -> Result<RoutingNeed, PlanError> {
        let tokens = kind.tokens_in_all();
        let uniform = union_of_uniform(self.mean, tokens);
        let (stand_in, curves) = match &self.source {
            Source::Uniform => {
                let misses = if share >= 1.0 { 0.0 } else { uniform * (1.0 - share) };
                return Ok(RoutingNeed::new(uniform, misses));
            }
            Source::Recorded(recordings) => {
                let distinct = recordings.distinct(self.mean, kind);
                let rate = recordings.miss_rate(place(share, distinct, self.mean.experts));
                return Ok(RoutingNeed {
                    distinct,
                    misses: distinct * rate.middle,
                    between: Some([distinct * rate.low, distinct * rate.high]),
                });
            }
            Source::Histogram { counted, .. } => return Ok(counted.need_of_tokens(kind, share)),
            Source::Trace { stand_in, curves, .. } => (stand_in, curves),
        };
        self.prepare(&[kind])?;
        let curves = lock(curves);
        let Some(measured) = curves.get(&kind) else {
            return Ok(RoutingNeed::new(uniform, uniform));
        };
        if !*stand_in {
            let misses = measured.distinct * measured.miss_rate(share);
            return Ok(RoutingNeed::new(measured.distinct, misses));
        }
        let of_trace = union_of_uniform(measured.mean, tokens);
        let MeanLayer { experts, top_k } = self.mean;
        let most = experts.min(top_k * tokens as f64);
        let distinct = (uniform * measured.distinct / of_trace).clamp(top_k.min(most), most);
        let rate = match place(share, distinct, experts) {
            place if place >= 1.0 => 0.0,
            place => measured.miss_rate_at(place),
        };
        Ok(RoutingNeed::new(distinct, distinct * rate))
    }

    /// What the routing rests on.
    #[must_use]
    pub fn summary(&self) -> RoutingSummary {
        match &self.source {
            Source::Uniform => RoutingSummary::Uniform,
            Source::Recorded(recordings) => RoutingSummary::Recorded {
                traces: recordings.traces().iter().map(|trace| trace.name.clone()).collect(),
                how: RECORDED,
                left_out: recordings.left_out_error(),
            },
            Source::Histogram { name, format, uses, .. } => {
                RoutingSummary::Histogram { name: name.clone(), format, uses: *uses, how: COUNTS }
            }
            Source::Trace { trace, stand_in: true, .. } => {
                RoutingSummary::StandIn { trace: TraceSummary::of(trace), how: HOW }
            }
            Source::Trace { trace, .. } => {
                RoutingSummary::OwnTrace { trace: TraceSummary::of(trace) }
            }
        }
    }
}
