//! Heat-protected LRU: experts that have been used often since they came in stay while others can go.
//!
//! Source: TheTom's llama.cpp fork (#300): the LRU victim is looked for only among slots with at
//! most four uses, and if there is none, plain LRU decides.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::Links;
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

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
    slots: Occupancy,
}

impl HeatLru {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &HeatLruConfig) -> Self {
        Self {
            links: Links::new(pool.keys, 2),
            uses: vec![0; pool.keys as usize],
            max_uses: config.max_uses,
            slots: Occupancy::new(pool.capacity),
        }
    }

    /// Once no cold key may leave, all that may are warm, and their list is in LRU order.
    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        [COLD, WARM]
            .into_iter()
            .find_map(|list| self.links.find_from_back(self.links.list(list), &may_leave))
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
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let uses = &mut self.uses[key as usize];
        *uses = uses.saturating_add(1);
        let list = if *uses > self.max_uses { WARM } else { COLD };
        self.links.move_to_front(self.links.list(list), key);
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.uses[key as usize] = 1;
        self.links.push_front(self.links.list(COLD), key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        self.links.unlink(key);
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
        self.slots.agree_with(listed)
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
