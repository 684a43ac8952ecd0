//! Naive LRU-K and decayed LFU, which write down every use, W-TinyLFU and LeCaR.

use std::collections::BTreeSet;

use hotset_policies::{Key, PoolShape};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xxhash_rust::xxh64::xxh64;

use super::harness::Naive;

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
    move |uses, now| uses.iter().map(|&tick| libm::exp2(-((now - tick) as f64) / half_life)).sum()
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

/// The most recent last; counts in a plain vector.
pub struct NaiveWTinyLfu {
    window: Vec<Key>,
    probation: Vec<Key>,
    protected: Vec<Key>,
    counts: Vec<u32>,
    passed: usize,
    sample: usize,
    most_window: usize,
    most_protected: usize,
    capacity: usize,
}

impl NaiveWTinyLfu {
    pub fn new(pool: &PoolShape, window: f64, sample: f64) -> Self {
        let capacity = pool.capacity as usize;
        let most_window = ((capacity as f64 * window) as usize).max(1);
        let main = capacity.saturating_sub(most_window);
        Self {
            window: Vec::new(),
            probation: Vec::new(),
            protected: Vec::new(),
            counts: vec![0; pool.keys as usize],
            passed: 0,
            sample: ((capacity as f64 * sample) as usize).max(1),
            most_window,
            most_protected: (main as f64 * 0.8) as usize,
            capacity,
        }
    }

    fn count(&mut self, key: Key) {
        self.counts[key as usize] += 1;
        self.passed += 1;
        if self.passed == self.sample {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.passed /= 2;
        }
    }
}

impl Naive for NaiveWTinyLfu {
    fn hit(&mut self, key: Key) {
        self.count(key);
        if self.window.contains(&key) {
            self.window.retain(|&other| other != key);
            self.window.push(key);
            return;
        }
        self.probation.retain(|&other| other != key);
        self.protected.retain(|&other| other != key);
        self.protected.push(key);
        if self.protected.len() > self.most_protected {
            self.probation.push(self.protected.remove(0));
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.count(key);
        let mut left = Vec::new();
        if self.residents().len() == self.capacity {
            let of_window = self.window.iter().copied().find(|&other| may_evict(other));
            let mut main = self.probation.iter().chain(&self.protected).copied();
            let of_main = main.find(|&other| may_evict(other));
            let count = |key: Key| self.counts[key as usize];
            let wins = of_window.zip(of_main).is_some_and(|(new, old)| count(new) > count(old));
            if wins {
                self.window.retain(|&other| Some(other) != of_window);
                self.probation.extend(of_window);
            }
            let victim = if wins { of_main? } else { of_window.or(of_main)? };
            for list in [&mut self.window, &mut self.probation, &mut self.protected] {
                list.retain(|&other| other != victim);
            }
            left.push(victim);
        }
        self.window.push(key);
        if self.window.len() > self.most_window {
            self.probation.push(self.window.remove(0));
        }
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.window.iter().chain(&self.probation).chain(&self.protected).copied().collect()
    }
}

/// The same with libCacheSim's rules: the most recent last, ten counters a key in a plain vector.
pub struct NaiveSketchedWTinyLfu {
    window: Vec<Key>,
    probation: Vec<Key>,
    protected: Vec<Key>,
    counters: Vec<u32>,
    main_hits: usize,
    period: usize,
    longest: [usize; 2],
    most_main: usize,
    oldest_goes: bool,
    capacity: usize,
}

impl NaiveSketchedWTinyLfu {
    pub fn new(pool: &PoolShape, window: f64, main_hits: f64) -> Self {
        let capacity = pool.capacity as usize;
        let most_main = capacity.saturating_sub(((capacity as f64 * window) as usize).max(1));
        // -ln(0.001) / ln(2)^2 for each slot.
        let counters = (most_main as f64 * 14.377_587_566_051_17).ceil() as usize;
        Self {
            window: Vec::new(),
            probation: Vec::new(),
            protected: Vec::new(),
            counters: vec![0; counters.max(20)],
            main_hits: 0,
            period: (most_main as f64 * main_hits) as usize,
            longest: [most_main / 5, most_main * 4 / 5],
            most_main,
            oldest_goes: false,
            capacity,
        }
    }

    fn places(&self, key: Key) -> Vec<usize> {
        let id = (u64::from(key) + 1).to_le_bytes();
        let [first, step] = [0x1234_5678, 0x1234_4321].map(|seed| xxh64(&id, seed) as u32);
        (0..10u32)
            .map(|i| first.wrapping_add(i.wrapping_mul(step)) as usize % self.counters.len())
            .collect()
    }

    fn add(&mut self, key: Key) {
        for place in self.places(key) {
            self.counters[place] += 1;
        }
    }

    fn count(&self, key: Key) -> u32 {
        self.places(key).into_iter().map(|place| self.counters[place]).min().unwrap()
    }

