//! W-TinyLFU: a small LRU window, and a main cache that it enters only by being used more.
//!
//! Source: G. Einziger, R. Friedman and B. Manes, "TinyLFU: a highly efficient cache admission
//! policy", ACM Transactions on Storage 13(4), 2017. Keys are dense here, so the counts are exact
//! where the paper has a sketch. A miss is always brought in: the filter decides who leaves.
//! libCacheSim gives other counts, for rules of its own that `tests/golden/quirks.rs` spells out:
//! hits in the window are not counted, keys that are judged are, and its sketch is made for as many
//! keys as it has slots, though it counts all that ever came.

use serde::{Deserialize, Serialize};

use crate::queues::Queues;
use crate::registry::share;
use crate::{Config, Key, Need, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
pub const INFO: PolicyInfo = PolicyInfo {
    name: "w-tinylfu",
    summary: "a small LRU window; the main cache takes what is used more",
    definition: "An LRU window of max(1, floor(slots x window)), a main cache of the other slots in two LRU segments, at most floor(main x protected) keys protected. Every hit and miss counts 1 for its key; after sample x slots uses all counts are halved, rounding down, and half the sample counts as passed. A hit in the window or among the protected makes the key the most recent there; one on probation protects it, and the least recent protected that is too much goes to the front of probation. When full, a miss, once counted, sets the window's least recent against the main cache's victim (the least recent on probation, else of the protected): the one with the higher count is in the main cache afterwards, at the front of probation if it came from the window; the other leaves; of equals the window's. Keys that may not leave are passed over; if the window has no other, the main victim leaves. The key enters the window; what is too much there goes to the front of probation.",
    source: "G. Einziger, R. Friedman and B. Manes, TinyLFU, ACM Transactions on Storage 13(4), 2017",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "window", default: "0.01", meaning: "the window's share, 0 to 1" },
        Parameter {
            name: "protected",
            default: "0.8",
            meaning: "share of the main cache for keys hit there, 0 to 1",
        },
        Parameter {
            name: "sample",
            default: "10",
            meaning: "counts are halved every sample x slots uses, 1 to 1e6",
        },
    ],
};

/// Parameters of [`WTinyLfu`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WTinyLfuConfig {
    /// Share of the slots for the window, 0 to 1; it has one slot at least.
    pub window: f64,
    /// Share of the main cache for its protected segment, 0 to 1.
    pub protected: f64,
    /// Counts are halved after this many uses a slot, 1 to 1e6.
    pub sample: f64,
}

impl Default for WTinyLfuConfig {
    fn default() -> Self {
        Self { window: 0.01, protected: 0.8, sample: 10.0 }
    }
}

impl Config for WTinyLfuConfig {
    fn check(&self) -> Result<(), String> {
        share("window", self.window, 0.0..=1.0)?;
        share("protected", self.protected, 0.0..=1.0)?;
        share("sample", self.sample, 1.0..=1e6)
    }
}

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// W-TinyLFU with exact counts.
#[derive(Debug, Clone)]
pub struct WTinyLfu {
    queues: Queues<3>,
    counts: Vec<u32>,
    /// Uses until the counts are halved.
    until_halving: u64,
    sample: u64,
    most_window: u32,
    most_protected: u32,
    len: u32,
    config: WTinyLfuConfig,
    capacity: u32,
}

impl WTinyLfu {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &WTinyLfuConfig) -> Self {
        let mut this = Self {
            queues: Queues::new(pool.keys),
            counts: vec![0; pool.keys as usize],
            until_halving: u64::MAX,
            sample: 0,
            most_window: 0,
            most_protected: 0,
            len: 0,
            config: *config,
            capacity: 0,
        };
        this.set_capacity(pool.capacity);
        this
    }

    #[inline(always)]
    fn count(&mut self, key: Key) {
        self.counts[key as usize] += 1;
        self.until_halving -= 1;
        if self.until_halving == 0 {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        // As in the paper, halved counts stand for half a sample.
        self.until_halving = self.sample - self.sample / 2;
        for count in &mut self.counts {
            *count /= 2;
        }
    }

    /// The least recent of the main cache that may leave, on probation first.
    #[inline(always)]
    fn main_victim<R: Room>(&self, room: &R) -> Option<Key> {
        let of = |list| self.queues.find_from_back(list, |key| room.may_evict(key));
        of(PROBATION).or_else(|| of(PROTECTED))
    }

    /// Sends what is too much in the window and among the protected to probation.
    #[inline(always)]
    fn overflow(&mut self, list: u8, longest: u32) {
        while self.queues.len(list) > longest
            && let Some(key) = self.queues.back(list)
        {
            self.queues.transfer(list, PROBATION, key);
        }
    }
}

