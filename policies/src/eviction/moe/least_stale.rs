//! Least-Stale: what this token has touched stays; among the rest the oldest load leaves.
//!
//! Source: SpecMD (Apple), which calls what was not touched in the running pass stale. Order is
//! that of loading, so a hit protects a key for its token only.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "least-stale",
    summary: "SpecMD: the oldest load that this step has not touched",
    definition: "A key is fresh if it was hit or admitted in the running step, else stale. The victim is the stale key that was admitted first; if none may leave, the fresh key that was admitted first.",
    source: "SpecMD (Apple); the port in tinyserve",
    needs: Need::Nothing,
    parameters: &[],
};

/// First in, first out, stale before fresh.
#[derive(Debug, Clone)]
pub struct LeastStale {
    links: Links,
    loads: List,
    /// The step that last touched each key.
    touched: Vec<u64>,
    step: u64,
    /// Behind this key, itself included, all are fresh: no victim search of this step need look
    /// there again. A key beyond the last means that nothing is known.
    fresh_from_back: Key,
    slots: Occupancy,
}

impl LeastStale {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        let links = Links::new(pool.keys, 1);
        let loads = links.list(0);
        Self {
            links,
            loads,
            touched: vec![0; pool.keys as usize],
            step: 1,
            fresh_from_back: Key::MAX,
            slots: Occupancy::new(pool.capacity),
        }
    }

    /// Resident keys, the latest load first.
    pub fn loads(&self) -> impl Iterator<Item = Key> + '_ {
        self.links.iter(self.loads)
    }

    #[inline(always)]
    fn victim(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let mut place = if self.fresh_from_back == Key::MAX {
            self.links.back(self.loads)
        } else {
            self.links.toward_front(self.fresh_from_back)
        };
        let mut all_fresh = true;
        while let Some(key) = place {
            if self.touched[key as usize] != self.step {
                if may_leave(key) {
                    return Some(key);
                }
                all_fresh = false;
            } else if all_fresh {
                self.fresh_from_back = key;
            }
            place = self.links.toward_front(key);
        }
        self.links.find_from_back(self.loads, |key| {
            self.touched[key as usize] == self.step && may_leave(key)
        })
    }
}

impl Listed for LeastStale {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        sum([Links::memory(pool.keys, 1), array::<u64>(pool.keys)])
    }
}

impl Policy for LeastStale {
    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = false;

    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.touched[key as usize] = self.step;
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.links.push_front(self.loads, key);
        self.touched[key as usize] = self.step;
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        if key == self.fresh_from_back {
            self.fresh_from_back = self.links.toward_back(key).unwrap_or(Key::MAX);
        }
        self.links.unlink(key);
    }

    #[inline(always)]
    fn begin_step(&mut self, _: u32) {
        self.step += 1;
        self.fresh_from_back = Key::MAX;
    }

    fn validate(&self) -> Result<(), String> {
        let length = self.links.validate(self.loads)?;
        self.slots.agree_with(length)?;
        let known = std::iter::successors(
            (self.fresh_from_back != Key::MAX).then_some(self.fresh_from_back),
            |&key| self.links.toward_back(key),
        );
        for key in known {
            if !self.links.contains(key) || self.touched[key as usize] != self.step {
                return Err(format!("key {key} is taken for fresh"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    /// Loads 0, 1, 2 in the first step. The second touches 0, then loads 3: 0 is the oldest load
    /// but fresh, so 1 leaves. It loads 4: 2 leaves. It loads 5: 0, 3 and 4 are all fresh, so the
    /// oldest load of them, 0, leaves.
    #[test]
    fn fresh_keys_leave_last() {
        let mut policy = LeastStale::new(&PoolShape::flat(3, 8));
        for key in [0, 1, 2] {
            assert!(policy.admit(key, &mut Anyone));
        }
        policy.begin_step(1);
        policy.hit(0);
        for (key, left) in [(3, vec![3, 2, 0]), (4, vec![4, 3, 0]), (5, vec![5, 4, 3])] {
            assert!(policy.admit(key, &mut Anyone));
            assert_eq!(policy.loads().collect::<Vec<_>>(), left);
            assert_eq!(policy.validate(), Ok(()));
        }
    }
}
