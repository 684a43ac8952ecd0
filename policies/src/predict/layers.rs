//! The model as predictors see it, and one token on its way through it.

use std::ops::Range;

/// Experts and top-k of each MoE layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    experts: Vec<u32>,
    /// First place of each layer in a token's row of routes, and the row's length.
    rows: Vec<u32>,
    /// Dense key of each layer's expert 0, and the number of experts.
    bases: Vec<u32>,
}

impl Layers {
    /// A model with `experts[l]` experts in MoE layer `l`, `top_k[l]` of them used by a token.
    ///
    /// # Panics
    /// If the lists differ in length, or the model has more than 2^32 - 1 experts.
    #[must_use]
    pub fn new(experts: &[u32], top_k: &[u32]) -> Self {
        assert_eq!(experts.len(), top_k.len(), "one top-k for each layer");
        Self { experts: experts.to_vec(), rows: sums(top_k), bases: sums(experts) }
    }

    /// Number of MoE layers.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.experts.len()
    }

    /// Whether there is no layer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.experts.is_empty()
    }

    /// Experts of a layer.
    #[must_use]
    #[inline(always)]
    pub fn experts(&self, layer: usize) -> usize {
        self.experts[layer] as usize
    }

    /// Experts of all layers together.
    #[must_use]
    pub fn total_experts(&self) -> usize {
        self.bases[self.len()] as usize
    }

    /// The dense keys of a layer's experts.
    #[must_use]
    #[inline(always)]
    pub fn keys(&self, layer: usize) -> Range<usize> {
        self.bases[layer] as usize..self.bases[layer + 1] as usize
    }

    /// A layer's places in a token's row of routes.
    #[must_use]
    #[inline(always)]
    pub fn places(&self, layer: usize) -> Range<usize> {
        self.rows[layer] as usize..self.rows[layer + 1] as usize
    }

    /// Routes of a token: the sum of all layers' top-k.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.rows[self.len()] as usize
    }
}

/// How far ahead a predictor is asked: the distances, in layers, from a decided layer to the one
/// that is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// The nearest, at least 1.
    pub nearest: usize,
    /// The farthest, at least the nearest.
    pub farthest: usize,
}

impl Horizon {
    /// One distance.
    #[must_use]
    pub fn at(distance: usize) -> Self {
        Self { nearest: distance, farthest: distance }
    }

    /// The nearest of the distances at which `target` can be predicted; `None` for a layer that
    /// nothing lies so far before.
    #[must_use]
    #[inline(always)]
    pub fn distance_to(&self, target: usize) -> Option<usize> {
        (target >= self.nearest).then_some(self.nearest)
    }

    /// Whether `target` lies at one of the distances behind `layer`.
    #[must_use]
    #[inline(always)]
    pub fn reaches(&self, layer: usize, target: usize) -> bool {
        (layer + self.nearest..=layer + self.farthest).contains(&target)
    }
}

/// 0, and the sum up to each entry.
fn sums(counts: &[u32]) -> Vec<u32> {
    let mut sums = Vec::with_capacity(counts.len() + 1);
    sums.push(0u32);
    for &count in counts {
        let sum = sums[sums.len() - 1].checked_add(count).expect("at most 2^32 - 1 experts");
        sums.push(sum);
    }
    sums
}

/// Which token of a trace, and how far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenPlace {
    /// The lane of its sequence.
    pub lane: u32,
    /// Its number in the trace, for predictors that look things up there.
    pub row: usize,
    /// The latest layer that is decided.
    pub layer: u32,
}

/// A token whose router has decided the layers up to `layer`.
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    /// The lane of its sequence.
    pub lane: u32,
    /// Its number in the trace, for predictors that look things up there.
    pub row: usize,
    /// The latest layer that is decided.
    pub layer: u32,
    layers: &'a Layers,
    routes: &'a [u32],
    weights: &'a [f32],
}

impl<'a> Token<'a> {
    /// The token at `place`. `routes` has the experts of layers `0..=layer` (what follows is cut
    /// off), each layer's best first; `weights` the router's weight of each, or nothing.
    ///
    /// # Panics
    /// If `routes` ends before the layer does, or `weights` is neither empty nor as long.
    #[must_use]
    #[inline(always)]
    pub fn new(
        place: TokenPlace,
        layers: &'a Layers,
        routes: &'a [u32],
        weights: &'a [f32],
    ) -> Self {
        let TokenPlace { lane, row, layer } = place;
        let known = layers.rows[layer as usize + 1] as usize;
        let weights = if weights.is_empty() { weights } else { &weights[..known] };
        Self { lane, row, layer, layers, routes: &routes[..known], weights }
    }

    /// The model.
    #[must_use]
    #[inline(always)]
    pub fn layers(&self) -> &'a Layers {
        self.layers
    }

    /// The experts that the token uses in a decided layer, best first.
    ///
    /// # Panics
    /// If the layer is not decided yet.
    #[must_use]
    #[inline(always)]
    pub fn experts(&self, layer: usize) -> &'a [u32] {
        &self.routes[self.layers.places(layer)]
    }

    /// The router's weights of those experts; empty where none were recorded.
    ///
    /// # Panics
    /// If the layer is not decided yet.
    #[must_use]
    #[inline(always)]
    pub fn weights(&self, layer: usize) -> &'a [f32] {
        if self.weights.is_empty() { &[] } else { &self.weights[self.layers.places(layer)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_shows_the_layers_that_are_decided_and_no_more() {
        let layers = Layers::new(&[4, 8, 4], &[1, 2, 1]);
        let row = [3, 5, 1, 2];
        let token = Token::new(TokenPlace { lane: 0, row: 7, layer: 1 }, &layers, &row, &[]);
        assert_eq!((token.experts(0), token.experts(1)), (&[3][..], &[5, 1][..]));
        assert!(std::panic::catch_unwind(|| token.experts(2).len()).is_err());
        assert_eq!((layers.keys(1), layers.row_len(), layers.total_experts()), (4..12, 4, 16));
    }
}
