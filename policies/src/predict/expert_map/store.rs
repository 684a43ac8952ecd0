//! Stored maps by slot and by expert.
//!
//! Memory: 16 bytes for each probability above 0 of each map (8 MB for 1000 tokens of 61 layers
//! of top-8), 8 for each layer of each, and 8 for each dimension of its embedding.

use crate::predict::Layers;
use crate::predict::vectors::{dot, first_of_largest, inverse_norm};

/// One map.
#[derive(Debug, Clone, Default)]
struct Map {
    /// Key and probability, above 0, each layer's most probable first, ties to the lower key.
    entries: Vec<(u32, f32)>,
    /// First entry of each layer, and their number.
    starts: Vec<u32>,
    /// Of length 1; empty where there is none.
    embedding: Vec<f64>,
}

/// Maps in slots, and for each expert the maps that it is in.
#[derive(Debug, Clone)]
pub(super) struct Store {
    maps: Vec<Map>,
    /// `[key]`: slot and probability, above 0, in no order that matters.
    postings: Vec<Vec<(u32, f32)>>,
    /// 1 / |rows 0 to layer|, `[layer][slot]`; 0 for empty rows.
    inverse_norms: Vec<Vec<f64>>,
    capacity: usize,
    /// What the embeddings' likeness counts against the maps', 0 to 1.
    share: f64,
    /// The map put last, by key, and where it is.
    latest: Vec<f32>,
    latest_slot: usize,
}

impl Store {
    pub(super) fn new(layers: &Layers, capacity: usize, share: f64) -> Self {
        Self {
            maps: Vec::new(),
            postings: vec![Vec::new(); layers.total_experts()],
            inverse_norms: vec![Vec::new(); layers.len()],
            capacity,
            share,
            latest: vec![0.0; layers.total_experts()],
            latest_slot: 0,
        }
    }

    /// Maps that are stored.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.maps.len()
    }

    /// A map's probabilities in a layer, most probable first.
    #[inline]
    pub(super) fn row(&self, slot: usize, layer: usize) -> &[(u32, f32)] {
        let map = &self.maps[slot];
        &map.entries[map.starts[layer] as usize..map.starts[layer + 1] as usize]
    }

    /// Cosine of a map's embedding and one of length 1; 0 where either is missing or they differ in
    /// length.
    pub(super) fn likeness(&self, slot: usize, embedding: &[f64]) -> f64 {
        let stored = &self.maps[slot].embedding;
        if stored.len() == embedding.len() { dot(stored, embedding) } else { 0.0 }
    }

    /// Adds a probability's product with every map, by slot.
    #[inline]
    pub(super) fn add_products(&self, key: u32, probability: f64, dots: &mut [f64]) {
        for &(slot, stored) in &self.postings[key as usize] {
            dots[slot as usize] += probability * f64::from(stored);
        }
    }

    /// The product of a token's probabilities, summed in their order, and the map put last.
    pub(super) fn product_with_latest(&self, probabilities: &[(u32, f32)]) -> f64 {
        let product =
            |&(key, own): &(u32, f32)| f64::from(own) * f64::from(self.latest[key as usize]);
        probabilities.iter().fold(0.0, |sum, entry| sum + product(entry))
    }

    /// The map most like a token's rows up to `layer`, which have these products with the stored
    /// ones and this sum of squares, and the cosine.
    #[inline]
    pub(super) fn most_alike(&self, layer: usize, dots: &[f64], square: f64) -> (usize, f64) {
        let rows = dots.iter().zip(&self.inverse_norms[layer]);
        let (slot, product) = first_of_largest(rows.map(|(dot, norm)| dot * norm));
        (slot, product * inverse_norm(square))
    }

    /// The slot for a map of these products, sum of squares and likenesses: a new one while there
    /// is room, else the most redundant one's.
    pub(super) fn room(&self, dots: &[f64], square: f64, likeness: &[f64]) -> usize {
        if self.maps.len() < self.capacity {
            return self.maps.len();
        }
        let own = inverse_norm(square);
        let norms = self.inverse_norms.last().map_or(&[][..], Vec::as_slice);
        let rows = dots.iter().zip(norms).zip(likeness);
        let redundancy = rows.map(|((dot, norm), likeness)| {
            self.share * likeness + (1.0 - self.share) * (dot * norm * own)
        });
        first_of_largest(redundancy).0
    }

    /// Puts a map, layer by layer, into a slot, the next new one or one that is taken.
    pub(super) fn put(
        &mut self,
        layers: &Layers,
        slot: usize,
        entries: &[(u32, f32)],
        embedding: &[f64],
    ) {
        if slot == self.maps.len() {
            self.maps.push(Map::default());
            self.inverse_norms.iter_mut().for_each(|norms| norms.push(0.0));
        }
        for &(key, _) in &self.maps[self.latest_slot].entries {
            self.latest[key as usize] = 0.0;
        }
        self.latest_slot = slot;
        let map = &mut self.maps[slot];
        for &(key, _) in &map.entries {
            let postings = &mut self.postings[key as usize];
            let place = postings.iter().position(|entry| entry.0 == slot as u32);
            postings.swap_remove(place.expect("an entry of a map is in its expert's list"));
        }
        map.entries.clear();
        map.entries.extend_from_slice(entries);
        map.embedding.clear();
        map.embedding.extend_from_slice(embedding);
        map.starts.clear();
        map.starts.push(0);
        let (mut start, mut square) = (0, 0.0);
        for (layer, norms) in self.inverse_norms.iter_mut().enumerate() {
            let end = layers.keys(layer).end as u32;
            let length = map.entries[start..].iter().take_while(|entry| entry.0 < end).count();
            let row = &mut map.entries[start..start + length];
            square = row.iter().fold(square, |sum, &(_, p)| sum + f64::from(p) * f64::from(p));
            norms[slot] = inverse_norm(square);
            row.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
            start += length;
            map.starts.push(start as u32);
        }
        for &(key, probability) in &map.entries {
            self.postings[key as usize].push((slot as u32, probability));
            self.latest[key as usize] = probability;
        }
    }
}
