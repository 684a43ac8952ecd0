//! The resident keys in a dense array, for policies whose order shifts with time.
//!
//! Where every score moves at every event (an age in it, a decay), no list or heap stays sorted;
//! one pass over the residents finds the victim, a nanosecond or so each.

use crate::policy::Key;
use crate::structures::memory::{array, sum};

/// Marks an absent key.
const ABSENT: u32 = u32::MAX;

/// A set of keys that can be walked at array speed. The order of the walk means nothing.
#[derive(Debug, Clone)]
pub struct ResidentSet {
    keys: Vec<Key>,
    places: Vec<u32>,
}

impl ResidentSet {
    /// An empty set over keys `0..keys`.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        Self { keys: Vec::with_capacity(keys as usize), places: vec![ABSENT; keys as usize] }
    }

    /// Bytes that a set over so many keys allocates.
    pub(crate) fn memory(keys: u32) -> u64 {
        sum([array::<Key>(keys), array::<u32>(keys)])
    }

    /// Whether `key` is in the set.
    #[must_use]
    #[inline(always)]
    pub fn contains(&self, key: Key) -> bool {
        self.places[key as usize] != ABSENT
    }

    /// Number of keys in the set.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.keys.len() as u32
    }

    /// The keys, in no order that means anything.
    #[must_use]
    #[inline(always)]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Adds an absent key.
    #[inline(always)]
    pub fn insert(&mut self, key: Key) {
        self.places[key as usize] = self.keys.len() as u32;
        self.keys.push(key);
    }

    /// Takes out a key that is in the set.
    #[inline(always)]
    pub fn remove(&mut self, key: Key) {
        let place = std::mem::replace(&mut self.places[key as usize], ABSENT) as usize;
        self.keys.swap_remove(place);
        if let Some(&moved) = self.keys.get(place) {
            self.places[moved as usize] = place as u32;
        }
    }

    /// The key with the lowest score among those that `wanted` grants. Scores are to differ, or
    /// who wins depends on the walk's order.
    #[must_use]
    #[inline(always)]
    pub fn least<S: PartialOrd>(
        &self,
        score: impl Fn(Key) -> S,
        wanted: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        let mut best: Option<(S, Key)> = None;
        for &key in &self.keys {
            let score = score(key);
            let better = match &best {
                Some((lowest, _)) => score < *lowest,
                None => true,
            };
            if better && wanted(key) {
                best = Some((score, key));
            }
        }
        best.map(|(_, key)| key)
    }

    /// Checks that places and keys agree.
    ///
    /// # Errors
    /// Says what disagrees.
    pub fn validate(&self) -> Result<(), String> {
        let placed = self.places.iter().filter(|&&place| place != ABSENT).count();
        if placed != self.keys.len() {
            return Err(format!("{placed} placed, {} listed", self.keys.len()));
        }
        for (place, &key) in self.keys.iter().enumerate() {
            if self.places[key as usize] as usize != place {
                return Err(format!("key {key} is not at its place {place}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_fills_the_hole_and_the_least_wanted_key_is_found() {
        let mut set = ResidentSet::new(6);
        for key in [4, 1, 5, 2] {
            set.insert(key);
        }
        set.remove(1); // 2 takes its place
        set.remove(2);
        set.insert(0);
        assert_eq!(set.keys(), [4, 5, 0]);
        assert_eq!(set.validate(), Ok(()));
        assert_eq!(set.least(|key| key, |_| true), Some(0));
        assert_eq!(set.least(|key| key, |key| key != 0), Some(4));
        assert_eq!(set.least(|key| key, |_| false), None);
    }
}
