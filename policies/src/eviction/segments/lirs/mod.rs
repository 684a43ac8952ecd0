//! LIRS: keeps the keys whose last two uses were close together, whatever came since.
//!
//! Source: S. Jiang and X. Zhang, "LIRS: an efficient low inter-reference recency set replacement
//! policy", SIGMETRICS 2002; 1% of the slots for HIR keys, and a stack of at most two caches, both as
//! in libCacheSim. libCacheSim gives other counts for one rule that it does not have from the
//! paper: a hit on an HIR key that is no longer in the stack first demotes the LIR key at its bottom,
//! which evicts Q's oldest, though the key stays HIR and needs no room. With that rule its counts are
//! met exactly (`tests/golden/quirks.rs`); hits here evict nobody.

mod config;
#[cfg(test)]
mod tests;

use config::INFO;
pub use config::LirsConfig;

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};
use crate::structures::queues::Queues;
use crate::{Key, Occupancy, Policy, PolicyInfo, PoolShape, Room};

const ABSENT: u8 = 0;
const LIR: u8 = 1;
const HIR: u8 = 2;
/// An HIR key that left, still in the stack.
const GONE: u8 = 3;

/// The queue of resident HIR keys, and that of those that left.
const Q: u8 = 0;
const LEFT: u8 = 1;

/// Low inter-reference recency set.
#[derive(Debug, Clone)]
pub struct Lirs {
    stack: Links,
    order: List,
    stacked: u32,
    queues: Queues<2>,
    state: Vec<u8>,
    /// LIR keys, and the most that may be.
    lirs: u32,
    most_lirs: u32,
    config: LirsConfig,
    slots: Occupancy,
}

impl Lirs {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &LirsConfig) -> Self {
        let stack = Links::new(pool.keys, 1);
        let mut lirs = Self {
            order: stack.list(0),
            stack,
            stacked: 0,
            queues: Queues::new(pool.keys),
            state: vec![ABSENT; pool.keys as usize],
            lirs: 0,
            most_lirs: 0,
            config: *config,
            slots: Occupancy::new(0),
        };
        lirs.set_capacity(pool.capacity);
        lirs
    }

    /// Puts a key on the stack's top. Without LIR keys the stack is empty: pruning would take the
    /// key out at once.
    #[inline(always)]
    fn stack_up(&mut self, key: Key) {
        if self.stack.contains(key) {
            self.stack.move_to_front(self.order, key);
        } else if self.lirs > 0 {
            self.stack.push_front(self.order, key);
            self.stacked += 1;
        }
    }

    #[inline(always)]
    fn unstack(&mut self, key: Key) {
        self.stack.unlink(key);
        self.stacked -= 1;
    }

    /// Takes HIR keys off the stack's bottom; those that left are forgotten.
    #[inline(always)]
    fn prune(&mut self) {
        while let Some(key) = self.stack.back(self.order)
            && self.state[key as usize] != LIR
        {
            self.forget_in_stack(key);
        }
    }

    #[inline(always)]
    fn forget_in_stack(&mut self, key: Key) {
        self.unstack(key);
        if self.state[key as usize] == GONE {
            self.state[key as usize] = ABSENT;
            self.queues.unlink(key);
        }
    }

    /// Makes a key LIR that is in no queue; one LIR key too many becomes HIR.
    #[inline(always)]
    fn become_lir(&mut self, key: Key) {
        self.state[key as usize] = LIR;
        self.lirs += 1;
        self.stack_up(key);
        if self.lirs > self.most_lirs {
            self.demote();
        }
        self.prune();
    }

    #[inline(always)]
    fn demote(&mut self) {
        self.prune();
        if let Some(key) = self.stack.back(self.order) {
            self.unstack(key);
            self.state[key as usize] = HIR;
            self.queues.push_front(Q, key);
            self.lirs -= 1;
        }
    }

    #[inline(always)]
    fn limit_stack(&mut self) {
        while self.stacked > 2 * self.slots.capacity
            && let Some(key) = self.queues.back(LEFT)
        {
            self.forget_in_stack(key);
        }
    }

    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.queues.find_from_back(Q, &may_leave).or_else(|| {
            let lir = |key| self.state[key as usize] == LIR && may_leave(key);
            self.stack.find_from_back(self.order, lir)
        })
    }

    #[inline(always)]
    fn leave(&mut self, victim: Key) {
        if self.state[victim as usize] == LIR || !self.stack.contains(victim) {
            self.discard(victim);
        } else {
            self.state[victim as usize] = GONE;
            self.queues.transfer(Q, LEFT, victim);
        }
    }
}

