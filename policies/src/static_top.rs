//! Static placement: the experts that a training part of the trace used most, and no others.
//!
//! Source: KTransformers' and Fiddler's placement of popular experts. A miss is served (by the
//! host, or through a transient buffer) and not admitted. Trained on what it is then tested on, it
//! is the static optimum, which is no bound for policies that may change their mind.

use crate::resident_set::ResidentSet;
use crate::{Key, Need, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
pub const INFO: PolicyInfo = PolicyInfo {
    name: "static",
    summary: "the experts used most in training, never exchanged",
    definition: "The pool's experts are ranked by their uses in a training part of the trace, ties to the lower id; the first as many as there are slots are admitted when they are first asked for or prefetched, and stay. Every other miss is served without being admitted.",
    source: "KTransformers and Fiddler: placement by popularity",
    needs: Need::Training,
    parameters: &[],
};

/// The top of a ranking, for good.
#[derive(Debug, Clone)]
pub struct Static {
    residents: ResidentSet,
    /// 0 for the key used most.
    ranks: Vec<u32>,
    capacity: u32,
}

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
        Self { residents: ResidentSet::new(pool.keys), ranks, capacity: pool.capacity }
    }

    /// The keys that belong in the pool, ascending: what to prefetch for it to start warm.
    pub fn chosen(&self) -> impl Iterator<Item = Key> + '_ {
        (0..).zip(&self.ranks).filter(|&(_, &rank)| rank < self.capacity).map(|(key, _)| key)
    }
}

impl Policy for Static {
    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.residents.contains(key)
    }

    fn len(&self) -> u32 {
        self.residents.len()
    }

    #[inline(always)]
    fn hit(&mut self, _: Key) {}

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.ranks[key as usize] >= self.capacity {
            return false;
        }
        // Full without the key: the pool has shrunk, and someone who no longer belongs is left.
        if self.residents.len() >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.residents.insert(key);
        true
    }

    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let last_ranked = |key: Key| std::cmp::Reverse(self.ranks[key as usize]);
        let Some(victim) = self.residents.least(last_ranked, |key| room.may_evict(key)) else {
            return false;
        };
        self.residents.remove(victim);
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.residents.remove(key);
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
