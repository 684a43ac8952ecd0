//! td-pairs: a logistic model, learned online, of when an expert is needed next, from its decayed
//! uses and a weight for every pair of experts that follow one another.
//!
//! Source: this project. As td-logistic it estimates the discount gamma to the power of the visits
//! of an expert's layer before its next use, by temporal difference; but each expert of the
//! layer's present set, and of the event before it, adds a learned weight of its own to each
//! expert's logit, where td-table and td-logistic average counts. Values move only at the layer's
//! visits, so each layer remembers its least worth resident, and a shadow LRU of the same size sees
//! to it that what is learned never costs much more than LRU.
//!
//! Cost: array operations over the layer's experts, eight at a time, and two rows of 16-bit
//! weights for each expert in use. Memory: at most 128 KiB of weights a layer: the rows of
//! layers of more than 128 experts are shared (`Pairs`). Arithmetic is the same on every machine:
//! additions, multiplications and divisions of 32-bit floats in a fixed order, and integers.

mod block;
mod guard;
mod model;
mod pairs;
mod part;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::occupancy::{Occupancy, counted_in};
use crate::registry::{Listed, share};
use crate::structures::memory::{array, sum};
use crate::{Config, Event, Key, Need, Parameter, Policy, PolicyInfo, PoolShape, Room};
use guard::Guard;
use model::Model;
pub use part::AblatedPart;

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "td-pairs",
    summary: "learns online when each expert is needed next (pairs)",
    definition: "p = sigma(z) estimates G^(visits of the layer until the next use - 1), G = gamma + widen * slots/experts. z = w.f + c * (sum of P[a][i] over a in the layer's present set + sum of X[b][i] over b in the event before this one, none in a pool of one layer), the first 32 of either set, c = min(1, 16 / their number). f = (1, 0.25 ln(s_j) + 1 for half-lives of 6 and 32 visits), s_j the decayed share of visits that used it, 0.003 more. w starts at (-1.7, 0.75, 2), p at 0.02, pairs at 0. At an event, for each expert i of the layer: f and z anew, p' = sigma(z), y = 1 if used, else G p', e = y - p; w += 0.003 max(0.1, 1/(1 + events/100000)) * sum of e f as it was; P[a][i], X[b][i] of the layer's visit before += 0.1 c max(0.1, 1/(1 + visits/1000)) e; p = p'. Pairs are 16-bit numbers of 1/2048, steps rounded with a dither, row a is a mod min(experts, 2^15/experts); logarithms are straight between powers of two. Victim: smallest log2(p) + log2(G) off/L, off = its layer - this one (+ L if <= 0), none of this event; but what LRU would hold and the policy does not stays within what it missed less than LRU (at most the slots) and one of 128 of LRU's misses: else the smallest of the 16 least recent that LRU does not hold and of the one that LRU lets go.",
    source: "hotset; temporal differences: R. S. Sutton, Machine Learning 3, 1988",
    needs: Need::Nothing,
    parameters: &[
        Parameter {
            name: "gamma",
            default: "0.75",
            meaning: "discount of a visit without use in an empty pool; 0.01 to 0.98",
        },
        Parameter {
            name: "widen",
            default: "0.2",
            meaning: "added to gamma for a pool of all experts; 0 to 0.98, with gamma at most 0.99",
        },
        Parameter {
            name: "guard",
            default: "true",
            meaning: "whether a shadow LRU bounds what learning may cost",
        },
        Parameter {
            name: "without",
            default: "nothing",
            meaning: "what an ablation leaves out: own, before, pairs (both), fast or slow",
        },
    ],
};

/// Parameters of [`TdPairs`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TdPairsConfig {
    /// Discount of a visit without use in an empty pool.
    pub gamma: f64,
    /// Added to it in proportion to the share of the experts that have a slot.
    pub widen: f64,
    /// Whether a shadow LRU bounds what learning may cost.
    pub guard: bool,
    /// What an ablation leaves out.
    pub without: AblatedPart,
}

impl Default for TdPairsConfig {
    fn default() -> Self {
        Self { gamma: 0.75, widen: 0.2, guard: true, without: AblatedPart::Nothing }
    }
}

impl Config for TdPairsConfig {
    fn check(&self) -> Result<(), String> {
        share("gamma", self.gamma, 0.01..=0.98)?;
        share("widen", self.widen, 0.0..=0.98)?;
        share("gamma + widen", self.gamma + self.widen, 0.01..=0.99)
    }
}

/// Temporal-difference learning with a weight for each pair of experts.
#[derive(Debug, Clone)]
pub struct TdPairs {
    model: Model,
    guard: Option<Guard>,
    slots: Occupancy,
    /// log2(G) * d/L, by distance d in layers.
    discounts: Vec<f32>,
    config: TdPairsConfig,
    layer: u32,
    keys: u32,
    /// Who a victim is looked for.
    incoming: Option<Key>,
}

