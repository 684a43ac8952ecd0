//! Segmented LRU as the cache literature has it: equal segments, and a hit climbs one segment.
//!
//! Source: R. Karedla, J. S. Love and B. G. Wherry, "Caching strategies to improve disk system
//! performance", IEEE Computer 27(3), 1994; with four segments, libCacheSim's SLRU. Counts equal
//! libCacheSim's where four divides the number of slots. Where it does not, libCacheSim gives every
//! segment `C / 4`, lets the lowest run over and evicts the surplus on the next *hit* in it (met
//! exactly in `tests/golden/quirks.rs`); here the lowest segment is given the remainder, and hits
//! evict nobody.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::queues::Queues;
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape};

const MOST: u32 = 8;

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "slru",
    summary: "LRU in equal segments; each hit climbs one segment",
    definition: "Segments of floor(slots / segments), the lowest also has the remainder. Admission goes to the front of the lowest segment that has room, else of the lowest. A hit moves to the front of the next segment (in the highest: of its own); if that is then too long, its least recent key goes to the front of the one below. The victim is the least recent of the lowest segment that has a key that may leave.",
    source: "R. Karedla, J. S. Love and B. G. Wherry, Caching strategies to improve disk system performance, IEEE Computer 27(3), 1994; libCacheSim's SLRU",
    needs: Need::Nothing,
    parameters: &[Parameter {
        name: "segments",
        default: "4",
        meaning: "number of segments, 1 to 8",
    }],
};

/// Parameters of [`Slru`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlruConfig {
    /// Number of segments, 1 to 8.
    pub segments: u32,
}

impl Default for SlruConfig {
    fn default() -> Self {
        Self { segments: 4 }
    }
}

impl Config for SlruConfig {
    fn check(&self) -> Result<(), String> {
        if (1..=MOST).contains(&self.segments) {
            return Ok(());
        }
        Err(format!("segments = {} is not within 1 to {MOST}", self.segments))
    }
}

/// Segmented LRU.
#[derive(Debug, Clone)]
pub struct Slru {
    queues: Queues<{ MOST as usize }>,
    /// Slots of each segment, lowest first.
    longest: [u32; MOST as usize],
    segments: u8,
    slots: Occupancy,
}

impl Slru {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &SlruConfig) -> Self {
        let segments = config.segments.clamp(1, MOST) as u8;
        let queues = Queues::new(pool.keys);
        let mut slru =
            Self { queues, longest: [0; MOST as usize], segments, slots: Occupancy::new(0) };
        slru.set_capacity(pool.capacity);
        slru
    }

    /// Moves the least recent key of a segment that is too long to the one below.
    #[inline(always)]
    fn cool(&mut self, segment: u8) {
        if self.queues.len(segment) > self.longest[segment as usize]
            && let Some(key) = self.queues.back(segment)
        {
            self.queues.transfer(segment, segment - 1, key);
        }
    }
}

impl Listed for Slru {
    type Config = SlruConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &SlruConfig) -> Self {
        Slru::configured(pool, config)
    }

    fn memory(pool: &PoolShape, _: &SlruConfig) -> u64 {
        Queues::<{ MOST as usize }>::memory(pool.keys)
    }
}

impl Policy for Slru {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) < MOST as u8
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let segment = self.queues.of(key);
        if segment + 1 == self.segments {
            self.queues.refresh(segment, key);
        } else {
            self.queues.transfer(segment, segment + 1, key);
            self.cool(segment + 1);
        }
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        let has_room = |&at: &u8| self.queues.len(at) < self.longest[at as usize];
        let segment = (0..self.segments).find(has_room).unwrap_or(0);
        self.queues.push_front(segment, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        for segment in 0..self.segments {
            if let Some(victim) = self.queues.find_from_back(segment, &may_leave) {
                self.discard(victim);
                return Some(victim);
            }
        }
        None
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        self.queues.unlink(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        let segments = u32::from(self.segments);
        self.slots.capacity = capacity;
        self.longest = [capacity / segments; MOST as usize];
        self.longest[0] += capacity % segments;
        for segment in (1..self.segments).rev() {
            while self.queues.len(segment) > self.longest[segment as usize] {
                self.cool(segment);
            }
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let lengths: Vec<u32> = (0..MOST as u8).map(|at| self.queues.len(at)).collect();
        let over = (1..self.segments).any(|at| lengths[at as usize] > self.longest[at as usize]);
        if over
            || lengths.iter().sum::<u32>() != self.slots.taken
            || self.slots.taken > self.slots.capacity
        {
            return Err(format!("segments of {lengths:?}, {} resident", self.slots.taken));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    #[test]
    fn hits_climb_and_what_does_not_fit_cools() {
        // Two segments of two slots each.
        let mut slru = Slru::configured(&PoolShape::flat(4, 9), &SlruConfig { segments: 2 });
        for key in [0, 1, 2, 3] {
            assert!(slru.admit(key, &mut Anyone)); // 0 1 fill the lower segment, 2 3 the upper
        }
        slru.hit(0); // climbs; 2, the least recent above, cools
        assert_eq!(slru.queues.iter(1).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(slru.queues.iter(0).collect::<Vec<_>>(), [2, 1]);
        assert!(slru.admit(4, &mut Anyone)); // 1 leaves
        assert_eq!(slru.queues.iter(0).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(slru.validate(), Ok(()));
    }
}
