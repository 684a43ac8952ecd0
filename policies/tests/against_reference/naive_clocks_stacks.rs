//! Naive CAR and LIRS.

use std::collections::BTreeSet;

use hotset_policies::{Key, PoolShape};

use super::harness::Naive;

/// Clocks with their bits, ghosts without; the newest last.
#[derive(Default)]
pub struct NaiveCar {
    t1: Vec<(Key, bool)>,
    t2: Vec<(Key, bool)>,
    b1: Vec<Key>,
    b2: Vec<Key>,
    p: f64,
    capacity: usize,
}

impl NaiveCar {
    pub fn new(pool: &PoolShape) -> Self {
        Self { capacity: pool.capacity as usize, ..Self::default() }
    }
}

impl Naive for NaiveCar {
    fn hit(&mut self, key: Key) {
        for entry in self.t1.iter_mut().chain(&mut self.t2) {
            entry.1 |= entry.0 == key;
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let c = self.capacity;
        let mut left = Vec::new();
        while left.is_empty() && self.t1.len() + self.t2.len() == c {
            let of_t1 = self.t1.iter().position(|&(other, _)| may_evict(other));
            let of_t2 = self.t2.iter().position(|&(other, _)| may_evict(other));
            let t1_first = self.t1.len() as f64 >= self.p.max(1.0);
            let from_t1 = if t1_first { of_t1.is_some() } else { of_t2.is_none() };
            let (other, used) =
                if from_t1 { self.t1.remove(of_t1?) } else { self.t2.remove(of_t2?) };
            if used {
                self.t2.push((other, false));
            } else if from_t1 {
                self.b1.push(other);
                left.push(other);
            } else {
                self.b2.push(other);
                left.push(other);
            }
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&key) {
            self.p = (self.p + (b2 / b1).max(1.0)).min(c as f64);
            self.b1.retain(|&other| other != key);
            self.t2.push((key, false));
        } else if self.b2.contains(&key) {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            self.b2.retain(|&other| other != key);
            self.t2.push((key, false));
        } else {
            let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if self.t1.len() + self.b1.len() == c {
                self.b1.remove(0);
            } else if all == 2 * c {
                self.b2.remove(0);
            }
            self.t1.push((key, false));
        }
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.t1.iter().chain(&self.t2).map(|&(key, _)| key).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Lir,
    Hir,
    Gone,
}

/// The stack's top is last; `queue` and `gone` have their oldest first.
pub struct NaiveLirs {
    stack: Vec<(Key, Kind)>,
    queue: Vec<Key>,
    gone: Vec<Key>,
    most_lirs: usize,
    capacity: usize,
}

impl NaiveLirs {
    pub fn new(pool: &PoolShape, hirs: f64) -> Self {
        let capacity = pool.capacity as usize;
        let most_lirs = capacity.saturating_sub(((capacity as f64 * hirs) as usize).max(1));
        Self { stack: Vec::new(), queue: Vec::new(), gone: Vec::new(), most_lirs, capacity }
    }

    fn lirs(&self) -> usize {
        self.stack.iter().filter(|entry| entry.1 == Kind::Lir).count()
    }

    fn unstack(&mut self, key: Key) -> Option<Kind> {
        let place = self.stack.iter().position(|entry| entry.0 == key)?;
        Some(self.stack.remove(place).1)
    }

    /// What holds after every change: not too many LIR, the bottom is LIR, not too long a stack.
    fn tidy(&mut self) {
        let prune = |stack: &mut Vec<(Key, Kind)>| {
            while stack.first().is_some_and(|entry| entry.1 != Kind::Lir) {
                stack.remove(0);
            }
        };
        prune(&mut self.stack);
        if self.lirs() > self.most_lirs {
            self.queue.push(self.stack.remove(0).0);
            prune(&mut self.stack);
        }
        let is_gone = |stack: &[(Key, Kind)], key| stack.contains(&(key, Kind::Gone));
        self.gone.retain(|&key| is_gone(&self.stack, key));
        while self.stack.len() > 2 * self.capacity && !self.gone.is_empty() {
            let forgotten = self.gone.remove(0);
            self.unstack(forgotten);
        }
    }

    fn use_resident(&mut self, key: Key, kind: Kind) {
        if kind == Kind::Hir {
            self.queue.push(key);
        }
        self.stack.push((key, kind));
        self.tidy();
    }
}

impl Naive for NaiveLirs {
    fn hit(&mut self, key: Key) {
        self.queue.retain(|&other| other != key);
        let kind = if self.unstack(key).is_some() { Kind::Lir } else { Kind::Hir };
        self.use_resident(key, kind);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        let residents = self.residents();
        if residents.len() == self.capacity && !residents.iter().any(|&other| may_evict(other)) {
            return None;
        }
        // The key is used now, so it is on top before anything is pruned.
        let known = self.unstack(key).is_some();
        if known {
            self.gone.retain(|&other| other != key);
        }
        if residents.len() == self.capacity {
            if let Some(place) = self.queue.iter().position(|&other| may_evict(other)) {
                let victim = self.queue.remove(place);
                left.push(victim);
                for entry in self.stack.iter_mut().filter(|entry| entry.0 == victim) {
                    entry.1 = Kind::Gone;
                    self.gone.push(victim);
                }
            } else {
                let place = self
                    .stack
                    .iter()
                    .position(|&(other, kind)| kind == Kind::Lir && may_evict(other))?;
                left.push(self.stack.remove(place).0);
            }
        }
        // Without a LIR key the stack is empty and has forgotten the key as well.
        let known = known && self.lirs() > 0;
        let kind = if known || self.lirs() < self.most_lirs { Kind::Lir } else { Kind::Hir };
        self.use_resident(key, kind);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        let lirs = self.stack.iter().filter(|entry| entry.1 == Kind::Lir).map(|entry| entry.0);
        lirs.chain(self.queue.iter().copied()).collect()
    }
}
