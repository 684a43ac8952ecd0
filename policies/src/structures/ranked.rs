//! Policies that evict the resident key with the lowest score.
//!
//! Where scores move with time (an age in them, a decay, a learned worth), no list or heap stays
//! sorted, and one pass over the residents finds the victim. [`Ranked`] does that pass and keeps
//! the books; a [`Ranking`] says only how keys are scored.

use crate::occupancy::{Occupancy, counted_in};
use crate::policy::{Event, Key, Policy, Room};
use crate::structures::resident_set::ResidentSet;

/// How the keys of one pool are scored.
pub trait Ranking {
    /// What keys are ordered by; no two residents may have equal scores, or the order of the walk
    /// would decide.
    type Score: PartialOrd;

    /// As [`Policy::OBSERVES`].
    const OBSERVES: bool = false;
    /// As [`Policy::READS_WEIGHTS`].
    const READS_WEIGHTS: bool = Self::OBSERVES;
    /// As [`Policy::PROFILED`].
    const PROFILED: bool = false;

    /// The key's score; the lowest of those that may leave does.
    fn score(&self, key: Key) -> Self::Score;

    /// A resident key was used.
    fn used(&mut self, key: Key);

    /// An absent key comes in.
    fn entered(&mut self, key: Key) {
        self.used(key);
    }

    /// Whether an absent key may come in at all in a pool of `capacity` slots.
    fn accepts(&self, key: Key, capacity: u32) -> bool {
        let _ = (key, capacity);
        true
    }

    /// A victim is about to be looked for among `residents`.
    fn before_search(&mut self, residents: &[Key]) {
        let _ = residents;
    }

    /// A resident key's slot was taken from outside: it leaves no history behind.
    fn forget(&mut self, key: Key) {
        let _ = key;
    }

    /// As [`Policy::begin_event`].
    fn begin_event(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// As [`Policy::set_profile`].
    fn set_profile(&mut self, profile: &[f32]) {
        let _ = profile;
    }

    /// Checks what the ranking has learned.
    ///
    /// # Errors
    /// Says what is wrong with it.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The policy that evicts the lowest score of `R`.
#[derive(Debug, Clone)]
pub struct Ranked<R> {
    pub(crate) ranking: R,
    residents: ResidentSet,
    slots: Occupancy,
}

impl<R: Ranking> Ranked<R> {
    /// An empty pool of `capacity` slots over keys `0..keys`.
    pub(crate) fn over(keys: u32, capacity: u32, ranking: R) -> Self {
        Self { ranking, residents: ResidentSet::new(keys), slots: Occupancy::new(capacity) }
    }

    /// Number of slots.
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.capacity
    }
}

impl<R: Ranking> Policy for Ranked<R> {
    const OBSERVES: bool = R::OBSERVES;
    const READS_WEIGHTS: bool = R::READS_WEIGHTS;
    const PROFILED: bool = R::PROFILED;

    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.residents.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.ranking.used(key);
    }

    #[inline(always)]
    fn make_room<M: Room>(&mut self, key: Key, room: &mut M) -> bool {
        self.ranking.accepts(key, self.slots.capacity) && self.free_a_slot(room)
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.ranking.entered(key);
        self.residents.insert(key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.ranking.before_search(self.residents.keys());
        let ranking = &self.ranking;
        let victim = self.residents.least(|key| ranking.score(key), may_leave)?;
        self.residents.remove(victim);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.residents.remove(key);
        self.ranking.forget(key);
    }

    #[inline(always)]
    fn begin_event(&mut self, event: &Event<'_>) {
        self.ranking.begin_event(event);
    }

    fn set_profile(&mut self, profile: &[f32]) {
        self.ranking.set_profile(profile);
    }

    fn validate(&self) -> Result<(), String> {
        self.ranking.validate()?;
        self.residents.validate()?;
        self.slots.agree_with(self.residents.len())
    }
}
