//! What an ablation of td-pairs leaves out.

use serde::{Deserialize, Serialize};

/// A part of the model that an ablation leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AblatedPart {
    /// All is there.
    #[default]
    Nothing,
    /// Pairs with the layer's own present set.
    Own,
    /// Pairs with the event before.
    Before,
    /// All pairs.
    Pairs,
    /// The share of uses with a half-life of 6 visits.
    Fast,
    /// The share of uses with a half-life of 32 visits.
    Slow,
}
