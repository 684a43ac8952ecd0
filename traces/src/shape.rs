//! The shape of the model behind a trace: its MoE layers, their experts and their sizes.
//!
//! Everything that is derived from it (row offsets, dense expert keys) is computed once, with
//! checked arithmetic, so that nothing later can overflow.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most experts that one layer may have: ids fit `u16`.
pub const MAX_EXPERTS: u32 = 65_536;

/// The most layers that a trace may have: no model comes near it.
pub const MAX_LAYERS: usize = 1 << 12;

/// The most experts over all layers: a hundred times the largest model's. What is kept for each
/// expert (statistics, caches, policies) takes memory by it, so a small file may not ask for more.
pub const MAX_TOTAL_EXPERTS: u32 = 1 << 22;

/// One MoE layer of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LayerShape {
    /// The layer's number in the model (dense layers count too, so numbers may have gaps).
    pub number: u32,
    /// Routed experts, 1 to 65,536.
    pub experts: u32,
    /// Experts chosen for each token, 1 to `experts`.
    pub top_k: u32,
    /// Bytes of one expert as it is stored; 0 where that was not recorded.
    pub expert_bytes: u64,
}

/// A validated model shape: at least one layer, every count within its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    layers: Vec<LayerShape>,
    row_offsets: Vec<usize>,
    key_bases: Vec<u32>,
    row_len: u32,
    total_experts: u32,
}

impl Shape {
    /// Checks the layers and derives the offsets.
    ///
    /// # Errors
    /// [`Error::Shape`] without a layer, for an expert count outside 1 to 65,536, a top-k outside
    /// 1 to the layer's experts, layer numbers that do not rise, or more layers or experts in all
    /// than [`MAX_LAYERS`] and [`MAX_TOTAL_EXPERTS`].
    pub fn new(layers: Vec<LayerShape>) -> Result<Self> {
        if layers.is_empty() {
            return Err(Error::shape("no layers; a trace needs at least one MoE layer"));
        }
        let mut row_offsets = Vec::with_capacity(layers.len());
        let mut key_bases = Vec::with_capacity(layers.len());
        let (mut row_len, mut total_experts) = (0u32, 0u32);
        for (index, layer) in layers.iter().enumerate() {
            let LayerShape { number, experts, top_k, .. } = *layer;
            if experts == 0 || experts > MAX_EXPERTS {
                return Err(Error::shape(format!(
                    "layer {index} has {experts} experts; 1 to {MAX_EXPERTS} are possible"
                )));
            }
            if top_k == 0 || top_k > experts {
                return Err(Error::shape(format!(
                    "layer {index} has top-k {top_k}; 1 to its {experts} experts are possible"
                )));
            }
            if index > 0 && layers[index - 1].number >= number {
                return Err(Error::shape(format!(
                    "layer {index} has number {number}, not above the {} before it",
                    layers[index - 1].number
                )));
            }
            row_offsets.push(row_len as usize);
            key_bases.push(total_experts);
            let overflow = || Error::shape(format!("the totals overflow 32 bits at layer {index}"));
            row_len = row_len.checked_add(top_k).ok_or_else(overflow)?;
            total_experts = total_experts.checked_add(experts).ok_or_else(overflow)?;
        }
        if layers.len() > MAX_LAYERS || total_experts > MAX_TOTAL_EXPERTS {
            return Err(Error::shape(format!(
                "{} layers with {total_experts} experts in all; at most {MAX_LAYERS} layers and \
                 {MAX_TOTAL_EXPERTS} experts are possible. One id that is none (padding, a text's \
                 token) makes a layer as wide",
                layers.len()
            )));
        }
        Ok(Self { layers, row_offsets, key_bases, row_len, total_experts })
    }

    /// `layers` equal layers, numbered from 0, their expert bytes not recorded.
    ///
    /// # Errors
    /// As [`Shape::new`].
    pub fn uniform(layers: u32, experts: u32, top_k: u32) -> Result<Self> {
        // Before they are made.
        if layers as usize > MAX_LAYERS {
            return Err(Error::shape(format!(
                "{layers} layers; at most {MAX_LAYERS} are possible"
            )));
        }
        let layer = |number| LayerShape { number, experts, top_k, expert_bytes: 0 };
        Self::new((0..layers).map(layer).collect())
    }

    /// The MoE layers in the order in which a token runs through them.
    pub fn layers(&self) -> &[LayerShape] {
        &self.layers
    }

    /// Ids that one token has: the sum of the layers' top-k.
    pub fn row_len(&self) -> usize {
        self.row_len as usize
    }

