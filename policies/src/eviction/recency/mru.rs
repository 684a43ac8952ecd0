//! MRU: evicts the key that was used last, which is right for loops longer than the cache.
//!
//! Source: H.-T. Chou and D. J. DeWitt, "An evaluation of buffer management strategies for
//! relational database systems", VLDB 1985. libCacheSim's MRU gives the same counts.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "mru",
    summary: "evicts the expert used last; good for plain loops only",
    definition: "A hit or an admission makes a key the most recent; the victim is the most recent.",
    source: "H.-T. Chou and D. J. DeWitt, An evaluation of buffer management strategies, VLDB 1985; libCacheSim's MRU",
    needs: Need::Nothing,
    parameters: &[],
};

/// Most recently used, on one linked list.
#[derive(Debug, Clone)]
pub struct Mru {
    links: Links,
    order: List,
    slots: Occupancy,
}

impl Mru {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        let links = Links::new(pool.keys, 1);
        let order = links.list(0);
        Self { links, order, slots: Occupancy::new(pool.capacity) }
    }
}

impl Listed for Mru {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        Links::memory(pool.keys, 1)
    }
}

impl Policy for Mru {
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
        let mut victim = self.links.front(self.order);
        while let Some(key) = victim.filter(|&key| !may_leave(key)) {
            victim = self.links.toward_back(key);
        }
        let victim = victim?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
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
    use crate::testing::run_sequential;

    #[test]
    fn a_loop_one_longer_than_the_cache_misses_once_in_three() {
        let mut mru = Mru::new(&PoolShape::flat(3, 4));
        // 0 1 2 fill; 3 takes the place of 2; 0 1 hit; 2 takes that of 1; 3 0 hit; 1 that of 0;
        // 2 3 hit: of the nine accesses after filling, three miss.
        assert_eq!(run_sequential(&mut mru, &[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]), 3 + 3);
        assert!([1, 2, 3].iter().all(|&key| mru.contains(key)));
    }
}
