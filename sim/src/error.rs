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
    /// A size in bytes, but the experts' size is not known.
    #[error(
        "capacity {text} needs the size of an expert, which the trace lacks: give --expert-size"
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
    /// A column that the policy needs.
    #[error(
        "policy '{policy}' needs the column '{column}', which this trace lacks; importers that \
         give it: {importers}"
    )]
    MissingColumn {
        /// The policy.
        policy: String,
        /// The column.
        column: &'static str,
        /// Importers that give it.
        importers: String,
    },
    /// More accesses than positions of 32 bits can number.
    #[error(
        "the bound '{bound}' can look ahead over at most 2^32 - 2 accesses, the trace has more"
    )]
    TooLongForBound {
        /// The bound.
        bound: &'static str,
    },
    /// A policy that is trained, without a training part.
    #[error(
        "policy '{policy}' is trained on a part of the trace and replayed over the rest: give \
         --train 50%"
    )]
    NeedsTraining {
        /// The policy.
        policy: String,
    },
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
