//! A sequence's prompt and its token under way, and how like the stored ones they are.

use super::store::Store;
use crate::predict::Token;
use crate::predict::vectors::{dot, first_of_largest};

/// A sequence under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) running: bool,
    /// Of length 1; empty where there is none.
    pub(super) embedding: Vec<f64>,
    /// Cosines of the embedding and those stored, by slot.
    pub(super) likeness: Vec<f64>,
    /// The best of them and its cosine, once it was asked for.
    by_embedding: Option<(usize, f64)>,
    /// The token's number in the trace, and its layers that are in what follows.
    row: usize,
    pub(super) layers: usize,
    /// The token's probabilities above 0: key and probability, layer by layer.
    pub(super) probabilities: Vec<(u32, f32)>,
    /// Sum of their squares.
    pub(super) square: f64,
    /// Products with the stored maps, by slot.
    pub(super) dots: Vec<f64>,
    /// The best by the rows so far and its cosine, once it was asked for.
    by_rows: Option<(usize, f64)>,
    /// Sums of probabilities by dense key, and the tokens that they are of.
    sums: Vec<f64>,
    tokens: u64,
}

impl Lane {
    /// Begins with a prompt's embedding, empty where none was recorded.
    pub(super) fn begin(&mut self, store: &Store, embedding: &[f32]) {
        self.running = true;
        unit(embedding, &mut self.embedding);
        self.likeness.clear();
        self.likeness.extend((0..store.len()).map(|slot| store.likeness(slot, &self.embedding)));
        self.by_embedding = None;
        self.restart(store, 0);
        self.sums.fill(0.0);
        self.tokens = 0;
    }

    /// Another token: nothing is known of it.
    fn restart(&mut self, store: &Store, row: usize) {
        (self.row, self.layers, self.square, self.by_rows) = (row, 0, 0.0, None);
        self.probabilities.clear();
        self.dots.clear();
        self.dots.resize(store.len(), 0.0);
    }

    /// Takes in the layers of a token up to the decided one, beginning anew unless what is known is
    /// the first `known` layers of that token.
    #[inline]
    pub(super) fn follow(&mut self, store: &Store, token: &Token<'_>, known: usize) {
        if (self.row, self.layers) != (token.row, known) {
            self.restart(store, token.row);
        }
        for layer in self.layers..=token.layer as usize {
            let base = token.layers().keys(layer).start as u32;
            for (&expert, &weight) in token.experts(layer).iter().zip(token.weights(layer)) {
                // (Written so that what is not a number is left out.)
                if weight > 0.0 && weight.is_finite() {
                    let probability = f64::from(weight);
                    self.probabilities.push((base + expert, weight));
                    self.square += probability * probability;
                    store.add_products(base + expert, probability, &mut self.dots);
                }
            }
            self.by_rows = None;
            self.layers = layer + 1;
        }
    }

    /// Takes in that the store has another map in a slot.
    pub(super) fn replaced(&mut self, store: &Store, slot: usize) {
        self.likeness.resize(store.len(), 0.0);
        self.likeness[slot] = store.likeness(slot, &self.embedding);
        self.by_embedding = None;
        self.dots.resize(store.len(), 0.0);
        self.dots[slot] = store.product_with_latest(&self.probabilities);
        self.by_rows = None;
    }

    /// The map whose embedding is most alike, of a store that is not empty; `None` without one.
    pub(super) fn alike_by_embedding(&mut self) -> Option<(usize, f64)> {
        if self.embedding.is_empty() {
            return None;
        }
        let likeness = self.likeness.iter().copied();
        Some(*self.by_embedding.get_or_insert_with(|| first_of_largest(likeness)))
    }

    /// The map whose rows up to the token's layer are most alike, of a store that is not empty.
    #[inline]
    pub(super) fn alike_by_rows(&mut self, store: &Store, token: &Token<'_>) -> (usize, f64) {
        let layer = token.layer as usize;
        self.follow(store, token, layer + 1);
        *self.by_rows.get_or_insert_with(|| store.most_alike(layer, &self.dots, self.square))
    }

    /// Adds the token to the sequence's mean.
    pub(super) fn add_to_mean(&mut self, experts: usize) {
        self.sums.resize(experts, 0.0);
        for &(key, probability) in &self.probabilities {
            self.sums[key as usize] += f64::from(probability);
        }
        self.tokens += 1;
    }

    /// The mean of the tokens added, by key where it is above 0.
    pub(super) fn mean(&self) -> impl Iterator<Item = (u32, f32)> {
        let tokens = self.tokens as f64;
        let sums = (0..).zip(&self.sums).filter(|(_, sum)| **sum > 0.0);
        sums.map(move |(key, sum)| (key, (sum / tokens) as f32))
    }
}

/// The vector of length 1 in a direction; empty where there is no direction.
fn unit(vector: &[f32], unit: &mut Vec<f64>) {
    unit.clear();
    unit.extend(vector.iter().map(|&value| f64::from(value)));
    let length = dot(unit, unit).sqrt();
    if length > 0.0 && length.is_finite() {
        unit.iter_mut().for_each(|value| *value /= length);
    } else {
        unit.clear();
    }
}
