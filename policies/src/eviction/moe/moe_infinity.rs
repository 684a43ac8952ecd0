//! MoE-Infinity's dispatcher: evicts the resident expert that was dispatched least often.
//!
//! Source: MoE-Infinity's `ExpertDispatcher::GPUFetchFunc`. The paper's activation-aware priority
//! is not what the dispatcher evicts by: it looks for the smallest `incache_visit_count`, which
//! each dispatch raises (every expert passes through the cache, so misses count too) and which
//! eviction does not reset. Its benchmarks clear the counts once, when decoding begins.

use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::{Key, Need, NoConfig, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "moe-infinity",
    summary: "as its dispatcher ships: fewest dispatches so far",
    definition: "A key's count rises with each hit and admission and is kept over eviction. The victim has the smallest count; ties go to the lowest expert id within its layer, then to the lowest layer, the order of the dispatcher's loops.",
    source: "MoE-Infinity, core/parallel/expert_dispatcher.cpp",
    needs: Need::Nothing,
    parameters: &[],
};

/// One visit, in the upper half of a key's word; the lower half breaks ties.
const VISIT: u64 = 1 << 32;

/// Fewest visits, evicted or not.
#[derive(Debug, Clone)]
pub struct MoeInfinityRanking {
    /// Visits and place in the dispatcher's loops.
    words: Vec<u64>,
}

/// Evicts the fewest dispatches.
pub type MoeInfinity = Ranked<MoeInfinityRanking>;

impl MoeInfinity {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        let layers = pool.layer_of_keys();
        let expert = |key: Key| key - pool.layer_bases[layers[key as usize] as usize];
        let mut by_loop: Vec<Key> = (0..pool.keys).collect();
        by_loop.sort_by_key(|&key| (expert(key), key));
        let mut words = vec![0; pool.keys as usize];
        for (place, key) in by_loop.into_iter().enumerate() {
            words[key as usize] = place as u64;
        }
        Self::over(pool.keys, pool.capacity, MoeInfinityRanking { words })
    }
}

impl Listed for MoeInfinity {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        sum([ResidentSet::memory(pool.keys), array::<u64>(pool.keys)])
    }
}

impl Ranking for MoeInfinityRanking {
    type Score = u64;

    #[inline(always)]
    fn score(&self, key: Key) -> u64 {
        self.words[key as usize]
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        self.words[key as usize] += VISIT;
    }

    fn forget(&mut self, key: Key) {
        self.words[key as usize] %= VISIT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Policy as _};

    /// Layers of two experts, keys 0 1 | 2 3, two slots. After 1, 2 both have one visit: 2 is
    /// expert 0 of its layer and goes before 1, which is expert 1 of its. It comes back with its
    /// old visit, so with two it outlives 1, whose single visit is now the fewest.
    #[test]
    fn counts_outlive_eviction_and_ties_follow_the_loops() {
        let pool = PoolShape { capacity: 2, keys: 4, layer_bases: vec![0, 2], keys_per_token: 2 };
        let mut policy = MoeInfinity::new(&pool);
        for key in [1, 2, 3] {
            assert!(policy.admit(key, &mut Anyone));
        }
        assert!(!policy.contains(2)); // 2's place in the loops comes first
        assert!(policy.admit(2, &mut Anyone)); // 1 and 3 are both expert 1: the lower layer goes
        assert!(policy.contains(2) && policy.contains(3));
        assert!(policy.admit(0, &mut Anyone)); // 2 has two visits, 3 one
        assert!(policy.contains(2) && !policy.contains(3));
        assert_eq!(policy.validate(), Ok(()));
    }
}
