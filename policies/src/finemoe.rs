//! FineMoE's eviction: the smallest product of probability and in-cache visits.
//!
//! Source: FineMoE (fMoE). Its probability comes from the expert map that it predicts with; here
//! it is the router's weight at the expert's last event, the only one that a trace has. The code
//! as shipped keeps the product in an integer, which truncates it; `truncate` does the same.

use serde::{Deserialize, Serialize};

use crate::resident_set::ResidentSet;
use crate::weight::in_255ths;
use crate::{Config, Event, Key, Need, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
pub const INFO: PolicyInfo = PolicyInfo {
    name: "finemoe",
    summary: "smallest router weight x uses since it came in",
    definition: "A key's visits are 1 on admission and one more with each hit; its probability is the router's weight at its last event, summed over the step's tokens, kept over eviction and 0 before the first. The victim has the smallest probability * visits, ties to the least recent.",
    source: "FineMoE (fMoE), expert dispatcher",
    needs: Need::Weights,
    parameters: &[Parameter {
        name: "truncate",
        default: "false",
        meaning: "whether the product loses its fraction, as in the code shipped",
    }],
};

/// Parameters of [`FineMoe`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FineMoeConfig {
    /// Whether the product loses its fraction.
    pub truncate: bool,
}

impl Config for FineMoeConfig {}

#[derive(Debug, Clone, Copy, Default)]
struct Use {
    probability: f32,
    visits: u32,
    /// The product, in 255ths unless it is truncated.
    score: f64,
    /// Number of the last use.
    tick: u64,
}

/// Probability times visits.
#[derive(Debug, Clone)]
pub struct FineMoe {
    residents: ResidentSet,
    uses: Vec<Use>,
    truncate: bool,
    tick: u64,
    capacity: u32,
}

impl FineMoe {
    pub(crate) fn configured(pool: &PoolShape, config: &FineMoeConfig) -> Self {
        Self::new(pool, config)
    }

    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &FineMoeConfig) -> Self {
        Self {
            residents: ResidentSet::new(pool.keys),
            uses: vec![Use::default(); pool.keys as usize],
            truncate: config.truncate,
            tick: 0,
            capacity: pool.capacity,
        }
    }

    #[inline(always)]
    fn touch(&mut self, key: Key) {
        self.tick += 1;
        let used = &mut self.uses[key as usize];
        used.visits = used.visits.saturating_add(1);
        used.tick = self.tick;
        let visits = f64::from(used.visits);
        used.score = if self.truncate {
            (f64::from(used.probability) * visits).trunc()
        } else {
            in_255ths(used.probability) * visits
        };
    }
}

impl Policy for FineMoe {
    const OBSERVES: bool = true;

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.residents.contains(key)
    }

    fn len(&self) -> u32 {
        self.residents.len()
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.touch(key);
    }

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.residents.len() >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.uses[key as usize].visits = 0;
        self.touch(key);
        self.residents.insert(key);
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let score = |key: Key| (self.uses[key as usize].score, self.uses[key as usize].tick);
        let Some(victim) = self.residents.least(score, |key| room.may_evict(key)) else {
            return false;
        };
        self.residents.remove(victim);
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.residents.remove(key);
        self.uses[key as usize] = Use::default();
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    #[inline(always)]
    fn begin_event(&mut self, event: &Event<'_>) {
        for (&key, &weight) in event.keys.iter().zip(event.weights) {
            self.uses[key as usize].probability = weight;
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.residents.validate(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    fn after_three_events(config: FineMoeConfig) -> FineMoe {
        let mut policy = FineMoe::new(&PoolShape::flat(2, 4), &config);
        policy.begin_event(&Event { layer: 0, keys: &[0, 1], weights: &[0.75, 0.5] });
        assert!(policy.admit(0, &mut Anyone) && policy.admit(1, &mut Anyone));
        policy.begin_event(&Event { layer: 0, keys: &[0], weights: &[0.125] });
        policy.hit(0);
        policy.begin_event(&Event { layer: 0, keys: &[2], weights: &[1.0] });
        assert!(policy.admit(2, &mut Anyone));
        assert_eq!(policy.validate(), Ok(()));
        policy
    }

    /// Key 0 has two visits and was last routed with 1/8: 1/4. Key 1 has one with 1/2, and stays.
    /// Truncated, both are 0, and the less recent key 1 leaves.
    #[test]
    fn the_smallest_product_leaves() {
        assert!(!after_three_events(FineMoeConfig::default()).contains(0));
        assert!(!after_three_events(FineMoeConfig { truncate: true }).contains(1));
    }
}