    /// Where layer `layer` (its index, from 0) begins in a token's row.
    pub fn row_offset(&self, layer: usize) -> usize {
        self.row_offsets[layer]
    }

    /// The dense key of expert 0 of layer `layer` (its index, from 0).
    pub fn key_base(&self, layer: usize) -> u32 {
        self.key_bases[layer]
    }

    /// Experts over all layers: dense keys run from 0 to one below it.
    pub fn total_experts(&self) -> u32 {
        self.total_experts
    }

    /// Experts that one token uses over all layers: [`Shape::row_len`] as a count.
    pub fn experts_per_token(&self) -> u32 {
        self.row_len
    }

    /// Bytes of all experts together, or `None` where a layer's expert bytes are not recorded.
    pub fn total_bytes(&self) -> Option<u64> {
        self.layers.iter().try_fold(0u64, |total, layer| {
            let bytes = layer.expert_bytes.checked_mul(u64::from(layer.experts))?;
            if bytes == 0 { None } else { total.checked_add(bytes) }
        })
    }

    /// The same layers with every expert taking `bytes` bytes (0: not recorded).
    pub fn with_expert_bytes(&self, bytes: u64) -> Self {
        let mut shape = self.clone();
        shape.layers.iter_mut().for_each(|layer| layer.expert_bytes = bytes);
        shape
    }

    /// The same shape with what `of` makes of each layer's bytes of an expert.
    #[must_use]
    pub fn map_expert_bytes(&self, of: impl Fn(u64) -> u64) -> Self {
        let mut shape = self.clone();
        shape.layers.iter_mut().for_each(|layer| layer.expert_bytes = of(layer.expert_bytes));
        shape
    }

    /// The most experts that any layer has.
    pub fn max_experts(&self) -> u32 {
        self.layers.iter().map(|layer| layer.experts).max().unwrap_or(0)
    }

    /// Experts and top-k where all layers agree on both.
    pub fn as_uniform(&self) -> Option<(u32, u32)> {
        let first = self.layers.first()?;
        let same = |l: &LayerShape| l.experts == first.experts && l.top_k == first.top_k;
        self.layers.iter().all(same).then_some((first.experts, first.top_k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(number: u32, experts: u32, top_k: u32) -> LayerShape {
        LayerShape { number, experts, top_k, expert_bytes: 10 }
    }

    #[test]
    fn offsets_of_mixed_layers() {
        let shape = Shape::new(vec![layer(1, 64, 6), layer(2, 8, 2), layer(5, 256, 8)]).unwrap();
        assert_eq!(shape.row_len(), 16);
        assert_eq!([0, 1, 2].map(|l| shape.row_offset(l)), [0, 6, 8]);
        assert_eq!([0, 1, 2].map(|l| shape.key_base(l)), [0, 64, 72]);
        assert_eq!(shape.total_experts(), 328);
        assert_eq!(shape.experts_per_token(), 16);
        assert_eq!(shape.total_bytes(), Some(3280));
        assert_eq!(shape.as_uniform(), None);
        assert_eq!(Shape::uniform(3, 8, 2).unwrap().as_uniform(), Some((8, 2)));
        assert_eq!(Shape::uniform(3, 8, 2).unwrap().total_bytes(), None);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let message = |layers| Shape::new(layers).unwrap_err().to_string();
        assert_eq!(message(vec![]), "model shape: no layers; a trace needs at least one MoE layer");
        assert_eq!(
            message(vec![layer(0, 8, 9)]),
            "model shape: layer 0 has top-k 9; 1 to its 8 experts are possible"
        );
        assert_eq!(
            message(vec![layer(0, 8, 2), layer(1, 0, 1)]),
            "model shape: layer 1 has 0 experts; 1 to 65536 are possible"
        );
        assert_eq!(
            message(vec![layer(0, 65_537, 1)]),
            "model shape: layer 0 has 65537 experts; 1 to 65536 are possible"
        );
        assert!(message(vec![layer(3, 8, 2), layer(3, 8, 2)]).contains("not above the 3"));
        let wide = (0..65_536).map(|n| layer(n, 65_536, 1)).collect();
        assert_eq!(message(wide), "model shape: the totals overflow 32 bits at layer 65535");
        assert!(Shape::uniform(u32::MAX, 1, 1).is_err());
        let many = message((0..4097).map(|n| layer(n, 2, 1)).collect());
        assert!(many.contains("4097 layers with 8194 experts in all; at most 4096"), "{many}");
        let wide = message((0..65).map(|n| layer(n, 65_536, 1)).collect());
        assert!(wide.contains("65 layers with 4259840 experts in all"), "{wide}");
    }
}
