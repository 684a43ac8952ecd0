//! Belady's MIN with forced admission: evicts the key whose next use lies farthest ahead.
//!
//! Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM
//! Systems Journal 5(2), 1966. It needs the future, so it is built over a recorded stream of
//! accesses and must be driven with that very stream. It is the bound for equal sizes only: with
//! experts of mixed sizes it is no longer optimal.

use std::sync::Arc;

use crate::occupancy::counted_in;
use crate::structures::memory::{array, sum};
use crate::structures::position_set::PositionSet;
use crate::{Event, Key, Need, Occupancy, Policy, PolicyInfo, PoolShape};

/// What people are told of it.
pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "belady",
    summary: "the bound: evicts what is used again last (forced admission)",
    definition: "Every miss is admitted; the victim is the key whose next use lies farthest ahead, \
                 keys that are never used again first. Optimal for experts of one size only.",
    source: "L. A. Belady, A study of replacement algorithms, IBM Systems Journal 5(2), 1966",
    needs: Need::Future,
    parameters: &[],
};

/// No further use.
const NEVER: u32 = u32::MAX;
/// Marks an absent key in the table of positions.
const ABSENT: u32 = u32::MAX - 1;

/// The most entries of the table of owners: 128 KiB stay in a processor's second cache.
const OWNERS: usize = 1 << 15;

/// Bytes that the bound allocates beside what grows with the stream.
pub(super) fn memory(pool: &PoolShape) -> u64 {
    // First uses, next uses, places and who is finished; and the owners.
    sum([array::<[u32; 4]>(pool.keys), array::<Key>(OWNERS as u64)])
}

/// A stream of accesses with the position of each key's next use.
#[derive(Debug, Clone)]
pub struct Future {
    accesses: Vec<Key>,
    /// The position of the next use of each access' key, the last access first.
    from_end: Vec<u32>,
    /// The position of each key's first use.
    first: Vec<u32>,
}

impl Future {
    /// Reads a stream of accesses to keys `0..keys`. `None` if it has 2^32 - 2 accesses or more,
    /// which positions of 32 bits cannot number.
    #[must_use]
    pub fn new(accesses: Vec<Key>, keys: u32) -> Option<Self> {
        if accesses.len() >= ABSENT as usize {
            return None;
        }
        let mut first = vec![NEVER; keys as usize];
        // Found from the end and kept in that order: nothing is written twice.
        let next = (0..accesses.len() as u32).rev().zip(accesses.iter().rev());
        let from_end = next
            .map(|(position, &key)| std::mem::replace(&mut first[key as usize], position))
            .collect();
        Some(Self { accesses, from_end, first })
    }

    /// Next uses of the accesses from position `start` on; it holds no more than there are.
    #[inline(always)]
    fn next_uses(&self, start: usize, count: usize) -> impl Iterator<Item = u32> + '_ {
        let end = self.from_end.len() - start;
        self.from_end[end - count..end].iter().rev().copied()
    }

    /// The stream itself.
    #[must_use]
    pub fn accesses(&self) -> &[Key] {
        &self.accesses
    }

    /// Number of keys that the stream may name.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.first.len() as u32
    }

    /// Where the key of the access at `position` is accessed next.
    ///
    /// # Panics
    /// If the stream has no such position.
    #[must_use]
    #[inline(always)]
    pub fn next_use(&self, position: usize) -> Option<u32> {
        let next = self.from_end[self.from_end.len() - 1 - position];
        (next != NEVER).then_some(next)
    }
}

/// The offline optimum under forced admission.
///
/// `EVENTS = false` takes the stream one access at a time; `EVENTS = true` takes an event's
/// distinct keys, in the order in which the stream holds them, at
/// [`begin_event`](Policy::begin_event), and then their hits and admissions in any order.
#[derive(Debug, Clone)]
pub struct Belady<const EVENTS: bool> {
    future: Arc<Future>,
    /// Position in the stream of the next access.
    cursor: usize,
    /// Next use of each key as of its last access (event semantics only).
    upcoming: Vec<u32>,
    /// The position under which a resident key is filed, else `ABSENT`.
    filed: Vec<u32>,
    /// Residents by next use. A hit leaves the bit of the access itself behind: it lies before
    /// the cursor, where no search for the farthest use ends.
    residents: PositionSet,
    /// Who was last filed at a position, by its low bits. The stream knows it too, but there the
    /// farthest position is a cache miss; `filed` tells whether an entry is still true.
    owners: Vec<Key>,
    /// Residents that are never used again, the first to leave.
    finished: Vec<Key>,
    slots: Occupancy,
}

