//! Least-Stale: what this token has touched stays; among the rest the oldest load leaves.
//!
//! Source: SpecMD (Apple), which calls what was not touched in the running pass stale. Order is
//! that of loading, so a hit protects a key for its token only.

use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};
use crate::{Key, Need, NoConfig, Policy, PolicyInfo, PoolShape, Room};

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
    len: u32,
    capacity: u32,
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
            len: 0,
            capacity: pool.capacity,
        }
    }

    /// Resident keys, the latest load first.
    pub fn loads(&self) -> impl Iterator<Item = Key> + '_ {
        self.links.iter(self.loads)
    }

    #[inline(always)]
    fn victim<R: Room>(&mut self, room: &R) -> Option<Key> {
        let mut place = if self.fresh_from_back == Key::MAX {
            self.links.back(self.loads)
        } else {
            self.links.toward_front(self.fresh_from_back)
        };
        let mut all_fresh = true;
        while let Some(key) = place {
            if self.touched[key as usize] != self.step {
                if room.may_evict(key) {
                    return Some(key);
                }
                all_fresh = false;
            } else if all_fresh {
                self.fresh_from_back = key;
            }
            place = self.links.toward_front(key);
        }
        self.links.find_from_back(self.loads, |key| {
            self.touched[key as usize] == self.step && room.may_evict(key)
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

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.touched[key as usize] = self.step;
    }

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.len >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.links.push_front(self.loads, key);
        self.touched[key as usize] = self.step;
        self.len += 1;
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let Some(victim) = self.victim(room) else {
            return false;
        };
        self.remove(victim);
        room.evict(victim);
        true
    }

    #[inline(always)]
    fn remove(&mut self, key: Key) {
        if key == self.fresh_from_back {
            self.fresh_from_back = self.links.toward_back(key).unwrap_or(Key::MAX);
        }
        self.links.unlink(key);
        self.len -= 1;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    #[inline(always)]
    fn begin_step(&mut self, _: u32) {
        self.step += 1;
        self.fresh_from_back = Key::MAX;
    }

    fn validate(&self) -> Result<(), String> {
        let length = self.links.validate(self.loads)?;
        if length != self.len || length > self.capacity {
            return Err(format!("list of {length}, len {}, capacity {}", self.len, self.capacity));
        }
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
