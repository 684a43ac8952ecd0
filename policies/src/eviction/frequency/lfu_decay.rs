//! LFU with decay: counts halve with age, so that yesterday's favourites leave.
//!
//! Source: the combined recency and frequency value of D. Lee and others, "LRFU", IEEE Transactions
//! on Computers 50(12), 2001; llama.cpp's ClassLRU ranks by a coarse form of it. Instead of all
//! counts shrinking, each use weighs more than the one before; the order is the same, and a hit is
//! one addition.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::registry::share;
use crate::structures::lazy_heap::LazyHeap;
use crate::structures::memory::{array, sum};
use crate::{Config, History, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "lfu-decay",
    summary: "LFU whose counts halve with age",
    definition: "A use t uses ago counts 2^(-t / h), h = half_life x the experts that a token uses in the pool; hits and admissions are uses. The victim has the smallest sum; of equals, the least recent. An evicted key's sum is kept, or forgotten.",
    source: "D. Lee and others, LRFU, IEEE Transactions on Computers 50(12), 2001",
    needs: Need::Nothing,
    parameters: &[
        Parameter {
            name: "half_life",
            default: "128",
            meaning: "age at which a use counts half, in tokens, 0.01 to 1e9",
        },
        Parameter {
            name: "history",
            default: "kept",
            meaning: "an evicted expert's counts: kept or forgotten",
        },
    ],
};

/// Parameters of [`LfuDecay`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LfuDecayConfig {
    /// Age at which a use counts half, in tokens, 0.01 to 1e9. A token is as many uses as
    /// [`PoolShape::keys_per_token`].
    pub half_life: f64,
    /// Whether an evicted key's sum is remembered.
    pub history: History,
}

impl Default for LfuDecayConfig {
    fn default() -> Self {
        Self { half_life: 128.0, history: History::Kept }
    }
}

impl Config for LfuDecayConfig {
    fn check(&self) -> Result<(), String> {
        share("half_life", self.half_life, 0.01..=1e9)
    }
}

/// Where weights are scaled down: far from overflow, by a power of two so that nothing is rounded.
const HIGHEST: f64 = (1u128 << 120) as f64;

/// What a key's uses weigh together, and when the last was.
#[derive(Debug, Clone, Copy)]
struct Value {
    sum: f64,
    last: u64,
}

impl Value {
    const NONE: Self = Self { sum: 0.0, last: 0 };

    /// Orders as the sums do: no sum is negative, so their bits are in order.
    #[inline(always)]
    fn rank(self) -> (u64, u64) {
        (self.sum.to_bits(), self.last)
    }
}

/// Least frequently used, with counts that decay.
#[derive(Debug, Clone)]
pub struct LfuDecay {
    values: Vec<Value>,
    heap: LazyHeap<(u64, u64)>,
    resident: Vec<bool>,
    now: u64,
    /// What a use weighs now, and by how much more the next.
    weight: f64,
    growth: f64,
    history: History,
    slots: Occupancy,
}

impl LfuDecay {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &LfuDecayConfig) -> Self {
        let keys = pool.keys as usize;
        let half_life = config.half_life * f64::from(pool.keys_per_token.max(1));
        Self {
            values: vec![Value::NONE; keys],
            heap: LazyHeap::new(pool.keys),
            resident: vec![false; keys],
            now: 0,
            weight: 1.0,
            growth: libm::exp2(half_life.recip()).min(HIGHEST),
            history: config.history,
            slots: Occupancy::new(pool.capacity),
        }
    }

    #[cold]
    fn scale_down(&mut self) {
        self.weight /= HIGHEST;
        for value in &mut self.values {
            value.sum /= HIGHEST;
        }
        self.heap.rebuild(|key| self.values[key as usize].rank());
    }
}

impl Listed for LfuDecay {
    type Config = LfuDecayConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &LfuDecayConfig) -> Self {
        LfuDecay::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &LfuDecayConfig) -> u64 {
        sum([
            array::<Value>(pool.keys),
            LazyHeap::<(u64, u64)>::memory(pool.keys),
            array::<bool>(pool.keys),
        ])
    }
}

impl Policy for LfuDecay {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.resident[key as usize]
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.now += 1;
        self.weight *= self.growth;
        if self.weight >= HIGHEST {
            self.scale_down();
        }
        let value = &mut self.values[key as usize];
        *value = Value { sum: value.sum + self.weight, last: self.now };
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.hit(key);
        self.resident[key as usize] = true;
        self.heap.push(self.values[key as usize].rank(), key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let now = |key: Key| self.values[key as usize].rank();
        let victim = self.heap.pop(now, &may_leave)?;
        self.resident[victim as usize] = false;
        if self.history == History::Forgotten {
            self.values[victim as usize] = Value::NONE;
        }
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.resident[key as usize] = false;
        self.values[key as usize] = Value::NONE;
        self.heap.remove(key, |key| self.values[key as usize].rank());
    }

    fn validate(&self) -> Result<(), String> {
        self.heap.validate(|key| self.values[key as usize].rank())?;
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

    #[test]
    fn old_uses_fade() {
        let config = LfuDecayConfig { half_life: 2.0, ..LfuDecayConfig::default() };
        let mut lfu = LfuDecay::configured(&PoolShape::flat(2, 9), &config);
        assert!(lfu.admit(0, &mut Anyone));
        lfu.hit(0);
        lfu.hit(0); // uses at 1, 2, 3
        assert!(lfu.admit(1, &mut Anyone));
        lfu.hit(1); // uses at 4, 5
        // At 5: key 0 counts 1/4 + 0.354 + 1/2 = 1.104, key 1 counts 0.707 + 1 = 1.707.
        assert!(lfu.admit(2, &mut Anyone));
        assert!(!lfu.contains(0) && lfu.contains(1) && lfu.contains(2));
        // At 7, without another use, key 1 counts 0.354 + 1/2 = 0.854, key 2 0.707.
        assert!(lfu.admit(3, &mut Anyone));
        assert!(!lfu.contains(2) && lfu.contains(1));
    }

    #[test]
    fn scaling_down_changes_no_order() {
        // 120 half-lives a scaling: 1,000 uses with one of 1 make eight of them.
        let config = LfuDecayConfig { half_life: 1.0, ..LfuDecayConfig::default() };
        let mut lfu = LfuDecay::configured(&PoolShape::flat(3, 9), &config);
        for tick in 0..1_000u32 {
            let key = tick % 4;
            if lfu.contains(key) {
                lfu.hit(key)
            } else {
                assert!(lfu.admit(key, &mut Anyone))
            }
            assert_eq!(lfu.validate(), Ok(()));
            // With so short a memory it is LRU: the last three keys are in.
            assert!((0..3.min(tick + 1)).all(|back| lfu.contains((tick - back) % 4)));
        }
    }
}
