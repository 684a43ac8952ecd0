//! MoE-Infinity's dispatcher: evicts the resident expert that was dispatched least often.
//!
//! Source: MoE-Infinity's `ExpertDispatcher::GPUFetchFunc`. The paper's activation-aware priority
//! is not what the dispatcher evicts by: it looks for the smallest `incache_visit_count`, which
//! each dispatch raises (every expert passes through the cache, so misses count too) and which
//! eviction does not reset. Its benchmarks clear the counts once, when decoding begins.

use crate::resident_set::ResidentSet;
use crate::{Key, Need, NoConfig, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
pub const INFO: PolicyInfo = PolicyInfo {
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
pub struct MoeInfinity {
    residents: ResidentSet,
    /// Visits and place in the dispatcher's loops.
    words: Vec<u64>,
    capacity: u32,
}

impl MoeInfinity {
    pub(crate) fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

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
        Self { residents: ResidentSet::new(pool.keys), words, capacity: pool.capacity }
    }
}

impl Policy for MoeInfinity {
    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.residents.contains(key)
    }

    fn len(&self) -> u32 {
        self.residents.len()
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.words[key as usize] += VISIT;
    }

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.residents.len() >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.words[key as usize] += VISIT;
        self.residents.insert(key);
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let words = &self.words;
        let victim = self.residents.least(|key| words[key as usize], |key| room.may_evict(key));
        let Some(victim) = victim else {
            return false;
        };
        self.residents.remove(victim);
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.residents.remove(key);
        self.words[key as usize] %= VISIT;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn validate(&self) -> Result<(), String> {
        self.residents.validate(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

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
