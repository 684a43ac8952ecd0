//! Naive LRU, FIFO, CLOCK, LFU and Belady.

use std::collections::BTreeSet;

use hotset_policies::{Key, PoolShape};

use super::harness::Naive;

/// Most recent last.
pub struct NaiveLru {
    order: Vec<Key>,
    capacity: usize,
}

impl NaiveLru {
    pub fn new(pool: &PoolShape) -> Self {
        Self { order: Vec::new(), capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveLru {
    fn hit(&mut self, key: Key) {
        self.order.retain(|&other| other != key);
        self.order.push(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.order.len() == self.capacity {
            let place = self.order.iter().position(|&other| may_evict(other))?;
            left.push(self.order.remove(place));
        }
        self.order.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.order.iter().copied().collect()
    }
}

/// First in first.
pub struct NaiveFifo {
    queue: Vec<Key>,
    capacity: usize,
}

impl NaiveFifo {
    pub fn new(pool: &PoolShape) -> Self {
        Self { queue: Vec::new(), capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveFifo {
    fn hit(&mut self, _: Key) {}

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.queue.len() == self.capacity {
            let place = self.queue.iter().position(|&other| may_evict(other))?;
            left.push(self.queue.remove(place));
        }
        self.queue.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.queue.iter().copied().collect()
    }
}

/// First in first, with the reference bit beside each key.
pub struct NaiveClock {
    queue: Vec<(Key, bool)>,
    capacity: usize,
}

impl NaiveClock {
    pub fn new(pool: &PoolShape) -> Self {
        Self { queue: Vec::new(), capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveClock {
    fn hit(&mut self, key: Key) {
        for entry in &mut self.queue {
            entry.1 |= entry.0 == key;
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        while left.is_empty() && self.queue.len() == self.capacity {
            let place = self.queue.iter().position(|&(other, _)| may_evict(other))?;
            let (other, referenced) = self.queue.remove(place);
            if referenced {
                self.queue.push((other, false));
            } else {
                left.push(other);
            }
        }
        self.queue.push((key, false));
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.queue.iter().map(|&(key, _)| key).collect()
    }
}

/// Key, uses since insertion, and the tick at which it reached that count.
pub struct NaiveLfu {
    entries: Vec<(Key, u32, u32)>,
    tick: u32,
    capacity: usize,
}

impl NaiveLfu {
    pub fn new(pool: &PoolShape) -> Self {
        Self { entries: Vec::new(), tick: 0, capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveLfu {
    fn hit(&mut self, key: Key) {
        self.tick += 1;
        for entry in self.entries.iter_mut().filter(|entry| entry.0 == key) {
            *entry = (key, entry.1 + 1, self.tick);
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.tick += 1;
        let mut left = Vec::new();
        if self.entries.len() == self.capacity {
            let victim = self
                .entries
                .iter()
                .filter(|entry| may_evict(entry.0))
                .min_by_key(|entry| (entry.1, entry.2))?
                .0;
            self.entries.retain(|entry| entry.0 != victim);
            left.push(victim);
        }
        self.entries.push((key, 1, self.tick));
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.entries.iter().map(|entry| entry.0).collect()
    }
}

/// Looks through the rest of the stream for each decision.
pub struct NaiveBelady {
    residents: BTreeSet<Key>,
    stream: Vec<Key>,
    position: usize,
    capacity: usize,
}

impl NaiveBelady {
    pub fn new(pool: &PoolShape, stream: Vec<Key>) -> Self {
        let capacity = pool.capacity as usize;
        Self { residents: BTreeSet::new(), stream, position: 0, capacity }
    }

    fn next_use(&self, key: Key) -> usize {
        let rest = &self.stream[self.position..];
        rest.iter().position(|&other| other == key).unwrap_or(usize::MAX)
    }
}

impl Naive for NaiveBelady {
    fn hit(&mut self, _: Key) {
        self.position += 1;
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.position += 1;
        let mut left = Vec::new();
        if self.residents.len() == self.capacity {
            let candidates = self.residents.iter().copied().filter(|&other| may_evict(other));
            let victim = candidates.max_by_key(|&other| self.next_use(other))?;
            self.residents.remove(&victim);
            left.push(victim);
        }
        self.residents.insert(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.clone()
    }
}
