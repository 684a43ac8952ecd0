//! Pins beside any policy: some slots hold the experts used most, a policy has the others.

use super::by_count;
use crate::occupancy::{Occupancy, counted_in};
use crate::structures::memory::{array, sum};
use crate::{Event, Key, Policy, PoolShape, Room};

/// `policy` over the slots that are not kept for pinned keys. A pinned key takes one of the kept
/// slots and leaves only when the pool shrinks and nobody else may.
#[derive(Debug, Clone)]
pub struct Pinned<P> {
    policy: P,
    /// The pinned keys, used most first.
    pins: Box<[Key]>,
    states: Box<[State]>,
    /// Pinned keys that are resident.
    resident: u32,
    /// Slots kept for pinned keys; the policy has the others.
    kept: u32,
    /// All slots, the policy's too.
    slots: Occupancy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Absent,
    Resident,
}

impl<P: Policy> Pinned<P> {
    /// Pins `pins` keys with the largest `counts` (one a key) in an empty pool; `policy` makes the
    /// policy of the rest of the slots.
    pub fn new(
        pool: &PoolShape,
        counts: &[u64],
        pins: u32,
        policy: impl FnOnce(&PoolShape) -> P,
    ) -> Self {
        let kept = pins.min(pool.capacity).min(pool.keys);
        let mut ranked = by_count(pool.keys, counts);
        ranked.truncate(kept as usize);
        let mut states = vec![State::Free; pool.keys as usize];
        for &key in &ranked {
            states[key as usize] = State::Absent;
        }
        Self {
            policy: policy(&PoolShape { capacity: pool.capacity - kept, ..pool.clone() }),
            pins: ranked.into_boxed_slice(),
            states: states.into_boxed_slice(),
            resident: 0,
            kept,
            slots: Occupancy::new(pool.capacity),
        }
    }

    /// The pinned keys, used most first.
    #[must_use]
    pub fn pins(&self) -> &[Key] {
        &self.pins
    }

    /// Bytes that the pins of such a pool take beside the policy.
    #[must_use]
    pub(crate) fn memory(pool: &PoolShape, pins: u32) -> u64 {
        sum([array::<State>(pool.keys), array::<Key>(pins.min(pool.keys))])
    }
}

impl<P: Policy> Policy for Pinned<P> {
    const OBSERVES: bool = P::OBSERVES;
    const READS_WEIGHTS: bool = P::READS_WEIGHTS;
    const PROFILED: bool = P::PROFILED;

    counted_in!(slots);

    fn contains(&self, key: Key) -> bool {
        match self.states[key as usize] {
            State::Free => self.policy.contains(key),
            state => state == State::Resident,
        }
    }

    fn hit(&mut self, key: Key) {
        if self.states[key as usize] == State::Free {
            self.policy.hit(key);
        }
    }

    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if self.states[key as usize] != State::Free {
            return self.resident < self.kept;
        }
        let made = self.kept < self.slots.capacity && self.policy.make_room(key, room);
        // Whoever left for it was the policy's.
        self.slots.taken = self.resident + self.policy.len();
        made
    }

    fn enter(&mut self, key: Key) {
        if self.states[key as usize] == State::Free {
            self.policy.enter(key);
            self.policy.slots_mut().taken += 1;
        } else {
            self.states[key as usize] = State::Resident;
            self.resident += 1;
        }
    }

    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        if !self.policy.is_empty()
            && let Some(victim) = self.policy.pop(&may_leave)
        {
            self.policy.slots_mut().taken -= 1;
            return Some(victim);
        }
        let is_out = |&key: &Key| self.states[key as usize] == State::Resident && may_leave(key);
        let victim = self.pins.iter().rev().copied().find(is_out)?;
        self.states[victim as usize] = State::Absent;
        self.resident -= 1;
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        if self.states[key as usize] == State::Free {
            self.policy.remove(key);
        } else {
            self.states[key as usize] = State::Absent;
            self.resident -= 1;
        }
    }

    fn set_capacity(&mut self, capacity: u32) {
        // Whoever of the others has stayed keeps a slot.
        let most = capacity.saturating_sub(self.policy.len());
        self.kept = (self.pins.len() as u32).min(most);
        self.slots.capacity = capacity;
        self.policy.set_capacity(capacity - self.kept);
    }

    fn begin_step(&mut self, tokens: u32) {
        if P::OBSERVES {
            self.policy.begin_step(tokens);
        }
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        if P::OBSERVES {
            self.policy.begin_event(event);
        }
    }

    fn set_profile(&mut self, profile: &[f32]) {
        if P::PROFILED {
            self.policy.set_profile(profile);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.policy.validate()?;
        let resident = self.states.iter().filter(|&&state| state == State::Resident).count();
        if resident != self.resident as usize || self.resident > self.kept {
            return Err(format!("{resident} pins, {} counted, {} kept", self.resident, self.kept));
        }
        let others = self.slots.capacity - self.kept;
        if self.policy.len() > others {
            return Err(format!("{} others in {others} slots", self.policy.len()));
        }
        self.slots.agree_with(self.resident + self.policy.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anyone, Lru};

    /// Keys 1 and 3 are pinned in a pool of three slots: LRU has the third.
    fn pinned() -> Pinned<Lru> {
        Pinned::new(&PoolShape::flat(3, 5), &[1, 9, 2, 8, 0], 2, Lru::new)
    }

    #[test]
    fn the_pins_stay_and_the_policy_has_the_rest() {
        let mut policy = pinned();
        assert_eq!(policy.pins(), [1, 3]);
        for key in [3, 0, 1, 2, 4] {
            assert!(policy.admit(key, &mut Anyone));
            assert_eq!(policy.validate(), Ok(()));
        }
        // 0, 2 and 4 took turns in the one slot beside the pins.
        assert_eq!((0..5).filter(|&key| policy.contains(key)).collect::<Vec<_>>(), [1, 3, 4]);
        policy.hit(1);
        policy.remove(1);
        assert!(!policy.contains(1) && policy.admit(1, &mut Anyone));
    }

    #[test]
    fn a_pool_that_shrinks_loses_the_others_first_and_then_the_pin_used_least() {
        let mut policy = pinned();
        for key in [1, 3, 0] {
            policy.admit(key, &mut Anyone);
        }
        for (slots, left) in [(2, vec![1, 3]), (1, vec![1])] {
            assert!(policy.evict_one(&mut Anyone));
            policy.set_capacity(slots);
            assert_eq!((0..5).filter(|&key| policy.contains(key)).collect::<Vec<_>>(), left);
            assert_eq!(policy.validate(), Ok(()));
        }
        assert!(!policy.admit(3, &mut Anyone) && !policy.admit(0, &mut Anyone));
        policy.set_capacity(3);
        assert!(policy.admit(3, &mut Anyone) && policy.admit(0, &mut Anyone));
        assert_eq!(policy.validate(), Ok(()));
    }

    #[test]
    fn all_slots_may_be_pinned() {
        let mut policy = Pinned::new(&PoolShape::flat(2, 3), &[0, 1, 2], 2, Lru::new);
        assert!(policy.admit(2, &mut Anyone) && policy.admit(1, &mut Anyone));
        assert!(!policy.admit(0, &mut Anyone));
    }
}
