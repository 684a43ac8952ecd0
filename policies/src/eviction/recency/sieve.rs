//! SIEVE: FIFO whose hand stays where it evicted, so that used keys are kept without moving.
//!
//! Source: Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson and K. V. Rashmi, "SIEVE is simpler than LRU",
//! NSDI 2024. On a layer-cyclic stream over one pool it freezes: the hand stays close behind the
//! newest keys and takes each before its layer comes round again.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "sieve",
    summary: "FIFO with a visited bit and a hand that stays in place",
    definition: "A queue with one bit a key. Admission puts a key at the newest end, bit clear; a hit sets the bit. The hand starts at the oldest key, goes towards the newest clearing bits, wraps around, and evicts the first key whose bit is clear; then it stands at the next newer key (past the newest: at the oldest). Keys that may not leave are passed over, bit untouched.",
    source: "Y. Zhang and others, SIEVE is simpler than LRU, NSDI 2024",
    needs: Need::Nothing,
    parameters: &[],
};

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;
const VISITED: u8 = 2;

/// SIEVE, on one linked list.
#[derive(Debug, Clone)]
pub struct Sieve {
    links: Links,
    order: List,
    state: Vec<u8>,
    /// Where the next search starts; `None`: at the oldest.
    hand: Option<Key>,
    slots: Occupancy,
}

impl Sieve {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        let links = Links::new(pool.keys, 1);
        let order = links.list(0);
        let state = vec![ABSENT; pool.keys as usize];
        Self { links, order, state, hand: None, slots: Occupancy::new(pool.capacity) }
    }

    /// Moves the hand to the next victim, clearing bits on its way.
    #[inline(always)]
    fn victim(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let mut place = self.hand;
        // The end of the list may be met twice: before a full round, which clears every bit, and
        // after it. A third time nobody may leave.
        let mut rounds = 0;
        loop {
            let Some(key) = place else {
                rounds += 1;
                if rounds > 3 || self.slots.taken == 0 {
                    return None;
                }
                place = self.links.back(self.order);
                continue;
            };
            if may_leave(key) {
                if self.state[key as usize] == RESIDENT {
                    return Some(key);
                }
                self.state[key as usize] = RESIDENT;
            }
            place = self.links.toward_front(key);
        }
    }
}

impl Listed for Sieve {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        sum([Links::memory(pool.keys, 1), array::<u8>(pool.keys)])
    }
}

impl Policy for Sieve {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.state[key as usize] != ABSENT
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.state[key as usize] = VISITED;
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.links.push_front(self.order, key);
        self.state[key as usize] = RESIDENT;
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.hand = self.links.toward_front(victim);
        self.links.unlink(victim);
        self.state[victim as usize] = ABSENT;
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        if self.hand == Some(key) {
            self.hand = self.links.toward_front(key);
        }
        self.links.unlink(key);
        self.state[key as usize] = ABSENT;
    }

    fn validate(&self) -> Result<(), String> {
        let length = self.links.validate(self.order)?;
        let resident = self.state.iter().filter(|&&state| state != ABSENT).count() as u32;
        let lost = self.hand.is_some_and(|key| !self.contains(key));
        if length != self.slots.taken
            || resident != self.slots.taken
            || length > self.slots.capacity
            || lost
        {
            return Err(format!("list of {length}, {resident} resident, hand at {:?}", self.hand));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn the_hand_stays_where_it_evicted() {
        let mut sieve = Sieve::new(&PoolShape::flat(4, 9));
        for key in [0, 1, 2, 3] {
            assert!(sieve.admit(key, &mut Anyone));
        }
        sieve.hit(0);
        assert!(sieve.admit(4, &mut Anyone)); // clears 0, takes 1, stands at 2
        assert_eq!((sieve.contains(1), sieve.hand), (false, Some(2)));
        sieve.hit(2);
        sieve.hit(3);
        assert!(sieve.admit(5, &mut Anyone)); // clears 2 and 3, takes 4, past the newest
        assert_eq!((sieve.contains(4), sieve.hand), (false, None));
        assert!(sieve.admit(6, &mut Anyone)); // from the oldest again: 0, its bit is clear
        assert_eq!((sieve.contains(0), sieve.hand), (false, Some(2)));
        assert_eq!(sieve.links.iter(sieve.order).collect::<Vec<_>>(), [6, 5, 3, 2]);
        sieve.remove(2);
        assert_eq!((sieve.hand, sieve.validate()), (Some(3), Ok(())));
    }
}
