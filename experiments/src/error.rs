//! What an experiment refuses.

use hotset_policies::PolicyError;
use hotset_sim::SimError;
use thiserror::Error;

/// Why an experiment cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    /// An arm that is not `POLICY` or `POLICY/PREFETCH`.
    #[error(
        "arm '{text}' is not POLICY or POLICY/PREFETCH, as in lru/cross-layer:width=8: {reason}"
    )]
    Arm {
        /// What was given.
        text: String,
        /// Why not.
        reason: String,
    },
    /// A number of folds that cannot be.
    #[error("{folds} folds of {sequences} sequences: give 2 to {sequences}")]
    Folds {
        /// Folds asked for.
        folds: usize,
        /// Sequences that there are.
        sequences: usize,
    },
    /// Experts of unknown size have no time.
    #[error(
        "an experiment charges for bytes, and the size of an expert is not recorded: give --expert-size"
    )]
    ExpertSizeUnknown,
    /// No link to charge over.
    #[error("an experiment needs at least one link")]
    NoLink,
    /// A workload that could not be arranged.
    #[error("workload: {0}")]
    Workload(String),
    /// A part of the trace that could not be cut out.
    #[error("cannot cut the trace: {0}")]
    Cut(String),
    /// An arm named twice.
    #[error("arm '{name}' is there twice")]
    Twice {
        /// Its name.
        name: String,
    },
    /// Too few or too many resamples.
    #[error("{asked} resamples: give 100 to 100000")]
    Resamples {
        /// Resamples asked for.
        asked: usize,
    },
    /// What the replay says.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// What the policy says.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
