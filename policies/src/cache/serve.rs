//! The parts of serving an event: looking its experts up, and admitting those that are missing.

use super::entry::{ABSENT, Entry, ExpertId, LIMIT, PENDING, PREFETCHED};
use super::plan::NOBODY;
use super::pool::Pool;
use super::room::PoolRoom;
use super::{Action, Placement};
use crate::policy::{Key, Policy};

/// The running event's number, and the id of the layer's expert 0 in the list of its experts.
#[derive(Clone, Copy)]
pub(super) struct EventNumbers {
    pub now: u32,
    pub first_id: Key,
}

/// What an event's experts are written to: where the residents are, and who is absent.
pub(super) struct EventLists<'a> {
    pub placements: &'a mut [Placement],
    pub missing: &'a mut [u32],
}

/// Where an event stands in its pool.
#[derive(Clone, Copy)]
pub(super) struct PoolPlace {
    /// Dense key of the pool's key 0.
    pub base: Key,
    /// Pool-local key of the layer's expert 0.
    pub offset: Key,
    /// Experts asked for by this event or a later one are needed.
    pub floor: u32,
    /// The flag of a slot that a copy was just asked for.
    pub fetched: u32,
}

/// How an event's distinct experts stand before anything is admitted.
#[derive(Default)]
pub(super) struct LookedUp {
    pub resident: usize,
    pub misses: usize,
    /// All words together, so that one look tells whether any flag was set.
    pub flags: u32,
    pub pending: u32,
    pub prefetch_hits: u32,
}

impl LookedUp {
    /// Some residents are in flight or were prefetched: takes the flags out of the placements.
    pub fn settle_flags(&mut self, entries: &mut [Entry], placements: &mut [Placement]) {
        for placement in &mut placements[..self.resident] {
            let word = placement.slot;
            placement.slot = word & LIMIT;
            if word & PENDING != 0 {
                placement.action = Action::Pending;
                self.pending += 1;
            } else if word & PREFETCHED != 0 {
                placement.action = Action::PrefetchHit;
                self.prefetch_hits += 1;
            }
            entries[placement.expert as usize].word &= !PREFETCHED;
        }
    }
}

/// Marks an event's experts as needed by it, places the residents in rank order, with whatever
/// flags their words have, and lists the absent ones. `MARKED`: they are marked and distinct
/// already, and their ids begin at `first_id`.
///
/// Whether an expert is resident is what a processor cannot guess, so nothing here branches on it:
/// both lists are written and only one grows. (A function of its own with separate borrows: the
/// tables' addresses then stay in registers over the loop.)
#[inline(always)]
pub(super) fn look_up<const MARKED: bool, E: ExpertId>(
    entries: &mut [Entry],
    experts: &[E],
    EventNumbers { now, first_id }: EventNumbers,
    EventLists { placements, missing }: EventLists<'_>,
) -> LookedUp {
    let (mut resident, mut misses, mut flags) = (0, 0, 0);
    for expert in experts {
        let expert = expert.index() - if MARKED { first_id } else { 0 };
        let entry = &mut entries[expert as usize];
        if !MARKED {
            if entry.stamp == now {
                continue;
            }
            entry.stamp = now;
        }
        let word = entry.word;
        let here = word != ABSENT;
        placements[resident] =
            Placement { expert, slot: word, evicted: NOBODY, action: Action::Hit };
        missing[misses] = expert;
        resident += usize::from(here);
        misses += usize::from(!here);
        flags |= word;
    }
    LookedUp { resident, misses, flags, ..LookedUp::default() }
}

/// Admits the missing experts one after another and places them. Returns how many found no slot
/// and how many unused prefetches had to leave.
#[inline(always)]
pub(super) fn admit_missing<P: Policy>(
    pool: &mut Pool<P>,
    entries: &mut [Entry],
    missing: &[u32],
    PoolPlace { base, offset, floor, fetched }: PoolPlace,
    placements: &mut [Placement],
    dropped: &mut Vec<Key>,
) -> (u32, u32) {
    let (mut unplaced, mut wasted) = (0, 0);
    for (placement, &expert) in placements.iter_mut().zip(missing) {
        let key = offset + expert;
        let mut room = PoolRoom::new(entries, base, floor, &mut pool.free, dropped);
        let placed = pool.policy.admit(key, &mut room);
        let slot = if placed { room.take_slot() } else { None };
        let evicted = room.evicted;
        wasted += room.wasted;
        *placement = if let Some(slot) = slot {
            entries[key as usize].word = slot | fetched;
            Placement { expert, slot, evicted, action: Action::Fetch }
        } else {
            unplaced += 1;
            Placement { expert, slot: 0, evicted, action: Action::Unplaced }
        };
    }
    (unplaced, wasted)
}

/// Up to this many misses are sorted by a network.
pub(super) const NETWORK: usize = 8;

const FOUR: [(usize, usize); 5] = [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)];
#[rustfmt::skip]
const EIGHT: [(usize, usize); 19] = [
    (0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 3), (4, 6), (5, 7), (1, 2), (5, 6),
    (0, 4), (3, 7), (1, 5), (2, 6), (1, 4), (3, 6), (2, 4), (3, 5), (3, 4),
];

/// Sorts the first `N` places, of which `count` are in use, through a network's comparisons.
#[inline(always)]
fn sort_by_network<const N: usize>(buffer: &mut [u32], count: usize, network: &[(usize, usize)]) {
    let Some(ids) = buffer.first_chunk_mut::<N>() else { return };
    for (place, id) in ids.iter_mut().enumerate() {
        *id = if place < count { *id } else { u32::MAX };
    }
    for &(low, high) in network {
        (ids[low], ids[high]) = (ids[low].min(ids[high]), ids[low].max(ids[high]));
    }
}

/// An event has a handful of misses: up to eight go through a sorting network, which has no
/// branches to guess wrong, some more through insertion. The buffer has `NETWORK` places or more.
#[inline(always)]
pub(super) fn sort_ascending(buffer: &mut [u32], count: usize) {
    debug_assert!(buffer.len() >= NETWORK);
    if count <= 4 {
        return sort_by_network::<4>(buffer, count, &FOUR);
    }
    if count <= NETWORK {
        return sort_by_network::<NETWORK>(buffer, count, &EIGHT);
    }
    let ids = &mut buffer[..count];
    if ids.len() > 32 {
        ids.sort_unstable();
        return;
    }
    for place in 1..ids.len() {
        let id = ids[place];
        let mut hole = place;
        while hole > 0 && ids[hole - 1] > id {
            ids[hole] = ids[hole - 1];
            hole -= 1;
        }
        ids[hole] = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_sort_every_pattern() {
        // A network that sorts all inputs of zeros and ones sorts everything (Knuth).
        for count in 0..=NETWORK {
            for pattern in 0u32..1 << count {
                let mut buffer = [7; NETWORK];
                for (place, id) in buffer[..count].iter_mut().enumerate() {
                    *id = pattern >> place & 1;
                }
                sort_ascending(&mut buffer, count);
                assert!(buffer[..count].is_sorted(), "{count} {pattern:b}");
                assert_eq!(buffer[..count].iter().sum::<u32>(), pattern.count_ones());
            }
        }
        let mut many: Vec<u32> = (0..40).rev().collect();
        sort_ascending(&mut many, 20);
        assert!(many[..20].is_sorted() && many[20..] == (0..20).rev().collect::<Vec<_>>());
        sort_ascending(&mut many, 40);
        assert!(many.is_sorted());
    }
}
