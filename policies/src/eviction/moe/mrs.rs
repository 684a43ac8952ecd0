//! MRS: evicts the expert with the smallest running average of its router weights.
//!
//! Source: HybriMoE's minus recent score, S = a * TopP(s) + (1 - a) * S. Traces hold the weights
//! of the routed experts only, so the others' scores of a visit are taken as 0.

use serde::{Deserialize, Serialize};

use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::structures::weight::in_255ths;
use crate::{Config, Event, Key, Need, Parameter, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "mrs",
    summary: "HybriMoE: smallest running average of router weights",
    definition: "At each visit of a layer, before its hits and victims, S = alpha * weight + (1 - alpha) * S for all its experts, resident or not, with weight 0 where it was not routed. The victim has the smallest S over the pool; ties go to the least recent.",
    source: "HybriMoE, minus recent score",
    needs: Need::Weights,
    parameters: &[Parameter {
        name: "alpha",
        default: "0.5",
        meaning: "weight of the present visit in the average; above 0, at most 1",
    }],
};

/// Parameters of [`Mrs`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MrsConfig {
    /// Weight of the present visit in the average.
    pub alpha: f64,
}

impl Default for MrsConfig {
    fn default() -> Self {
        Self { alpha: 0.5 }
    }
}

impl Config for MrsConfig {
    fn check(&self) -> Result<(), String> {
        if self.alpha > 0.0 && self.alpha <= 1.0 {
            return Ok(());
        }
        Err(format!("alpha is {}, but must be above 0 and at most 1", self.alpha))
    }
}

/// Running averages of router weights.
#[derive(Debug, Clone)]
pub struct MrsRanking {
    /// S of each key, in 255ths.
    scores: Vec<f64>,
    /// Number of each key's last use.
    ticks: Vec<u64>,
    tick: u64,
    layer_bases: Vec<Key>,
    alpha: f64,
}

/// Evicts the smallest running average.
pub type Mrs = Ranked<MrsRanking>;

impl Mrs {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &MrsConfig) -> Self {
        let mut layer_bases = pool.layer_bases.clone();
        layer_bases.push(pool.keys);
        let ranking = MrsRanking {
            scores: vec![0.0; pool.keys as usize],
            ticks: vec![0; pool.keys as usize],
            tick: 0,
            layer_bases,
            alpha: config.alpha,
        };
        Self::over(pool.keys, pool.capacity, ranking)
    }
}

impl MrsRanking {
    #[inline(always)]
    fn touch(&mut self, key: Key) {
        self.tick += 1;
        self.ticks[key as usize] = self.tick;
    }
}

impl Listed for Mrs {
    type Config = MrsConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &MrsConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &MrsConfig) -> u64 {
        sum([
            ResidentSet::memory(pool.keys),
            array::<[u64; 2]>(pool.keys),
            array::<Key>(u64::from(pool.layers()) + 1),
        ])
    }
}

impl Ranking for MrsRanking {
    type Score = (f64, u64);

    const OBSERVES: bool = true;

    #[inline(always)]
    fn score(&self, key: Key) -> (f64, u64) {
        (self.scores[key as usize], self.ticks[key as usize])
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        self.touch(key);
    }

    fn forget(&mut self, key: Key) {
        self.scores[key as usize] = 0.0;
    }

    #[inline(always)]
    fn begin_event(&mut self, event: &Event<'_>) {
        let layer = event.layer as usize;
        let (base, end) = (self.layer_bases[layer] as usize, self.layer_bases[layer + 1] as usize);
        for score in &mut self.scores[base..end] {
            *score *= 1.0 - self.alpha;
        }
        for (&key, &weight) in event.keys.iter().zip(event.weights) {
            self.scores[key as usize] += self.alpha * in_255ths(weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Policy as _};

    /// One layer, two slots. Event {0: 0.75, 1: 0.25} gives S = 0.375, 0.125. Event {2: 0.5}
    /// halves them to 0.1875 and 0.0625 before its victim is chosen: 1 leaves.
    #[test]
    fn the_smallest_average_leaves() {
        let mut mrs = Mrs::new(&PoolShape::flat(2, 4), &MrsConfig::default());
        mrs.begin_event(&Event { layer: 0, keys: &[1, 0], weights: &[0.25, 0.75] });
        assert!(mrs.admit(0, &mut Anyone) && mrs.admit(1, &mut Anyone));
        mrs.begin_event(&Event { layer: 0, keys: &[2], weights: &[0.5] });
        assert_eq!(mrs.ranking.scores, [0.1875, 0.0625, 0.25, 0.0].map(|score| 255.0 * score));
        assert!(mrs.admit(2, &mut Anyone));
        assert!(mrs.contains(0) && !mrs.contains(1));
        assert_eq!(mrs.validate(), Ok(()));
    }

    #[test]
    fn ranges_are_checked() {
        assert!("mrs:alpha=0".parse::<crate::PolicySpec>().is_err());
    }
}
