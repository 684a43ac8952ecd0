//! Semantic eviction: the age of an expert, divided by how much the conversation is expected to
//! use it.
//!
//! The profile comes from outside, at the start of each conversation (a
//! [`Guide`](crate::semantic::Guide) makes it); with a uniform one, as before the first, the policy
//! is LRU.

use serde::{Deserialize, Serialize};

use crate::predict::GUIDE_PARAMETERS;
use crate::registry::Listed;
use crate::semantic::{GuideConfig, Likeness, ProfileFrom};
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::{Config, Key, Need, Parameter, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "semantic",
    summary: "oldest over what conversations like this one use",
    definition: "The victim has the largest age / (profile + floor): age is the number of uses of any key since the key's last, profile the uses a token that the running conversations are expected to have (the mean of theirs, where several run), 0 everywhere until that is known; ties go to the least recent. A conversation's expected profile is the mean profile of the k stored conversations nearest by embedding, each weighted by its cosine, or what `from` says; at its end the conversation is stored, and a full store overwrites the most redundant (FineMoE's rule).",
    source: "the article's cache keyed on the meaning of the conversation",
    needs: Need::Embeddings,
    parameters: &PARAMETERS,
};

const PARAMETERS: [Parameter; 8] = {
    let floor = Parameter {
        name: "floor",
        default: "0.02",
        meaning: "added to every expert's expected uses a token, above 0",
    };
    let mut parameters = [floor; 8];
    let mut index = 0;
    while index < GUIDE_PARAMETERS.len() {
        parameters[index + 1] = GUIDE_PARAMETERS[index];
        index += 1;
    }
    parameters
};

/// Parameters of [`SemanticAge`] and of the guide that makes its profiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "GuideConfig describes the others")]
pub struct SemanticAgeConfig {
    /// Added to every expert's expected uses a token, above 0.
    pub floor: f64,
    pub from: ProfileFrom,
    pub by: Likeness,
    pub k: usize,
    pub store: usize,
    pub clusters: usize,
    pub after: u32,
    pub seed: u64,
}

impl SemanticAgeConfig {
    /// What its guide is made of.
    #[must_use]
    pub fn guide(&self) -> GuideConfig {
        let Self { floor: _, from, by, k, store, clusters, after, seed } = *self;
        GuideConfig { from, by, k, store, clusters, after, seed }
    }
}

impl Default for SemanticAgeConfig {
    fn default() -> Self {
        let GuideConfig { from, by, k, store, clusters, after, seed } = GuideConfig::default();
        Self { floor: 0.02, from, by, k, store, clusters, after, seed }
    }
}

impl Config for SemanticAgeConfig {
    fn check(&self) -> Result<(), String> {
        if !(self.floor > 0.0 && self.floor.is_finite()) {
            return Err(format!("floor = {} is not a number above 0", self.floor));
        }
        self.guide().check()
    }
}

/// Age over expected use.
#[derive(Debug, Clone)]
pub struct SemanticAgeRanking {
    /// Number of each key's last use.
    used: Vec<u64>,
    /// 1 / (profile + floor) of each key.
    dispensable: Vec<f64>,
    floor: f64,
    tick: u64,
}

/// Evicts the greatest age over expected use.
pub type SemanticAge = Ranked<SemanticAgeRanking>;

impl SemanticAge {
    /// An empty pool under a uniform profile.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &SemanticAgeConfig) -> Self {
        let ranking = SemanticAgeRanking {
            used: vec![0; pool.keys as usize],
            dispensable: vec![1.0 / config.floor; pool.keys as usize],
            floor: config.floor,
            tick: 0,
        };
        Self::over(pool.keys, pool.capacity, ranking)
    }
}

impl SemanticAgeRanking {
    #[inline(always)]
    fn touch(&mut self, key: Key) {
        self.tick += 1;
        self.used[key as usize] = self.tick;
    }
}

impl Listed for SemanticAge {
    type Config = SemanticAgeConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &SemanticAgeConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &SemanticAgeConfig) -> u64 {
        sum([ResidentSet::memory(pool.keys), array::<[u64; 2]>(pool.keys)])
    }
}

impl Ranking for SemanticAgeRanking {
    type Score = (f64, u64);

    const PROFILED: bool = true;

    /// Largest first: the score is negated, and the least recent is the smallest number.
    #[inline(always)]
    fn score(&self, key: Key) -> (f64, u64) {
        let used = self.used[key as usize];
        (-((self.tick - used + 1) as f64 * self.dispensable[key as usize]), used)
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        self.touch(key);
    }

    fn set_profile(&mut self, profile: &[f32]) {
        for (dispensable, &uses) in self.dispensable.iter_mut().zip(profile) {
            *dispensable = 1.0 / (f64::from(uses) + self.floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Policy as _};

    /// Keys 0, 1, 2 were used one after another; 0 is expected twice a token, the others 1/2.
    /// Ages 3, 2, 1 over profile + 1/2: 6/5, 2, 1. So 1 leaves, though 0 is older.
    #[test]
    fn age_over_profile_by_hand() {
        let config = SemanticAgeConfig { floor: 0.5, ..SemanticAgeConfig::default() };
        let mut policy = SemanticAge::new(&PoolShape::flat(3, 5), &config);
        for key in [0, 1, 2] {
            assert!(policy.admit(key, &mut Anyone));
        }
        policy.set_profile(&[2.0, 0.5, 0.5, 0.5, 0.5]);
        assert!(policy.admit(3, &mut Anyone) && !policy.contains(1) && policy.contains(0));
        // Under a uniform profile the least recent goes, as from the start.
        policy.set_profile(&[0.0; 5]);
        assert!(policy.admit(4, &mut Anyone) && !policy.contains(0));
        assert_eq!(policy.validate(), Ok(()));
    }

    #[test]
    fn a_floor_of_nothing_is_refused() {
        for floor in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(SemanticAgeConfig { floor, ..SemanticAgeConfig::default() }.check().is_err());
        }
    }
}
