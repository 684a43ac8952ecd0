//! Segmented LRU as llama.cpp shipped it: half protected, and new keys always on probation.
//!
//! Source: llama.cpp #30637 (b11736). Unlike the literature's form, a cold cache fills through
//! probation, and the protected half takes keys only on a hit.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::queues::Queues;
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "slru-50",
    summary: "llama.cpp's SLRU: half the slots protect what was hit",
    definition: "Two LRU lists. Admission goes to the front of probation. A hit goes to the front of protected; if that is then longer than floor(slots / 2), its least recent key goes to the front of probation. The victim is the least recent on probation, else the least recent protected.",
    source: "llama.cpp #30637 (b11736)",
    needs: Need::Nothing,
    parameters: &[],
};

const PROBATION: u8 = 0;
const PROTECTED: u8 = 1;

/// SLRU with half of the slots protected.
#[derive(Debug, Clone)]
pub struct Slru50 {
    queues: Queues<2>,
    slots: Occupancy,
}

impl Slru50 {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        Self { queues: Queues::new(pool.keys), slots: Occupancy::new(pool.capacity) }
    }
}

impl Listed for Slru50 {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        Queues::<2>::memory(pool.keys)
    }
}

impl Policy for Slru50 {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= PROTECTED
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        if self.queues.of(key) == PROTECTED {
            self.queues.refresh(PROTECTED, key);
            return;
        }
        self.queues.transfer(PROBATION, PROTECTED, key);
        if self.queues.len(PROTECTED) > self.slots.capacity / 2
            && let Some(cooled) = self.queues.back(PROTECTED)
        {
            self.queues.transfer(PROTECTED, PROBATION, cooled);
        }
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.queues.push_front(PROBATION, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        for list in [PROBATION, PROTECTED] {
            if let Some(victim) = self.queues.find_from_back(list, &may_leave) {
                self.queues.unlink(victim);
                return Some(victim);
            }
        }
        None
    }

    fn discard(&mut self, key: Key) {
        self.queues.unlink(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        while self.queues.len(PROTECTED) > capacity / 2
            && let Some(cooled) = self.queues.back(PROTECTED)
        {
            self.queues.transfer(PROTECTED, PROBATION, cooled);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let protected = self.queues.len(PROTECTED);
        if protected > self.slots.capacity / 2 || self.len() > self.slots.capacity {
            return Err(format!("{protected} protected of {}", self.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn a_hit_protects_and_the_least_recent_protected_goes_back() {
        let mut slru = Slru50::new(&PoolShape::flat(4, 9));
        for key in [0, 1, 2, 3] {
            assert!(slru.admit(key, &mut Anyone)); // all on probation: 3 2 1 0
        }
        for key in [0, 1, 2] {
            slru.hit(key); // the third is one too many for two places: 0 goes back
        }
        assert_eq!(slru.queues.iter(PROTECTED).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(slru.queues.iter(PROBATION).collect::<Vec<_>>(), [0, 3]);
        assert!(slru.admit(4, &mut Anyone)); // 3 leaves, though 0 was brought in before it
        assert!(!slru.contains(3) && slru.contains(0));
        assert_eq!(slru.validate(), Ok(()));
    }
}
