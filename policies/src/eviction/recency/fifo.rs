//! FIFO: evicts the key that was brought in longest ago; use changes nothing.
//!
//! A ring buffer rather than links. Keys that left it out of turn (another key was protected, a
//! slot was invalidated) leave a hole that the hand passes over.

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::ring::Ring;
use crate::{Key, Need, NoConfig, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "fifo",
    summary: "evicts the expert brought in longest ago",
    definition: "Keys leave in the order in which they were admitted; a hit changes nothing.",
    source: "folklore; the baseline of BigMoeOnEdge and tinyserve",
    needs: Need::Nothing,
    parameters: &[],
};

/// First in, first out.
#[derive(Debug, Clone)]
pub struct Fifo {
    ring: Ring,
    resident: Vec<bool>,
    slots: Occupancy,
}

impl Fifo {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        Self {
            ring: Ring::new(pool.keys),
            resident: vec![false; pool.keys as usize],
            slots: Occupancy::new(pool.capacity),
        }
    }
}

impl Listed for Fifo {
    type Config = NoConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, _: &NoConfig) -> Self {
        Self::new(pool)
    }

    fn memory(pool: &PoolShape, _: &NoConfig) -> u64 {
        sum([Ring::memory(pool.keys), array::<bool>(pool.keys)])
    }
}

impl Policy for Fifo {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.resident[key as usize]
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.ring.push(key);
        self.resident[key as usize] = true;
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.ring.take_oldest(&may_leave)?;
        self.resident[victim as usize] = false;
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.ring.remove(key);
        self.resident[key as usize] = false;
    }

    fn validate(&self) -> Result<(), String> {
        self.ring.validate()?;
        let resident = self.resident.iter().filter(|&&here| here).count() as u32;
        if resident != self.ring.len() || resident > self.slots.capacity {
            return Err(format!("{resident} resident, {} in the ring", self.ring.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TEXTBOOK, run_sequential};

    #[test]
    fn textbook_string_has_fifteen_faults_at_three_frames() {
        let mut fifo = Fifo::new(&PoolShape::flat(3, 8));
        assert_eq!(run_sequential(&mut fifo, &TEXTBOOK), 15);
    }
}
