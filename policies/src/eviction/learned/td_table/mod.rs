//! td-table: a learned table of what an expert is worth, by age, frequency and transition chance.
//!
//! Source: this project. The worth is gamma^(visits of its layer until its next use - 1), learned
//! online by temporal difference (R. S. Sutton, "Learning to predict by the methods of temporal
//! differences", Machine Learning 3, 1988): an expert that was not used is worth gamma times what
//! its state of now is worth. Nothing is fitted beforehand. Arithmetic is the same on every
//! machine: exponentials come from `libm`.
//!
//! Cost: an event moves its layer's experts only: places by age and frequency when they change
//! (`trail`), chances by estimates that are made exact beside an edge, values by a table of rates
//! (`value_table`). A victim is looked for among the few cells that are worth little (`held`).

mod held;
mod trail;
mod value_table;

use serde::{Deserialize, Serialize};

use held::Held;
use trail::{Expert, Trail};
use value_table::{CHANCES, ValueTable};

use crate::occupancy::{Occupancy, counted_in};
use crate::registry::{Listed, check_discount};
use crate::structures::memory::{array, sum};
use crate::structures::transitions::Transitions;
use crate::{Config, Event, Key, Need, Parameter, Policy, PolicyInfo, PoolShape};

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

/// Temporal-difference learning on a table: evicts the lowest learned worth.
#[derive(Debug, Clone)]
pub struct TdTable {
    table: ValueTable,
    transitions: Transitions,
    trail: Trail,
    held: Held,
    slots: Occupancy,
    experts: Vec<Expert>,
    /// By key: the visit of its layer at which it changes its place among ages and frequencies.
    due: Vec<u32>,
    /// By key: the cell of that place without a transition chance.
    firsts: Vec<u16>,
    /// By key: its cell at the layer's next visit.
    cells: Vec<u16>,
    /// By key: number of the last touch.
    ticks: Vec<u64>,
    layers: Vec<u32>,
    /// Visits of each layer.
    visits: Vec<u32>,
    layer: u32,
    tick: u64,
    /// Of the present event: estimated chances, new cells, and places of those in use.
    estimates: Vec<f32>,
    moved: Vec<u16>,
    used: Vec<u32>,
}

impl TdTable {
    /// An empty pool that has learned nothing.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &TdTableConfig) -> Self {
        let (keys, widest) = (pool.keys as usize, pool.widest_layer() as usize);
        Self {
            table: ValueTable::new(config.gamma),
            transitions: Transitions::new(pool),
            trail: Trail::new(),
            held: Held::new(pool, config.gamma),
            slots: Occupancy::new(pool.capacity),
            experts: vec![Expert::NEW; keys],
            due: vec![Expert::NEW_DUE; keys],
            firsts: vec![0; keys],
            cells: vec![0; keys],
            ticks: vec![0; keys],
            layers: pool.layer_of_keys(),
            visits: vec![0; pool.layers() as usize],
            layer: 0,
            tick: 0,
            estimates: vec![0.0; widest],
            moved: vec![0; widest],
            used: Vec::with_capacity(widest),
        }
    }

    #[inline(always)]
    fn touch(&mut self, key: Key) {
        self.tick += 1;
        self.ticks[key as usize] = self.tick;
    }

    /// Moves the layer's experts among ages and frequencies.
    #[inline(always)]
    fn age(&mut self, event: &Event<'_>) {
        let visits = &mut self.visits[event.layer as usize];
        *visits += 1;
        for &key in event.keys {
            let key = key as usize;
            let (place, due) = self.trail.used(&mut self.experts[key], *visits);
            (self.firsts[key], self.due[key]) = (place * CHANCES as u16, due);
        }
        let keys = self.transitions.keys(event.layer);
        let experts = &mut self.experts[keys.clone()];
        let (dues, firsts) = (&mut self.due[keys.clone()], &mut self.firsts[keys]);
        for (chunk, dues) in dues.chunks_mut(8).enumerate() {
            let mut any = 0;
            for due in dues.iter() {
                any |= u32::from(*due == *visits);
            }
            if any == 0 {
                continue;
            }
            for (place, due) in dues.iter_mut().enumerate().filter(|(_, due)| **due == *visits) {
                let expert = chunk * 8 + place;
                let moved = self.trail.moved(&mut experts[expert], *visits);
                (firsts[expert], *due) = (moved.0 * CHANCES as u16, moved.1);
            }
        }
    }

    /// The cells that the layer's experts are in now.
    #[inline(always)]
    fn find_cells(&mut self, layer: u32, set: usize) {
        let keys = self.transitions.keys(layer);
        let (estimates, moved) = (&mut self.estimates[..keys.len()], &mut self.moved[..keys.len()]);
        let exactly = |place| self.transitions.chance(layer, place);
        if ValueTable::estimates_suffice(set) {
            self.transitions.estimates(layer, estimates);
            self.table.cells(&self.firsts[keys], estimates, exactly, moved);
        } else {
            self.table.make_sure(&self.firsts[keys], |_| true, exactly, moved);
        }
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
            Held::memory(pool),
            Transitions::memory(pool),
            ValueTable::memory(),
            Trail::memory(),
            array::<Expert>(pool.keys),
            // Dues, firsts, cells, ticks and layers.
            array::<(u32, u16, u16)>(pool.keys),
            array::<u64>(pool.keys),
            array::<u32>(pool.keys),
            array::<u32>(pool.layers()),
            array::<f32>(pool.widest_layer()),
            array::<u16>(pool.widest_layer()),
            array::<u32>(pool.widest_layer()),
        ])
    }
}

impl Policy for TdTable {
    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = false;

    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.held.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.touch(key);
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.touch(key);
        let layer = self.layers[key as usize] as usize;
        let cell = self.cells[key as usize];
        self.held.insert(layer, key, (cell, self.table.value(cell)));
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let of_keys = (&self.cells[..], &self.ticks[..]);
        let victim = self.held.least(self.layer as usize, of_keys, &self.table, may_leave)?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        self.held.remove(self.layers[key as usize] as usize, key);
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer;
        self.transitions.visit(event.layer, event.keys);
        self.age(event);
        self.find_cells(event.layer, event.keys.len());
        let keys = self.transitions.keys(event.layer);
        self.used.clear();
        self.used.extend(event.keys.iter().map(|&key| key - keys.start as u32));
        self.used.sort_unstable();
        self.held.lift(event.layer as usize);
        let (cells, moved) = (&mut self.cells[keys.clone()], &self.moved[..keys.len()]);
        self.table.learn(cells, moved, &self.used);
        cells.copy_from_slice(moved);
        self.held.lay(event.layer as usize, &self.cells);
    }

    fn validate(&self) -> Result<(), String> {
        self.table.validate()?;
        self.held.validate(&self.cells)?;
        self.slots.agree_with(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

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
