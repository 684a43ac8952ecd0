//! [`SharedCache`]: the planner's half.

use std::ops::Range;

use super::board::Residency;
use super::plan::SharedPlan;
use crate::cache::entry::{Entry, ExpertId};
use crate::cache::{Action, CacheError, ExpertCache, Plan, Resized, Slots};
use crate::policy::{Key, Policy};

/// An [`ExpertCache`] for engines whose copy threads complete fetches while the decode thread plans.
///
/// The decode thread owns it and plans as with the cache inside: the same calls give the same plans.
/// [`residency`](Self::residency) is for every other thread, to look slots up and to complete fetches
/// by their [tickets](super::Ticket). Each call that plans first takes in what was completed until
/// then; a copy that completes while it runs counts from the next call on. So the order of
/// completions and calls decides the plans, and nothing else of the threads' timing does:
/// [`taken`](Self::taken) tells it, to log it and replay it.
///
/// Memory: that of the cache, 8 bytes an expert and 8 a slot; nothing is allocated after construction
/// but by [`resize`](Self::resize).
///
/// An engine's two threads: one decodes, one copies.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use std::sync::mpsc;
///
/// use hotset_policies::{ExpertCache, Lru, SharedCache, Slots};
///
/// // Two layers of four experts share four slots; a slot's "weights" are a number.
/// let slots = Slots::Global(4);
/// let cache = ExpertCache::new(&[4, 4], &[2, 2], &slots, |_, pool| Lru::new(pool))?;
/// let mut cache = SharedCache::new(cache);
/// let residency = cache.residency();
/// let memory: [AtomicU32; 4] = Default::default();
/// let weights_of = |layer: usize, expert: u32| 100 * layer as u32 + expert + 1;
///
/// let (copies, to_copy) = mpsc::channel();
/// std::thread::scope(|threads| {
///     let (memory, copier) = (&memory, residency.clone());
///     threads.spawn(move || {
///         for (slot, weights, ticket) in to_copy {
///             let slot: &AtomicU32 = &memory[slot as usize];
///             slot.store(weights, Relaxed);
///             copier.complete(ticket);
///         }
///     });
///     for (layer, experts) in [(0, [3u8, 1]), (1, [0, 2]), (0, [1, 2])] {
///         let plan = cache.demand(layer, &experts);
///         for (placed, ticket) in plan.copies() {
///             copies.send((placed.slot, weights_of(layer, placed.expert), ticket)).unwrap();
///         }
///         // Another engine would compute what is there meanwhile.
///         for expert in experts.map(u32::from) {
///             let slot = loop {
///                 match residency.slot_of(layer, expert) {
///                     Some(slot) => break slot,
///                     None => std::thread::yield_now(),
///                 }
///             };
///             assert_eq!(memory[slot as usize].load(Relaxed), weights_of(layer, expert));
///         }
///         cache.release(layer);
///     }
///     drop(copies);
/// });
/// assert_eq!((cache.cache().resident(), residency.slot_of(0, 3)), (4, None));
/// # Ok::<(), hotset_policies::CacheError>(())
/// ```
///
/// The rules of the house are the engine's: a slot is written to only by the copy of a plan that was
/// given it, a layer is released once its slots have been read, and where a copy that was taken back
/// ([`discard`](Self::discard)) may still be writing, it ends before another is begun into its slot
/// (one copy stream keeps that order by itself).
pub struct SharedCache<P> {
    cache: ExpertCache<P>,
    residency: Residency,
    /// Dense keys of the fetches whose completion was not taken in.
    in_flight: Vec<Key>,
    taken: Vec<Key>,
    /// The number of completions when they were last taken in.
    counted: u32,
}

/// A plan's numbers, while its lists are looked at.
struct Numbers {
    placed: usize,
    hits: u32,
    prefetch_hits: u32,
    pending: u32,
    fetches: u32,
    unplaced: u32,
    wasted: u32,
    overflow: bool,
}

impl Numbers {
    #[inline(always)]
    fn of(plan: &Plan<'_>) -> Self {
        let Plan { hits, prefetch_hits, pending, fetches, unplaced, wasted, overflow, .. } = *plan;
        let placed = plan.placements.len();
        Self { placed, hits, prefetch_hits, pending, fetches, unplaced, wasted, overflow }
    }
}

