//! ClassLRU: eight LRU lists by how often an expert is used of late; age is weighed against class.
//!
//! Source: llama.cpp's expert cache since b12170 (#31233), after SLRU. The use count decays with a
//! half-life in tokens and outlives eviction, so an expert that comes back enters its old class.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::Links;
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "class-lru",
    summary: "llama.cpp: LRU lists by decayed use count, age / 2^class",
    definition: "On each use crf = crf * 2^(-tokens since the last use / half-life) + 1, kept over eviction, and the key becomes the most recent of class min(7, floor(log2 crf)). The victim is, among the least recent key of each class that may leave, the one with the largest (tokens since its last use) / 2^class; ties go to the least recent.",
    source: "llama.cpp b12170, pull request 31233",
    needs: Need::Nothing,
    parameters: &[Parameter {
        name: "half_life",
        default: "128",
        meaning: "tokens after which a use counts half; 1 or more",
    }],
};

const CLASSES: u32 = 8;
/// Ages up to which decay factors are kept in a table.
const TABLED: usize = 4096;

/// Parameters of [`ClassLru`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassLruConfig {
    /// Tokens after which a use counts half.
    pub half_life: f64,
}

impl Default for ClassLruConfig {
    fn default() -> Self {
        Self { half_life: 128.0 }
    }
}

impl Config for ClassLruConfig {
    fn check(&self) -> Result<(), String> {
        if self.half_life.is_finite() && self.half_life >= 1.0 {
            return Ok(());
        }
        Err(format!("half_life is {}, but must be 1 token or more", self.half_life))
    }
}

#[derive(Debug, Clone, Copy)]
struct Use {
    /// Decayed use count as of the last use.
    crf: f64,
    /// Tokens that had begun at the last use.
    at: u64,
    /// Number of the last use, over all keys.
    tick: u64,
    class: u32,
}

/// LRU by classes of decayed use count.
#[derive(Debug, Clone)]
pub struct ClassLru {
    links: Links,
    uses: Vec<Use>,
    /// 2^(-age / half-life) for young ages.
    decay: Vec<f64>,
    half_life: f64,
    /// Tokens begun.
    now: u64,
    tick: u64,
    slots: Occupancy,
}

impl ClassLru {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &ClassLruConfig) -> Self {
        let half_life = config.half_life;
        Self {
            links: Links::new(pool.keys, CLASSES),
            uses: vec![Use { crf: 0.0, at: 0, tick: 0, class: 0 }; pool.keys as usize],
            decay: (0..TABLED).map(|age| decay(age as u64, half_life)).collect(),
            half_life,
            now: 0,
            tick: 0,
            slots: Occupancy::new(pool.capacity),
        }
    }

    /// Counts a use and returns the class that the key now belongs to.
    #[inline(always)]
    fn touch(&mut self, key: Key) -> u32 {
        let used = &mut self.uses[key as usize];
        let age = self.now - used.at;
        let factor = match self.decay.get(age as usize) {
            Some(&factor) => factor,
            None => decay(age, self.half_life),
        };
        self.tick += 1;
        let crf = used.crf * factor + 1.0;
        // crf is at least 1, so its exponent is floor(log2 crf), exactly.
        let class = (((crf.to_bits() >> 52) as u32) - 1023).min(CLASSES - 1);
        *used = Use { crf, at: self.now, tick: self.tick, class };
        class
    }

    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let mut best: Option<(u64, u64, Key)> = None;
        for class in 0..CLASSES {
            let list = self.links.list(class);
            let Some(key) = self.links.find_from_back(list, &may_leave) else {
                continue;
            };
            let used = &self.uses[key as usize];
            let weighed = (self.now - used.at) << (CLASSES - 1 - class);
            if best.is_none_or(|(most, tick, _)| {
                weighed > most || (weighed == most && used.tick < tick)
            }) {
                best = Some((weighed, used.tick, key));
            }
        }
        best.map(|(_, _, key)| key)
    }
}

fn decay(age: u64, half_life: f64) -> f64 {
    libm::exp2(-(age as f64) / half_life)
}

impl Listed for ClassLru {
    type Config = ClassLruConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &ClassLruConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &ClassLruConfig) -> u64 {
        sum([
            Links::memory(pool.keys, CLASSES),
            array::<Use>(pool.keys),
            array::<f64>(TABLED as u64),
        ])
    }
}

impl Policy for ClassLru {
    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = false;

    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let class = self.touch(key);
        self.links.move_to_front(self.links.list(class), key);
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let class = self.touch(key);
        self.links.push_front(self.links.list(class), key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.links.unlink(victim);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.links.unlink(key);
        self.uses[key as usize].crf = 0.0;
    }

    #[inline(always)]
    fn begin_step(&mut self, tokens: u32) {
        self.now += u64::from(tokens);
    }

    fn validate(&self) -> Result<(), String> {
        let mut listed = 0;
        for class in 0..CLASSES {
            let list = self.links.list(class);
            listed += self.links.validate(list)?;
            if let Some(key) =
                self.links.iter(list).find(|&key| self.uses[key as usize].class != class)
            {
                return Err(format!("key {key} is in the list of class {class}"));
            }
        }
        self.slots.agree_with(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    /// With a half-life of 1 token, by hand. Key 0 is used in each of tokens 1 to 4: its count is
    /// 1, 1.5, 1.75, 1.875: class 0. Used twice more within token 4 it is 2.875, 3.875: class 1.
    /// Key 1 is used in token 4 only: class 0. In token 5 key 0 is 1 token old, weighed 1/2, and
    /// key 1 is 1 token old, weighed 1: key 1 leaves although it is the more recent.
    #[test]
    fn age_is_weighed_by_class() {
        let config = ClassLruConfig { half_life: 1.0 };
        let mut policy = ClassLru::new(&PoolShape::flat(2, 4), &config);
        for token in 1..=4 {
            policy.begin_step(1);
            if token == 1 {
                assert!(policy.admit(0, &mut Anyone));
            } else {
                policy.hit(0);
            }
        }
        assert_eq!(policy.uses[0].crf, 1.875);
        assert_eq!(policy.uses[0].class, 0);
        policy.hit(0);
        policy.hit(0);
        assert_eq!(policy.uses[0].class, 1);
        assert!(policy.admit(1, &mut Anyone));
        policy.begin_step(1);
        assert!(policy.admit(2, &mut Anyone));
        assert!(policy.contains(0) && !policy.contains(1));
        assert_eq!(policy.validate(), Ok(()));
    }

    #[test]
    fn ranges_are_checked() {
        assert!("class-lru:half_life=0".parse::<crate::PolicySpec>().is_err());
    }
}
