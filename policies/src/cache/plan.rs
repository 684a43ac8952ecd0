//! The cache's answer to an event.

use crate::Key;

/// What the engine has to do for one expert of an event.
///
/// ```
/// use hotset_policies::{Action, Plan};
///
/// /// Experts that the engine reads from host memory for this event.
/// fn copies(plan: &Plan<'_>) -> usize {
///     plan.placements.iter().filter(|placed| match placed.action {
///         Action::Fetch | Action::Unplaced => true,
///         Action::Hit | Action::PrefetchHit | Action::Pending => false,
///     }).count()
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)] // A placement has no padding then, and takes few stores.
pub enum Action {
    /// Resident: use the slot.
    Hit,
    /// Resident thanks to a prefetch, and asked for the first time since: use the slot.
    PrefetchHit,
    /// On its way into the slot: wait for its copy. Not a hit.
    Pending,
    /// Copy the expert into the slot, then call `complete`.
    Fetch,
    /// No slot may be used for it. A demand is served through a transient buffer and nothing is
    /// admitted; a prefetch is dropped.
    Unplaced,
}

/// Where one distinct expert of an event goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)] // What a hit does not vary stands together at the end.
pub struct Placement {
    /// The expert's id within its layer.
    pub expert: u32,
    /// Its slot in the layer's pool; meaningless if [`Action::Unplaced`].
    pub slot: u32,
    pub(super) evicted: Key,
    /// What to do.
    pub action: Action,
}

pub(super) const NOBODY: Key = Key::MAX;

impl Placement {
    pub(super) const NONE: Self =
        Self { expert: 0, slot: 0, evicted: NOBODY, action: Action::Unplaced };

    /// The dense key of the expert that held the slot until now, if one did;
    /// [`ExpertCache::expert_of`](super::ExpertCache::expert_of) tells its layer.
    #[must_use]
    pub fn evicted(&self) -> Option<Key> {
        (self.evicted != NOBODY).then_some(self.evicted)
    }
}

/// The answer to one event, borrowed from the cache until the next call.
///
/// ```
/// use hotset_policies::{ExpertCache, Lru, Slots};
///
/// let mut cache = ExpertCache::new(&[8], &[2], &Slots::Global(2), |_, pool| Lru::new(pool))?
///     .with_ordered_copies();
/// cache.demand(0, &[5u8, 3]);
/// let plan = cache.demand(0, &[3u8, 7]);
/// assert_eq!((plan.distinct(), plan.hits, plan.misses()), (2, 1, 1));
/// // 7 takes the slot of 5, whose dense key is 5 too: it is in layer 0.
/// assert_eq!(plan.placements[1].expert, 7);
/// assert_eq!(plan.placements[1].evicted(), Some(5));
/// # Ok::<(), hotset_policies::CacheError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// One entry a distinct expert: hits and pending ones in the order asked, then the misses in
    /// ascending id.
    pub placements: &'a [Placement],
    /// Experts that left without another taking their slot at once (some policies trim a list
    /// beside making room).
    pub dropped: &'a [Key],
    /// Experts that can be used at once, [`Action::Hit`] and [`Action::PrefetchHit`].
    pub hits: u32,
    /// Of the hits, those that a prefetch brought in.
    pub prefetch_hits: u32,
    /// Experts on their way.
    pub pending: u32,
    /// Experts to copy.
    pub fetches: u32,
    /// Experts without a slot; of a demand, the transient buffer serves them.
    pub unplaced: u32,
    /// Prefetched experts that this event evicted before anything asked for them.
    pub wasted: u32,
    /// Whether the event needs more experts than its pool has slots, so that nothing was admitted.
    pub overflow: bool,
}

impl Plan<'_> {
    /// Distinct experts in the event.
    #[must_use]
    pub fn distinct(&self) -> u32 {
        self.placements.len() as u32
    }

    /// Experts that were not usable at once: fetched, pending or unplaced.
    #[must_use]
    pub fn misses(&self) -> u32 {
        self.fetches + self.pending + self.unplaced
    }
}
