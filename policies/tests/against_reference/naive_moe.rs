//! Naive references of the policies that MoE systems made of LRU and LFU.

use std::collections::{BTreeMap, BTreeSet};

use hotset_policies::{Event, Key, PoolShape};

use super::harness::Naive;
use super::naive_slots::{Slots, layer_of, residents_of_slots};

/// Every use of every key by token, oldest first.
pub struct NaiveClassLru {
    slots: Slots,
    uses: BTreeMap<Key, Vec<u64>>,
    tokens: u64,
    half_life: f64,
}

impl NaiveClassLru {
    pub fn new(pool: &PoolShape, half_life: f64) -> Self {
        Self { slots: Slots::new(pool), uses: BTreeMap::new(), tokens: 0, half_life }
    }

    fn touched(&mut self, key: Key) {
        self.uses.entry(key).or_default().push(self.tokens);
    }

    fn class(&self, key: Key) -> i32 {
        let uses = &self.uses[&key];
        let mut crf = 0.0f64;
        for (index, &token) in uses.iter().enumerate() {
            let before = if index == 0 { 0 } else { uses[index - 1] };
            crf = crf * libm::exp2(-((token - before) as f64) / self.half_life) + 1.0;
        }
        (1..=7).filter(|&class| crf >= f64::from(1 << class)).count() as i32
    }
}

impl Naive for NaiveClassLru {
    fn hit(&mut self, key: Key) {
        self.touched(key);
        self.slots.touch(key);
    }

    /// The least recent of a class is also its oldest, so all residents may compete.
    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let ages: BTreeMap<Key, f64> = self
            .slots
            .residents()
            .into_iter()
            .map(|other| {
                let age = (self.tokens - self.uses[&other].last().unwrap()) as f64;
                (other, age / f64::from(1 << self.class(other)))
            })
            .collect();
        let left = self.slots.admit(key, may_evict, |other| -ages[&other])?;
        self.touched(key);
        Some(left)
    }

    fn begin_step(&mut self, tokens: u32) {
        self.tokens += u64::from(tokens);
    }

    residents_of_slots!();
}

/// Uses and the clock at the last of them.
pub struct NaiveLfru {
    slots: Slots,
    uses: BTreeMap<Key, (u64, u64)>,
    clock: u64,
    by_access: bool,
}

impl NaiveLfru {
    pub fn new(pool: &PoolShape, by_access: bool) -> Self {
        Self { slots: Slots::new(pool), uses: BTreeMap::new(), clock: 0, by_access }
    }
}

impl Naive for NaiveLfru {
    fn hit(&mut self, key: Key) {
        self.clock += u64::from(self.by_access);
        let (uses, _) = self.uses[&key];
        self.uses.insert(key, (uses + 1, self.clock));
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.clock += u64::from(self.by_access);
        // Numbers this small divide to the same double exactly if the quotients are equal.
        let left = self.slots.admit(key, may_evict, |other| {
            let (uses, last) = self.uses[&other];
            uses as f64 / (self.clock - last + 1) as f64
        })?;
        self.uses.insert(key, (1, self.clock));
        Some(left)
    }

    fn begin_event(&mut self, _: &Event<'_>) {
        self.clock += u64::from(!self.by_access);
    }

    residents_of_slots!();
}

/// Loads in order, and who was touched in this step.
pub struct NaiveLeastStale {
    loads: Vec<Key>,
    fresh: BTreeSet<Key>,
    capacity: usize,
}

impl NaiveLeastStale {
    pub fn new(pool: &PoolShape) -> Self {
        Self { loads: Vec::new(), fresh: BTreeSet::new(), capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveLeastStale {
    fn hit(&mut self, key: Key) {
        self.fresh.insert(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.loads.len() == self.capacity {
            let may_leave: Vec<Key> =
                self.loads.iter().copied().filter(|&other| may_evict(other)).collect();
            let stale = may_leave.iter().find(|&other| !self.fresh.contains(other));
            let victim = *stale.or(may_leave.first())?;
            self.loads.retain(|&other| other != victim);
            left.push(victim);
        }
        self.loads.push(key);
        self.fresh.insert(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.loads.iter().copied().collect()
    }

    fn begin_step(&mut self, _: u32) {
        self.fresh.clear();
    }
}

/// All accesses, from which the last of each window are counted.
pub struct NaiveDali {
    slots: Slots,
    pool: PoolShape,
    accesses: Vec<Key>,
    window: usize,
    hot: f64,
    each_layer: bool,
}

impl NaiveDali {
    pub fn new(pool: &PoolShape, window: usize, hot: f64, each_layer: bool) -> Self {
        let (slots, pool) = (Slots::new(pool), pool.clone());
        Self { slots, pool, accesses: Vec::new(), window, hot, each_layer }
    }

    fn is_hot(&self, key: Key) -> bool {
        let shares = |other: Key| {
            !self.each_layer || layer_of(&self.pool, other) == layer_of(&self.pool, key)
        };
        let window = self.accesses.iter().rev().filter(|&&other| shares(other)).take(self.window);
        window.filter(|&&other| other == key).count() as f64 >= self.hot * self.window as f64
    }
}

impl Naive for NaiveDali {
    fn hit(&mut self, key: Key) {
        self.accesses.push(key);
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.accesses.push(key);
        let residents = self.slots.residents();
        let hot: BTreeSet<Key> = residents.into_iter().filter(|&key| self.is_hot(key)).collect();
        self.slots.admit(key, may_evict, |other| if hot.contains(&other) { 1.0 } else { 0.0 })
    }

    residents_of_slots!();
}

/// Uses since admission.
pub struct NaiveHeatLru {
    slots: Slots,
    uses: BTreeMap<Key, u32>,
    max_uses: u32,
}

impl NaiveHeatLru {
    pub fn new(pool: &PoolShape, max_uses: u32) -> Self {
        Self { slots: Slots::new(pool), uses: BTreeMap::new(), max_uses }
    }
}

impl Naive for NaiveHeatLru {
    fn hit(&mut self, key: Key) {
        *self.uses.get_mut(&key).unwrap() += 1;
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let warm = |other| if self.uses[&other] > self.max_uses { 1.0 } else { 0.0 };
        let left = self.slots.admit(key, may_evict, warm)?;
        self.uses.insert(key, 1);
        Some(left)
    }

    residents_of_slots!();
}
