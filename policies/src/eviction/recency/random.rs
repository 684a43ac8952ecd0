//! Random: evicts any resident, each with the same chance; the floor that a policy has to beat.
//!
//! The stream is PCG-64-MCG from the seed, so a run can be repeated. Every pool draws from a
//! stream of its own with the same seed. Of keys that may not leave, the draw is repeated among
//! the others.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "random",
    summary: "evicts any expert, each with the same chance",
    definition: "The victim is drawn uniformly from the residents that may leave.",
    source: "folklore; a floor for comparisons",
    needs: Need::Nothing,
    parameters: &[Parameter { name: "seed", default: "1", meaning: "seed of the draws, any u64" }],
};

/// Parameters of [`Random`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomConfig {
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for RandomConfig {
    fn default() -> Self {
        Self { seed: 1 }
    }
}

impl Config for RandomConfig {}

const ABSENT: u32 = u32::MAX;

/// Uniformly random eviction.
#[derive(Debug, Clone)]
pub struct Random {
    residents: Vec<Key>,
    /// Index of each key in `residents`, or `ABSENT`.
    place: Vec<u32>,
    rng: Pcg64Mcg,
    slots: Occupancy,
}

impl Random {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &RandomConfig) -> Self {
        Self {
            residents: Vec::with_capacity(pool.keys as usize),
            place: vec![ABSENT; pool.keys as usize],
            rng: Pcg64Mcg::seed_from_u64(config.seed),
            slots: Occupancy::new(pool.capacity),
        }
    }

    #[inline(always)]
    fn swap(&mut self, a: usize, b: usize) {
        self.residents.swap(a, b);
        self.place[self.residents[a] as usize] = a as u32;
        self.place[self.residents[b] as usize] = b as u32;
    }
}

impl Listed for Random {
    type Config = RandomConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &RandomConfig) -> Self {
        Random::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &RandomConfig) -> u64 {
        sum([array::<Key>(pool.keys), array::<u32>(pool.keys)])
    }
}

impl Policy for Random {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.place[key as usize] != ABSENT
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.place[key as usize] = self.len();
        self.residents.push(key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        // Whoever may not leave goes behind the part that is still drawn from.
        for drawn_from in (1..=self.residents.len()).rev() {
            let drawn = self.rng.random_range(0..drawn_from as u32) as usize;
            let victim = self.residents[drawn];
            if may_leave(victim) {
                self.discard(victim);
                return Some(victim);
            }
            self.swap(drawn, drawn_from - 1);
        }
        None
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        let place = self.place[key as usize] as usize;
        self.swap(place, self.residents.len() - 1);
        self.residents.pop();
        self.place[key as usize] = ABSENT;
    }

    fn validate(&self) -> Result<(), String> {
        let placed = self.place.iter().filter(|&&place| place != ABSENT).count();
        let found = (0..).zip(&self.residents).all(|(at, &key)| self.place[key as usize] == at);
        if !found || placed != self.residents.len() || self.len() > self.slots.capacity {
            return Err(format!("{} residents, {placed} placed", self.residents.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn every_resident_leaves_about_as_often() {
        let pool = PoolShape::flat(4, 5);
        let mut random = Random::configured(&pool, &RandomConfig { seed: 7 });
        for key in 0..4 {
            assert!(random.admit(key, &mut Anyone));
        }
        let mut absent = 4;
        let mut left = [0u32; 5];
        for _ in 0..50_000 {
            assert!(random.admit(absent, &mut Anyone));
            absent = (0..5).find(|&key| !random.contains(key)).unwrap();
            left[absent as usize] += 1;
        }
        // 10,000 each are expected; the standard deviation is below 100.
        assert!(left.iter().all(|left| left.abs_diff(10_000) < 500), "{left:?}");
        assert_eq!(random.validate(), Ok(()));
    }
}
