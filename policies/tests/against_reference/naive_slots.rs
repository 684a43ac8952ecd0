//! What the naive references that score their residents have in common.

use std::collections::{BTreeMap, BTreeSet};

use hotset_policies::{Key, PoolShape};

/// Residents with the number of their last touch, and the victim by a score of one's own.
pub struct Slots {
    pub capacity: usize,
    pub touched: BTreeMap<Key, u64>,
    pub touches: u64,
}

impl Slots {
    pub fn new(pool: &PoolShape) -> Self {
        Self { capacity: pool.capacity as usize, touched: BTreeMap::new(), touches: 0 }
    }

    pub fn touch(&mut self, key: Key) {
        self.touches += 1;
        self.touched.insert(key, self.touches);
    }

    /// Makes room by the smallest score, ties to the least recent, and lets `key` in.
    pub fn admit(
        &mut self,
        key: Key,
        may_evict: &dyn Fn(Key) -> bool,
        score: impl Fn(Key) -> f64,
    ) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.touched.len() == self.capacity {
            let mut candidates: Vec<(f64, u64, Key)> = self
                .touched
                .iter()
                .filter(|&(&other, _)| may_evict(other))
                .map(|(&other, &touch)| (score(other), touch, other))
                .collect();
            candidates.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let &(_, _, victim) = candidates.first()?;
            self.touched.remove(&victim);
            left.push(victim);
        }
        self.touch(key);
        Some(left)
    }

    pub fn residents(&self) -> BTreeSet<Key> {
        self.touched.keys().copied().collect()
    }
}

pub fn layer_of(pool: &PoolShape, key: Key) -> usize {
    pool.layer_bases.iter().rposition(|&base| base <= key).unwrap()
}

pub fn keys_of(pool: &PoolShape, layer: usize) -> std::ops::Range<Key> {
    let end = pool.layer_bases.get(layer + 1).copied().unwrap_or(pool.keys);
    pool.layer_bases[layer]..end
}

/// Layers from the running event's to a key's next turn.
pub fn layers_ahead(pool: &PoolShape, running: usize, key: Key) -> f64 {
    let (layer, layers) = (layer_of(pool, key), pool.layer_bases.len());
    if layer > running { (layer - running) as f64 } else { (layer + layers - running) as f64 }
}

macro_rules! residents_of_slots {
    () => {
        fn residents(&self) -> std::collections::BTreeSet<Key> {
            self.slots.residents()
        }
    };
}

pub(super) use residents_of_slots;
