//! Weights in bytes exactly as a file's header gave them.

use super::bytes::{Formats, WeightBytes};
use super::parameters::Parameters;
use super::ranks::{Parallel, share};
use super::{Model, ModelError};
use crate::format::SlotLayout;

/// Exact bytes that a file's header gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// What was read, for a person.
    pub source: String,
    /// The weights, whole.
    pub weights: WeightBytes,
    /// Parameters counted from the header; absent where packed types hide them.
    pub parameters: Option<Parameters>,
    /// Bytes that belong to no part of the language model: towers for images and sound.
    pub skipped: u64,
    /// The bytes are those of rules for a mix, and no header's.
    pub by_rules: bool,
    /// The types of expert tensors, with how many layers use each, for a person.
    pub expert_types: Vec<String>,
}

impl Model {
    /// The weights as the header of a file gave them, on one rank; `None` where no header was read.
    ///
    /// Sliced parts are divided evenly; what the formulas say is copied stays whole.
    pub fn stored_weights(&self, slot: SlotLayout, parallel: Parallel) -> Option<WeightBytes> {
        let mut weights = self.stored.as_ref()?.weights.clone();
        let (tensor, slices) = (parallel.tensor, parallel.expert_slices());
        for layer in &mut weights.experts {
            layer.count = parallel.experts_of(layer.count);
            layer.stored = share(layer.stored, slices);
            layer.slot = slot.scale(layer.stored);
        }
        if tensor > 1 {
            let parameters = self.parameters();
            let dense = parameters.attention
                + parameters.dense_mlp
                + parameters.router
                + parameters.norms_after_attention
                + parameters.other;
            let whole = parameters.copied.min(dense);
            let copied = part(weights.dense, whole, dense);
            weights.dense = copied + share(weights.dense - copied, tensor);
            weights.shared = share(weights.shared, slices);
            weights.embed = share(weights.embed, tensor);
            weights.lm_head = share(weights.lm_head, tensor);
            weights.tables = share(weights.tables, tensor);
            weights.mtp_dense = share(weights.mtp_dense, tensor);
        }
        weights.mtp_experts = share(weights.mtp_experts, slices.max(parallel.expert));
        Some(weights)
    }

    /// Weights on one rank: those of a header where there is one and `formats` is `None`, else by the formulas.
    ///
    /// # Errors
    /// As [`native_formats`](Self::native_formats), where neither a header nor the configuration gives formats.
    pub fn weights_or_native(
        &self,
        formats: Option<&Formats>,
        slot: SlotLayout,
        parallel: Parallel,
    ) -> Result<WeightBytes, ModelError> {
        match formats {
            Some(formats) => Ok(self.weights(formats, parallel)),
            None => match self.stored_weights(slot, parallel) {
                Some(stored) => Ok(stored),
                None => Ok(self.weights(&Formats { slot, ..self.native_formats()? }, parallel)),
            },
        }
    }
}

/// `bytes` times `part / whole`.
fn part(bytes: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(product).unwrap_or(bytes)
}
