//! Feed-forward parts beside the routed experts, told by their tensors.

use super::LayerTensors;
use crate::model::layer::{DenseMlp, SharedExperts};

/// The shared experts of a layer; a width beyond any model's is not worth showing, and would overflow.
pub fn shared(tensors: &LayerTensors<'_>) -> SharedExperts {
    let up = tensors.get("ffn_up_shexp.weight").and_then(|up| up.dimensions.get(1).copied());
    let Some(inner) = up.filter(|inner| *inner <= 1 << 22) else { return SharedExperts::default() };
    let matrices = if tensors.contains_key("ffn_gate_shexp.weight") { 3 } else { 2 };
    SharedExperts { matrices, inner, gated: tensors.contains_key("ffn_gate_inp_shexp.weight") }
}

/// The dense feed-forward part of a layer, if it has one.
pub fn dense(tensors: &LayerTensors<'_>) -> Option<DenseMlp> {
    let up = tensors.get("ffn_up.weight")?;
    let matrices = if tensors.contains_key("ffn_gate.weight") { 3 } else { 2 };
    let inner = *up.dimensions.get(1)?;
    // A width beyond any model's is not worth showing, and would overflow.
    (inner <= 1 << 22).then_some(DenseMlp { matrices, inner })
}
