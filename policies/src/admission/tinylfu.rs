//! TinyLFU-style admission: who comes in must have been asked for more often of late than who
//! leaves for it.
//!
//! Source: G. Einziger, R. Friedman, B. Manes, "TinyLFU: a highly efficient cache admission
//! policy", ACM ToS 13(4), 2017. Experts are few, so each has a counter of its own and no sketch is
//! needed. TinyLFU compares with the policy's victim alone; here the policy looks for its victim
//! among those with a lower count, so that one hot expert at the end of a list does not keep every
//! newcomer out.

use serde::{Deserialize, Serialize};

use super::{Admission, AdmissionInfo};
use crate::registry::NoNeeds;
use crate::structures::memory::array;
use crate::{Config, Event, Key, Parameter, PoolShape};

/// What people are told of it.
pub const INFO: AdmissionInfo = AdmissionInfo {
    name: "tinylfu",
    summary: "who comes in must be asked for more than who leaves",
    definition: "Each event adds 1 to the count of every expert it asks for, up to 15. After `sample` x slots such uses all counts are halved, rounded down. While the pool has a free slot every miss is admitted; once it is full a miss (or an absent prediction) is admitted only in place of an expert with a lower count: the policy looks for its victim among those, and if there is none the miss is served without a slot.",
    source: "Einziger, Friedman, Manes, TinyLFU, ACM ToS 13(4), 2017; exact counters, every resident with a lower count is a candidate to leave",
    needs: NoNeeds,
    parameters: &[Parameter {
        name: "sample",
        default: "10",
        meaning: "uses until counts are halved, in multiples of the slots, at least 1",
    }],
};

/// Parameters of [`TinyLfu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TinyLfuConfig {
    /// Uses until counts are halved, in multiples of the slots, at least 1.
    pub sample: u32,
}

impl Default for TinyLfuConfig {
    fn default() -> Self {
        Self { sample: 10 }
    }
}

impl Config for TinyLfuConfig {
    fn check(&self) -> Result<(), String> {
        if self.sample == 0 {
            return Err("sample = 0 forgets at once: give at least 1".to_owned());
        }
        Ok(())
    }
}

/// Counts stop here, as in the paper's four-bit counters.
const MOST: u8 = 15;

/// Recent uses of every key, and how many residents have each count.
#[derive(Debug, Clone)]
pub struct TinyLfu {
    sample: u32,
    counts: Box<[u8]>,
    resident: Box<[bool]>,
    /// Residents by count: whether anybody has a lower one is known without a search.
    residents_with: [u32; MOST as usize + 1],
    uses: u64,
    halve_at: u64,
}

impl TinyLfu {
    /// Nothing was asked for so far.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &TinyLfuConfig) -> Self {
        Self {
            sample: config.sample,
            counts: vec![0; pool.keys as usize].into_boxed_slice(),
            resident: vec![false; pool.keys as usize].into_boxed_slice(),
            residents_with: [0; MOST as usize + 1],
            uses: 0,
            halve_at: u64::from(config.sample) * u64::from(pool.capacity.max(1)),
        }
    }

    pub(super) fn memory(pool: &PoolShape) -> u64 {
        array::<(u8, bool)>(pool.keys)
    }

    fn halve(&mut self) {
        self.uses = 0;
        self.residents_with = [0; MOST as usize + 1];
        for (count, &resident) in self.counts.iter_mut().zip(&self.resident) {
            *count /= 2;
            self.residents_with[usize::from(*count)] += u32::from(resident);
        }
    }
}

impl Admission for TinyLfu {
    fn begin_event(&mut self, event: &Event<'_>) {
        for &key in event.keys {
            let key = key as usize;
            let count = self.counts[key];
            if count < MOST {
                self.counts[key] = count + 1;
                if self.resident[key] {
                    self.residents_with[usize::from(count)] -= 1;
                    self.residents_with[usize::from(count) + 1] += 1;
                }
            }
        }
        self.uses += event.keys.len() as u64;
        if self.uses >= self.halve_at {
            self.halve();
        }
    }

    fn wants(&mut self, key: Key, full: bool) -> bool {
        let count = usize::from(self.counts[key as usize]);
        !full || self.residents_with[..count].iter().any(|&residents| residents > 0)
    }

    fn may_displace(&self, key: Key, victim: Key) -> bool {
        self.counts[victim as usize] < self.counts[key as usize]
    }

    fn entered(&mut self, key: Key) {
        self.resident[key as usize] = true;
        self.residents_with[usize::from(self.counts[key as usize])] += 1;
    }

    fn left(&mut self, key: Key) {
        self.resident[key as usize] = false;
        self.residents_with[usize::from(self.counts[key as usize])] -= 1;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.halve_at = u64::from(self.sample) * u64::from(capacity.max(1));
    }

    fn validate(&self, resident: impl Fn(Key) -> bool) -> Result<(), String> {
        let mut residents_with = [0; MOST as usize + 1];
        for (key, &count) in (0..).zip(&self.counts) {
            if self.resident[key as usize] != resident(key) {
                return Err(format!("admission and policy disagree about {key}"));
            }
            residents_with[usize::from(count)] += u32::from(resident(key));
        }
        if residents_with != self.residents_with {
            return Err(format!("counted {:?}, are {residents_with:?}", self.residents_with));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admitted, Anyone, Lru, Policy};

    /// Counts after each use are in the comments, as key:count.
    #[test]
    fn a_newcomer_must_be_asked_for_more_often() {
        let pool = PoolShape::flat(2, 4);
        let filter = TinyLfu::new(&pool, &TinyLfuConfig { sample: 4 });
        let mut policy = Admitted::new(Lru::new(&pool), filter);
        let mut ask = |key: Key| {
            policy.begin_event(&Event { layer: 0, keys: &[key], weights: &[] });
            if policy.contains(key) {
                policy.hit(key);
            } else {
                policy.admit(key, &mut Anyone);
            }
            assert_eq!(policy.validate(), Ok(()));
            (0..4).filter(|&key| policy.contains(key)).collect::<Vec<_>>()
        };
        assert_eq!(ask(0), [0]); // 0:1
        assert_eq!(ask(0), [0]); // 0:2
        assert_eq!(ask(1), [0, 1]); // 0:2 1:1, a free slot
        assert_eq!(ask(2), [0, 1]); // 2:1 is not more than 1:1
        // 2:2 is more than 1:1. LRU would let 0 go, which has 2: the victim is 1.
        assert_eq!(ask(2), [0, 2]);
        assert_eq!(ask(1), [0, 2]); // 1:2 is not more than 0:2, 2:2
        assert_eq!(ask(3), [0, 2]); // 3:1
        // The eighth use (4 x 2 slots): 3:2, then all are halved to 1 before anybody decides.
        assert_eq!(ask(3), [0, 2]);
        // 3:2 against 0:1 and 2:1; 0 is the least recent.
        assert_eq!(ask(3), [2, 3]);
    }
}