impl Policy for WTinyLfu {
    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= PROTECTED
    }

    fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.count(key);
        match self.queues.of(key) {
            PROBATION => {
                self.queues.transfer(PROBATION, PROTECTED, key);
                self.overflow(PROTECTED, self.most_protected);
            }
            list => self.queues.refresh(list, key),
        }
    }

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        self.count(key);
        if self.len >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.queues.push_front(WINDOW, key);
        self.len += 1;
        self.overflow(WINDOW, self.most_window);
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let candidate = self.queues.find_from_back(WINDOW, |key| room.may_evict(key));
        let main = self.main_victim(room);
        let victim = match (candidate, main) {
            (Some(candidate), Some(main)) => {
                if self.queues.len(WINDOW) < self.most_window {
                    main
                } else if self.counts[candidate as usize] > self.counts[main as usize] {
                    self.queues.transfer(WINDOW, PROBATION, candidate);
                    main
                } else {
                    candidate
                }
            }
            (candidate, main) => match candidate.or(main) {
                Some(victim) => victim,
                None => return false,
            },
        };
        self.queues.unlink(victim);
        self.len -= 1;
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.queues.unlink(key);
        self.counts[key as usize] = 0;
        self.len -= 1;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.most_window = ((f64::from(capacity) * self.config.window) as u32).max(1);
        let main = capacity.saturating_sub(self.most_window);
        self.most_protected = (f64::from(main) * self.config.protected) as u32;
        self.sample = ((f64::from(capacity) * self.config.sample) as u64).max(1);
        self.until_halving = self.until_halving.min(self.sample);
        self.overflow(WINDOW, self.most_window);
        self.overflow(PROTECTED, self.most_protected);
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let lengths = [WINDOW, PROBATION, PROTECTED].map(|list| self.queues.len(list));
        let over = lengths[0] > self.most_window || lengths[2] > self.most_protected;
        if over || lengths.iter().sum::<u32>() != self.len || self.len > self.capacity {
            return Err(format!("window, probation, protected of {lengths:?}, len {}", self.len));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn the_main_cache_takes_only_what_is_used_more() {
        // Four slots: one for the window, three for the main cache, two of them protected.
        let config = WTinyLfuConfig::default();
        let mut cache = WTinyLfu::configured(&PoolShape::flat(4, 9), &config);
        let lists = |cache: &WTinyLfu| {
            [WINDOW, PROBATION, PROTECTED].map(|at| cache.queues.iter(at).collect::<Vec<_>>())
        };
        for key in [0, 1, 2, 3] {
            assert!(cache.admit(key, &mut Anyone)); // what the window cannot hold is on probation
        }
        assert_eq!(lists(&cache), [vec![3], vec![2, 1, 0], vec![]]);
        cache.hit(0); // protected
        assert!(cache.admit(4, &mut Anyone)); // 3 and 1 have one use each: 3 leaves
        assert_eq!(lists(&cache), [vec![4], vec![2, 1], vec![0]]);
        cache.hit(4); // two uses: now it beats 1
        assert!(cache.admit(5, &mut Anyone));
        assert_eq!(lists(&cache), [vec![5], vec![4, 2], vec![0]]);
        assert_eq!(cache.validate(), Ok(()));
    }

    #[test]
    fn counts_are_halved_after_a_sample_and_then_after_half() {
        let config = WTinyLfuConfig { sample: 2.0, ..WTinyLfuConfig::default() };
        let mut cache = WTinyLfu::configured(&PoolShape::flat(4, 9), &config);
        assert!(cache.admit(0, &mut Anyone));
        (0..6).for_each(|_| cache.hit(0));
        assert_eq!(cache.counts[0], 7);
        cache.hit(0); // the eighth use of a sample of eight
        assert_eq!(cache.counts[0], 4);
        (0..4).for_each(|_| cache.hit(0)); // half a sample later
        assert_eq!(cache.counts[0], 4);
    }
}
