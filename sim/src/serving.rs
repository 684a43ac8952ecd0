//! How the engine that a replay stands for serves: beside its policy and its slots.

use hotset_policies::Slots;
use hotset_policies::miss::MissHandler;
use hotset_traces::{Shape, Trace};
use serde::Serialize;

use crate::{
    Change, Composition, HostMemory, PhaseFilter, Prefetch, Prefill, Schedule, Scope, SimError,
    Steps,
};

/// What an engine does beside evicting.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Serving {
    /// What is prefetched, and by which source.
    pub prefetch: Prefetch,
    /// What becomes of misses.
    pub misses: MissHandler,
    /// How prefill uses the cache.
    pub prefill: Prefill,
    /// Requests run together so; `None`: the steps that the trace records, else one request after
    /// another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composition: Option<Composition>,
    /// The cache in host memory, over disk; `None`: host memory holds everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostMemory>,
    /// Changes of capacity during the run.
    #[serde(skip_serializing_if = "Schedule::is_empty")]
    pub schedule: Schedule,
}

impl Serving {
    /// The steps of a trace; `chunk` is the prompt tokens a step where nothing else says.
    ///
    /// # Errors
    /// A concurrency that is not possible.
    pub fn steps(&self, trace: &Trace, chunk: u32) -> Result<Steps, SimError> {
        match &self.composition {
            Some(how) => Steps::compose(trace, how),
            None => Ok(Steps::of(trace, chunk)),
        }
    }

    /// The steps in a few words.
    #[must_use]
    pub fn steps_text(&self, trace: &Trace, chunk: u32) -> String {
        match (&self.composition, trace.steps()) {
            (Some(how), _) => format!(
                "composed: {} requests at a time, prompts in chunks of {} tokens",
                how.concurrency, how.chunk
            ),
            (None, Some(_)) => "recorded".to_owned(),
            (None, None) => {
                format!("composed: one request after another, prompts in chunks of {chunk} tokens")
            }
        }
    }

    /// The schedule in slots, for a run over the tokens that `phase` picks.
    ///
    /// # Errors
    /// An impossible capacity, or a change past the end of the run.
    pub fn resizes(
        &self,
        trace: &Trace,
        shape: &Shape,
        scope: Scope,
        phase: PhaseFilter,
    ) -> Result<Vec<Change<Slots>>, SimError> {
        if self.schedule.is_empty() {
            return Ok(Vec::new());
        }
        let tokens = match phase.only() {
            Some(phase) => trace.phases().iter().filter(|&&p| p == phase as u8).count(),
            None => trace.tokens(),
        };
        self.schedule.slots(shape, scope, tokens as u64)
    }
}