    fn enter_main(&mut self, key: Key) {
        if self.probation.len() < self.longest[0] || self.protected.len() >= self.longest[1] {
            self.probation.push(key);
        } else {
            self.protected.push(key);
        }
    }
}

impl Naive for NaiveSketchedWTinyLfu {
    fn hit(&mut self, key: Key) {
        if self.window.contains(&key) {
            self.window.retain(|&other| other != key);
            self.window.push(key);
            return;
        }
        self.probation.retain(|&other| other != key);
        self.protected.retain(|&other| other != key);
        self.protected.push(key);
        if self.protected.len() > self.longest[1] {
            self.probation.push(self.protected.remove(0));
            self.oldest_goes |= self.probation.len() > self.longest[0];
        }
        self.add(key);
        self.main_hits += 1;
        if self.main_hits == self.period {
            self.counters.iter_mut().for_each(|count| *count /= 2);
            self.main_hits = 0;
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.residents().len() == self.capacity {
            let of_probation = self.probation.iter().copied().find(|&other| may_evict(other));
            if let (true, Some(oldest)) = (self.oldest_goes, of_probation) {
                self.oldest_goes = false;
                self.probation.retain(|&other| other != oldest);
                left.push(oldest);
            } else {
                while self.probation.len() + self.protected.len() < self.most_main {
                    let moved = self.window.remove(0);
                    self.enter_main(moved);
                    self.add(moved);
                }
                let candidate = self.window.iter().copied().find(|&other| may_evict(other));
                let mut main = self.probation.iter().chain(&self.protected).copied();
                let main = main.find(|&other| may_evict(other));
                let mut victim = candidate.or(main)?;
                if let (Some(candidate), Some(main)) = (candidate, main) {
                    if self.count(candidate) > self.count(main) {
                        victim = main;
                    }
                    self.add(candidate);
                }
                for list in [&mut self.window, &mut self.probation, &mut self.protected] {
                    list.retain(|&other| other != victim);
                }
                if let (Some(candidate), true) = (candidate, Some(victim) == main) {
                    self.window.retain(|&other| other != candidate);
                    self.enter_main(candidate);
                }
                left.push(victim);
            }
        }
        self.window.push(key);
        self.add(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.window.iter().chain(&self.probation).chain(&self.protected).copied().collect()
    }
}

/// Residents with their uses and the tick at which they reached them, the most recent last; the
/// history with the tick of leaving and who chose, the latest last.
pub struct NaiveLeCar {
    residents: Vec<(Key, u32, u64)>,
    history: Vec<(Key, u64, bool)>,
    weights: [f64; 2],
    tick: u64,
    rng: Pcg64Mcg,
    capacity: usize,
}

impl NaiveLeCar {
    pub fn new(pool: &PoolShape, seed: u64) -> Self {
        Self {
            residents: Vec::new(),
            history: Vec::new(),
            weights: [0.5, 0.5],
            tick: 0,
            rng: Pcg64Mcg::seed_from_u64(seed),
            capacity: pool.capacity as usize,
        }
    }
}

impl Naive for NaiveLeCar {
    fn hit(&mut self, key: Key) {
        self.tick += 1;
        let place = self.residents.iter().position(|entry| entry.0 == key).unwrap();
        let (_, uses, _) = self.residents.remove(place);
        self.residents.push((key, uses + 1, self.tick));
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let full = self.residents.len() == self.capacity;
        if full && !self.residents.iter().any(|entry| may_evict(entry.0)) {
            return None;
        }
        self.tick += 1;
        if let Some(place) = self.history.iter().position(|entry| entry.0 == key) {
            let (_, at, by_lru) = self.history.remove(place);
            let age = (self.tick - at) as f64 / self.capacity as f64;
            self.weights[usize::from(!by_lru)] *= libm::exp(-0.45 * libm::pow(0.005, age));
            let sum = self.weights[0] + self.weights[1] + 2e-10;
            self.weights[0] = (self.weights[0] + 1e-10) / sum;
            self.weights[1] = 1.0 - self.weights[0];
        }
        let mut left = Vec::new();
        if full {
            let by_lru = f64::from(self.rng.next_u32()) < self.weights[0] * f64::from(u32::MAX);
            let mut candidates = self.residents.iter().filter(|entry| may_evict(entry.0));
            let victim = if by_lru {
                candidates.next()?.0
            } else {
                candidates.min_by_key(|entry| (entry.1, entry.2))?.0
            };
            self.residents.retain(|entry| entry.0 != victim);
            self.history.push((victim, self.tick, by_lru));
            if self.history.len() > self.capacity {
                self.history.remove(0);
            }
            left.push(victim);
        }
        self.residents.push((key, 1, self.tick));
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.iter().map(|entry| entry.0).collect()
    }
}
