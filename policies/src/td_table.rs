//! td-table: a learned table of what an expert is worth, by age, frequency and transition chance.
//!
//! Source: this project. The worth is gamma^(visits of its layer until its next use - 1), learned
//! online by temporal difference (R. S. Sutton, "Learning to predict by the methods of temporal
//! differences", Machine Learning 3, 1988): an expert that was not used is worth gamma times what
//! its state of now is worth. Nothing is fitted beforehand. Arithmetic is the same on every
//! machine: exponentials come from `libm`.

use serde::{Deserialize, Serialize};

use crate::resident_set::ResidentSet;
use crate::transitions::Transitions;
use crate::{Config, Event, Key, Need, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
pub const INFO: PolicyInfo = PolicyInfo {
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

const AGES: usize = 20;
const FREQUENCIES: usize = 14;
const CHANCES: usize = 12;
/// Visits after which a use counts half.
const HALF_LIFE: f64 = 32.0;
/// Ages that differ in anything: the age bucket is the last from 544 on, and 2^(-a/32) is below
/// what a bucket tells apart from 960 on.
const OLDEST: usize = 1023;

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
        check_gamma(self.gamma)
    }
}

/// Checks the range of a discount.
pub(crate) fn check_gamma(gamma: f64) -> Result<(), String> {
    if gamma > 0.0 && gamma < 1.0 {
        return Ok(());
    }
    Err(format!("gamma is {gamma}, but must be above 0 and below 1"))
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

/// The learned part, which knows nothing of slots.
#[derive(Debug, Clone)]
struct Table {
    values: Vec<f32>,
    counts: Vec<u32>,
    ages: Vec<u32>,
    decay: Vec<f64>,
    frequency_floors: [f64; FREQUENCIES],
    chance_floors: [f64; CHANCES],
}

impl Table {
    fn new() -> Self {
        let start = |cell: usize| {
            let (age, frequency) = (cell / (FREQUENCIES * CHANCES), cell / CHANCES % FREQUENCIES);
            0.6 / (1.0 + 0.3 * age as f64) * libm::exp2((frequency as f64 - 13.0) / 4.0)
        };
        let of_age = |age: usize| match age {
            0..=6 => age as u32,
            _ => (6 + (2.0 * libm::log2(age as f64 / 6.0)) as u32).min(AGES as u32 - 1),
        };
        Self {
            values: (0..AGES * FREQUENCIES * CHANCES).map(|cell| start(cell) as f32).collect(),
            counts: vec![0; AGES * FREQUENCIES * CHANCES],
            ages: (0..=OLDEST).map(of_age).collect(),
            decay: (0..=OLDEST).map(|age| libm::exp2(-(age as f64) / HALF_LIFE)).collect(),
            frequency_floors: floors(),
            chance_floors: floors(),
        }
    }

    #[inline(always)]
    fn cell(&self, age: u32, share: f64, chance: f64) -> u32 {
        let age = (age as usize).min(OLDEST);
        let frequency = bucket(&self.frequency_floors, share * self.decay[age]);
        (self.ages[age] * FREQUENCIES as u32 + frequency) * CHANCES as u32
            + bucket(&self.chance_floors, chance)
    }

    #[inline(always)]
    fn learn(&mut self, cell: u32, target: f64) {
        let count = &mut self.counts[cell as usize];
        *count = count.saturating_add(1);
        let rate = (1.0 / (f64::from(*count) + 1.0)).max(0.001);
        let value = &mut self.values[cell as usize];
        *value = (f64::from(*value) + rate * (target - f64::from(*value))) as f32;
    }
}

/// Where each bucket begins; the first takes everything below the second.
fn floors<const N: usize>() -> [f64; N] {
    std::array::from_fn(|bucket| match bucket {
        0 => f64::NEG_INFINITY,
        _ => 0.7 * libm::exp2((bucket as f64 - N as f64 + 0.5) / 1.5),
    })
}

#[inline(always)]
fn bucket<const N: usize>(floors: &[f64; N], value: f64) -> u32 {
    floors.iter().map(|&floor| u32::from(value >= floor)).sum::<u32>() - 1
}

/// Temporal-difference learning on a table.
#[derive(Debug, Clone)]
pub struct TdTable {
    residents: ResidentSet,
    table: Table,
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
    capacity: u32,
}

impl TdTable {
    pub(crate) fn configured(pool: &PoolShape, config: &TdTableConfig) -> Self {
        Self::new(pool, config)
    }

    /// An empty pool that has learned nothing.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &TdTableConfig) -> Self {
        let layers = f64::from(pool.layers());
        Self {
            residents: ResidentSet::new(pool.keys),
            table: Table::new(),
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
            capacity: pool.capacity,
        }
    }

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

impl Policy for TdTable {
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
        self.touch(key);
        self.residents.insert(key);
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let score = |key: Key| (self.worth(key), self.experts[key as usize].tick);
        let Some(victim) = self.residents.least(score, |key| room.may_evict(key)) else {
            return false;
        };
        self.residents.remove(victim);
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.residents.remove(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
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
            None => self.residents.validate(self.capacity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn buckets_begin_where_the_logarithm_says() {
        let table = Table::new();
        // Solved for b: 13.5 + 1.5 log2(x / 0.7), which is 12 for 0.35, above 13 for 0.9 and
        // below 0 for 0.7 / 1024.
        assert_eq!(bucket(&table.frequency_floors, 0.35), 12);
        assert_eq!(bucket(&table.frequency_floors, 0.349), 11);
        assert_eq!(bucket(&table.frequency_floors, 0.9), 13);
        assert_eq!(bucket(&table.frequency_floors, 0.7 / 1024.0), 0);
        assert_eq!(bucket(&table.chance_floors, 0.0), 0);
        assert_eq!([0, 6, 7, 9, 12, 543, 1023].map(|age| table.ages[age]), [0, 6, 6, 7, 8, 18, 19]);
    }

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
