//! S3-FIFO: a small FIFO sifts out keys that are used once before they reach the main one.
//!
//! Source: J. Yang, Y. Zhang, Z. Qiu, Y. Yue and K. V. Rashmi, "FIFO queues are all you need for
//! cache eviction", SOSP 2023, by the rules of libCacheSim 0.3.5, which gives other counts than
//! the paper's text (by up to 3%) and than the project's own older versions (by up to 1%).

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::registry::share;
use crate::structures::memory::{array, sum};
use crate::structures::queues::Queues;
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "s3-fifo",
    summary: "a small FIFO sifts new experts before the main FIFO",
    definition: "FIFOs S (s = floor(slots x small)) and M (m = slots - s), ghosts G (floor(slots x ghost)). A hit adds 1 to the key's uses. A miss in G leaves G. While full: if |M| > m or S is empty, M's oldest is popped until one leaves: with uses >= 1 it goes back in with min(uses, 3) - 1; else S's oldest is popped until one leaves or S is empty: with uses >= 2 it goes to M with 0 uses, else it leaves, to G, whose oldest is forgotten if G is full. If that queue has no key that may leave, the other is popped. Then the key goes, with 0 uses, to M if it was in G, or if nothing was ever evicted and |S| >= s, else to S.",
    source: "J. Yang and others, FIFO queues are all you need for cache eviction, SOSP 2023; rules of libCacheSim 0.3.5",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "small", default: "0.1", meaning: "S's share of the slots, 0 to 1" },
        Parameter { name: "ghost", default: "0.9", meaning: "ghosts a slot, 0 to 8" },
    ],
};

/// Parameters of [`S3Fifo`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3FifoConfig {
    /// Share of the slots for the small queue, 0 to 1.
    pub small: f64,
    /// Ghosts, as a share of the slots, 0 to 8.
    pub ghost: f64,
}

impl Default for S3FifoConfig {
    fn default() -> Self {
        Self { small: 0.1, ghost: 0.9 }
    }
}

impl Config for S3FifoConfig {
    fn check(&self) -> Result<(), String> {
        share("small", self.small, 0.0..=1.0)?;
        share("ghost", self.ghost, 0.0..=8.0)
    }
}

const SMALL: u8 = 0;
const MAIN: u8 = 1;
const GHOST: u8 = 2;
/// Uses from S that move a key to M.
const PROMOTED: u8 = 2;
/// More uses than these make no difference.
const MOST_USES: u8 = 3;

/// Simple, scalable, static FIFOs.
#[derive(Debug, Clone)]
pub struct S3Fifo {
    queues: Queues<3>,
    uses: Vec<u8>,
    config: S3FifoConfig,
    most_small: u32,
    most_ghosts: u32,
    has_evicted: bool,
    /// Whether the key that is about to enter was found among the ghosts.
    came_back: bool,
    slots: Occupancy,
}

impl S3Fifo {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &S3FifoConfig) -> Self {
        let mut s3_fifo = Self {
            queues: Queues::new(pool.keys),
            uses: vec![0; pool.keys as usize],
            config: *config,
            most_small: 0,
            most_ghosts: 0,
            has_evicted: false,
            came_back: false,
            slots: Occupancy::new(0),
        };
        s3_fifo.set_capacity(pool.capacity);
        s3_fifo
    }

    #[inline(always)]
    fn oldest(&self, list: u8, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.queues.find_from_back(list, &may_leave)
    }

    /// Pops M until a key leaves; `None` if none may.
    #[inline(always)]
    fn pop_main(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        while let Some(key) = self.oldest(MAIN, &may_leave) {
            let uses = &mut self.uses[key as usize];
            if *uses == 0 {
                self.queues.unlink(key);
                return Some(key);
            }
            *uses -= 1;
            self.queues.refresh(MAIN, key);
        }
        None
    }

    /// Pops S until a key leaves; `None` if all that might have left went to M.
    #[inline(always)]
    fn pop_small(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        while let Some(key) = self.oldest(SMALL, &may_leave) {
            if self.uses[key as usize] < PROMOTED {
                self.queues.transfer(SMALL, GHOST, key);
                self.queues.trim_back(GHOST, self.most_ghosts);
                return Some(key);
            }
            self.uses[key as usize] = 0;
            self.queues.transfer(SMALL, MAIN, key);
        }
        None
    }
}

