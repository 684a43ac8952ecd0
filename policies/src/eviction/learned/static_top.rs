//! Static placement: the experts that a training part of the trace used most, and no others.
//!
//! Source: KTransformers' and Fiddler's placement of popular experts. They are there before the
//! first step; a miss is served (by the host, or through a transient buffer) and not admitted. Trained on what it is then tested on, it
//! is the static optimum, which is no bound for policies that may change their mind.

use crate::registry::Trained;
use crate::structures::memory::{array, sum};
use crate::structures::ranked::{Ranked, Ranking};
use crate::structures::resident_set::ResidentSet;
use crate::{Key, Need, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "static",
    summary: "the experts used most in training, never exchanged",
    definition: "The pool's experts are ranked by their uses in a training part of the trace, ties to the lower id; the first as many as there are slots are in them before the first step, and stay. Every other miss is served without being admitted.",
    source: "KTransformers and Fiddler: placement by popularity",
    needs: Need::Training,
    parameters: &[],
};

/// The top of a ranking, for good.
#[derive(Debug, Clone)]
pub struct StaticRanking {
    /// 0 for the key used most.
    ranks: Vec<u32>,
}

/// Keeps the top of a ranking, for good.
pub type Static = Ranked<StaticRanking>;

impl Static {
    /// An empty pool whose residents will be the keys with the largest `counts`, one count a key.
    ///
    /// # Panics
    /// If there is not one count for each key of the pool.
    #[must_use]
    pub fn new(pool: &PoolShape, counts: &[u64]) -> Self {
        assert_eq!(counts.len(), pool.keys as usize, "one count for each key");
        let mut by_count: Vec<Key> = (0..pool.keys).collect();
        by_count.sort_by_key(|&key| (std::cmp::Reverse(counts[key as usize]), key));
        let mut ranks = vec![0; pool.keys as usize];
        for (rank, key) in by_count.into_iter().enumerate() {
            ranks[key as usize] = rank as u32;
        }
        Self::over(pool.keys, pool.capacity, StaticRanking { ranks })
    }

    /// The keys that belong in the pool, ascending: what to prefetch for it to start warm.
    pub fn chosen(&self) -> impl Iterator<Item = Key> + '_ {
        let capacity = self.capacity();
        (0..)
            .zip(&self.ranking.ranks)
            .filter(move |&(_, &rank)| rank < capacity)
            .map(|(key, _)| key)
    }
}

impl Trained for Static {
    const INFO: &'static PolicyInfo = &INFO;

    fn trained(pool: &PoolShape, counts: &[u64]) -> Self {
        Self::new(pool, counts)
    }

    fn memory(pool: &PoolShape) -> u64 {
        sum([ResidentSet::memory(pool.keys), array::<u32>(pool.keys)])
    }
}

impl Ranking for StaticRanking {
    type Score = std::cmp::Reverse<u32>;

    fn score(&self, key: Key) -> std::cmp::Reverse<u32> {
        std::cmp::Reverse(self.ranks[key as usize])
    }

    #[inline(always)]
    fn used(&mut self, _: Key) {}

    /// A full pool without an accepted key has shrunk: someone who no longer belongs is left.
    #[inline(always)]
    fn accepts(&self, key: Key, capacity: u32) -> bool {
        self.ranks[key as usize] < capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Policy as _};

    #[test]
    fn only_the_top_is_admitted_and_ties_go_to_the_lower_id() {
        let mut policy = Static::new(&PoolShape::flat(2, 4), &[3, 5, 3, 1]);
        assert_eq!(policy.chosen().collect::<Vec<_>>(), [0, 1]);
        assert!(!policy.admit(2, &mut Anyone) && !policy.admit(3, &mut Anyone));
        assert!(policy.admit(0, &mut Anyone) && policy.admit(1, &mut Anyone));
        assert!(policy.evict_one(&mut Anyone)); // 0 ranks below 1
        policy.set_capacity(1);
        assert!(!policy.admit(0, &mut Anyone));
        assert!(policy.contains(1));
        assert_eq!(policy.validate(), Ok(()));
    }
}
