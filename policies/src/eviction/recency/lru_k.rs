//! LRU-K: evicts the key whose K-th last use lies longest ago, so that one use earns little.
//!
//! Source: E. J. O'Neil, P. E. O'Neil and G. Weikum, "The LRU-K page replacement algorithm for
//! database disk buffering", SIGMOD 1993, with no correlated-reference period. A lazy heap: a
//! hit only writes its time.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::lazy_heap::LazyHeap;
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

const MOST: u32 = 8;

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "lru-k",
    summary: "evicts the expert whose K-th last use is the oldest",
    definition: "Every hit and admission is a use with its own tick. The victim has the smallest K-th last tick, 0 if it was used fewer than K times; of equals, the smallest last tick. What an evicted key did is forgotten, or kept for when it comes back.",
    source: "E. J. O'Neil, P. E. O'Neil and G. Weikum, LRU-K, SIGMOD 1993",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "k", default: "2", meaning: "which last use counts, 1 to 8" },
        Parameter {
            name: "history",
            default: "kept",
            meaning: "an evicted expert's uses: kept or forgotten",
        },
    ],
};

/// Whether what an expert did is remembered while it is out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// Remembered for as long as the trace runs.
    #[default]
    Kept,
    /// Forgotten on eviction.
    Forgotten,
}

/// Parameters of [`LruK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LruKConfig {
    /// Which last use counts, 1 to 8.
    pub k: u32,
    /// Whether an evicted key's uses are remembered.
    pub history: History,
}

impl Default for LruKConfig {
    fn default() -> Self {
        Self { k: 2, history: History::Kept }
    }
}

impl Config for LruKConfig {
    fn check(&self) -> Result<(), String> {
        if (1..=MOST).contains(&self.k) {
            return Ok(());
        }
        Err(format!("k = {} is not within 1 to {MOST}", self.k))
    }
}

/// LRU-K.
#[derive(Debug, Clone)]
pub struct LruK {
    /// The last `k` ticks of each key, latest first, 0 where there was none.
    ticks: Vec<u64>,
    heap: LazyHeap<(u64, u64)>,
    resident: Vec<bool>,
    now: u64,
    config: LruKConfig,
    slots: Occupancy,
}

impl LruK {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &LruKConfig) -> Self {
        let keys = pool.keys as usize;
        let config = LruKConfig { k: config.k.clamp(1, MOST), ..*config };
        Self {
            ticks: vec![0; keys * config.k as usize],
            heap: LazyHeap::new(pool.keys),
            resident: vec![false; keys],
            now: 0,
            config,
            slots: Occupancy::new(pool.capacity),
        }
    }

    #[inline(always)]
    fn of(ticks: &[u64], k: u32, key: Key) -> (u64, u64) {
        let (first, k) = ((key * k) as usize, k as usize);
        (ticks[first + k - 1], ticks[first])
    }

    #[inline(always)]
    fn ticks_of(&mut self, key: Key) -> &mut [u64] {
        let k = self.config.k as usize;
        &mut self.ticks[key as usize * k..][..k]
    }
}

impl Listed for LruK {
    type Config = LruKConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &LruKConfig) -> Self {
        LruK::configured(pool, config)
    }

    fn memory(pool: &PoolShape, config: &LruKConfig) -> u64 {
        {
            let ticks = u64::from(pool.keys) * u64::from(config.k.clamp(1, MOST));
            sum([
                array::<u64>(ticks),
                LazyHeap::<(u64, u64)>::memory(pool.keys),
                array::<bool>(pool.keys),
            ])
        }
    }
}

impl Policy for LruK {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.resident[key as usize]
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.now += 1;
        let now = self.now;
        let ticks = self.ticks_of(key);
        for later in (1..ticks.len()).rev() {
            ticks[later] = ticks[later - 1];
        }
        ticks[0] = now;
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.hit(key);
        self.resident[key as usize] = true;
        self.heap.push(Self::of(&self.ticks, self.config.k, key), key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let now = |key| Self::of(&self.ticks, self.config.k, key);
        let victim = self.heap.pop(now, &may_leave)?;
        self.resident[victim as usize] = false;
        if self.config.history == History::Forgotten {
            self.ticks_of(victim).fill(0);
        }
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.resident[key as usize] = false;
        self.ticks_of(key).fill(0);
        self.heap.remove(key, |key| Self::of(&self.ticks, self.config.k, key));
    }

    fn validate(&self) -> Result<(), String> {
        self.heap.validate(|key| Self::of(&self.ticks, self.config.k, key))?;
        let resident = self.resident.iter().filter(|&&here| here).count() as u32;
        if resident != self.heap.len() || resident > self.slots.capacity {
            return Err(format!("{resident} resident, {} in the heap", self.heap.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    fn after_coming_back(history: History) -> Vec<Key> {
        let pool = PoolShape::flat(3, 9);
        let mut lru_2 = LruK::configured(&pool, &LruKConfig { k: 2, history });
        for key in [0, 1, 2] {
            assert!(lru_2.admit(key, &mut Anyone)); // ticks 1, 2, 3
        }
        lru_2.hit(1); // 4: second-last 2
        lru_2.hit(0); // 5: second-last 1
        assert!(lru_2.admit(3, &mut Anyone)); // 6: 2 leaves, it has no second-last use
        assert!(lru_2.admit(2, &mut Anyone)); // 7: 3 leaves for the same reason
        assert!(lru_2.admit(4, &mut Anyone)); // 8
        assert_eq!(lru_2.validate(), Ok(()));
        (0..9).filter(|&key| lru_2.contains(key)).collect()
    }

    #[test]
    fn one_use_counts_for_nothing_unless_the_one_before_is_remembered() {
        // At tick 8: second-last uses are 1 (key 0), 2 (key 1), and of key 2 none, or 3 if kept.
        assert_eq!(after_coming_back(History::Forgotten), [0, 1, 4]);
        assert_eq!(after_coming_back(History::Kept), [1, 2, 4]);
    }
}
