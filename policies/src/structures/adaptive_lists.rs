//! The four lists of ARC and CAR: what was used once (T1), again (T2), and what left either (B1,
//! B2), with a target for T1 that moves towards the list whose evictions were regretted.
//!
//! Source: N. Megiddo and D. S. Modha, FAST 2003, figure 4; S. Bansal and D. S. Modha, FAST 2004,
//! figure 2. The target is a real number and moves by real quotients.

use crate::occupancy::Occupancy;
use crate::policy::{Key, PoolShape};
use crate::structures::queues::Queues;

pub(crate) const T1: u8 = 0;
pub(crate) const T2: u8 = 1;
pub(crate) const B1: u8 = 2;
pub(crate) const B2: u8 = 3;

/// T1 and T2 hold what is resident.
#[derive(Debug, Clone)]
pub(crate) struct AdaptiveLists {
    pub(crate) queues: Queues<4>,
    /// Target length of T1.
    pub(crate) target: f64,
    pub(crate) slots: Occupancy,
}

impl AdaptiveLists {
    pub(crate) fn new(pool: &PoolShape) -> Self {
        Self { queues: Queues::new(pool.keys), target: 0.0, slots: Occupancy::new(pool.capacity) }
    }

    /// Bytes that the lists of so many keys allocate.
    pub(crate) fn memory(keys: u32) -> u64 {
        Queues::<4>::memory(keys)
    }

    /// Keys of a list, as the target is compared with.
    #[inline(always)]
    pub(crate) fn length(&self, list: u8) -> f64 {
        f64::from(self.queues.len(list))
    }

    #[inline(always)]
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= T2
    }

    /// Whether T1 alone takes all slots.
    #[inline(always)]
    pub(crate) fn t1_is_all(&self) -> bool {
        self.queues.len(T1) >= self.slots.capacity
    }

    /// T1's target after a miss on a key in B1 or B2, or on another.
    #[inline(always)]
    pub(crate) fn adapted(&self, from: u8) -> f64 {
        let (b1, b2) = (self.length(B1), self.length(B2));
        match from {
            B1 => (self.target + (b2 / b1).max(1.0)).min(f64::from(self.slots.capacity)),
            B2 => (self.target - (b1 / b2).max(1.0)).max(0.0),
            _ => self.target,
        }
    }

    /// The last key that may leave of `first`, else of the other of T1 and T2, and its list.
    #[inline(always)]
    pub(crate) fn last(&self, first: u8, may_leave: impl Fn(Key) -> bool) -> Option<(u8, Key)> {
        let of = |list| Some((list, self.queues.find_from_back(list, &may_leave)?));
        of(first).or_else(|| of(T1 + T2 - first))
    }

    fn once(&self) -> u32 {
        self.queues.len(T1) + self.queues.len(B1)
    }

    fn all(&self) -> u32 {
        self.once() + self.queues.len(T2) + self.queues.len(B2)
    }

    /// Lets a key in that no list has: B1's last is forgotten where T1 and B1 hold as many as there
    /// are slots, else B2's where all lists hold twice as many.
    #[inline(always)]
    pub(crate) fn enter(&mut self, key: Key) {
        if self.once() >= self.slots.capacity {
            self.queues.trim_back(B1, 0);
        } else if self.all() >= 2 * self.slots.capacity {
            self.queues.trim_back(B2, 0);
        }
        self.queues.push_front(T1, key);
    }

    pub(crate) fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        self.target = self.target.min(f64::from(capacity));
        while self.once() > capacity && self.queues.len(B1) > 0 {
            self.queues.trim_back(B1, 0);
        }
        while self.all() > 2 * capacity && self.queues.len(B2) > 0 {
            self.queues.trim_back(B2, 0);
        }
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let c = self.slots.capacity;
        let on_target = (0.0..=f64::from(c)).contains(&self.target);
        if self.once() > c || self.all() > 2 * c || !on_target {
            let lengths = [T1, T2, B1, B2].map(|list| self.queues.len(list));
            return Err(format!("T1 T2 B1 B2 of {lengths:?}, target {}, c {c}", self.target));
        }
        self.slots.agree_with(self.queues.len(T1) + self.queues.len(T2))
    }
}
