//! LFU: evicts the key with the fewest uses since it was brought in.
//!
//! The count starts at 1 on insertion and is forgotten on eviction; among equal counts the key
//! that reached that count first leaves (libCacheSim's rule). Buckets of equal count are linked in
//! order of count, so every operation is O(1) (K. Shah, A. Mitra, D. Matani, "An O(1) algorithm
//! for implementing the LFU cache eviction scheme", 2010).

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "lfu",
    summary: "evicts the expert with the fewest uses since it came in",
    definition: "The count is 1 at admission, grows by 1 a hit and is forgotten on eviction. The victim has the lowest count; of equals, the one that reached that count first.",
    source: "libCacheSim's LFU; O(1) lists after Shah, Mitra and Matani, 2010",
    needs: Need::Nothing,
    parameters: &[],
};

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Neighbour towards the bucket's older members.
    older: u32,
    newer: u32,
    bucket: u32,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    count: u64,
    oldest: u32,
    newest: u32,
    /// Neighbouring buckets by count; `higher` also links the free buckets.
    lower: u32,
    higher: u32,
}

/// Least frequently used, with first-come order among equals.
#[derive(Debug, Clone)]
pub struct Lfu {
    nodes: Vec<Node>,
    buckets: Vec<Bucket>,
    lowest: u32,
    free: u32,
    pub(crate) slots: Occupancy,
}

impl Lfu {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        // Buckets are never empty, and one spare is open while a key moves between two.
        let spare = pool.keys + 1;
        let empty = |index| Bucket {
            count: 0,
            oldest: NONE,
            newest: NONE,
            lower: NONE,
            higher: if index + 1 < spare { index + 1 } else { NONE },
        };
        Self {
            nodes: vec![Node { older: NONE, newer: NONE, bucket: NONE }; pool.keys as usize],
            buckets: (0..spare).map(empty).collect(),
            lowest: NONE,
            free: 0,
            slots: Occupancy::new(pool.capacity),
        }
    }

    /// The bucket for `count` right above `lower` (`NONE`: below all), opened if it is missing.
    #[inline(always)]
    fn bucket_above(&mut self, lower: u32, count: u64) -> u32 {
        let higher = if lower == NONE { self.lowest } else { self.buckets[lower as usize].higher };
        if higher != NONE && self.buckets[higher as usize].count == count {
            return higher;
        }
        let opened = self.free;
        self.free = self.buckets[opened as usize].higher;
        self.buckets[opened as usize] = Bucket { count, oldest: NONE, newest: NONE, lower, higher };
        if higher != NONE {
            self.buckets[higher as usize].lower = opened;
        }
        if lower == NONE {
            self.lowest = opened;
        } else {
            self.buckets[lower as usize].higher = opened;
        }
        opened
    }

    #[inline(always)]
    fn append(&mut self, bucket: u32, key: Key) {
        let newest = self.buckets[bucket as usize].newest;
        self.nodes[key as usize] = Node { older: newest, newer: NONE, bucket };
        if newest == NONE {
            self.buckets[bucket as usize].oldest = key;
        } else {
            self.nodes[newest as usize].newer = key;
        }
        self.buckets[bucket as usize].newest = key;
    }

    /// Takes a key out of its bucket, closing the bucket if that leaves it empty.
    #[inline(always)]
    fn detach(&mut self, key: Key) {
        let Node { older, newer, bucket } = self.nodes[key as usize];
        self.nodes[key as usize].bucket = NONE;
        if older == NONE {
            self.buckets[bucket as usize].oldest = newer;
        } else {
            self.nodes[older as usize].newer = newer;
        }
        if newer == NONE {
            self.buckets[bucket as usize].newest = older;
        } else {
            self.nodes[newer as usize].older = older;
        }
        if older == NONE && newer == NONE {
            self.close(bucket);
        }
    }

    #[inline(always)]
    fn close(&mut self, bucket: u32) {
        let Bucket { lower, higher, .. } = self.buckets[bucket as usize];
        if lower == NONE {
            self.lowest = higher;
        } else {
            self.buckets[lower as usize].higher = higher;
        }
        if higher != NONE {
            self.buckets[higher as usize].lower = lower;
        }
        self.buckets[bucket as usize].higher = self.free;
        self.free = bucket;
    }

    /// The counts that residents have, ascending, each with the key that reached it first among
    /// those that `wanted` grants.
    #[inline(always)]
    pub(crate) fn oldest_by_count(
        &self,
        wanted: impl Fn(Key) -> bool,
    ) -> impl Iterator<Item = (u64, Key)> {
        let exists = |bucket: u32| (bucket != NONE).then_some(bucket);
        std::iter::successors(exists(self.lowest), move |&bucket| {
            exists(self.buckets[bucket as usize].higher)
        })
        .filter_map(move |bucket| {
            let bucket = &self.buckets[bucket as usize];
            let mut key = bucket.oldest;
            while key != NONE && !wanted(key) {
                key = self.nodes[key as usize].newer;
            }
            (key != NONE).then_some((bucket.count, key))
        })
    }

    #[inline(always)]
    pub(crate) fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let mut bucket = self.lowest;
        while bucket != NONE {
            let mut key = self.buckets[bucket as usize].oldest;
            while key != NONE {
                if may_leave(key) {
                    return Some(key);
                }
                key = self.nodes[key as usize].newer;
            }
            bucket = self.buckets[bucket as usize].higher;
        }
        None
    }
}

