//! Bypass: once the pool is full, most misses are served without being admitted.
//!
//! Source: M. K. Qureshi et al., "Adaptive insertion policies for high performance caching", ISCA
//! 2007: bimodal insertion lets one miss in 32 settle, so that a working set larger than the cache
//! keeps a part of itself resident instead of washing through. The paper draws at random; here
//! every 32nd miss is let in, which any two machines agree about.

use serde::{Deserialize, Serialize};

use super::{Admission, AdmissionInfo};
use crate::registry::NoNeeds;
use crate::{Config, Key, Parameter};

/// What people are told of it.
pub const INFO: AdmissionInfo = AdmissionInfo {
    name: "bypass",
    summary: "once full, only every n-th miss gets a slot",
    definition: "While the pool has a free slot every miss is admitted. Once it is full its misses (and absent predictions) are counted, and those whose number is a multiple of `every` are admitted; the others are served without a slot. every=0: none is admitted once the pool is full.",
    source: "bimodal insertion: Qureshi et al., Adaptive insertion policies, ISCA 2007, with a count in place of chance",
    needs: NoNeeds,
    parameters: &[Parameter {
        name: "every",
        default: "32",
        meaning: "misses for one admission once full; 0: no admission",
    }],
};

/// Parameters of [`Bypass`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BypassConfig {
    /// Misses for one admission once full; 0: no admission.
    pub every: u32,
}

impl Default for BypassConfig {
    fn default() -> Self {
        Self { every: 32 }
    }
}

impl Config for BypassConfig {}

/// Counts the misses of a full pool.
#[derive(Debug, Clone)]
pub struct Bypass {
    every: u32,
    misses: u32,
}

impl Bypass {
    /// No miss so far.
    #[must_use]
    pub fn new(config: &BypassConfig) -> Self {
        Self { every: config.every, misses: 0 }
    }
}

impl Admission for Bypass {
    fn wants(&mut self, _: Key, full: bool) -> bool {
        if !full {
            return true;
        }
        if self.every == 0 {
            return false;
        }
        self.misses += 1;
        if self.misses < self.every {
            return false;
        }
        self.misses = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admitted, Anyone, Lru, Policy, PoolShape};

    /// A loop over three keys in two slots: LRU alone never hits.
    fn hits_of_a_loop(every: u32) -> Vec<u32> {
        let pool = PoolShape::flat(2, 3);
        let mut policy = Admitted::new(Lru::new(&pool), Bypass::new(&BypassConfig { every }));
        let mut hits = Vec::new();
        for (position, key) in (0..12).map(|position| (position, position % 3)) {
            if policy.contains(key) {
                policy.hit(key);
                hits.push(position);
            } else {
                policy.admit(key, &mut Anyone);
            }
            assert_eq!(policy.validate(), Ok(()));
        }
        hits
    }

    #[test]
    fn a_loop_larger_than_the_pool_keeps_a_part_resident() {
        // every=1 admits all: plain LRU.
        assert_eq!(hits_of_a_loop(1), []);
        // 0 and 1 settle; 2 never comes in.
        assert_eq!(hits_of_a_loop(0), [3, 4, 6, 7, 9, 10]);
        // 0 1 2: the first miss of the full pool stays out; 0 1 hit; 2 is the second miss and
        // takes 0's slot; then 0 is the third (out), 1 and 2 hit, 0 the fourth (takes 1's slot),
        // and 1 the fifth (out), 2 hits.
        assert_eq!(hits_of_a_loop(2), [3, 4, 7, 8, 11]);
    }
}
