//! What an experiment refuses.

use hotset_policies::PolicyError;
use hotset_sim::SimError;
use thiserror::Error;

/// Why an experiment cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    /// An arm that is not `POLICY` or `POLICY/PREFETCH`.
    #[error("arm '{text}' (POLICY or POLICY/PREFETCH): {reason}")]
    Arm {
        /// What was given.
        text: String,
        /// Why not.
        reason: String,
    },
    /// Too few sequences to train on some and test others.
    #[error(
        "an experiment trains on some sequences and tests others, and the trace has {sequences}"
    )]
    FewSequences {
        /// Sequences that there are.
        sequences: usize,
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
        "an experiment charges for bytes, and the size of an expert is not recorded: give `Protocol::expert_bytes`"
    )]
    ExpertSizeUnknown,
    /// Settings cannot be ranked by time.
    #[error(
        "settings are ranked by time, and the size of an expert is not recorded: give `Compare::expert_bytes`"
    )]
    SizeUnknown,
    /// Settings cannot be ranked by time.
    #[error("settings are ranked by time, which sequential semantics do not have")]
    NoTimes,
    /// No link to charge over.
    #[error("an experiment needs at least one link")]
    NoLink,
    /// A workload that could not be arranged.
    #[error("{0}")]
    Workload(String),
    /// A part of the trace that could not be cut out.
    #[error("cannot cut the trace: {0}")]
    Cut(String),
    /// Something named twice.
    #[error("{what} '{name}' is there twice")]
    Twice {
        /// An arm, a link, a share.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// What the replay says.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// What the policy says.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
