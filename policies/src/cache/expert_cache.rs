//! [`ExpertCache`]: what it is made of, and what becomes of its copies and demands.

use super::entry::{Entry, PENDING};
use super::pool::Pool;
use super::serve::NETWORK;
use super::slots::{key_bases, key_in};
use super::{CacheError, Placement, Slots};
use crate::policy::{Key, Policy, PoolShape};

/// A cache of expert slots under policy `P`: [`demand`](Self::demand) answers with a
/// [`Plan`](super::Plan), the engine copies, then calls [`complete`](Self::complete) and
/// [`release`](Self::release).
///
/// Memory: 8 bytes an expert, 4 a slot, and the policy's own state
/// ([`PolicySpec::memory`](crate::PolicySpec::memory)); all of it is taken at construction.
///
/// Where a method panics for a layer or an expert that the model does not have, no expert has come
/// or gone; the cache can be used further.
///
/// ```
/// use hotset_policies::{Action, ExpertCache, Lru, Slots};
///
/// // Two layers of four experts, of which a token uses two, share four slots.
/// let slots = Slots::Global(4);
/// let mut cache = ExpertCache::new(&[4, 4], &[2, 2], &slots, |_, pool| Lru::new(pool))?;
/// let plan = cache.demand(0, &[3u8, 1]);
/// assert_eq!((plan.hits, plan.fetches), (0, 2));
/// assert!(plan.placements.iter().all(|placed| placed.action == Action::Fetch));
/// // The engine copies both experts into their slots, uses them, and lets go of them.
/// cache.complete(0, 1);
/// cache.complete(0, 3);
/// cache.release(0);
/// assert_eq!(cache.demand(0, &[3u8]).hits, 1);
/// # Ok::<(), hotset_policies::CacheError>(())
/// ```
pub struct ExpertCache<P> {
    /// Dense key of each layer's expert 0, and the number of experts behind the last.
    pub(super) bases: Vec<Key>,
    pub(super) global: bool,
    pub(super) pools: Vec<Pool<P>>,
    pub(super) entries: Vec<Entry>,
    /// The flag of a slot that a copy was just asked for: `PENDING`, or 0 with ordered copies.
    pub(super) fetched: u32,
    /// Whether a prefetch may not push out the predictions before it.
    pub(super) protects: bool,
    /// Number of the latest event; every demand and prefetch is one.
    pub(super) now: u32,
    /// Demands that were not released yet: event and layer, oldest first.
    pub(super) open: Vec<(u32, u32)>,
    /// Room for the placements of the widest event, and one that is written but not counted.
    pub(super) placements: Box<[Placement]>,
    pub(super) missing: Box<[u32]>,
    pub(super) dropped: Vec<Key>,
    /// Which experts the running prefetch has placed; none between two of them.
    pub(super) predicted: Box<[bool]>,
    /// The latest event's distinct keys, for policies that observe events.
    pub(super) event_keys: Box<[Key]>,
    pub(super) event_weights: Vec<f32>,
}

impl<P: Policy> ExpertCache<P> {
    /// A cache for a model with `experts[l]` experts in MoE layer `l` and `top_k[l]` of them used
    /// by a token. `policy` builds the policy of each pool.
    ///
    /// # Errors
    /// No layers, a layer without experts, no slots, more slots than experts, more than 2^30 - 1
    /// experts, or a number of per-layer slots that is not the number of layers.
    pub fn new(
        experts: &[u32],
        top_k: &[u32],
        slots: &Slots,
        mut policy: impl FnMut(usize, &PoolShape) -> P,
    ) -> Result<Self, CacheError> {
        let shapes = slots.pools(experts, top_k)?;
        let bases = key_bases(experts)?;
        let total = bases[experts.len()];
        let pools = shapes
            .iter()
            .enumerate()
            .map(|(index, shape)| Pool {
                policy: policy(index, shape),
                free: (0..shape.capacity).rev().collect(),
                capacity: shape.capacity,
            })
            .collect();
        let widest = experts.iter().copied().max().unwrap_or(0) as usize;
        Ok(Self {
            global: matches!(slots, Slots::Global(_)),
            pools,
            entries: vec![Entry::EMPTY; total as usize],
            now: 0,
            open: Vec::with_capacity(experts.len()),
            placements: vec![Placement::NONE; widest + 1].into_boxed_slice(),
            fetched: PENDING,
            protects: true,
            missing: vec![0; (widest + 1).max(NETWORK)].into_boxed_slice(),
            dropped: Vec::with_capacity(widest),
            predicted: vec![false; widest].into_boxed_slice(),
            event_keys: vec![0; widest].into_boxed_slice(),
            event_weights: Vec::with_capacity(widest),
            bases,
        })
    }

    /// For engines whose copies are ordered before every later use of their slots (one copy
    /// stream that the compute stream waits for): a fetch counts as complete when it is planned,
    /// so nothing is ever [`Action::Pending`](super::Action::Pending) and
    /// [`complete`](Self::complete) need not be called.
    #[must_use]
    pub fn with_ordered_copies(mut self) -> Self {
        self.fetched = 0;
        self
    }