impl TdPairs {
    /// An empty pool that has learned nothing.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &TdPairsConfig) -> Self {
        let mut policy = Self {
            model: Model::new(pool, config.without),
            guard: config.guard.then(|| Guard::new(pool.keys, pool.capacity)),
            slots: Occupancy::new(pool.capacity),
            discounts: vec![0.0; pool.layers() as usize + 1],
            config: *config,
            layer: 0,
            keys: pool.keys,
            incoming: None,
        };
        policy.set_horizon();
        policy
    }

    /// How far ahead it looks: the further, the more slots there are.
    fn set_horizon(&mut self) {
        let filled = f64::from(self.slots.capacity) / f64::from(self.keys.max(1));
        let gamma = self.config.gamma + self.config.widen * filled.min(1.0);
        self.model.set_gamma(gamma as f32);
        let layers = (self.discounts.len() - 1).max(1) as f64;
        for (off, discount) in self.discounts.iter_mut().enumerate() {
            *discount = (libm::log2(gamma) * off as f64 / layers) as f32;
        }
    }

    /// The resident that may leave with the least worth, discounted to its layer's next visit.
    #[inline(always)]
    fn least_worth(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        match self.least_layer(|layer| self.model.least_worth(layer)) {
            Some(layer) if may_leave(self.model.least_key(layer)) => {
                Some(self.model.least_key(layer))
            }
            _ => self.least_allowed(may_leave),
        }
    }

    /// What a key is worth, discounted to its layer's next visit.
    fn worth(&self, key: Key) -> f32 {
        let (layer, worth) = self.model.worth(key);
        let layers = self.discounts.len() - 1;
        let ahead = if layer > self.layer as usize { 0 } else { layers };
        worth + self.discounts[layer + ahead - self.layer as usize]
    }

    /// The same where that one may not leave, or nobody but experts in use is there.
    #[cold]
    fn least_allowed(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let least = |layer| self.model.least_of(layer, &may_leave);
        let layer =
            self.least_layer(|layer| least(layer).map_or(f32::INFINITY, |(worth, _)| worth));
        layer.and_then(least).map(|(_, key)| key)
    }

    /// The layer with the lowest discounted `worth`; `None` where all are infinite.
    #[inline(always)]
    fn least_layer(&self, worth: impl Fn(usize) -> f32) -> Option<usize> {
        let (layers, next) = (self.discounts.len() - 1, self.layer as usize + 1);
        let mut best = (f32::INFINITY, None);
        // From the next layer around to this one, each a further layer away.
        let ahead = (next..layers).zip(&self.discounts[1..]);
        let behind = (0..next).zip(&self.discounts[1 + layers - next..]);
        for (layer, discount) in ahead.chain(behind) {
            let worth = worth(layer) + discount;
            best = if worth < best.0 { (worth, Some(layer)) } else { best };
        }
        best.1
    }
}

impl Listed for TdPairs {
    type Config = TdPairsConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &TdPairsConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, config: &TdPairsConfig) -> u64 {
        sum([
            Model::memory(pool),
            array::<f32>(u64::from(pool.layers()) + 1),
            if config.guard { Guard::memory(pool.keys) } else { 0 },
        ])
    }
}

impl Policy for TdPairs {
    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = false;

    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.model.holds(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        if let Some(guard) = &mut self.guard {
            guard.hit(key);
        }
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        self.incoming = Some(key);
        let free = self.free_a_slot(room);
        self.incoming = None;
        free
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        if let Some(guard) = &mut self.guard {
            guard.miss(key);
        }
        self.model.hold(key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let least = self.least_worth(&may_leave)?;
        let victim = match &self.guard {
            Some(guard) if !guard.may_spare(least, self.incoming) => {
                let spared = guard.spared(self.incoming).filter(|&key| may_leave(key));
                let worth = |&a: &Key, &b: &Key| self.worth(a).total_cmp(&self.worth(b));
                spared.min_by(worth).or_else(|| guard.least_recent(&may_leave)).unwrap_or(least)
            }
            _ => least,
        };
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        if let Some(guard) = &mut self.guard {
            guard.left(key);
        }
        self.model.let_go(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        if let Some(guard) = &mut self.guard {
            guard.set_capacity(capacity);
        }
        self.set_horizon();
    }

    #[inline(always)]
    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer;
        self.model.visit(event.layer, event.keys);
    }

    fn validate(&self) -> Result<(), String> {
        let residents = (0..self.keys).filter(|&key| self.model.holds(key)).count();
        self.slots.agree_with(residents as u32)?;
        self.model.validate()?;
        self.guard.as_ref().map_or(Ok(()), Guard::validate)
    }
}