impl<P: Policy> SharedCache<P> {
    /// Shares a cache, with whoever is in it.
    #[must_use]
    pub fn new(cache: ExpertCache<P>) -> Self {
        let residency = Residency::new(&cache.bases, &cache.entries);
        let slots = cache.capacity() as usize;
        let mut in_flight = Vec::with_capacity(slots);
        let entries = (0..).zip(&cache.entries);
        in_flight.extend(entries.filter(|(_, entry)| entry.is_pending()).map(|(key, _)| key));
        Self { cache, residency, in_flight, taken: Vec::with_capacity(slots), counted: 0 }
    }

    /// What other threads hold.
    #[must_use]
    pub fn residency(&self) -> Residency {
        self.residency.clone()
    }

    /// The cache inside, to look at; a copy that was completed since the last call is in flight there.
    #[must_use]
    pub fn cache(&self) -> &ExpertCache<P> {
        &self.cache
    }

    /// Dense keys of the experts whose completions the latest planning call took in before it
    /// planned: what [`ExpertCache::complete`] would have to be called for, in a replay.
    #[must_use]
    pub fn taken(&self) -> &[Key] {
        &self.taken
    }

    /// As [`ExpertCache::demand`].
    ///
    /// # Panics
    /// As [`ExpertCache::demand`].
    #[inline]
    pub fn demand<E: ExpertId>(&mut self, layer: usize, experts: &[E]) -> SharedPlan<'_> {
        self.demand_weighted(layer, experts, &[])
    }

    /// As [`ExpertCache::demand_weighted`].
    ///
    /// # Panics
    /// As [`ExpertCache::demand_weighted`].
    #[inline]
    pub fn demand_weighted<E: ExpertId>(
        &mut self,
        layer: usize,
        experts: &[E],
        weights: &[f32],
    ) -> SharedPlan<'_> {
        self.take_completions();
        let numbers = Numbers::of(&self.cache.demand_weighted(layer, experts, weights));
        self.publish_plan(layer, numbers)
    }

    /// As [`ExpertCache::prefetch`].
    ///
    /// # Panics
    /// As [`ExpertCache::prefetch`].
    pub fn prefetch<E: ExpertId>(&mut self, layer: usize, predictions: &[E]) -> SharedPlan<'_> {
        self.take_completions();
        let numbers = Numbers::of(&self.cache.prefetch(layer, predictions));
        self.publish_plan(layer, numbers)
    }

    /// As [`ExpertCache::release`].
    #[inline(always)]
    pub fn release(&mut self, layer: usize) {
        self.cache.release(layer);
    }

    /// As [`ExpertCache::begin_step`].
    #[inline(always)]
    pub fn begin_step(&mut self, tokens: u32) {
        self.cache.begin_step(tokens);
    }

    /// As [`ExpertCache::set_profile`].
    ///
    /// # Panics
    /// As [`ExpertCache::set_profile`].
    pub fn set_profile(&mut self, profile: &[f32]) {
        self.cache.set_profile(profile);
    }

    /// As [`ExpertCache::discard`]; a completion of that fetch that comes later changes nothing.
    ///
    /// # Panics
    /// As [`ExpertCache::discard`].
    pub fn discard(&mut self, layer: usize, expert: u32) -> bool {
        self.take_completions();
        let discarded = self.cache.discard(layer, expert);
        if discarded {
            let key = self.cache.key(layer, expert);
            self.residency.publish_dropped(key);
            if let Some(place) = self.in_flight.iter().position(|&other| other as usize == key) {
                self.in_flight.swap_remove(place);
            }
        }
        discarded
    }

    /// As [`ExpertCache::place`].
    ///
    /// # Panics
    /// As [`ExpertCache::place`].
    pub fn place(&mut self, keys: impl IntoIterator<Item = Key>) -> u32 {
        let mut placed = 0;
        for key in keys {
            if self.cache.place([key]) == 1 {
                self.residency.publish(key as usize, self.cache.entries[key as usize]);
                placed += 1;
            }
        }
        placed
    }

    /// As [`ExpertCache::resize`].
    ///
    /// # Errors
    /// As [`ExpertCache::resize`].
    pub fn resize(&mut self, slots: &Slots) -> Result<Resized, CacheError> {
        self.take_completions();
        let resized = self.cache.resize(slots)?;
        for &key in &resized.evicted {
            self.residency.publish(key as usize, Entry::EMPTY);
        }
        for moved in &resized.moved {
            let key = moved.key as usize;
            self.residency.publish_move(key, self.cache.entries[key]);
        }
        let slots = self.cache.capacity() as usize;
        self.in_flight.reserve(slots.saturating_sub(self.in_flight.len()));
        self.taken.reserve(slots.saturating_sub(self.taken.len()));
        Ok(resized)
    }

    /// As [`ExpertCache::invalidate`].
    ///
    /// # Errors
    /// As [`ExpertCache::invalidate`].
    ///
    /// # Panics
    /// As [`ExpertCache::invalidate`].
    pub fn invalidate(&mut self, pool: usize, slots: Range<u32>) -> Result<Vec<Key>, CacheError> {
        self.take_completions();
        let gone = self.cache.invalidate(pool, slots)?;
        for &key in &gone {
            self.residency.publish(key as usize, Entry::EMPTY);
        }
        Ok(gone)
    }

    /// As [`ExpertCache::validate`], and that readers are told what the planner knows.
    ///
    /// # Errors
    /// Says which invariant is broken.
    pub fn validate(&self) -> Result<(), String> {
        self.cache.validate()?;
        let mut in_flight = self.in_flight.clone();
        in_flight.sort_unstable();
        let entries = (0..).zip(&self.cache.entries);
        let pending: Vec<Key> =
            entries.clone().filter(|(_, entry)| entry.is_pending()).map(|(key, _)| key).collect();
        if in_flight != pending {
            return Err(format!("{in_flight:?} are watched, {pending:?} are in flight"));
        }
        match entries.into_iter().find(|&(key, &entry)| !self.residency.agrees(key as usize, entry))
        {
            Some((key, _)) => Err(format!("readers are told something else of {key}")),
            None => Ok(()),
        }
    }

    /// Lets the cache know of the copies that were completed since the last call.
    #[inline(always)]
    fn take_completions(&mut self) {
        self.taken.clear();
        let counted = self.residency.completions();
        if counted != self.counted {
            self.counted = counted;
            self.look_through_flight();
        }
    }

    fn look_through_flight(&mut self) {
        let Self { cache, residency, in_flight, taken, .. } = self;
        in_flight.retain(|&key| {
            let pending = residency.is_pending(key as usize);
            if !pending {
                cache.copied(key as usize);
                taken.push(key);
            }
            pending
        });
    }

    /// Tells readers who left and who comes, as it stands after the plan: within an unprotected prefetch
    /// an expert may do both.
    #[inline(always)]
    fn publish_plan(&mut self, layer: usize, numbers: Numbers) -> SharedPlan<'_> {
        let Self { cache, residency, in_flight, .. } = self;
        let base = cache.bases[layer];
        let Numbers { placed, hits, prefetch_hits, pending, fetches, unplaced, wasted, overflow } =
            numbers;
        let placements = &cache.placements[..placed];
        let dropped = &cache.dropped[..];
        if fetches + unplaced > 0 {
            let evicted = placements.iter().filter_map(|placed| placed.evicted());
            for key in evicted.chain(dropped.iter().copied()) {
                if !cache.entries[key as usize].is_resident() {
                    residency.publish(key as usize, Entry::EMPTY);
                }
            }
            for placed in placements {
                let key = base + placed.expert;
                let entry = cache.entries[key as usize];
                if placed.action == Action::Fetch && entry.is_resident() {
                    residency.publish(key as usize, entry);
                    if entry.is_pending() {
                        in_flight.push(key);
                    }
                }
            }
        }
        let plan = Plan {
            placements,
            dropped,
            hits,
            prefetch_hits,
            pending,
            fetches,
            unplaced,
            wasted,
            overflow,
        };
        SharedPlan { plan, residency, base }
    }
}
