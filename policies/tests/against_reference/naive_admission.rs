//! Naive admissions: who may come in, written out with lists over a naive policy.

use std::collections::BTreeSet;

use hotset_policies::{Event, Key, PoolShape};

use super::harness::Naive;

/// A naive policy behind a naive admission.
pub struct Guarded<N, A> {
    inner: N,
    admission: A,
    capacity: usize,
}

impl<N, A> Guarded<N, A> {
    pub fn new(pool: &PoolShape, inner: N, admission: A) -> Self {
        Self { inner, admission, capacity: pool.capacity as usize }
    }
}

/// What a naive admission decides.
pub trait NaiveAdmission {
    fn begin_step(&mut self) {}
    fn begin_event(&mut self, _event: &Event<'_>) {}
    fn wants(&mut self, key: Key, full: bool, residents: &BTreeSet<Key>) -> bool;
    fn may_displace(&self, _key: Key, _victim: Key) -> bool {
        true
    }
    fn entered(&mut self, _key: Key) {}
}

impl<N: Naive, A: NaiveAdmission> Naive for Guarded<N, A> {
    fn hit(&mut self, key: Key) {
        self.inner.hit(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let residents = self.inner.residents();
        let full = residents.len() == self.capacity;
        if !self.admission.wants(key, full, &residents) {
            return None;
        }
        let admission = &self.admission;
        let left = self.inner.admit(key, &|victim| {
            may_evict(victim) && (!full || admission.may_displace(key, victim))
        });
        if left.is_some() {
            self.admission.entered(key);
        }
        left
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.inner.residents()
    }

    fn begin_step(&mut self, tokens: u32) {
        self.inner.begin_step(tokens);
        self.admission.begin_step();
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.inner.begin_event(event);
        self.admission.begin_event(event);
    }
}

/// Lists the layers of this step's admissions.
pub struct NaiveUploadCap {
    layer_of: Vec<u32>,
    of_step: Vec<u32>,
    cap: usize,
}

impl NaiveUploadCap {
    pub fn new(pool: &PoolShape, cap: usize) -> Self {
        let layer_of = |key| pool.layer_bases.iter().filter(|&&base| base <= key).count() as u32;
        Self { layer_of: (0..pool.keys).map(layer_of).collect(), of_step: Vec::new(), cap }
    }
}

impl NaiveAdmission for NaiveUploadCap {
    fn begin_step(&mut self) {
        self.of_step.clear();
    }

    fn wants(&mut self, key: Key, _: bool, _: &BTreeSet<Key>) -> bool {
        let layer = self.layer_of[key as usize];
        self.of_step.iter().filter(|&&other| other == layer).count() < self.cap
    }

    fn entered(&mut self, key: Key) {
        self.of_step.push(self.layer_of[key as usize]);
    }
}

/// Numbers the misses of the full pool.
pub struct NaiveBypass {
    misses: usize,
    every: usize,
}

impl NaiveBypass {
    pub fn new(every: usize) -> Self {
        Self { misses: 0, every }
    }
}

impl NaiveAdmission for NaiveBypass {
    fn wants(&mut self, _: Key, full: bool, _: &BTreeSet<Key>) -> bool {
        self.misses += usize::from(full);
        !full || (self.every > 0 && self.misses.is_multiple_of(self.every))
    }
}

/// Counts of every key, and the uses since they were last halved.
pub struct NaiveTinyLfu {
    counts: Vec<u32>,
    uses: usize,
    sample: usize,
}

impl NaiveTinyLfu {
    pub fn new(pool: &PoolShape, sample: usize) -> Self {
        let sample = sample * (pool.capacity as usize).max(1);
        Self { counts: vec![0; pool.keys as usize], uses: 0, sample }
    }
}

impl NaiveAdmission for NaiveTinyLfu {
    fn begin_event(&mut self, event: &Event<'_>) {
        for &key in event.keys {
            self.counts[key as usize] = (self.counts[key as usize] + 1).min(15);
            self.uses += 1;
        }
        if self.uses >= self.sample {
            self.uses = 0;
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    fn wants(&mut self, key: Key, full: bool, residents: &BTreeSet<Key>) -> bool {
        !full || residents.iter().any(|&victim| self.may_displace(key, victim))
    }

    fn may_displace(&self, key: Key, victim: Key) -> bool {
        self.counts[victim as usize] < self.counts[key as usize]
    }
}