impl Listed for S3Fifo {
    type Config = S3FifoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &S3FifoConfig) -> Self {
        S3Fifo::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &S3FifoConfig) -> u64 {
        sum([Queues::<3>::memory(pool.keys), array::<u8>(pool.keys)])
    }
}

impl Policy for S3Fifo {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= MAIN
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let uses = &mut self.uses[key as usize];
        *uses += u8::from(*uses < MOST_USES);
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        let full = self.slots.is_full();
        let may_leave = |key| room.may_evict(key);
        if full && self.oldest(SMALL, may_leave).or_else(|| self.oldest(MAIN, may_leave)).is_none()
        {
            return false;
        }
        // Before a victim may push it out of the ghosts.
        self.came_back = self.queues.of(key) == GHOST;
        if self.came_back {
            self.queues.unlink(key);
        }
        !full || self.evict_one(room)
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let ghost = std::mem::take(&mut self.came_back);
        let filling = !self.has_evicted && self.queues.len(SMALL) >= self.most_small;
        self.queues.push_front(if ghost || filling { MAIN } else { SMALL }, key);
        self.uses[key as usize] = 0;
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let small = self.queues.len(SMALL);
        let main_first =
            small == 0 || self.queues.len(MAIN) > self.slots.capacity - self.most_small;
        // Where S gives none, what it sent to M may leave from there.
        let of_main = if main_first { self.pop_main(&may_leave) } else { None };
        let left =
            of_main.or_else(|| self.pop_small(&may_leave)).or_else(|| self.pop_main(&may_leave));
        self.has_evicted |= left.is_some();
        left
    }

    fn discard(&mut self, key: Key) {
        self.queues.unlink(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        self.most_small = (f64::from(capacity) * self.config.small) as u32;
        self.most_ghosts = (f64::from(capacity) * self.config.ghost) as u32;
        while self.queues.len(GHOST) > self.most_ghosts {
            self.queues.trim_back(GHOST, self.most_ghosts);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let ghosts = self.queues.len(GHOST);
        if ghosts > self.most_ghosts {
            return Err(format!("{ghosts} ghosts, but at most {}", self.most_ghosts));
        }
        self.slots.agree_with(self.queues.len(SMALL) + self.queues.len(MAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn one_use_is_sifted_out_two_are_promoted() {
        // Five slots, two of them for S; four ghosts.
        let config = S3FifoConfig { small: 0.4, ghost: 0.9 };
        let mut s3_fifo = S3Fifo::configured(&PoolShape::flat(5, 12), &config);
        let lists = |this: &S3Fifo, at| this.queues.iter(at).collect::<Vec<_>>();
        for key in [0, 1, 2, 3, 4] {
            assert!(s3_fifo.admit(key, &mut Anyone)); // S takes two, then M while filling
        }
        assert_eq!((lists(&s3_fifo, SMALL), lists(&s3_fifo, MAIN)), (vec![1, 0], vec![4, 3, 2]));
        s3_fifo.hit(0);
        s3_fifo.hit(0);
        s3_fifo.hit(1);
        assert!(s3_fifo.admit(5, &mut Anyone)); // |M| = 3 = m: 0 goes to M, 1 leaves
        assert_eq!((lists(&s3_fifo, SMALL), lists(&s3_fifo, MAIN)), (vec![5], vec![0, 4, 3, 2]));
        assert_eq!(lists(&s3_fifo, GHOST), [1]);
        s3_fifo.hit(2);
        assert!(s3_fifo.admit(1, &mut Anyone)); // |M| > m: 2 goes round, 3 leaves; 1 comes to M
        assert_eq!((lists(&s3_fifo, SMALL), lists(&s3_fifo, MAIN)), (vec![5], vec![1, 2, 0, 4]));
        assert_eq!((lists(&s3_fifo, GHOST), s3_fifo.validate()), (vec![], Ok(())));
    }
}
