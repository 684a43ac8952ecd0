//! A queue of keys in a ring buffer, oldest first, for policies that never reorder on a hit.
//!
//! Taking a key out of turn leaves a hole that later passes skip; when holes have filled the
//! buffer it is packed. Pushing and taking the oldest key stay O(1) amortised.

use crate::Key;

const HOLE: Key = Key::MAX;

/// A first-in, first-out queue that allows removal out of turn.
#[derive(Debug, Clone)]
pub struct Ring {
    buffer: Vec<Key>,
    /// Absolute positions; the index is the position modulo the buffer's length.
    oldest: u64,
    newest: u64,
    len: u32,
}

impl Ring {
    /// An empty queue for at most `keys` keys.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        let buffer = vec![HOLE; 2 * (keys as usize + 1).next_power_of_two()];
        Self { buffer, oldest: 0, newest: 0, len: 0 }
    }

    /// Number of keys in the queue.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no key is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a key that is not in the queue. Returns whether the buffer was packed for it.
    #[inline(always)]
    pub fn push(&mut self, key: Key) -> bool {
        let full = self.newest - self.oldest == self.buffer.len() as u64;
        if full {
            self.pack();
        }
        let index = self.index(self.newest);
        self.buffer[index] = key;
        self.newest += 1;
        self.len += 1;
        full
    }

    /// Takes the oldest key for which `wanted` holds; the others keep their places.
    #[inline(always)]
    pub fn take_oldest(&mut self, wanted: impl Fn(Key) -> bool) -> Option<Key> {
        self.skip_holes();
        let mut place = self.oldest;
        while place < self.newest {
            let key = self.buffer[self.index(place)];
            if key != HOLE && wanted(key) {
                self.take(place);
                return Some(key);
            }
            place += 1;
        }
        None
    }

    /// CLOCK's hand: passes over keys that are not `wanted`; of the rest, moves each for which
    /// `second_chance` holds to the newest end and takes the first for which it does not.
    #[inline(always)]
    pub fn take_after_second_chances(
        &mut self,
        wanted: impl Fn(Key) -> bool,
        mut second_chance: impl FnMut(Key) -> bool,
    ) -> Option<Key> {
        self.skip_holes();
        let mut place = self.oldest;
        while place < self.newest {
            let key = self.buffer[self.index(place)];
            if key != HOLE && wanted(key) {
                self.take(place);
                if !second_chance(key) {
                    return Some(key);
                }
                if self.push(key) {
                    // Packing moved every place, but kept the order: what was passed over stands
                    // in front again, what got its second chance behind.
                    place = self.oldest;
                    continue;
                }
            }
            place += 1;
        }
        None
    }

    /// Removes a key from wherever it is; O(n).
    pub fn remove(&mut self, key: Key) {
        let found = (self.oldest..self.newest).find(|&at| self.buffer[self.index(at)] == key);
        if let Some(place) = found {
            self.take(place);
        }
    }

    /// The keys, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Key> + '_ {
        (self.oldest..self.newest)
            .map(|place| self.buffer[self.index(place)])
            .filter(|&key| key != HOLE)
    }

    /// Checks the count against the buffer and that no key is queued twice.
    ///
    /// # Errors
    /// Says which of the two is broken.
    pub fn validate(&self) -> Result<(), String> {
        let mut keys: Vec<_> = self.iter().collect();
        keys.sort_unstable();
        keys.dedup();
        if self.len > 0 && self.buffer[self.index(self.oldest)] == HOLE {
            return Err("the oldest place of a ring is a hole".to_owned());
        }
        if keys.len() as u32 != self.len {
            return Err(format!("{} distinct keys in a ring of {}", keys.len(), self.len));
        }
        Ok(())
    }

    #[inline(always)]
    fn index(&self, place: u64) -> usize {
        place as usize & (self.buffer.len() - 1)
    }

    /// Moves the old end past the holes behind it, so that none is looked at twice.
    #[inline(always)]
    fn skip_holes(&mut self) {
        while self.oldest < self.newest && self.buffer[self.index(self.oldest)] == HOLE {
            self.oldest += 1;
        }
    }

    #[inline(always)]
    fn take(&mut self, place: u64) {
        let index = self.index(place);
        self.buffer[index] = HOLE;
        self.len -= 1;
        if place == self.oldest {
            // The oldest place must hold a key: searches start there, and a hole left at the front
            // would keep all later ones from being passed for good.
            self.oldest += 1;
            while self.oldest < self.newest && self.buffer[self.index(self.oldest)] == HOLE {
                self.oldest += 1;
            }
        }
    }

    /// Moves the keys together, keeping their order.
    #[cold]
    fn pack(&mut self) {
        let keys: Vec<Key> = self.iter().collect();
        self.buffer.fill(HOLE);
        self.buffer[..keys.len()].copy_from_slice(&keys);
        (self.oldest, self.newest) = (0, keys.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_skipped_and_packed_away() {
        let mut ring = Ring::new(3); // a buffer of 8
        for key in [0, 1, 2] {
            ring.push(key);
        }
        // 0 stays in place while 1 and 2 go round until the buffer is full of holes.
        for _ in 0..20 {
            let key = ring.take_oldest(|key| key != 0).unwrap();
            ring.push(key);
            assert_eq!(ring.iter().next(), Some(0));
            assert_eq!((ring.len(), ring.validate()), (3, Ok(())));
        }
        // Taking 0 passes the holes behind it too.
        ring.take_oldest(|_| true);
        assert_eq!((ring.newest - ring.oldest, ring.validate()), (2, Ok(())));
        ring.push(0);
        ring.remove(0);
        assert_eq!(ring.iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(ring.take_oldest(|_| false), None);
    }

    #[test]
    fn a_second_chance_moves_a_key_behind_the_others() {
        let mut ring = Ring::new(4);
        for key in 0..4 {
            ring.push(key);
        }
        let mut referenced = [true, true, false, true];
        let mut chance = |key: Key| std::mem::take(&mut referenced[key as usize]);
        // 0 may not leave, 1 gets its chance, 2 has none.
        assert_eq!(ring.take_after_second_chances(|key| key != 0, &mut chance), Some(2));
        assert_eq!(ring.iter().collect::<Vec<_>>(), [0, 3, 1]);
        // All referenced bits but 3's are gone: 3 goes behind 1, then 0 leaves.
        assert_eq!(ring.take_after_second_chances(|key| key != 0, &mut chance), Some(1));
        assert_eq!(ring.iter().collect::<Vec<_>>(), [0, 3]);
        assert_eq!(ring.take_after_second_chances(|_| false, &mut chance), None);
    }
}
