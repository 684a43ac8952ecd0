//! 2Q, the full version: a FIFO for new keys, an LRU for keys that came back after leaving it.
//!
//! Source: T. Johnson and D. Shasha, "2Q: a low overhead high performance buffer management
//! replacement algorithm", VLDB 1994. Sizes and the bound on the LRU are libCacheSim's.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::registry::share;
use crate::structures::queues::Queues;
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "2q",
    summary: "a FIFO for new experts, an LRU for those that came back",
    definition: "A1in is a FIFO, A1out remembers the last floor(slots x out) keys that left it, Am is an LRU. A hit in Am makes a key Am's most recent, a hit in A1in does nothing. When full, the victim is Am's least recent if Am is not empty and A1in is at most floor(slots x in) long, else A1in's oldest, which A1out then remembers; if that list has no key that may leave, the other's. A key in A1out is admitted to Am, whose least recent leaves if Am has slots - floor(slots x in) keys; any other key to A1in.",
    source: "T. Johnson and D. Shasha, 2Q, VLDB 1994; libCacheSim's TwoQ",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "in", default: "0.25", meaning: "A1in's share of the slots, 0 to 1" },
        Parameter { name: "out", default: "0.5", meaning: "A1out's length in slots, 0 to 8" },
    ],
};

/// Parameters of [`TwoQ`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TwoQConfig {
    /// Share of the slots that A1in may keep when Am asks for room, 0 to 1.
    #[serde(rename = "in")]
    pub a1in: f64,
    /// Keys that A1out remembers, as a share of the slots, 0 to 8.
    #[serde(rename = "out")]
    pub a1out: f64,
}

impl Default for TwoQConfig {
    fn default() -> Self {
        Self { a1in: 0.25, a1out: 0.5 }
    }
}

impl Config for TwoQConfig {
    fn check(&self) -> Result<(), String> {
        share("in", self.a1in, 0.0..=1.0)?;
        share("out", self.a1out, 0.0..=8.0)
    }
}

const A1IN: u8 = 0;
const AM: u8 = 1;
const A1OUT: u8 = 2;

/// Full 2Q.
#[derive(Debug, Clone)]
pub struct TwoQ {
    queues: Queues<3>,
    config: TwoQConfig,
    most_in: u32,
    most_out: u32,
    /// Whether the key that is about to enter was found in A1out.
    came_back: bool,
    slots: Occupancy,
}

/// Who has to leave, and which list has it.
#[derive(Clone, Copy)]
struct Victim {
    list: u8,
    key: Key,
}

impl TwoQ {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &TwoQConfig) -> Self {
        let queues = Queues::new(pool.keys);
        let mut this = Self {
            queues,
            config: *config,
            most_in: 0,
            most_out: 0,
            came_back: false,
            slots: Occupancy::new(0),
        };
        this.set_capacity(pool.capacity);
        this
    }

    /// The list to take from and its key that has to leave.
    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Victim> {
        let am_first = self.queues.len(AM) > 0 && self.queues.len(A1IN) <= self.most_in;
        let (first, second) = if am_first { (AM, A1IN) } else { (A1IN, AM) };
        let of = |list| {
            let key = self.queues.find_from_back(list, &may_leave)?;
            Some(Victim { list, key })
        };
        of(first).or_else(|| of(second))
    }

    #[inline(always)]
    fn leave(&mut self, Victim { list, key }: Victim) {
        if list == A1IN {
            self.queues.transfer(A1IN, A1OUT, key);
            self.queues.trim_back(A1OUT, self.most_out);
        } else {
            self.queues.unlink(key);
        }
    }

    #[inline(always)]
    fn evict<R: Room>(&mut self, victim: Victim, room: &mut R) {
        self.leave(victim);
        self.slots.taken -= 1;
        room.evict(victim.key);
    }
}

impl Listed for TwoQ {
    type Config = TwoQConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &TwoQConfig) -> Self {
        TwoQ::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &TwoQConfig) -> u64 {
        Queues::<3>::memory(pool.keys)
    }
}

impl Policy for TwoQ {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= AM
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        if self.queues.of(key) == AM {
            self.queues.refresh(AM, key);
        }
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        let full = self.slots.is_full();
        let victim = if full { self.victim(|key| room.may_evict(key)) } else { None };
        if full && victim.is_none() {
            return false;
        }
        // Before a victim may push it out of A1out.
        self.came_back = self.queues.of(key) == A1OUT;
        if self.came_back {
            self.queues.unlink(key);
        }
        if let Some(victim) = victim {
            self.evict(victim, room);
        }
        if self.came_back
            && self.queues.len(AM) >= self.slots.capacity - self.most_in
            && let Some(other) = self.queues.find_from_back(AM, |key| room.may_evict(key))
        {
            self.evict(Victim { list: AM, key: other }, room);
        }
        true
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let list = if std::mem::take(&mut self.came_back) { AM } else { A1IN };
        self.queues.push_front(list, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.leave(victim);
        Some(victim.key)
    }

    fn discard(&mut self, key: Key) {
        self.queues.unlink(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        self.most_in = (f64::from(capacity) * self.config.a1in) as u32;
        self.most_out = (f64::from(capacity) * self.config.a1out) as u32;
        while self.queues.len(A1OUT) > self.most_out {
            self.queues.trim_back(A1OUT, self.most_out);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let remembered = self.queues.len(A1OUT);
        if remembered > self.most_out {
            return Err(format!("{remembered} remembered, but at most {}", self.most_out));
        }
        self.slots.agree_with(self.queues.len(A1IN) + self.queues.len(AM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn a_key_that_comes_back_goes_to_the_lru() {
        // Four slots: A1in keeps one when Am wants room, A1out remembers two.
        let mut two_q = TwoQ::configured(&PoolShape::flat(4, 9), &TwoQConfig::default());
        let lists = |two_q: &TwoQ, at| two_q.queues.iter(at).collect::<Vec<_>>();
        for key in [0, 1, 2, 3, 4, 5] {
            assert!(two_q.admit(key, &mut Anyone)); // Am is empty: 0 and 1 leave A1in
        }
        assert_eq!((lists(&two_q, A1IN), lists(&two_q, A1OUT)), (vec![5, 4, 3, 2], vec![1, 0]));
        assert!(two_q.admit(0, &mut Anyone)); // 2 leaves, 0 comes back into Am
        two_q.hit(3); // changes nothing
        assert_eq!((lists(&two_q, A1IN), lists(&two_q, AM)), (vec![5, 4, 3], vec![0]));
        assert_eq!(lists(&two_q, A1OUT), [2, 1]);
        assert!(two_q.admit(1, &mut Anyone)); // 3 leaves
        assert!(two_q.admit(2, &mut Anyone)); // 4 leaves: A1in is down to its one slot
        assert!(two_q.admit(6, &mut Anyone)); // so Am's least recent, 0, has to go, unremembered
        assert_eq!((lists(&two_q, A1IN), lists(&two_q, AM)), (vec![6, 5], vec![2, 1]));
        assert_eq!(lists(&two_q, A1OUT), [4, 3]);
        assert_eq!(two_q.validate(), Ok(()));
    }
}
