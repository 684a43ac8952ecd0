//! The operating system's page cache: two lists, and the second reference promotes.
//!
//! Source: Linux `mm/swap.c`, `mm/vmscan.c` and `mm/workingset.c` (the classic two lists of file
//! pages, before multi-generation LRU). A page here is a whole expert. Read-ahead is the reader's
//! doing: [`HostTier::with_read_ahead`](crate::HostTier::with_read_ahead).

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::queues::Queues;
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "page-cache",
    summary: "Linux's page cache: inactive and active lists",
    definition: "Two lists. A new key goes to the front of the inactive list; a hit there, which is its second reference, moves it to the front of the active list; a hit in the active list marks it and moves nothing. When a key has to leave, first the active list's last key goes to the front of the inactive list, its mark cleared, for as long as the active list is more than `ratio` times as long as the inactive one; then the inactive list's last key leaves, else the active list's. With refault: a clock counts what left the inactive list and what was promoted; a key that comes back after no more of its ticks than the active list is long goes to the active list at once.",
    source: "Linux mm/vmscan.c (inactive_is_low), mm/swap.c (folio_mark_accessed), mm/workingset.c",
    needs: Need::Nothing,
    parameters: &[
        Parameter {
            name: "ratio",
            default: "10",
            meaning: "how much longer the active list may be: sqrt(10 x GiB), 3 at 1 GiB, 31 at 100",
        },
        Parameter {
            name: "refault",
            default: "true",
            meaning: "whether a key that comes back soon is active at once",
        },
    ],
};

/// Parameters of [`PageCache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageCacheConfig {
    /// The active list may be so many times as long as the inactive one, 1 to 1,000. Linux takes the
    /// root of ten times the memory in GiB.
    pub ratio: u32,
    /// Whether a key that comes back soon enough is active at once.
    pub refault: bool,
}

impl Default for PageCacheConfig {
    fn default() -> Self {
        Self { ratio: 10, refault: true }
    }
}

impl Config for PageCacheConfig {
    fn check(&self) -> Result<(), String> {
        match self.ratio {
            1..=1000 => Ok(()),
            ratio => Err(format!("ratio is {ratio}, give 1 to 1000")),
        }
    }
}

const INACTIVE: u8 = 0;
const ACTIVE: u8 = 1;

/// Linux's two lists.
#[derive(Debug, Clone)]
pub struct PageCache {
    queues: Queues<2>,
    config: PageCacheConfig,
    /// What left the inactive list and what was promoted, so far.
    age: u64,
    /// The age at which each key left, 0: never, or nobody asks.
    left_at: Vec<u64>,
    slots: Occupancy,
}

impl PageCache {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &PageCacheConfig) -> Self {
        Self {
            queues: Queues::new(pool.keys),
            config: *config,
            age: 0,
            left_at: vec![0; pool.keys as usize],
            slots: Occupancy::new(pool.capacity),
        }
    }

    /// Moves active keys to the inactive list until their lengths are in proportion.
    #[inline(always)]
    fn balance(&mut self) {
        while let Some(key) = self.queues.back(ACTIVE)
            && u64::from(self.queues.len(ACTIVE))
                > u64::from(self.queues.len(INACTIVE)) * u64::from(self.config.ratio)
        {
            self.queues.transfer(ACTIVE, INACTIVE, key);
        }
    }
}

impl Listed for PageCache {
    type Config = PageCacheConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &PageCacheConfig) -> Self {
        PageCache::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &PageCacheConfig) -> u64 {
        sum([Queues::<2>::memory(pool.keys), array::<u64>(pool.keys)])
    }
}

impl Policy for PageCache {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= ACTIVE
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        if self.queues.of(key) == INACTIVE {
            self.queues.transfer(INACTIVE, ACTIVE, key);
            self.age += 1;
        }
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let left_at = std::mem::take(&mut self.left_at[key as usize]);
        let soon = left_at > 0 && self.age - (left_at - 1) <= u64::from(self.queues.len(ACTIVE));
        let list = if soon { ACTIVE } else { INACTIVE };
        self.queues.push_front(list, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.balance();
        let inactive = self.queues.find_from_back(INACTIVE, &may_leave);
        let victim = inactive.or_else(|| self.queues.find_from_back(ACTIVE, &may_leave))?;
        self.queues.unlink(victim);
        self.age += 1;
        if self.config.refault {
            // One more than the age, so that zero says never.
            self.left_at[victim as usize] = self.age + 1;
        }
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.queues.unlink(key);
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        self.slots.agree_with(self.queues.len(INACTIVE) + self.queues.len(ACTIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn the_second_reference_promotes_and_a_scan_leaves_the_active_alone() {
        let config = PageCacheConfig { ratio: 2, refault: true };
        let mut cache = PageCache::configured(&PoolShape::flat(4, 12), &config);
        let list = |cache: &PageCache, at| cache.queues.iter(at).collect::<Vec<_>>();
        for key in [0, 1, 2, 3] {
            assert!(cache.admit(key, &mut Anyone));
        }
        cache.hit(1);
        cache.hit(0);
        cache.hit(1); // marked at most: nothing moves
        assert_eq!((list(&cache, INACTIVE), list(&cache, ACTIVE)), (vec![3, 2], vec![0, 1]));
        for key in [4, 5, 6, 7] {
            assert!(cache.admit(key, &mut Anyone));
        }
        assert_eq!((list(&cache, INACTIVE), list(&cache, ACTIVE)), (vec![7, 6], vec![0, 1]));
        // 5 was the last to leave, one tick ago: 6 leaves for it, and it is active at once.
        assert!(cache.admit(5, &mut Anyone));
        assert_eq!((list(&cache, INACTIVE), list(&cache, ACTIVE)), (vec![7], vec![5, 0, 1]));
        // Three active are more than twice one inactive: 1 goes over, and 7 leaves.
        assert!(cache.admit(9, &mut Anyone));
        assert_eq!((list(&cache, INACTIVE), list(&cache, ACTIVE)), (vec![9, 1], vec![5, 0]));
        assert_eq!(cache.validate(), Ok(()));
    }
}
