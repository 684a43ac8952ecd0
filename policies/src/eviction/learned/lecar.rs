//! LeCaR: draws LRU or LFU for each eviction, with weights that learn from regretted evictions.
//!
//! Source: G. Vietri and others, "Driving cache replacement with ML-based LeCaR", HotStorage 2018;
//! one history of as many keys as there are slots for both experts, as libCacheSim has it.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::registry::share;
use crate::structures::memory::{array, sum};
use crate::structures::queues::Queues;
use crate::{Config, Key, Lfu, Need, NoConfig, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "lecar",
    summary: "draws LRU or LFU, with weights learnt from regret",
    definition: "With probability w the victim is the least recent key, else the one with the fewest uses since it came in (of equals, the one that reached that count first). The last victims, as many as there are slots, are remembered, with the rule that chose them. A miss on one that left t accesses ago multiplies that rule's weight by exp(-rate x decay^(t / slots)), 1e-10 is added to both weights, and they are scaled to sum to 1. w starts at 1/2.",
    source: "G. Vietri and others, LeCaR, HotStorage 2018; libCacheSim's LeCaR",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "seed", default: "1", meaning: "seed of the draws, any u64" },
        Parameter { name: "rate", default: "0.45", meaning: "learning rate, 0 to 10" },
        Parameter {
            name: "decay",
            default: "0.005",
            meaning: "what a regret weighs after as many accesses as slots, 1e-9 to 1",
        },
    ],
};

/// Parameters of [`LeCar`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeCarConfig {
    /// Seed of the draws.
    pub seed: u64,
    /// Learning rate, 0 to 10.
    pub rate: f64,
    /// What a regret weighs after as many accesses as there are slots, 1e-9 to 1.
    pub decay: f64,
}

impl Default for LeCarConfig {
    fn default() -> Self {
        Self { seed: 1, rate: 0.45, decay: 0.005 }
    }
}

impl Config for LeCarConfig {
    fn check(&self) -> Result<(), String> {
        share("rate", self.rate, 0.0..=10.0)?;
        share("decay", self.decay, 1e-9..=1.0)
    }
}

/// Residents by last use, and the keys that either rule evicted, latest first.
const RESIDENT: u8 = 0;
const HISTORY: u8 = 1;
/// Keeps weights above zero.
const LEAST: f64 = 1e-10;

/// Learning cache replacement.
#[derive(Debug, Clone)]
pub struct LeCar {
    queues: Queues<2>,
    uses: Lfu,
    /// When a key in the history left, and whether LRU had chosen it.
    left: Vec<(u64, bool)>,
    /// LRU's weight; LFU has the rest of 1.
    weight: f64,
    now: u64,
    rng: Pcg64Mcg,
    config: LeCarConfig,
    /// The loss at each age in accesses, for the capacity that the pool was built with.
    losses: Vec<f64>,
    losses_of: u32,
}

/// Most ages whose losses are computed beforehand, and how many they are for each slot: by then
/// the default decay has made the loss 1.
const MOST_LOSSES: u32 = 1 << 16;
const LOSSES_A_SLOT: u32 = 8;

/// Ages whose losses are computed beforehand in a pool of so many slots.
fn tabled_losses(capacity: u32) -> u32 {
    capacity.saturating_mul(LOSSES_A_SLOT).min(MOST_LOSSES)
}

/// What a rule's weight is multiplied by when a key returns that it evicted `age` accesses ago.
fn loss(config: &LeCarConfig, age: u64, capacity: u32) -> f64 {
    let age = age as f64 / f64::from(capacity);
    libm::exp(-config.rate * libm::pow(config.decay, age))
}

