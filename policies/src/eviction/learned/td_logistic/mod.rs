//! td-logistic: a logistic model, learned online, of when an expert is needed next.
//!
//! Source: this project. Like td-table it estimates, by temporal difference, the discount gamma to
//! the power of the visits of an expert's layer before its next use, but with eight weights shared
//! by all layers on four decayed use shares, the age and the transition chance. On recorded traces
//! it closes 30 to 50% of the gap between LRU and Belady. Arithmetic is the same on every machine:
//! `libm`, and sums in a fixed order.
//!
//! An expert's features at its layer's next visit are known as soon as the present visit is over,
//! so they are computed once a visit and kept.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::registry::{Listed, check_discount};
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::structures::transitions::Transitions;
use crate::{Config, Event, Key, Need, Parameter, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "td-logistic",
    summary: "learns online when each expert is needed next (logistic)",
    definition: "sigma(w.f) estimates gamma^(visits of the layer until the next use - 1). Features at age a (visits since the last use, 0 at the next; at most 4096): 1; 0.25 ln(s_j 2^(-a/H_j) + 0.003) + 1 for H = 1.5, 6, 32, 256 (s_j: decayed share of visits that used it); 0.3 ln(1+a) - 0.5; [a = 0]; tau = 0.25 ln(T + 0.003) + 1, 0 at first, T as in td-table. w starts at (-2, 1, 1, 1, 1, 0, 0, 0). At an event, for each expert of the layer: p = sigma of its features before; T and tau anew; y = 1 if used, else gamma * sigma of its features now, w as before; w += rate / (1 + 1e-5 * events before) * sum (y - p) f_before; used ones: s_j = s_j 2^(-visits since/H_j) + 1 - 2^(-1/H_j), age 0. V = ln(sigma + 1e-9) with the new w. Victim: smallest V + ln(gamma) * off/L, off = its layer - this one (+ L if <= 0); ties to the least recent.",
    source: "hotset; temporal differences: R. S. Sutton, Machine Learning 3, 1988",
    needs: Need::Nothing,
    parameters: &[
        Parameter {
            name: "gamma",
            default: "0.8",
            meaning: "discount of a visit without use; above 0, below 1",
        },
        Parameter {
            name: "rate",
            default: "0.01",
            meaning: "learning rate at the start; above 0, at most 1",
        },
    ],
};

const FEATURES: usize = 8;
/// Visits after which a use counts half, for each decayed share.
const HALF_LIVES: [f64; 4] = [1.5, 6.0, 32.0, 256.0];
const OLDEST: usize = 4096;

/// Parameters of [`TdLogistic`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TdLogisticConfig {
    /// Discount of a visit without use.
    pub gamma: f64,
    /// Learning rate at the start.
    pub rate: f64,
}

impl Default for TdLogisticConfig {
    fn default() -> Self {
        Self { gamma: 0.8, rate: 0.01 }
    }
}

impl Config for TdLogisticConfig {
    fn check(&self) -> Result<(), String> {
        check_discount(self.gamma)?;
        if self.rate > 0.0 && self.rate <= 1.0 {
            return Ok(());
        }
        Err(format!("rate is {}, but must be above 0 and at most 1", self.rate))
    }
}

type Vector = [f64; FEATURES];

/// What is kept of each expert, resident or not.
#[derive(Debug, Clone, Copy, Default)]
struct Expert {
    /// Features at the layer's next visit.
    features: Vector,
    /// Decayed shares of the layer's visits, as of the last use.
    shares: [f64; 4],
    /// w.f as of the layer's latest visit.
    logit: f64,
    /// ln(sigma(logit) + 1e-9), or not a number where nobody has asked yet.
    value: f64,
    /// Number of the last touch.
    tick: u64,
    /// Visits of its layer up to and with the last use.
    last: u32,
}

/// Temporal-difference learning of a logistic model.
#[derive(Debug, Clone)]
pub struct TdLogisticRanking {
    transitions: Transitions,
    /// Transition chances of the present layer's experts.
    chances: Vec<f64>,
    experts: Vec<Expert>,
    weights: Vector,
    layers: Vec<u32>,
    /// Visits of each layer.
    visits: Vec<u32>,
    /// ln(gamma) * d/L, by distance d in layers.
    discounts: Vec<f64>,
    ages: Vec<Age>,
    config: TdLogisticConfig,
    /// Events before the present one.
    events: u64,
    layer: u32,
    tick: u64,
}

/// What depends on an age alone.
#[derive(Debug, Clone, Copy)]
struct Age {
    /// 2^(-age/H) for each half-life.
    decay: [f64; 4],
    /// 0.3 ln(1 + age) - 0.5.
    feature: f64,
}

/// Evicts the lowest worth under the learned logistic model.
pub type TdLogistic = Ranked<TdLogisticRanking>;

