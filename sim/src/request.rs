//! What a comparison is asked for.

use std::sync::Arc;

use hotset_cost_models::Link;
use hotset_policies::{Need, PolicySpec};
use hotset_traces::{Shape, Trace};

use crate::{Capacity, PhaseFilter, Prefetch, Scope, Semantics, Serving, Shuffle, TimeModel};

/// A value with the text that gave it, by which reports name it.
#[derive(Debug, Clone, PartialEq)]
pub struct Named<T> {
    /// The text, as typed.
    pub text: String,
    /// What it says.
    pub value: T,
}

impl<T> Named<T> {
    /// `value`, given as `text`.
    pub fn new(text: impl Into<String>, value: T) -> Self {
        Self { text: text.into(), value }
    }
}

/// What to compare. [`replay_in_full`](crate::replay_in_full) takes the same, with one policy, one
/// scope and one capacity.
#[derive(Debug, Clone)]
pub struct Compare {
    /// Policies, each with the text that named it.
    pub policies: Vec<Named<PolicySpec>>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Capacities, each with the text that gave it.
    pub capacities: Vec<Named<Capacity>>,
    /// Links.
    pub links: Vec<Link>,
    /// The machine whose kernels `time` has, where whoever asks named one; for the report alone.
    pub machine: Option<String>,
    /// Steps to replay.
    pub phase: PhaseFilter,
    /// Event or sequential.
    pub semantics: Semantics,
    /// Tokens that count as cold; `None`: until the cache has first been full.
    pub warmup: Option<u64>,
    /// Prompt tokens a step, where the trace has no steps of its own.
    pub chunk: u32,
    /// Bytes of an expert in every layer; `None`: as the trace records them.
    pub expert_bytes: Option<u64>,
    /// What the engine does beside evicting.
    pub serving: Serving,
    /// Compute, and how copies run beside it.
    pub time: TimeModel,
    /// Whether to replay timelines; without them there are only the prices that need none.
    pub timelines: bool,
    /// What is trained on and tested on, and in which order.
    pub training: Training,
    /// Share of the sequences, in percent, to replay for the whole trace, chosen before anything else;
    /// rows then have intervals. `None`: all, without intervals.
    pub sample: Option<f64>,
    /// Bytes that the policies of one replay may hold, and so what else grows with squares of the
    /// trace's numbers; a policy that would take more is left out. [`POLICY_MEMORY`](crate::POLICY_MEMORY)
    /// unless somebody knows better.
    pub policy_memory: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// What of a trace is trained on, and in which order its tokens run.
#[derive(Debug, Clone, Default)]
pub struct Training {
    /// What to permute before anything else: the control for temporal locality.
    pub shuffle: Option<Shuffle>,
    /// Share of the sequences, in percent, to train on; the others alone are then replayed. `None`:
    /// half where something is trained, else nothing.
    pub share: Option<f64>,
    /// Uses that an engine counted, by which trained policies place instead of by a training part.
    pub histogram: Option<CountedUses>,
}

/// Uses of each dense key that an engine counted.
#[derive(Debug, Clone)]
pub struct CountedUses {
    /// What they came from.
    pub source: String,
    /// One number for each expert.
    pub uses: Arc<[u64]>,
}

impl Compare {
    /// The share of the sequences to train on, in percent; `None` where nothing is trained.
    #[must_use]
    pub fn training_share(&self) -> Option<f64> {
        let trained = self.scopes.contains(&Scope::Adaptive)
            || matches!(&self.serving.prefetch, Prefetch::By(forecast) if forecast.needs_training())
            || self.training.histogram.is_none() && self.places_by_training();
        self.training.share.or(trained.then_some(50.0))
    }

    /// Whether a policy places by what a training part used.
    pub(crate) fn places_by_training(&self) -> bool {
        self.policies.iter().any(|policy| policy.value.needs() == Need::Training)
    }

    /// The trace's shape with the experts' size that was asked for.
    #[must_use]
    pub fn shape(&self, trace: &Trace) -> Shape {
        match self.expert_bytes {
            Some(bytes) => trace.shape().with_expert_bytes(bytes),
            None => trace.shape().clone(),
        }
    }
}
