//! td-table: a learned table of what an expert is worth, by age, frequency and transition chance.
//!
//! Source: this project. The worth is gamma^(visits of its layer until its next use - 1), learned
//! online by temporal difference (R. S. Sutton, "Learning to predict by the methods of temporal
//! differences", Machine Learning 3, 1988): an expert that was not used is worth gamma times what
//! its state of now is worth. Nothing is fitted beforehand. Arithmetic is the same on every
//! machine: exponentials come from `libm`.

mod value_table;

use serde::{Deserialize, Serialize};

use value_table::{OLDEST, ValueTable};

use crate::registry::{Listed, check_discount};
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::structures::transitions::Transitions;
use crate::{Config, Event, Key, Need, Parameter, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "td-table",
    summary: "learns online when each expert is needed next (table)",
    definition: "V[20 ages][14 frequencies][12 transition chances] estimates gamma^(visits of the layer until the next use - 1), starting at 0.6/(1+0.3 A) * 2^((F-13)/4). A = age if <= 6, else min(19, 6 + trunc(2 log2(age/6))), the age in visits of the layer since the use (0 at the next one); F = bucket(s, 14) with s the decayed share of visits that used it, half-life 32; G = bucket(T, 12) with T = mean over a in the layer's latest set of c[a][j]/(n[a]+4); bucket(x, n) = the largest b < n with x >= 0.7 * 2^((b - n + 0.5)/1.5), 0 if there is none. At an event, after T: for each expert of the layer in turn, old cell o, y = 1 if used, else gamma * V[its cell of now]; the count of o rises by 1 and V[o] += max(0.001, 1/(count+1)) * (y - V[o]). Victim: smallest V[cell] * gamma^(off/L), off = its layer - this one (+ L if <= 0); ties to the least recent.",
    source: "hotset; temporal differences: R. S. Sutton, Machine Learning 3, 1988",
    needs: Need::Nothing,
    parameters: &[Parameter {
        name: "gamma",
        default: "0.85",
        meaning: "discount of a visit without use; above 0, below 1",
    }],
};

/// Parameters of [`TdTable`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TdTableConfig {
    /// Discount of a visit without use.
    pub gamma: f64,
}

impl Default for TdTableConfig {
    fn default() -> Self {
        Self { gamma: 0.85 }
    }
}

impl Config for TdTableConfig {
    fn check(&self) -> Result<(), String> {
        check_discount(self.gamma)
    }
}

/// What is kept of each expert, resident or not.
#[derive(Debug, Clone, Copy, Default)]
struct Expert {
    /// Share of the layer's visits that used it, as of the last use.
    share: f64,
    /// Visits of its layer up to and with the last use.
    last: u32,
    /// Its cell at the layer's next visit.
    cell: u32,
    /// Number of the last touch.
    tick: u64,
}

/// Temporal-difference learning on a table.
#[derive(Debug, Clone)]
pub struct TdTableRanking {
    table: ValueTable,
    transitions: Transitions,
    experts: Vec<Expert>,
    layers: Vec<u32>,
    /// Visits of each layer.
    visits: Vec<u32>,
    /// gamma^(d/L), by distance d in layers.
    discounts: Vec<f64>,
    gamma: f64,
    layer: u32,
    tick: u64,
}

/// Evicts the lowest worth in the learned table.
pub type TdTable = Ranked<TdTableRanking>;

impl TdTable {
    /// An empty pool that has learned nothing.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &TdTableConfig) -> Self {
        let layers = f64::from(pool.layers());
        let ranking = TdTableRanking {
            table: ValueTable::new(),
            transitions: Transitions::new(pool),
            experts: vec![Expert::default(); pool.keys as usize],
            layers: pool.layer_of_keys(),
            visits: vec![0; pool.layers() as usize],
            discounts: (0..=pool.layers())
                .map(|off| libm::pow(config.gamma, f64::from(off) / layers))
                .collect(),
            gamma: config.gamma,
            layer: 0,
            tick: 0,
        };
        Self::over(pool.keys, pool.capacity, ranking)
    }
}

impl TdTableRanking {
    #[inline(always)]
    fn touch(&mut self, key: Key) {
        self.tick += 1;
        self.experts[key as usize].tick = self.tick;
    }

    #[inline(always)]
    fn worth(&self, key: Key) -> f64 {
        let (layer, layers) = (self.layers[key as usize], self.visits.len() as u32);
        let off = if layer > self.layer { layer - self.layer } else { layer + layers - self.layer };
        let value = self.table.values[self.experts[key as usize].cell as usize];
        f64::from(value) * self.discounts[off as usize]
    }
}

impl Listed for TdTable {
    type Config = TdTableConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &TdTableConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &TdTableConfig) -> u64 {
        sum([
            ResidentSet::memory(pool.keys),
            Transitions::memory(pool),
            ValueTable::memory(),
            array::<Expert>(pool.keys),
            array::<u32>(pool.keys),
            array::<u32>(pool.layers()),
            array::<f64>(u64::from(pool.layers()) + 1),
        ])
    }
}

impl Ranking for TdTableRanking {
    type Score = (f64, u64);

    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = false;

    #[inline(always)]
    fn score(&self, key: Key) -> (f64, u64) {
        (self.worth(key), self.experts[key as usize].tick)
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        self.touch(key);
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer;
        self.transitions.visit(event.layer, event.keys);
        let visits = &mut self.visits[event.layer as usize];
        *visits += 1;
        for &key in event.keys {
            // The mark of a member for the pass below: its use is that of this visit.
            let expert = &mut self.experts[key as usize];
            let age = ((*visits - expert.last) as usize).min(OLDEST);
            expert.share = expert.share * self.table.decay[age] + 1.0 - self.table.decay[1];
            expert.last = *visits;
        }
        let keys = self.transitions.keys(event.layer);
        let chances = &self.transitions.chances()[keys.clone()];
        for (expert, &chance) in self.experts[keys].iter_mut().zip(chances) {
            let age = *visits - expert.last;
            let cell = self.table.cell(age, expert.share, chance);
            let target = match age {
                0 => 1.0,
                _ => self.gamma * f64::from(self.table.values[cell as usize]),
            };
            self.table.learn(expert.cell, target);
            expert.cell = cell;
        }
    }

    fn validate(&self) -> Result<(), String> {
        match self.table.values.iter().find(|value| !(0.0..=1.0).contains(*value)) {
            Some(value) => Err(format!("a worth of {value} is learned")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Policy as _};

    /// Keys 0 and 1 in turn, key 2 now and then, two slots: after some rounds the policy knows
    /// that what was just used comes back only after the other, and that 2 seldom does.
    #[test]
    fn an_expert_of_a_short_cycle_outlives_a_rare_one() {
        let mut policy = TdTable::new(&PoolShape::flat(2, 3), &TdTableConfig::default());
        let mut late_misses = 0;
        for step in 0..400u32 {
            let key = if step % 20 == 19 { 2 } else { step % 2 };
            policy.begin_event(&Event { layer: 0, keys: &[key], weights: &[] });
            if policy.contains(key) {
                policy.hit(key);
            } else {
                assert!(policy.admit(key, &mut Anyone));
                late_misses += u32::from(step >= 200);
            }
            assert_eq!(policy.validate(), Ok(()));
        }
        // Ten visits of 2, each of which costs two misses: itself, and whom it displaced.
        assert!(late_misses <= 20, "{late_misses} misses");
    }

    #[test]
    fn ranges_are_checked() {
        assert!("td-table:gamma=1".parse::<crate::PolicySpec>().is_err());
    }
}