impl Listed for Lfu {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        sum([array::<Node>(pool.keys), array::<Bucket>(u64::from(pool.keys) + 1)])
    }
}

impl Policy for Lfu {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.nodes[key as usize].bucket != NONE
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let bucket = self.nodes[key as usize].bucket;
        let count = self.buckets[bucket as usize].count + 1;
        let above = self.bucket_above(bucket, count);
        self.detach(key);
        self.append(above, key);
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let bucket = self.bucket_above(NONE, 1);
        self.append(bucket, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        self.detach(key);
    }

    fn validate(&self) -> Result<(), String> {
        let (mut bucket, mut lower, mut members, mut count) = (self.lowest, NONE, 0, 0);
        while bucket != NONE {
            let this = &self.buckets[bucket as usize];
            if this.lower != lower || this.count <= count || this.oldest == NONE {
                return Err(format!("bucket {bucket} of count {} is out of place", this.count));
            }
            let (mut key, mut older) = (this.oldest, NONE);
            while key != NONE {
                let node = &self.nodes[key as usize];
                if node.older != older || node.bucket != bucket {
                    return Err(format!("key {key} is not linked into bucket {bucket}"));
                }
                members += 1;
                (older, key) = (key, node.newer);
            }
            if older != this.newest {
                return Err(format!("bucket {bucket} does not end at its newest key"));
            }
            (lower, count, bucket) = (bucket, this.count, this.higher);
        }
        if members != self.slots.taken || members > self.slots.capacity {
            return Err(format!("{members} members, len {}", self.slots.taken));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn the_lowest_count_leaves_and_equals_go_in_order_of_arrival() {
        let mut lfu = Lfu::new(&PoolShape::flat(3, 8));
        for key in [0, 1, 2] {
            assert!(lfu.admit(key, &mut Anyone));
        }
        lfu.hit(0);
        lfu.hit(2);
        lfu.hit(0); // counts: 0 -> 3, 1 -> 1, 2 -> 2
        assert!(lfu.admit(3, &mut Anyone)); // 1 leaves
        assert!(!lfu.contains(1));
        lfu.hit(3); // 2 and 3 both have 2 uses; 2 reached it first
        assert!(lfu.admit(4, &mut Anyone)); // count 1 before the eviction: nobody, so 2 leaves
        assert!(!lfu.contains(2) && lfu.contains(3) && lfu.contains(4));
        assert_eq!(lfu.validate(), Ok(()));
    }
}