impl Listed for Lirs {
    type Config = LirsConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &LirsConfig) -> Self {
        Lirs::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &LirsConfig) -> u64 {
        sum([Links::memory(pool.keys, 1), Queues::<2>::memory(pool.keys), array::<u8>(pool.keys)])
    }
}

impl Policy for Lirs {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        matches!(self.state[key as usize], LIR | HIR)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        if self.state[key as usize] == LIR {
            let was_bottom = self.stack.back(self.order) == Some(key);
            self.stack.move_to_front(self.order, key);
            if was_bottom {
                self.prune();
            }
        } else if self.stack.contains(key) {
            self.queues.unlink(key);
            self.become_lir(key);
        } else {
            self.queues.refresh(Q, key);
            self.stack_up(key);
            self.limit_stack();
        }
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if !self.slots.is_full() {
            return true;
        }
        let Some(victim) = self.victim(|key| room.may_evict(key)) else {
            return false;
        };
        // On top before a LIR key leaves and the stack is pruned.
        if self.state[key as usize] == GONE {
            self.stack.move_to_front(self.order, key);
        }
        self.leave(victim);
        self.slots.taken -= 1;
        room.evict(victim);
        true
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        if self.state[key as usize] == GONE {
            self.queues.unlink(key);
            self.become_lir(key);
        } else if self.lirs < self.most_lirs {
            self.state[key as usize] = LIR;
            self.lirs += 1;
            self.stack_up(key);
        } else {
            self.state[key as usize] = HIR;
            self.stack_up(key);
            self.queues.push_front(Q, key);
        }
        self.limit_stack();
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.leave(victim);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        if self.stack.contains(key) {
            self.unstack(key);
        }
        if self.state[key as usize] == LIR {
            self.lirs -= 1;
            self.prune();
        } else {
            self.queues.unlink(key);
        }
        self.state[key as usize] = ABSENT;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        let hirs = ((f64::from(capacity) * self.config.hirs) as u32).max(1);
        self.most_lirs = capacity.saturating_sub(hirs);
        while self.lirs > self.most_lirs {
            self.demote();
        }
        self.prune();
        self.limit_stack();
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let stacked = self.stack.validate(self.order)?;
        let count = |wanted| self.state.iter().filter(|&&state| state == wanted).count() as u32;
        let bottom = self.stack.back(self.order).map(|key| self.state[key as usize]);
        if stacked != self.stacked || count(LIR) != self.lirs || bottom.is_some_and(|at| at != LIR)
        {
            return Err(format!("stack of {stacked}, {} LIR, bottom {bottom:?}", self.lirs));
        }
        if count(HIR) != self.queues.len(Q) || count(GONE) != self.queues.len(LEFT) {
            return Err(format!("{} HIR, {} gone", count(HIR), count(GONE)));
        }
        self.slots.agree_with(self.lirs + self.queues.len(Q))?;
        if self.lirs > self.most_lirs {
            return Err(format!("{} LIR, but at most {}", self.lirs, self.most_lirs));
        }
        let misplaced = (0..).zip(&self.state).any(|(key, &state)| {
            let queue = [Queues::<2>::NOWHERE, Queues::<2>::NOWHERE, Q, LEFT][state as usize];
            let stacked = self.stack.contains(key);
            self.queues.of(key) != queue || (stacked != matches!(state, LIR | GONE) && state != HIR)
        });
        if misplaced { Err("a key is in the wrong queue or stack".to_owned()) } else { Ok(()) }
    }
}
