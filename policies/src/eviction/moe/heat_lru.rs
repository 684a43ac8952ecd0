//! Heat-protected LRU: experts that have been used often since they came in stay while others can go.
//!
//! Source: TheTom's llama.cpp fork (#300): the LRU victim is looked for only among slots with at
//! most four uses, and if there is none, plain LRU decides.

use serde::{Deserialize, Serialize};

use crate::registry::Listed;
use crate::structures::list::Links;
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Need, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "heat-lru",
    summary: "LRU among the experts of few uses, else plain LRU",
    definition: "A key has 1 use on admission and one more with each hit, forgotten on eviction. The victim is the least recent key with at most max_uses uses; if none may leave, the least recent key.",
    source: "TheTom's fork of llama.cpp, pull request 300",
    needs: Need::Nothing,
    parameters: &[Parameter {
        name: "max_uses",
        default: "4",
        meaning: "uses up to which a key is not protected; 1 or more",
    }],
};

/// Parameters of [`HeatLru`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeatLruConfig {
    /// Uses up to which a key is not protected.
    pub max_uses: u32,
}

impl Default for HeatLruConfig {
    fn default() -> Self {
        Self { max_uses: 4 }
    }
}

impl Config for HeatLruConfig {
    fn check(&self) -> Result<(), String> {
        if self.max_uses == 0 {
            return Err("max_uses is 0, but a resident key has 1 use or more".to_owned());
        }
        Ok(())
    }
}

const COLD: u32 = 0;
const WARM: u32 = 1;

/// Two LRU lists, by uses.
#[derive(Debug, Clone)]
pub struct HeatLru {
    links: Links,
    uses: Vec<u32>,
    max_uses: u32,
    len: u32,
    capacity: u32,
}

impl HeatLru {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &HeatLruConfig) -> Self {
        Self {
            links: Links::new(pool.keys, 2),
            uses: vec![0; pool.keys as usize],
            max_uses: config.max_uses,
            len: 0,
            capacity: pool.capacity,
        }
    }

    /// Once no cold key may leave, all that may are warm, and their list is in LRU order.
    #[inline(always)]
    fn victim<R: Room>(&self, room: &R) -> Option<Key> {
        [COLD, WARM].into_iter().find_map(|list| {
            self.links.find_from_back(self.links.list(list), |key| room.may_evict(key))
        })
    }
}

impl Listed for HeatLru {
    type Config = HeatLruConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &HeatLruConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &HeatLruConfig) -> u64 {
        sum([Links::memory(pool.keys, 2), array::<u32>(pool.keys)])
    }
}

impl Policy for HeatLru {
    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let uses = &mut self.uses[key as usize];
        *uses = uses.saturating_add(1);
        let list = if *uses > self.max_uses { WARM } else { COLD };
        self.links.move_to_front(self.links.list(list), key);
    }

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.len >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.uses[key as usize] = 1;
        self.links.push_front(self.links.list(COLD), key);
        self.len += 1;
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let Some(victim) = self.victim(room) else {
            return false;
        };
        self.remove(victim);
        room.evict(victim);
        true
    }

    #[inline(always)]
    fn remove(&mut self, key: Key) {
        self.links.unlink(key);
        self.len -= 1;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn validate(&self) -> Result<(), String> {
        let mut listed = 0;
        for list in [COLD, WARM] {
            listed += self.links.validate(self.links.list(list))?;
            for key in self.links.iter(self.links.list(list)) {
                if (self.uses[key as usize] > self.max_uses) != (list == WARM) {
                    return Err(format!("key {key} is in list {list}"));
                }
            }
        }
        if listed != self.len || listed > self.capacity {
            return Err(format!("{listed} listed, len {}, capacity {}", self.len, self.capacity));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_sequential;

    /// Two uses at most unprotected, two slots. 0 0 0 1 2: key 0 has 3 uses and is protected, so 2
    /// evicts 1 though 0 is older. 2 2: both are protected. 3: plain LRU, so 0 leaves.
    #[test]
    fn warm_keys_stay_while_a_cold_one_can_go() {
        let mut policy = HeatLru::new(&PoolShape::flat(2, 4), &HeatLruConfig { max_uses: 2 });
        assert_eq!(run_sequential(&mut policy, &[0, 0, 0, 1, 2]), 3);
        assert!(policy.contains(0));
        assert_eq!(run_sequential(&mut policy, &[2, 2, 3]), 1);
        assert!(!policy.contains(0) && policy.contains(2));
    }
}
