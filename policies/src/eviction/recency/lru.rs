//! LRU: evicts the key that was used longest ago.
//!
//! Source: P. J. Denning, "The working set model for program behavior", CACM 11(5), 1968; the
//! baseline of every expert cache (Mixtral-offloading, FreeToken, llama.cpp before SLRU).

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "lru",
    summary: "evicts the expert used longest ago",
    definition: "A hit or an admission makes a key the most recent; the victim is the least recent.",
    source: "P. J. Denning, The working set model for program behavior, CACM 11(5), 1968; Mixtral-offloading, FreeToken",
    needs: Need::Nothing,
    parameters: &[],
};

/// Least recently used, on one linked list.
#[derive(Debug, Clone)]
pub struct Lru {
    links: Links,
    order: List,
    slots: Occupancy,
}

impl Lru {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        let links = Links::new(pool.keys, 1);
        let order = links.list(0);
        Self { links, order, slots: Occupancy::new(pool.capacity) }
    }

    /// Resident keys, most recent first.
    pub fn order(&self) -> impl Iterator<Item = Key> + '_ {
        self.links.iter(self.order)
    }
}

impl Listed for Lru {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        Links::memory(pool.keys, 1)
    }
}

impl Policy for Lru {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.links.move_to_front(self.order, key);
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.links.push_front(self.order, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.links.find_from_back(self.order, may_leave)?;
        self.links.unlink(victim);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.links.unlink(key);
    }

    fn validate(&self) -> Result<(), String> {
        let length = self.links.validate(self.order)?;
        self.slots.agree_with(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TEXTBOOK, run_sequential};

    #[test]
    fn textbook_string_has_twelve_faults_at_three_frames() {
        let mut lru = Lru::new(&PoolShape::flat(3, 8));
        assert_eq!(run_sequential(&mut lru, &TEXTBOOK), 12);
        // The string ends in ... 7 0 1.
        assert_eq!(lru.order().collect::<Vec<_>>(), [1, 0, 7]);
    }
}
