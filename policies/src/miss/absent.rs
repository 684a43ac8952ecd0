//! An event's missing experts.

use std::cmp::Reverse;

use super::FetchOrder;

/// An expert that is not resident.
#[derive(Debug, Clone, Copy)]
pub(super) struct Absent {
    /// The event that last asked for it; 0: none.
    pub last: u64,
    pub expert: u32,
    /// Its place in the event.
    pub place: usize,
    /// Tokens that want it.
    pub tokens: u32,
    /// What becomes of it where that is decided one by one: the lowest first.
    pub class: u8,
}

/// Sorts by how soon they are fetched.
pub(super) fn sort(absent: &mut [Absent], order: FetchOrder) {
    match order {
        FetchOrder::Recent => absent.sort_unstable_by_key(|of| (Reverse(of.last), of.expert)),
        FetchOrder::Lowest => absent.sort_unstable_by_key(|of| of.expert),
    }
}

/// Moves those for which `fetches` holds to the front, both parts in their order. Returns how many.
pub(super) fn partition(absent: &mut [Absent], mut fetches: impl FnMut(&Absent) -> bool) -> usize {
    absent.sort_by_key(|of| !fetches(of));
    absent.iter().take_while(|of| fetches(of)).count()
}
