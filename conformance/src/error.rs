//! Why an event of an engine's log was not accepted.

use hotset_policies::CacheError;
use thiserror::Error;

use crate::divergence::Divergence;

/// Why an event was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConformError {
    /// The engine and the policy differ.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// An impossible cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A policy that no engine can run.
    #[error(
        "policy '{policy}' needs the future or training, so no engine's log can be checked by it"
    )]
    NotOnline {
        /// The policy.
        policy: &'static str,
    },
    /// A layer that the model does not have.
    #[error("layer {layer} does not exist: MoE layers are numbered 0 to {last}")]
    UnknownLayer {
        /// The layer given.
        layer: u64,
        /// The last one.
        last: usize,
    },
    /// An expert that the layer does not have.
    #[error("expert {expert} does not exist: layer {layer} has experts 0 to {last}")]
    UnknownExpert {
        /// The expert given.
        expert: u32,
        /// Its layer.
        layer: u32,
        /// The last one.
        last: u32,
    },
    /// An event of another layer than the one whose turn it is.
    #[error("layer {given}, where event {event} of the trace is layer {expected} of step {step}")]
    OutOfOrder {
        /// Layer in the log.
        given: u32,
        /// Number of the event, from 0.
        event: u64,
        /// Number of its step, from 0.
        step: u64,
        /// The layer whose turn it is.
        expected: usize,
    },
    /// A step number that does not fit those before it.
    #[error(
        "step {given} after step {before}: all layers of a step have one number, and the next \
         step has a higher one"
    )]
    Step {
        /// The number given.
        given: u64,
        /// The number before it.
        before: u64,
    },
}