impl TdLogistic {
    /// An empty pool that has learned nothing.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &TdLogisticConfig) -> Self {
        let layers = f64::from(pool.layers());
        let ages: Vec<Age> = (0..=OLDEST as u32)
            .map(|age| Age {
                decay: HALF_LIVES.map(|half_life| libm::exp2(-f64::from(age) / half_life)),
                feature: 0.3 * libm::log(1.0 + f64::from(age)) - 0.5,
            })
            .collect();
        let new = Expert { features: features(&ages[0], 0, &[0.0; 4], 0.0), ..Expert::default() };
        let ranking = TdLogisticRanking {
            transitions: Transitions::new(pool),
            chances: vec![0.0; pool.widest_layer() as usize],
            experts: vec![new; pool.keys as usize],
            weights: [-2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
            layers: pool.layer_of_keys(),
            visits: vec![0; pool.layers() as usize],
            discounts: (0..=pool.layers())
                .map(|off| libm::log(config.gamma) * f64::from(off) / layers)
                .collect(),
            ages,
            config: *config,
            events: 0,
            layer: 0,
            tick: 0,
        };
        Self::over(pool.keys, pool.capacity, ranking)
    }
}

impl TdLogisticRanking {
    #[inline(always)]
    fn touch(&mut self, key: Key) {
        self.tick += 1;
        self.experts[key as usize].tick = self.tick;
    }

    #[inline(always)]
    fn worth(&self, key: Key) -> f64 {
        let (layer, layers) = (self.layers[key as usize], self.visits.len() as u32);
        let off = if layer > self.layer { layer - self.layer } else { layer + layers - self.layer };
        self.experts[key as usize].value + self.discounts[off as usize]
    }
}

#[inline(always)]
fn sigma(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}

#[inline(always)]
fn dot(weights: &Vector, features: &Vector) -> f64 {
    weights.iter().zip(features).fold(0.0, |sum, (weight, feature)| sum + weight * feature)
}

#[inline(always)]
fn features(of_age: &Age, age: u32, shares: &[f64; 4], tau: f64) -> Vector {
    let share = |j: usize| 0.25 * libm::log(shares[j] * of_age.decay[j] + 0.003) + 1.0;
    let unused = if age == 0 { 1.0 } else { 0.0 };
    [1.0, share(0), share(1), share(2), share(3), of_age.feature, unused, tau]
}

impl Listed for TdLogistic {
    type Config = TdLogisticConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &TdLogisticConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &TdLogisticConfig) -> u64 {
        sum([
            ResidentSet::memory(pool.keys),
            Transitions::memory(pool),
            array::<f64>(pool.widest_layer()),
            array::<Expert>(pool.keys),
            array::<u32>(pool.keys),
            array::<u32>(pool.layers()),
            array::<f64>(u64::from(pool.layers()) + 1),
            array::<Age>(OLDEST as u64 + 1),
        ])
    }
}

impl Ranking for TdLogisticRanking {
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

    /// Fills in the values of residents that nobody has asked for since their layer's visit.
    #[inline(always)]
    fn before_search(&mut self, residents: &[Key]) {
        for &key in residents {
            let expert = &mut self.experts[key as usize];
            if expert.value.is_nan() {
                expert.value = libm::log(sigma(expert.logit) + 1e-9);
            }
        }
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer;
        self.transitions.visit(event.layer, event.keys);
        let visits = &mut self.visits[event.layer as usize];
        *visits += 1;
        for &key in event.keys {
            let expert = &mut self.experts[key as usize];
            let decay = &self.ages[((*visits - expert.last) as usize).min(OLDEST)].decay;
            for (j, share) in expert.shares.iter_mut().enumerate() {
                *share = *share * decay[j] + 1.0 - self.ages[1].decay[j];
            }
            expert.last = *visits;
        }
        let keys = self.transitions.keys(event.layer);
        let chances = &mut self.chances[..keys.len()];
        self.transitions.chances(event.layer, chances);
        let experts = &mut self.experts[keys];
        let mut gradient = [0.0; FEATURES];
        for (expert, &mut chance) in experts.iter_mut().zip(chances) {
            let before = std::mem::take(&mut expert.features);
            let age = (*visits - expert.last).min(OLDEST as u32);
            let tau = 0.25 * libm::log(chance + 0.003) + 1.0;
            expert.features = features(&self.ages[age as usize], age, &expert.shares, tau);
            let target = match age {
                0 => 1.0,
                _ => self.config.gamma * sigma(dot(&self.weights, &expert.features)),
            };
            let error = target - sigma(dot(&self.weights, &before));
            for (sum, feature) in gradient.iter_mut().zip(before) {
                *sum += error * feature;
            }
        }
        let rate = self.config.rate / (1.0 + 1e-5 * self.events as f64);
        for (weight, sum) in self.weights.iter_mut().zip(gradient) {
            *weight += rate * sum;
        }
        for expert in experts {
            expert.logit = dot(&self.weights, &expert.features);
            expert.value = f64::NAN;
        }
        self.events += 1;
    }

    fn validate(&self) -> Result<(), String> {
        if self.weights.iter().any(|weight| !weight.is_finite()) {
            return Err(format!("weights {:?}", self.weights));
        }
        Ok(())
    }
}
