//! Naive references of the policies that score experts by their router, a profile or a training part.

use std::collections::{BTreeMap, BTreeSet};

use hotset_policies::{Event, Key, PoolShape};

use super::harness::Naive;
use super::naive_slots::{Slots, keys_of, layer_of, residents_of_slots};

/// Visits of all keys ever.
pub struct NaiveMoeInfinity {
    slots: Slots,
    pool: PoolShape,
    visits: Vec<u32>,
}

impl NaiveMoeInfinity {
    pub fn new(pool: &PoolShape) -> Self {
        let visits = vec![0; pool.keys as usize];
        Self { slots: Slots::new(pool), pool: pool.clone(), visits }
    }
}

impl Naive for NaiveMoeInfinity {
    fn hit(&mut self, key: Key) {
        self.visits[key as usize] += 1;
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let left = self.slots.admit(key, may_evict, |other| {
            let layer = layer_of(&self.pool, other);
            let expert = other - self.pool.layer_bases[layer];
            f64::from(self.visits[other as usize] * 10_000 + expert * 100) + layer as f64
        })?;
        self.visits[key as usize] += 1;
        Some(left)
    }

    residents_of_slots!();
}

/// Age over a fixed profile of halves and quarters, which floats hold exactly.
pub struct NaiveSemantic {
    slots: Slots,
}

impl NaiveSemantic {
    pub fn new(pool: &PoolShape) -> Self {
        Self { slots: Slots::new(pool) }
    }

    /// Expected uses a token, floor included: 1/2, 1, 2 in turn.
    pub fn expected(key: Key) -> f64 {
        [0.5, 1.0, 2.0][key as usize % 3]
    }
}

impl Naive for NaiveSemantic {
    fn hit(&mut self, key: Key) {
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let (touches, touched) = (self.slots.touches, self.slots.touched.clone());
        self.slots.admit(key, may_evict, |other| {
            -((touches - touched[&other] + 1) as f64) / Self::expected(other)
        })
    }

    residents_of_slots!();
}

/// Running averages. The harness's weights are 256ths, so nothing is rounded for 40 visits.
pub struct NaiveMrs {
    slots: Slots,
    pool: PoolShape,
    scores: Vec<f64>,
    alpha: f64,
}

impl NaiveMrs {
    pub fn new(pool: &PoolShape, alpha: f64) -> Self {
        let scores = vec![0.0; pool.keys as usize];
        Self { slots: Slots::new(pool), pool: pool.clone(), scores, alpha }
    }
}

impl Naive for NaiveMrs {
    fn hit(&mut self, key: Key) {
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.slots.admit(key, may_evict, |other| self.scores[other as usize])
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        for key in keys_of(&self.pool, event.layer as usize) {
            let rank = event.keys.iter().position(|&other| other == key);
            // In 255ths, as the policy has it: the last bit of a long history is part of the rule.
            let weight = rank.map_or(0.0, |rank| 255.0 * f64::from(event.weights[rank]));
            let score = &mut self.scores[key as usize];
            *score = self.alpha * weight + (1.0 - self.alpha) * *score;
        }
    }

    residents_of_slots!();
}

/// The last weight of each key, and its visits since admission.
pub struct NaiveFineMoe {
    slots: Slots,
    weights: BTreeMap<Key, f64>,
    visits: BTreeMap<Key, f64>,
    truncate: bool,
}

impl NaiveFineMoe {
    pub fn new(pool: &PoolShape, truncate: bool) -> Self {
        let (weights, visits) = (BTreeMap::new(), BTreeMap::new());
        Self { slots: Slots::new(pool), weights, visits, truncate }
    }
}

impl Naive for NaiveFineMoe {
    fn hit(&mut self, key: Key) {
        *self.visits.get_mut(&key).unwrap() += 1.0;
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let left = self.slots.admit(key, may_evict, |other| {
            let product = self.weights[&other] * self.visits[&other];
            if self.truncate { product.floor() } else { product }
        })?;
        self.visits.insert(key, 1.0);
        Some(left)
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        for (&key, &weight) in event.keys.iter().zip(event.weights) {
            self.weights.insert(key, f64::from(weight));
        }
    }

    residents_of_slots!();
}

/// The keys of the largest counts.
pub struct NaiveStatic {
    chosen: BTreeSet<Key>,
    residents: BTreeSet<Key>,
}

impl NaiveStatic {
    pub fn new(pool: &PoolShape, counts: &[u64]) -> Self {
        let mut chosen = BTreeSet::new();
        while chosen.len() < pool.capacity as usize {
            let rest = (0..pool.keys).filter(|key| !chosen.contains(key));
            // The last of equal maxima is what max_by_key gives: the lowest key, from behind.
            let most = rest.rev().max_by_key(|&key| counts[key as usize]).unwrap();
            chosen.insert(most);
        }
        Self { chosen, residents: BTreeSet::new() }
    }
}

impl Naive for NaiveStatic {
    fn hit(&mut self, _: Key) {}

    fn admit(&mut self, key: Key, _: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.chosen.contains(&key).then(|| {
            self.residents.insert(key);
            Vec::new()
        })
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.clone()
    }
}