impl LeCar {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &LeCarConfig) -> Self {
        Self {
            queues: Queues::new(pool.keys),
            uses: Lfu::new(pool),
            left: vec![(0, false); pool.keys as usize],
            weight: 0.5,
            now: 0,
            rng: Pcg64Mcg::seed_from_u64(config.seed),
            config: *config,
            losses: (0..tabled_losses(pool.capacity))
                .map(|age| loss(config, u64::from(age), pool.capacity))
                .collect(),
            losses_of: pool.capacity,
        }
    }

    /// Takes weight from the rule that evicted `key`.
    fn regret(&mut self, key: Key) {
        let (at, by_lru) = self.left[key as usize];
        let age = self.now - at;
        let loss = match self.losses.get(age as usize) {
            Some(&loss) if self.uses.slots.capacity == self.losses_of => loss,
            _ => loss(&self.config, age, self.uses.slots.capacity),
        };
        let (mut lru, mut lfu) = (self.weight, 1.0 - self.weight);
        if by_lru {
            lru *= loss;
        } else {
            lfu *= loss;
        }
        self.weight = (lru + LEAST) / (lru + lfu + 2.0 * LEAST);
    }

    #[inline(always)]
    fn draw(&mut self) -> bool {
        f64::from(self.rng.next_u32()) < self.weight * f64::from(u32::MAX)
    }
}

impl Listed for LeCar {
    type Config = LeCarConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &LeCarConfig) -> Self {
        LeCar::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &LeCarConfig) -> u64 {
        sum([
            Queues::<2>::memory(pool.keys),
            <Lfu as Listed>::memory(pool, &NoConfig {}),
            array::<(u64, bool)>(pool.keys),
            array::<f64>(tabled_losses(pool.capacity)),
        ])
    }
}

impl Policy for LeCar {
    counted_in!(uses.slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) == RESIDENT
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.now += 1;
        self.queues.refresh(RESIDENT, key);
        self.uses.hit(key);
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        let full = self.uses.slots.is_full();
        let may_leave = |key| room.may_evict(key);
        if full && self.queues.find_from_back(RESIDENT, may_leave).is_none() {
            return false;
        }
        self.now += 1;
        if self.queues.of(key) == HISTORY {
            self.regret(key);
            self.queues.unlink(key);
        }
        !full || self.evict_one(room)
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.queues.push_front(RESIDENT, key);
        self.uses.enter(key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let oldest = self.queues.find_from_back(RESIDENT, &may_leave)?;
        let by_lru = self.draw();
        let victim = if by_lru { oldest } else { self.uses.victim(&may_leave).unwrap_or(oldest) };
        self.uses.discard(victim);
        self.left[victim as usize] = (self.now, by_lru);
        self.queues.transfer(RESIDENT, HISTORY, victim);
        self.queues.trim_back(HISTORY, self.uses.slots.capacity);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.uses.discard(key);
        self.queues.unlink(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.uses.slots.capacity = capacity;
        while self.queues.len(HISTORY) > capacity {
            self.queues.trim_back(HISTORY, capacity);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        self.uses.validate()?;
        let (resident, history) = (self.queues.len(RESIDENT), self.queues.len(HISTORY));
        let agree = self.queues.iter(RESIDENT).all(|key| self.uses.contains(key));
        let weighed = (0.0..=1.0).contains(&self.weight);
        if !agree || !weighed {
            return Err(format!("{resident} resident, {history} in the history"));
        }
        self.uses.slots.agree_with(resident)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn a_regretted_eviction_costs_its_rule_weight() {
        let mut lecar = LeCar::configured(&PoolShape::flat(2, 9), &LeCarConfig::default());
        lecar.weight = 1.0; // LRU decides
        for key in [0, 1, 2] {
            assert!(lecar.admit(key, &mut Anyone)); // 0 leaves at access 3
        }
        lecar.weight = 0.5;
        assert!(lecar.admit(0, &mut Anyone));
        // One access later, half a cache: 0.005^(1/2) = 0.0707; exp(-0.45 x 0.0707) = 0.96868.
        assert!((lecar.weight - 0.96868 / 1.96868).abs() < 1e-5, "{}", lecar.weight);
        assert_eq!(lecar.validate(), Ok(()));
    }
}
