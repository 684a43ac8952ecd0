//! FineMoE's eviction: the smallest product of probability and in-cache visits.
//!
//! Source: FineMoE (fMoE). Its probability comes from the expert map that it predicts with; here
//! it is the router's weight at the expert's last event, the only one that a trace has. The code
//! as shipped keeps the product in an integer, which truncates it; `truncate` does the same.

use serde::{Deserialize, Serialize};

use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::structures::weight::in_255ths;
use crate::{Config, Event, Key, Need, Parameter, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
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
pub struct FineMoeRanking {
    uses: Vec<Use>,
    truncate: bool,
    tick: u64,
}

/// Evicts the smallest product of probability and visits.
pub type FineMoe = Ranked<FineMoeRanking>;

impl FineMoe {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &FineMoeConfig) -> Self {
        let ranking = FineMoeRanking {
            uses: vec![Use::default(); pool.keys as usize],
            truncate: config.truncate,
            tick: 0,
        };
        Self::over(pool.keys, pool.capacity, ranking)
    }
}

impl FineMoeRanking {
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

impl Listed for FineMoe {
    type Config = FineMoeConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &FineMoeConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &FineMoeConfig) -> u64 {
        sum([ResidentSet::memory(pool.keys), array::<Use>(pool.keys)])
    }
}

impl Ranking for FineMoeRanking {
    type Score = (f64, u64);

    const OBSERVES: bool = true;

    #[inline(always)]
    fn score(&self, key: Key) -> (f64, u64) {
        (self.uses[key as usize].score, self.uses[key as usize].tick)
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        self.touch(key);
    }

    #[inline(always)]
    fn entered(&mut self, key: Key) {
        self.uses[key as usize].visits = 0;
        self.touch(key);
    }

    fn forget(&mut self, key: Key) {
        self.uses[key as usize] = Use::default();
    }

    #[inline(always)]
    fn begin_event(&mut self, event: &Event<'_>) {
        for (&key, &weight) in event.keys.iter().zip(event.weights) {
            self.uses[key as usize].probability = weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Policy as _};

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
