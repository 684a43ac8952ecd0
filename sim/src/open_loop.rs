//! What is lost by going without experts that the router chose.
//!
//! A recorded trace is replayed open loop: a model that drops, replaces or defers experts would
//! compute other hidden states and route otherwise further on, which no replay knows.

use hotset_cost_models::{QualityLoss, quality_lost};
use hotset_policies::miss::MissHandler;
use hotset_traces::Phase;
use serde::Serialize;

use crate::Bucket;
use crate::prepare::Preparation;

/// What every such result says.
pub const OPEN_LOOP: &str = "open loop: routing not changed downstream";

/// Experts that a row's engine went without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenLoop {
    /// [`OPEN_LOOP`].
    pub label: &'static str,
    /// Misses that were not computed.
    pub dropped: u64,
    /// Misses for which a resident expert stood in.
    pub substituted: u64,
    /// Misses that came as smaller copies.
    #[serde(skip_serializing_if = "is_zero")]
    pub low_precision: u64,
    /// Host-served misses whose output was added a layer later.
    pub deferred: u64,
    /// Share of the router's weight that went to experts that were left out or replaced, 0 to 1;
    /// absent for what leaves none out. Of fewer experts a token it is that of the whole phase.
    pub weight_lost: Option<f64>,
    /// What was measured to be lost at this share of the accesses; absent where nothing was.
    pub quality: Option<QualityLoss>,
}

impl OpenLoop {
    /// What the tokens of a bucket went without; `None` where the model computes what it always does.
    #[must_use]
    pub fn of(prepared: &Preparation<'_>, phase: Phase, bucket: &Bucket) -> Option<Self> {
        let handler = prepared.request().serving.misses;
        if !handler.changes_the_result() {
            return None;
        }
        let layers = prepared.shape().layers().len() as f64;
        let all = bucket.tokens as f64 * layers * 1e9;
        let weight_lost = match handler {
            MissHandler::Top { .. } => prepared.parts().left_out(phase),
            _ => handler.loses_weight().then(|| bucket.lost_weight as f64 / all),
        };
        let share = |count: u64| count as f64 / bucket.accesses.max(1) as f64;
        let quality = match handler {
            MissHandler::Drop { .. } | MissHandler::LowPrecision { .. } => {
                Some(quality_lost("drop", share(bucket.dropped)))
            }
            MissHandler::Substitute { .. } | MissHandler::Bias { .. } => {
                Some(quality_lost("substitute", share(bucket.substituted)))
            }
            _ => None,
        };
        Some(Self {
            label: OPEN_LOOP,
            dropped: bucket.dropped,
            substituted: bucket.substituted,
            deferred: bucket.deferred,
            low_precision: bucket.low_precision.iter().sum(),
            weight_lost,
            quality,
        })
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
