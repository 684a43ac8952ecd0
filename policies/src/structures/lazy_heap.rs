//! A heap of keys by priority for policies whose priorities only grow: raising one costs nothing.
//!
//! An entry may hold an older, lower priority than its key has now. That is a bound, so the top is
//! looked up when it is asked for, and sinks if its key has risen since.

use crate::policy::Key;
use crate::structures::memory::array;

/// A binary heap, lowest first; `P` must never fall while a key is in it.
#[derive(Debug, Clone)]
pub struct LazyHeap<P> {
    entries: Vec<(P, Key)>,
    passed: Vec<(P, Key)>,
}

impl<P: Ord + Copy> LazyHeap<P> {
    /// An empty heap for keys `0..keys`.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        let empty = || Vec::with_capacity(keys as usize);
        Self { entries: empty(), passed: empty() }
    }

    /// Bytes that a heap for so many keys allocates.
    pub(crate) fn memory(keys: u32) -> u64 {
        array::<(P, Key)>(2 * u64::from(keys))
    }

    /// Number of keys.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Adds an absent key.
    #[inline(always)]
    pub fn push(&mut self, priority: P, key: Key) {
        self.entries.push((priority, key));
        let mut place = self.entries.len() - 1;
        while place > 0 && self.entries[(place - 1) / 2].0 > priority {
            self.entries[place] = self.entries[(place - 1) / 2];
            place = (place - 1) / 2;
        }
        self.entries[place] = (priority, key);
    }

    /// Takes out the key with the lowest priority of those for which `wanted` holds; `now` gives
    /// a key's priority.
    #[inline(always)]
    pub fn pop(&mut self, now: impl Fn(Key) -> P, wanted: impl Fn(Key) -> bool) -> Option<Key> {
        let mut found = None;
        while found.is_none()
            && let Some(&(bound, key)) = self.entries.first()
        {
            let priority = now(key);
            if priority != bound {
                self.sink(0, (priority, key));
                continue;
            }
            let last = self.entries.len() - 1;
            self.entries.swap(0, last);
            self.entries.pop();
            if last > 0 {
                self.sink(0, self.entries[0]);
            }
            if wanted(key) {
                found = Some(key);
            } else {
                self.passed.push((priority, key));
            }
        }
        while let Some((priority, key)) = self.passed.pop() {
            self.push(priority, key);
        }
        found
    }

    /// Takes out a key from wherever it is; O(n).
    pub fn remove(&mut self, key: Key, now: impl Fn(Key) -> P) {
        self.entries.retain(|&(_, other)| other != key);
        self.rebuild(now);
    }

    /// Brings all priorities up to date, after all of them changed together.
    pub fn rebuild(&mut self, now: impl Fn(Key) -> P) {
        for entry in &mut self.entries {
            entry.0 = now(entry.1);
        }
        for place in (0..self.entries.len() / 2).rev() {
            self.sink(place, self.entries[place]);
        }
    }

    /// Puts an entry at `place` or, where lower ones are below it, under those.
    #[inline(always)]
    fn sink(&mut self, mut place: usize, entry: (P, Key)) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.entries.len() {
                break;
            }
            if child + 1 < self.entries.len() && self.entries[child + 1].0 < self.entries[child].0 {
                child += 1;
            }
            if self.entries[child].0 >= entry.0 {
                break;
            }
            self.entries[place] = self.entries[child];
            place = child;
        }
        self.entries[place] = entry;
    }

    /// Checks the heap's order, that bounds are bounds, and that no key is in it twice.
    ///
    /// # Errors
    /// Says which of them is broken.
    pub fn validate(&self, now: impl Fn(Key) -> P) -> Result<(), String> {
        for (place, &(bound, key)) in self.entries.iter().enumerate() {
            if place > 0 && self.entries[(place - 1) / 2].0 > bound {
                return Err(format!("entry {place} is above a lower one"));
            }
            if bound > now(key) {
                return Err(format!("key {key} is bounded by more than it has"));
            }
        }
        let mut keys: Vec<Key> = self.entries.iter().map(|entry| entry.1).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() == self.entries.len() {
            Ok(())
        } else {
            Err("a key is in the heap twice".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risen_keys_sink_and_unwanted_ones_stay() {
        let mut priorities = [10, 20, 30, 40];
        let mut heap = LazyHeap::new(4);
        for key in [2, 0, 3, 1] {
            heap.push(priorities[key as usize], key);
        }
        priorities[0] = 35; // behind 1 and 2 now
        assert_eq!(heap.pop(|key| priorities[key as usize], |key| key != 1), Some(2));
        assert_eq!(heap.validate(|key| priorities[key as usize]), Ok(()));
        assert_eq!(heap.pop(|key| priorities[key as usize], |_| true), Some(1));
        heap.remove(0, |key| priorities[key as usize]);
        assert_eq!(heap.pop(|key| priorities[key as usize], |_| true), Some(3));
        assert_eq!(heap.pop(|key| priorities[key as usize], |_| true), None);
    }
}
