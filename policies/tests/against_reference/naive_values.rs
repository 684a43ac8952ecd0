//! Naive LRU-K and decayed LFU: every use is written down, every value computed from all of them.

use std::collections::BTreeSet;

use hotset_policies::{Key, PoolShape};

use crate::harness::Naive;

/// Evicts the key with the lowest value of the ticks of its uses.
pub struct NaiveLowest<F> {
    residents: BTreeSet<Key>,
    uses: Vec<Vec<u64>>,
    tick: u64,
    kept: bool,
    value: F,
    capacity: usize,
}

impl<F: Fn(&[u64], u64) -> f64> NaiveLowest<F> {
    pub fn new(pool: &PoolShape, kept: bool, value: F) -> Self {
        Self {
            residents: BTreeSet::new(),
            uses: vec![Vec::new(); pool.keys as usize],
            tick: 0,
            kept,
            value,
            capacity: pool.capacity as usize,
        }
    }
}

/// The tick of the `k`-th last use.
pub fn kth_last(k: usize) -> impl Fn(&[u64], u64) -> f64 {
    move |uses, _| uses.iter().rev().nth(k - 1).map_or(0.0, |&tick| tick as f64)
}

/// The sum of all uses, halved for every `half_life` ticks of age.
pub fn decayed(half_life: f64) -> impl Fn(&[u64], u64) -> f64 {
    move |uses, now| uses.iter().map(|&tick| (-((now - tick) as f64) / half_life).exp2()).sum()
}

impl<F: Fn(&[u64], u64) -> f64> Naive for NaiveLowest<F> {
    fn hit(&mut self, key: Key) {
        self.tick += 1;
        self.uses[key as usize].push(self.tick);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.residents.len() == self.capacity {
            let value = |key: Key| (self.value)(&self.uses[key as usize], self.tick);
            let last = |key: Key| self.uses[key as usize].last();
            let candidates = self.residents.iter().copied().filter(|&other| may_evict(other));
            let victim = candidates.min_by(|&a, &b| {
                value(a).partial_cmp(&value(b)).unwrap().then(last(a).cmp(&last(b)))
            })?;
            self.residents.remove(&victim);
            if !self.kept {
                self.uses[victim as usize].clear();
            }
            left.push(victim);
        }
        self.residents.insert(key);
        self.hit(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.clone()
    }
}
