//! What people are told of a predictor.

use serde::Serialize;

use crate::registry::{Info, Needs};

/// What a predictor needs of a trace beside the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorNeed {
    /// Nothing.
    Nothing,
    /// The router's weights.
    Weights,
    /// The prompts' embeddings.
    Embeddings,
    /// Recorded predictions.
    Predictions,
    /// The rest of the trace: a question, not something that an engine could run.
    Future,
}

impl Needs for PredictorNeed {}

/// The description of a predictor.
pub type PredictorInfo = Info<PredictorNeed>;
