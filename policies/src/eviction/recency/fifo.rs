//! FIFO: evicts the key that was brought in longest ago; use changes nothing.
//!
//! A ring buffer rather than links. Keys that left it out of turn (another key was protected, a
//! slot was invalidated) leave a hole that the hand passes over.

use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::ring::Ring;
use crate::{Key, Need, NoConfig, Policy, PolicyInfo, PoolShape, Room};

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
    capacity: u32,
}

impl Fifo {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        Self {
            ring: Ring::new(pool.keys),
            resident: vec![false; pool.keys as usize],
            capacity: pool.capacity,
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
    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.resident[key as usize]
    }

    fn len(&self) -> u32 {
        self.ring.len()
    }

    #[inline(always)]
    fn hit(&mut self, _: Key) {}

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.ring.len() >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.ring.push(key);
        self.resident[key as usize] = true;
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let Some(victim) = self.ring.take_oldest(|key| room.may_evict(key)) else {
            return false;
        };
        self.resident[victim as usize] = false;
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.ring.remove(key);
        self.resident[key as usize] = false;
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn validate(&self) -> Result<(), String> {
        self.ring.validate()?;
        let resident = self.resident.iter().filter(|&&here| here).count() as u32;
        if resident != self.ring.len() || resident > self.capacity {
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