impl<const EVENTS: bool> Belady<EVENTS> {
    /// An empty pool that will be driven with `future`'s stream.
    #[must_use]
    pub fn new(pool: &PoolShape, future: Arc<Future>) -> Self {
        Self {
            cursor: 0,
            upcoming: if EVENTS { future.first.clone() } else { Vec::new() },
            filed: vec![ABSENT; pool.keys as usize],
            residents: PositionSet::new(future.accesses.len()),
            owners: vec![0; (8 * pool.keys as usize).next_power_of_two().min(OWNERS)],
            finished: Vec::with_capacity(pool.keys as usize),
            slots: Occupancy::new(pool.capacity),
            future,
        }
    }

    #[inline(always)]
    fn next_use(&mut self, key: Key) -> u32 {
        if EVENTS {
            return self.upcoming[key as usize];
        }
        self.cursor += 1;
        self.future.from_end[self.future.from_end.len() - self.cursor]
    }

    #[inline(always)]
    fn file(&mut self, key: Key) {
        let next = self.next_use(key);
        self.filed[key as usize] = next;
        if next == NEVER {
            self.finished.push(key);
        } else {
            self.residents.insert(next);
            let index = self.owner_index(next);
            self.owners[index] = key;
        }
    }

    #[inline(always)]
    fn owner_index(&self, position: u32) -> usize {
        position as usize & (self.owners.len() - 1)
    }

    /// The resident that is filed at a position.
    #[inline(always)]
    fn owner(&self, position: u32) -> Key {
        let owner = self.owners[self.owner_index(position)];
        if self.filed[owner as usize] == position {
            return owner;
        }
        self.future.accesses[position as usize]
    }

    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        if let Some(&key) = self.finished.iter().rev().find(|&&key| may_leave(key)) {
            return Some(key);
        }
        let mut farthest = self.residents.max();
        while let Some(position) = farthest {
            if (position as usize) < self.cursor {
                return None;
            }
            let key = self.owner(position);
            if may_leave(key) {
                return Some(key);
            }
            farthest = self.residents.max_below(position);
        }
        None
    }
}

impl<const EVENTS: bool> Policy for Belady<EVENTS> {
    const OBSERVES: bool = EVENTS;
    const READS_WEIGHTS: bool = false;

    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.filed[key as usize] != ABSENT
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        if self.filed[key as usize] == NEVER {
            return; // Beyond the recorded stream: nothing is known of it.
        }
        self.file(key);
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.file(key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        let filed = std::mem::replace(&mut self.filed[key as usize], ABSENT);
        if filed == NEVER {
            // Almost always the last one: victims are searched from the end.
            if let Some(place) = self.finished.iter().rposition(|&other| other == key) {
                self.finished.remove(place);
            }
        } else {
            self.residents.remove(filed);
        }
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        debug_assert!(self.future.accesses[self.cursor..].starts_with(event.keys));
        let next_uses = self.future.next_uses(self.cursor, event.keys.len());
        for (&key, next) in event.keys.iter().zip(next_uses) {
            self.upcoming[key as usize] = next;
        }
        self.cursor += event.keys.len();
    }

    fn validate(&self) -> Result<(), String> {
        let resident = self.filed.iter().filter(|&&filed| filed != ABSENT).count() as u32;
        if resident != self.slots.taken || resident > self.slots.capacity {
            return Err(format!("{resident} resident, len {}", self.slots.taken));
        }
        let finished = self.filed.iter().filter(|&&filed| filed == NEVER).count();
        if finished != self.finished.len() {
            return Err(format!("{finished} finished, {} listed", self.finished.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TEXTBOOK, run_sequential};

    #[test]
    fn textbook_string_has_nine_faults_at_three_frames() {
        let future = Arc::new(Future::new(TEXTBOOK.to_vec(), 8).unwrap());
        assert_eq!(future.next_uses(0, 4).collect::<Vec<_>>(), [17, 4, 13, 8]);
        let mut belady = Belady::<false>::new(&PoolShape::flat(3, 8), future);
        assert_eq!(run_sequential(&mut belady, &TEXTBOOK), 9);
    }

    #[test]
    fn a_stream_too_long_for_positions_is_refused_by_its_length_alone() {
        assert!(Future::new(vec![0; 3], 1).is_some());
        assert!(Future::new(Vec::new(), 0).is_some());
    }
}
