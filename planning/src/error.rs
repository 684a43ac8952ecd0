//! What a plan refuses, and what to do about it.

use hotset_cost_models::ModelError;
use hotset_sim::SimError;
use thiserror::Error;

/// Why a plan cannot be made.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A model that cannot be sized.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Counts or a trace that do not suit the model.
    #[error(transparent)]
    Trace(#[from] hotset_traces::Error),
    /// A setting that no machine or engine can have.
    #[error("{setting} {why}")]
    Setting {
        /// The field of the request that sets it, in backticks.
        setting: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// Two settings that exclude each other.
    #[error("{first} and {second} contradict each other: {why}")]
    Contradiction {
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why, and what to leave out.
        why: String,
    },
    /// The model has no routed experts.
    #[error("{model} has no routed experts: it is dense, and there is nothing to cache")]
    Dense {
        /// Its name.
        model: String,
    },
    /// A trace of another model.
    #[error(
        "trace '{trace}' ({trace_shape}) is not of {model} ({model_shape}): `Routing::of_trace::stand_in` lets its \
         locality stand for the model's, by the share of the experts that is resident"
    )]
    OtherModel {
        /// The trace's name.
        trace: String,
        /// Its layers, experts and top-k.
        trace_shape: String,
        /// The model's name.
        model: String,
        /// Its layers, experts and top-k.
        model_shape: String,
    },
    /// A batch that the trace cannot make.
    #[error(
        "{users} users with {tokens} tokens a step: trace '{trace}' has {sequences} sequences with \
         as many decode tokens; give fewer users, or a trace of more sequences"
    )]
    Users {
        /// The trace's name.
        trace: String,
        /// Users asked for.
        users: u32,
        /// Tokens of each in a step.
        tokens: u32,
        /// Sequences that there are.
        sequences: usize,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An axis of a what-if that cannot be read.
    #[error("`WhatIf::axes` {text}: {why}")]
    Vary {
        /// What was given.
        text: String,
        /// Why it cannot be read.
        why: String,
    },
}

impl PlanError {
    pub(crate) fn setting(setting: &'static str, why: impl Into<String>) -> Self {
        Self::Setting { setting, why: why.into() }
    }

    /// What a replay of the trace says.
    pub(crate) fn replay(error: SimError) -> Self {
        match error {
            SimError::Interrupted => Self::Interrupted,
            other => Self::setting("`Routing::of_trace`", other.to_string()),
        }
    }

    pub(crate) fn both(first: &'static str, second: &'static str, why: &str) -> Self {
        Self::Contradiction { first, second, why: why.to_owned() }
    }
}
