//! The cache's side of an eviction: who may leave the pool, and where the freed slots go.

use super::entry::{ABSENT, Entry, PREFETCHED};
use super::plan::NOBODY;
use crate::{Key, Room};

/// Lends the cache's tables to a policy while it makes room for one expert.
pub(super) struct PoolRoom<'a> {
    /// The pool's part of the entries, indexed by pool-local key.
    pub entries: &'a mut [Entry],
    /// Dense key of the pool's key 0.
    pub base: Key,
    /// Experts asked for by event `floor` or later are needed.
    pub floor: u32,
    pub free: &'a mut Vec<u32>,
    pub dropped: &'a mut Vec<Key>,
    /// The first victim and its slot.
    pub evicted: Key,
    pub slot: u32,
    pub wasted: u32,
}

impl<'a> PoolRoom<'a> {
    #[inline(always)]
    pub fn new(
        entries: &'a mut [Entry],
        base: Key,
        floor: u32,
        free: &'a mut Vec<u32>,
        dropped: &'a mut Vec<Key>,
    ) -> Self {
        Self { entries, base, floor, free, dropped, evicted: NOBODY, slot: ABSENT, wasted: 0 }
    }

    /// The slot for the expert that room was made for: the first victim's, else a free one.
    #[inline(always)]
    pub fn take_slot(&mut self) -> Option<u32> {
        if self.slot == ABSENT { self.free.pop() } else { Some(self.slot) }
    }
}

impl Room for PoolRoom<'_> {
    #[inline(always)]
    fn may_evict(&self, key: Key) -> bool {
        let entry = self.entries[key as usize];
        entry.stamp < self.floor && !entry.is_pending()
    }

    #[inline(always)]
    fn evict(&mut self, key: Key) {
        let entry = &mut self.entries[key as usize];
        let slot = entry.slot();
        if entry.word & PREFETCHED != 0 {
            self.wasted += 1;
        }
        entry.word = ABSENT;
        if self.slot == ABSENT {
            (self.slot, self.evicted) = (slot, self.base + key);
        } else {
            self.free.push(slot);
            self.dropped.push(self.base + key);
        }
    }
}
