//! Naive MRU, random, SLRU in both forms, and SIEVE.

use std::collections::BTreeSet;

use hotset_policies::{Key, PoolShape};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::harness::Naive;

/// Most recent last.
pub struct NaiveMru {
    order: Vec<Key>,
    capacity: usize,
}

impl NaiveMru {
    pub fn new(pool: &PoolShape) -> Self {
        Self { order: Vec::new(), capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveMru {
    fn hit(&mut self, key: Key) {
        self.order.retain(|&other| other != key);
        self.order.push(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.order.len() == self.capacity {
            let place = self.order.iter().rposition(|&other| may_evict(other))?;
            left.push(self.order.remove(place));
        }
        self.order.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.order.iter().copied().collect()
    }
}

/// Draws from the residents; whoever may not leave is exchanged with the last one drawn from.
/// The last resident takes the place of one that left.
pub struct NaiveRandom {
    residents: Vec<Key>,
    rng: Pcg64Mcg,
    capacity: usize,
}

impl NaiveRandom {
    pub fn new(pool: &PoolShape, seed: u64) -> Self {
        let rng = Pcg64Mcg::seed_from_u64(seed);
        Self { residents: Vec::new(), rng, capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveRandom {
    fn hit(&mut self, _: Key) {}

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        let mut drawn_from = self.residents.len();
        while left.is_empty() && self.residents.len() == self.capacity {
            if drawn_from == 0 {
                return None;
            }
            let drawn = self.rng.random_range(0..drawn_from as u32) as usize;
            if may_evict(self.residents[drawn]) {
                left.push(self.residents.swap_remove(drawn));
            } else {
                self.residents.swap(drawn, drawn_from - 1);
            }
            drawn_from -= 1;
        }
        self.residents.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.iter().copied().collect()
    }
}

/// Each segment with its most recent key last, lowest segment first.
pub struct NaiveSlru {
    segments: Vec<Vec<Key>>,
    longest: Vec<usize>,
}

impl NaiveSlru {
    pub fn new(pool: &PoolShape, segments: usize) -> Self {
        let capacity = pool.capacity as usize;
        let mut longest = vec![capacity / segments; segments];
        longest[0] = capacity - capacity / segments * (segments - 1);
        Self { segments: vec![Vec::new(); segments], longest }
    }
}

impl Naive for NaiveSlru {
    fn hit(&mut self, key: Key) {
        let at = self.segments.iter().position(|segment| segment.contains(&key)).unwrap();
        let to = (at + 1).min(self.segments.len() - 1);
        self.segments[at].retain(|&other| other != key);
        self.segments[to].push(key);
        if self.segments[to].len() > self.longest[to] {
            let cooled = self.segments[to].remove(0);
            self.segments[to - 1].push(cooled);
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.residents().len() == self.longest.iter().sum::<usize>() {
            let victim = self.segments.iter().flatten().copied().find(|&other| may_evict(other))?;
            self.segments.iter_mut().for_each(|segment| segment.retain(|&other| other != victim));
            left.push(victim);
        }
        let mut lengths = self.segments.iter().map(Vec::len).zip(&self.longest);
        let to = lengths.position(|(length, &longest)| length < longest).unwrap_or(0);
        self.segments[to].push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.segments.iter().flatten().copied().collect()
    }
}

/// Two lists, most recent last.
pub struct NaiveSlru50 {
    probation: Vec<Key>,
    protected: Vec<Key>,
    capacity: usize,
}

impl NaiveSlru50 {
    pub fn new(pool: &PoolShape) -> Self {
        let capacity = pool.capacity as usize;
        Self { probation: Vec::new(), protected: Vec::new(), capacity }
    }
}

impl Naive for NaiveSlru50 {
    fn hit(&mut self, key: Key) {
        self.probation.retain(|&other| other != key);
        self.protected.retain(|&other| other != key);
        self.protected.push(key);
        if self.protected.len() > self.capacity / 2 {
            self.probation.push(self.protected.remove(0));
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.probation.len() + self.protected.len() == self.capacity {
            let mut all = self.probation.iter().chain(&self.protected).copied();
            let victim = all.find(|&other| may_evict(other))?;
            self.probation.retain(|&other| other != victim);
            self.protected.retain(|&other| other != victim);
            left.push(victim);
        }
        self.probation.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.probation.iter().chain(&self.protected).copied().collect()
    }
}

/// Oldest first in both lists.
pub struct NaivePageCache {
    inactive: Vec<Key>,
    active: Vec<Key>,
    /// Who left, and after how many departures and promotions.
    left: Vec<(Key, usize)>,
    ticks: usize,
    ratio: usize,
    refault: bool,
    capacity: usize,
}

impl NaivePageCache {
    pub fn new(pool: &PoolShape, ratio: u32, refault: bool) -> Self {
        Self {
            inactive: Vec::new(),
            active: Vec::new(),
            left: Vec::new(),
            ticks: 0,
            ratio: ratio as usize,
            refault,
            capacity: pool.capacity as usize,
        }
    }
}

impl Naive for NaivePageCache {
    fn hit(&mut self, key: Key) {
        if let Some(place) = self.inactive.iter().position(|&other| other == key) {
            self.inactive.remove(place);
            self.active.push(key);
            self.ticks += 1;
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut gone = Vec::new();
        if self.inactive.len() + self.active.len() == self.capacity {
            while self.active.len() > self.ratio * self.inactive.len() {
                self.inactive.push(self.active.remove(0));
            }
            let victim =
                self.inactive.iter().chain(&self.active).copied().find(|&k| may_evict(k))?;
            self.inactive.retain(|&other| other != victim);
            self.active.retain(|&other| other != victim);
            self.ticks += 1;
            self.left.push((victim, self.ticks));
            gone.push(victim);
        }
        let left = self.left.iter().rfind(|(other, _)| *other == key).map(|&(_, at)| at);
        let soon = left.is_some_and(|at| self.ticks - at <= self.active.len());
        if self.refault && soon {
            self.active.push(key);
        } else {
            self.inactive.push(key);
        }
        Some(gone)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.inactive.iter().chain(&self.active).copied().collect()
    }
}

/// Oldest first, with the bit beside each key; the hand is an index.
pub struct NaiveSieve {
    queue: Vec<(Key, bool)>,
    hand: usize,
    capacity: usize,
}

impl NaiveSieve {
    pub fn new(pool: &PoolShape) -> Self {
        Self { queue: Vec::new(), hand: 0, capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveSieve {
    fn hit(&mut self, key: Key) {
        for entry in &mut self.queue {
            entry.1 |= entry.0 == key;
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.queue.len() == self.capacity {
            if !self.queue.iter().any(|&(other, _)| may_evict(other)) {
                return None;
            }
            while !may_evict(self.queue[self.hand].0) || self.queue[self.hand].1 {
                if may_evict(self.queue[self.hand].0) {
                    self.queue[self.hand].1 = false;
                }
                self.hand = (self.hand + 1) % self.queue.len();
            }
            left.push(self.queue.remove(self.hand).0);
            // Past the newest key the hand goes back to the oldest, before a new one is put there.
            if self.hand == self.queue.len() {
                self.hand = 0;
            }
        }
        self.queue.push((key, false));
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.queue.iter().map(|&(key, _)| key).collect()
    }
}
