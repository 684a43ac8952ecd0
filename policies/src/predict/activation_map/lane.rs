//! A sequence's counts and their products with the stored ones, kept up as either changes.

use super::store::{Store, squares};
use crate::predict::vectors::{add, first_of_largest, inverse_norm};
use crate::predict::{Layers, Token};

/// A sequence under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) running: bool,
    /// By dense key.
    counts: Vec<u32>,
    /// Sum of the squares of each layer's counts.
    squares: Vec<f64>,
    /// Products of each layer's counts and the stored ones, `[layer][slot]`.
    dots: Vec<Vec<f64>>,
    /// The best slot at each layer, by the rows behind it.
    matches: Vec<usize>,
    /// Rows from this one on are as they were when `matches` were found.
    changed: usize,
    /// Whether the latest layer's match was counted as an access.
    pub(super) counted: bool,
}

impl Lane {
    /// Begins with these uses, by dense key; none are zeros.
    pub(super) fn begin(&mut self, layers: &Layers, store: &Store, uses: &[u32]) {
        self.running = true;
        self.counts.clear();
        self.counts.extend_from_slice(uses);
        self.counts.resize(layers.total_experts(), 0);
        let row = |layer: usize| self.counts[layers.keys(layer)].iter().copied();
        self.squares.clear();
        self.squares.extend((0..layers.len()).map(|layer| squares(row(layer))));
        self.dots.resize_with(layers.len(), Vec::new);
        for (layer, dots) in self.dots.iter_mut().enumerate() {
            dots.clear();
            dots.resize(store.len(), 0.0);
            for key in layers.keys(layer).filter(|&key| self.counts[key] > 0) {
                add(dots, store.column(key), f64::from(self.counts[key]));
            }
        }
        self.matches.clear();
        self.matches.resize(layers.len(), 0);
        self.changed = layers.len();
        self.counted = false;
    }

    /// The counts by dense key, where there are any.
    pub(super) fn map(&self) -> Option<&[u32]> {
        self.counts.iter().any(|&count| count > 0).then_some(&self.counts)
    }

    /// Counts the experts of the token's latest layer.
    #[inline]
    pub(super) fn count(&mut self, layers: &Layers, store: &Store, token: &Token<'_>) {
        let layer = token.layer as usize;
        let base = layers.keys(layer).start;
        for &expert in token.experts(layer) {
            let key = base + expert as usize;
            // (m + 1)^2 = m^2 + 2m + 1
            self.squares[layer] += 2.0 * f64::from(self.counts[key]) + 1.0;
            self.counts[key] = self.counts[key].saturating_add(1);
            add(&mut self.dots[layer], store.column(key), 1.0);
        }
        self.changed = self.changed.max(layer + 1);
        self.counted = false;
    }

    /// Takes in that the store has another map in a slot.
    pub(super) fn replaced(&mut self, layers: &Layers, store: &Store, slot: usize) {
        for (layer, dots) in self.dots.iter_mut().enumerate() {
            dots.resize(store.len(), 0.0);
            let keys = layers.keys(layer);
            let pairs = self.counts[keys.clone()].iter().zip(&store.map(slot)[keys]);
            dots[slot] = pairs.map(|(&own, &stored)| f64::from(own) * f64::from(stored)).sum();
        }
        self.changed = layers.len();
    }

    /// The best slot at a layer, of a store that is not empty.
    #[inline]
    pub(super) fn matching(&mut self, store: &Store, layer: usize, sums: &mut Vec<f64>) -> usize {
        // Only the rows behind the layer are compared.
        if self.changed > layer + 1 {
            self.search(store, sums);
        }
        self.matches[layer]
    }

    /// Finds the best slot at each layer.
    fn search(&mut self, store: &Store, sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(store.len(), 0.0);
        for layer in (0..self.matches.len()).rev() {
            self.matches[layer] = first_of_largest(sums.iter().copied()).0;
            let own = inverse_norm(self.squares[layer]);
            let rows = self.dots[layer].iter().zip(store.inverse_norms(layer));
            for (sum, (dot, norm)) in sums.iter_mut().zip(rows) {
                *sum += dot * norm * own;
            }
        }
        self.changed = 0;
    }
}