    /// Prefetches may push out what was predicted just before them, resident or fetched.
    #[must_use]
    pub fn with_unprotected_prefetch(mut self) -> Self {
        self.protects = false;
        self
    }

    /// Number of MoE layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.bases.len() - 1
    }

    /// Slots over all pools.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.pools.iter().map(|pool| pool.capacity).sum()
    }

    /// Experts that hold a slot, those whose copies are in flight included.
    #[must_use]
    pub fn resident(&self) -> u32 {
        self.pools.iter().map(|pool| pool.policy.len()).sum()
    }

    /// Layer and expert of a dense key.
    ///
    /// # Panics
    /// If no expert has this key.
    #[must_use]
    pub fn expert_of(&self, key: Key) -> (usize, u32) {
        assert!((key as usize) < self.entries.len(), "key {key} of {}", self.entries.len());
        let layer = self.bases.partition_point(|&base| base <= key) - 1;
        (layer, key - self.bases[layer])
    }

    /// The slot of an expert whose copy is complete.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range.
    #[must_use]
    pub fn slot_of(&self, layer: usize, expert: u32) -> Option<u32> {
        let entry = self.entries[self.key(layer, expert)];
        (entry.is_resident() && !entry.is_pending()).then(|| entry.slot())
    }

    /// The policy of a pool: pool 0 in global scope, else the layer's.
    ///
    /// # Panics
    /// If there is no such pool.
    #[must_use]
    pub fn policy(&self, pool: usize) -> &P {
        &self.pools[pool].policy
    }

    /// The dense keys of all experts that hold a slot, ascending.
    pub fn residents(&self) -> impl Iterator<Item = Key> + '_ {
        (0..).zip(&self.entries).filter(|(_, entry)| entry.is_resident()).map(|(key, _)| key)
    }

    /// A step over `tokens` tokens begins. Only observing policies use it.
    #[inline(always)]
    pub fn begin_step(&mut self, tokens: u32) {
        if P::OBSERVES {
            for pool in &mut self.pools {
                pool.policy.begin_step(tokens);
            }
        }
    }

    /// What the running conversations are expected to use from now on: uses a token of each dense
    /// key. Only policies that go by it look at it.
    ///
    /// # Panics
    /// If `profile` has not one number for each expert.
    pub fn set_profile(&mut self, profile: &[f32]) {
        assert_eq!(profile.len(), self.entries.len(), "one number for each expert");
        if !P::PROFILED {
            return;
        }
        for (index, pool) in self.pools.iter_mut().enumerate() {
            let keys = if self.global {
                0..self.entries.len()
            } else {
                self.bases[index] as usize..self.bases[index + 1] as usize
            };
            pool.policy.set_profile(&profile[keys]);
        }
    }

    /// The copy of an expert into its slot is complete. Returns whether it was in flight.
    ///
    /// A completion that comes late, for an expert that has left or whose copy was complete
    /// already, changes nothing and gives `false`. A copy that was taken back must not be
    /// reported: if its expert has been fetched again since, that newer copy would be taken for
    /// complete.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range; nothing has changed then.
    #[inline(always)]
    pub fn complete(&mut self, layer: usize, expert: u32) -> bool {
        let key = self.key(layer, expert);
        let was_pending = self.entries[key].is_pending();
        if was_pending {
            self.copied(key);
        }
        was_pending
    }

    /// The copy of this dense key, which was pending, is complete.
    #[inline(always)]
    pub(super) fn copied(&mut self, key: usize) {
        self.entries[key].word &= !PENDING;
    }

    /// The layer's experts have been used: their slots may be given away again. Releases take
    /// effect in the order of the demands, so a later layer's slots stay while an earlier demand
    /// is open. A new demand of the same layer releases the one before it.
    ///
    /// A layer that is never released keeps its experts, and those of every demand and prefetch
    /// after it, until it is demanded again: misses find ever fewer slots, and are
    /// [`Action::Unplaced`](super::Action::Unplaced) once none is left. Releasing a layer that has
    /// no open demand, or that the model does not have, changes nothing.
    #[inline(always)]
    pub fn release(&mut self, layer: usize) {
        if let [(_, open)] = self.open[..] {
            if open as usize == layer {
                self.open.clear();
            }
        } else if let Some(index) = self.open.iter().position(|&(_, open)| open as usize == layer) {
            self.open.remove(index);
        }
    }

    #[inline(always)]
    pub(super) fn pool_of(&self, layer: usize) -> usize {
        if self.global { 0 } else { layer }
    }

    #[inline(always)]
    pub(super) fn key(&self, layer: usize, expert: u32) -> usize {
        key_in(&self.bases, layer, expert)
    }

    /// Experts asked for by this event or a later one are needed by an open demand.
    #[inline(always)]
    pub(super) fn floor(&self) -> u32 {
        self.open.first().map_or(self.now, |&(event, _)| event)
    }
}
