//! Policies that evict the resident key with the lowest score.
//!
//! Where scores move with time (an age in them, a decay, a learned worth), no list or heap stays
//! sorted, and one pass over the residents finds the victim. [`Ranked`] does that pass and keeps
//! the books; a [`Ranking`] says only how keys are scored.

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
    capacity: u32,
}

impl<R: Ranking> Ranked<R> {
    /// An empty pool of `capacity` slots over keys `0..keys`.
    pub(crate) fn over(keys: u32, capacity: u32, ranking: R) -> Self {
        Self { ranking, residents: ResidentSet::new(keys), capacity }
    }

    /// Number of slots.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }
}

impl<R: Ranking> Policy for Ranked<R> {
    const OBSERVES: bool = R::OBSERVES;
    const READS_WEIGHTS: bool = R::READS_WEIGHTS;
    const PROFILED: bool = R::PROFILED;

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.residents.contains(key)
    }

    fn len(&self) -> u32 {
        self.residents.len()
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.ranking.used(key);
    }

    #[inline(always)]
    fn admit<M: Room>(&mut self, key: Key, room: &mut M) -> bool {
        if !self.ranking.accepts(key, self.capacity) {
            return false;
        }
        if self.residents.len() >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.ranking.entered(key);
        self.residents.insert(key);
        true
    }

    #[inline(always)]
    fn evict_one<M: Room>(&mut self, room: &mut M) -> bool {
        self.ranking.before_search(self.residents.keys());
        let ranking = &self.ranking;
        let lowest = self.residents.least(|key| ranking.score(key), |key| room.may_evict(key));
        let Some(victim) = lowest else {
            return false;
        };
        self.residents.remove(victim);
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.residents.remove(key);
        self.ranking.forget(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
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
        self.residents.validate(self.capacity)
    }
}
