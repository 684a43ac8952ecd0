//! ARC: recency and frequency lists, with ghosts that tell which of the two deserves more room.
//!
//! Source: N. Megiddo and D. S. Modha, "ARC: a self-tuning, low overhead replacement cache",
//! FAST 2003, figure 4.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::adaptive_lists::{AdaptiveLists, B1, B2, T1, T2};
use crate::{Key, Need, NoConfig, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "arc",
    summary: "balances recency and frequency by what it regrets evicting",
    definition: "T1 holds keys used once, T2 keys used again, B1 and B2 remember what left them; all are LRU lists, c slots. A hit goes to T2. A miss in B1 raises p by max(|B2|/|B1|, 1) to at most c, one in B2 lowers it by max(|B1|/|B2|, 1) to at least 0; then REPLACE, and the key goes to T2. Any other miss: if |T1|+|B1| = c, B1's last is forgotten and REPLACE, or, B1 being empty, T1's last leaves unremembered; else, if all four lists hold 2c, B2's last is forgotten, and REPLACE; the key goes to T1. REPLACE: if T1 is not empty and |T1| > p, or |T1| = p and the key is in B2, T1's last goes to B1, else T2's last to B2; if that list has no key that may leave, the other's.",
    source: "N. Megiddo and D. S. Modha, ARC, FAST 2003",
    needs: Need::Nothing,
    parameters: &[],
};

/// Adaptive replacement cache.
#[derive(Debug, Clone)]
pub struct Arc {
    lists: AdaptiveLists,
}

impl Arc {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        Self { lists: AdaptiveLists::new(pool) }
    }

    /// The paper's REPLACE. `false`, with nothing changed, if nobody may leave.
    #[inline(always)]
    fn replace(
        &mut self,
        target: f64,
        in_b2: bool,
        may_leave: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        let t1 = self.lists.length(T1);
        let t1_first = t1 > 0.0 && (t1 > target || (in_b2 && t1 == target));
        let (list, victim) = self.lists.last(if t1_first { T1 } else { T2 }, may_leave)?;
        self.lists.queues.transfer(list, list + 2, victim);
        Some(victim)
    }

    /// T1 alone fills the cache: its last key leaves, and nothing remembers it.
    #[inline(always)]
    fn pop_t1(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.lists.queues.find_from_back(T1, may_leave)?;
        self.lists.queues.unlink(victim);
        Some(victim)
    }
}

impl Listed for Arc {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        AdaptiveLists::memory(pool.keys)
    }
}

impl Policy for Arc {
    counted_in!(lists.slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.lists.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        match self.lists.queues.of(key) {
            T2 => self.lists.queues.refresh(T2, key),
            _ => self.lists.queues.transfer(T1, T2, key),
        }
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        let from = self.lists.queues.of(key);
        let target = self.lists.adapted(from);
        if self.lists.slots.is_full() {
            let may_leave = |key| room.may_evict(key);
            let victim = if from != B1 && from != B2 && self.lists.t1_is_all() {
                self.pop_t1(may_leave)
            } else {
                self.replace(target, from == B2, may_leave)
            };
            let Some(victim) = victim else {
                return false;
            };
            self.lists.slots.taken -= 1;
            room.evict(victim);
        }
        self.lists.target = target;
        true
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let from = self.lists.queues.of(key);
        if from == B1 || from == B2 {
            self.lists.queues.transfer(from, T2, key);
            return;
        }
        self.lists.enter(key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.replace(self.lists.target, false, may_leave)
    }

    fn discard(&mut self, key: Key) {
        self.lists.queues.unlink(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.lists.set_capacity(capacity);
    }

    fn validate(&self) -> Result<(), String> {
        self.lists.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn a_regretted_eviction_moves_the_target() {
        let mut arc = Arc::new(&PoolShape::flat(3, 9));
        let lists =
            |arc: &Arc| [T1, T2, B1, B2].map(|at| arc.lists.queues.iter(at).collect::<Vec<_>>());
        for key in [0, 1, 2] {
            assert!(arc.admit(key, &mut Anyone));
        }
        arc.hit(0); // T1 2 1, T2 0
        assert!(arc.admit(3, &mut Anyone)); // |T1| > 0: 1 goes to B1
        assert_eq!(lists(&arc), [vec![3, 2], vec![0], vec![1], vec![]]);
        assert!(arc.admit(1, &mut Anyone)); // p = 1 < |T1|: 2 goes to B1, 1 to T2
        assert_eq!((lists(&arc), arc.lists.target), ([vec![3], vec![1, 0], vec![2], vec![]], 1.0));
        assert!(arc.admit(4, &mut Anyone)); // |T1| = p: T2's last, 0, goes to B2
        assert_eq!(lists(&arc), [vec![4, 3], vec![1], vec![2], vec![0]]);
        assert!(arc.admit(0, &mut Anyone)); // p = 0: 3 goes to B1
        assert_eq!(
            (lists(&arc), arc.lists.target),
            ([vec![4], vec![0, 1], vec![3, 2], vec![]], 0.0)
        );
        assert!(arc.admit(5, &mut Anyone)); // |T1|+|B1| = 3: 4 goes to B1, 2 is forgotten
        assert_eq!(lists(&arc), [vec![5], vec![0, 1], vec![4, 3], vec![]]);
        assert_eq!(arc.validate(), Ok(()));
    }
}
