//! CLOCK: FIFO with one reference bit; a key that was used since the hand last passed gets
//! another round.
//!
//! Source: F. J. Corbató, "A paging experiment with the Multics system", 1968. A key enters with
//! its bit clear.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::ring::Ring;
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "clock",
    summary: "FIFO, with another round for what was used since",
    definition: "A queue with one bit a key. Admission puts a key at the newest end, bit clear; a hit sets the bit. The victim is the oldest key; if its bit is set, the bit is cleared, the key moves to the newest end, and the next is looked at.",
    source: "F. J. Corbato, A paging experiment with the Multics system, 1968; libCacheSim's Clock",
    needs: Need::Nothing,
    parameters: &[],
};

const RESIDENT: u8 = 1;
const REFERENCED: u8 = 2;

/// Second-chance FIFO.
#[derive(Debug, Clone)]
pub struct Clock {
    ring: Ring,
    state: Vec<u8>,
    slots: Occupancy,
}

impl Clock {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        Self {
            ring: Ring::new(pool.keys),
            state: vec![0; pool.keys as usize],
            slots: Occupancy::new(pool.capacity),
        }
    }
}

impl Listed for Clock {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        sum([Ring::memory(pool.keys), array::<u8>(pool.keys)])
    }
}

impl Policy for Clock {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.state[key as usize] != 0
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.state[key as usize] = RESIDENT | REFERENCED;
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.ring.push(key);
        self.state[key as usize] = RESIDENT;
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let state = &mut self.state;
        let victim = self.ring.take_after_second_chances(&may_leave, |key| {
            let referenced = state[key as usize] & REFERENCED != 0;
            state[key as usize] = RESIDENT;
            referenced
        });
        let victim = victim?;
        self.state[victim as usize] = 0;
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.ring.remove(key);
        self.state[key as usize] = 0;
    }

    fn validate(&self) -> Result<(), String> {
        self.ring.validate()?;
        let resident = self.state.iter().filter(|&&state| state != 0).count() as u32;
        if resident != self.ring.len() || resident > self.slots.capacity {
            return Err(format!("{resident} resident, {} in the ring", self.ring.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn a_used_key_gets_another_round() {
        let mut clock = Clock::new(&PoolShape::flat(3, 8));
        for key in [0, 1, 2] {
            assert!(clock.admit(key, &mut Anyone));
        }
        clock.hit(0);
        assert!(clock.admit(3, &mut Anyone)); // 0 has its second chance, 1 leaves
        assert_eq!(clock.ring.iter().collect::<Vec<_>>(), [2, 0, 3]);
        assert!(clock.admit(4, &mut Anyone)); // 2 leaves
        assert!(clock.admit(5, &mut Anyone)); // 0's bit is clear again: it leaves
        assert_eq!(clock.ring.iter().collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(clock.validate(), Ok(()));
    }
}
