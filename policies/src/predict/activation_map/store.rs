//! Maps of sequences that have ended.

use crate::predict::Layers;
use crate::predict::vectors::inverse_norm;

/// Maps in slots. Counts are in single precision, as in the source: exact up to 2^24 tokens.
#[derive(Debug, Clone)]
pub(super) struct Store {
    /// `[key][slot]`, which products walk.
    columns: Vec<Vec<f32>>,
    /// `[slot][key]`, which guesses walk.
    maps: Vec<Vec<f32>>,
    /// 1 / |row|, `[layer][slot]`; 0 for an empty row.
    inverse_norms: Vec<Vec<f64>>,
    accesses: Vec<u64>,
    capacity: usize,
}

impl Store {
    pub(super) fn new(layers: &Layers, capacity: usize) -> Self {
        Self {
            columns: vec![Vec::new(); layers.total_experts()],
            maps: Vec::new(),
            inverse_norms: vec![Vec::new(); layers.len()],
            accesses: Vec::new(),
            capacity,
        }
    }

    /// Maps that are stored.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.maps.len()
    }

    /// An expert's count in each map, by slot.
    #[inline]
    pub(super) fn column(&self, key: usize) -> &[f32] {
        &self.columns[key]
    }

    /// A map, by dense key.
    #[inline]
    pub(super) fn map(&self, slot: usize) -> &[f32] {
        &self.maps[slot]
    }

    /// 1 / |row| of a layer in each map, by slot; 0 for an empty row.
    #[inline]
    pub(super) fn inverse_norms(&self, layer: usize) -> &[f64] {
        &self.inverse_norms[layer]
    }

    /// A map was the match.
    #[inline]
    pub(super) fn access(&mut self, slot: usize) {
        self.accesses[slot] += 1;
    }

    #[cfg(test)]
    pub(super) fn accesses(&self) -> &[u64] {
        &self.accesses
    }

    /// Stores a map, in place of the least accessed one if there is no room, and gives its slot.
    pub(super) fn put(&mut self, layers: &Layers, counts: &[u32]) -> usize {
        if self.maps.len() < self.capacity {
            self.maps.push(Vec::new());
            self.accesses.push(0);
            self.columns.iter_mut().for_each(|column| column.push(0.0));
            self.inverse_norms.iter_mut().for_each(|norms| norms.push(0.0));
        }
        // A new slot has no access yet, so it is the least accessed.
        let least = (0..self.maps.len()).min_by_key(|&slot| self.accesses[slot]);
        let slot = least.expect("a store keeps at least one map");
        self.accesses[slot] = 1;
        let map = &mut self.maps[slot];
        map.clear();
        map.extend(counts.iter().map(|&count| count as f32));
        for (column, &count) in self.columns.iter_mut().zip(&*map) {
            column[slot] = count;
        }
        for (layer, norms) in self.inverse_norms.iter_mut().enumerate() {
            norms[slot] = inverse_norm(squares(map[layers.keys(layer)].iter().copied()));
        }
        slot
    }
}

/// The sum of a row's squares.
pub(super) fn squares<T: Into<f64>>(row: impl Iterator<Item = T>) -> f64 {
    row.map(Into::into).map(|count| count * count).sum()
}
