//! A queue of keys in a ring buffer, oldest first, for policies that never reorder on a hit.
//!
//! Taking a key out of turn leaves a hole that later passes skip; when holes have filled the
//! buffer it is packed. Pushing and taking the oldest key stay O(1) amortised. No more of the
//! buffer is used than the queue has needed so far, so that a small cache stays in a processor's
//! first cache.

use crate::policy::Key;
use crate::structures::memory::array;

const HOLE: Key = Key::MAX;

/// A first-in, first-out queue that allows removal out of turn.
#[derive(Debug, Clone)]
pub struct Ring {
    buffer: Vec<Key>,
    /// The part of the buffer in use, a power of two, less one.
    mask: usize,
    /// Absolute positions; the index is the position modulo the part in use.
    oldest: usize,
    newest: usize,
    len: u32,
}

/// The part of the buffer that is used at first.
const FIRST: usize = 8;

impl Ring {
    /// An empty queue for at most `keys` keys.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        let most = Self::places(keys) as usize;
        Self { buffer: vec![HOLE; most], mask: FIRST - 1, oldest: 0, newest: 0, len: 0 }
    }

    /// Places of the buffer for at most `keys` keys.
    fn places(keys: u32) -> u64 {
        (2 * (u64::from(keys) + 1).next_power_of_two()).max(FIRST as u64)
    }

    /// Bytes that a queue of at most `keys` keys allocates.
    pub(crate) fn memory(keys: u32) -> u64 {
        array::<Key>(Self::places(keys))
    }

    /// Number of keys in the queue.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Appends a key that is not in the queue. Returns whether the buffer was packed for it.
    #[inline(always)]
    pub fn push(&mut self, key: Key) -> bool {
        let full = self.newest - self.oldest > self.mask;
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
        while self.oldest < self.newest {
            let key = self.buffer[self.index(self.oldest)];
            if key != HOLE {
                if !wanted(key) {
                    return self.take_behind(wanted);
                }
                self.oldest += 1;
                self.len -= 1;
                return Some(key);
            }
            self.oldest += 1;
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
        // As long as nothing is passed over the two ends move together: there is always room.
        let (mask, buffer) = (self.mask, &mut self.buffer[..]);
        let (mut oldest, mut newest) = (self.oldest, self.newest);
        let taken = loop {
            if oldest == newest {
                break None;
            }
            let key = buffer[oldest & mask];
            if key == HOLE {
                oldest += 1;
                continue;
            }
            if !wanted(key) {
                (self.oldest, self.newest) = (oldest, newest);
                return self.take_behind_after_second_chances(wanted, second_chance);
            }
            oldest += 1;
            if !second_chance(key) {
                self.len -= 1;
                break Some(key);
            }
            buffer[newest & mask] = key;
            newest += 1;
        };
        (self.oldest, self.newest) = (oldest, newest);
        taken
    }

    /// [`take_oldest`](Self::take_oldest) where the oldest key is passed over.
    #[inline(always)]
    fn take_behind(&mut self, wanted: impl Fn(Key) -> bool) -> Option<Key> {
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

    /// The hand where the oldest key is passed over.
    #[inline(always)]
    fn take_behind_after_second_chances(
        &mut self,
        wanted: impl Fn(Key) -> bool,
        mut second_chance: impl FnMut(Key) -> bool,
    ) -> Option<Key> {
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
        if keys.len() as u32 != self.len {
            return Err(format!("{} distinct keys in a ring of {}", keys.len(), self.len));
        }
        Ok(())
    }

    #[inline(always)]
    fn index(&self, place: usize) -> usize {
        place & self.mask
    }

    fn take(&mut self, place: usize) {
        let index = self.index(place);
        self.buffer[index] = HOLE;
        self.len -= 1;
    }

    /// The part in use is full: moves the keys together, keeping their order, and takes a larger
    /// part into use if few were holes.
    #[cold]
    fn pack(&mut self) {
        let used = &mut self.buffer[..=self.mask];
        used.rotate_left(self.oldest & self.mask);
        let mut keys = 0;
        for place in 0..used.len() {
            if used[place] != HOLE {
                used[keys] = used[place];
                keys += 1;
            }
        }
        (self.oldest, self.newest) = (0, keys);
        if keys > self.mask / 4 * 3 && self.mask + 1 < self.buffer.len() {
            self.mask = 2 * self.mask + 1;
        }
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
