//! [`ExpertCache`]: demands and prefetches.

use super::entry::{Entry, ExpertId, LIMIT, PENDING, PREFETCHED};
use super::plan::NOBODY;
use super::room::PoolRoom;
use super::serve::{NETWORK, admit_missing, look_up, sort_ascending};
use super::slots::key_bases;
use super::{Action, CacheError, Placement, Plan, Slots};
use crate::{Event, Key, Policy, PoolShape};

pub(super) struct Pool<P> {
    pub policy: P,
    /// Slots that hold nothing; the lowest is taken first after construction.
    pub free: Vec<u32>,
    pub capacity: u32,
}

/// A cache of expert slots under policy `P`: [`demand`](Self::demand) answers with a [`Plan`], the
/// engine copies, then calls [`complete`](Self::complete) and [`release`](Self::release).
///
/// Memory: 8 bytes an expert, 4 a slot, and the policy's own state; all of it is taken at
/// construction.
pub struct ExpertCache<P> {
    /// Dense key of each layer's expert 0, and the number of experts behind the last.
    pub(super) bases: Vec<Key>,
    pub(super) global: bool,
    pub(super) pools: Vec<Pool<P>>,
    pub(super) entries: Vec<Entry>,
    /// The flag of a slot that a copy was just asked for: `PENDING`, or 0 with ordered copies.
    fetched: u32,
    /// Whether a prefetch may not push out the guesses before it.
    protects: bool,
    /// Number of the latest event; every demand and prefetch is one.
    pub(super) now: u32,
    /// Demands that were not released yet: event and layer, oldest first.
    pub(super) open: Vec<(u32, u32)>,
    /// Room for the placements of the widest event, and one that is written but not counted.
    placements: Box<[Placement]>,
    missing: Box<[u32]>,
    dropped: Vec<Key>,
    /// The latest event's distinct keys, for policies that observe events.
    event_keys: Box<[Key]>,
    event_weights: Vec<f32>,
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
            event_keys: vec![0; widest].into_boxed_slice(),
            event_weights: Vec::with_capacity(widest),
            bases,
        })
    }

    /// For engines whose copies are ordered before every later use of their slots (one copy
    /// stream that the compute stream waits for): a fetch counts as complete when it is planned,
    /// so nothing is ever [`Action::Pending`] and [`complete`](Self::complete) need not be called.
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
    #[must_use]
    pub fn expert_of(&self, key: Key) -> (usize, u32) {
        let layer = self.bases.partition_point(|&base| base <= key) - 1;
        (layer, key - self.bases[layer])
    }

    /// The slot of an expert whose copy is complete.
    #[must_use]
    pub fn slot_of(&self, layer: usize, expert: u32) -> Option<u32> {
        let entry = self.entries[self.key(layer, expert)];
        (entry.is_resident() && !entry.is_pending()).then(|| entry.slot())
    }

    /// The policy of a pool: pool 0 in global scope, else the layer's.
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

    /// The experts that a layer needs in this step. Duplicates (a batch's tokens share experts)
    /// are one demand. Hits are touched in the order given; then the distinct misses, in ascending
    /// id, take a free slot or that of an expert which neither this event nor another unreleased
    /// one needs and whose own copy is complete.
    ///
    /// An event that needs more experts than its pool has slots admits nothing: its misses are
    /// [`Action::Unplaced`].
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range.
    #[inline]
    pub fn demand<E: ExpertId>(&mut self, layer: usize, experts: &[E]) -> Plan<'_> {
        self.demand_weighted(layer, experts, &[])
    }

    /// [`demand`](Self::demand) with the router's weight of each entry of `experts`, which
    /// policies that read weights need; empty where there are none.
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range.
    #[inline]
    pub fn demand_weighted<E: ExpertId>(
        &mut self,
        layer: usize,
        experts: &[E],
        weights: &[f32],
    ) -> Plan<'_> {
        let overflow = experts.len() > self.pools[self.pool_of(layer)].capacity as usize
            && self.count_distinct(layer, experts) > self.pools[self.pool_of(layer)].capacity;
        let now = self.begin_event();
        let distinct = if P::OBSERVES { self.observe(layer, experts, weights) } else { 0 };
        self.open_event(layer);
        let floor = self.floor();

        let (base, end) = (self.bases[layer], self.bases[layer + 1]);
        let (pool, pool_base, pool_end) = if self.global {
            (&mut self.pools[0], 0, self.entries.len() as u32)
        } else {
            (&mut self.pools[layer], base, end)
        };
        let offset = base - pool_base;
        self.dropped.clear();
        let entries = &mut self.entries[base as usize..end as usize];
        let lists = (&mut self.placements[..], &mut self.missing[..]);
        let mut asked = if P::OBSERVES {
            look_up::<true, _>(entries, &self.event_keys[..distinct], (now, offset), lists)
        } else {
            look_up::<false, _>(entries, experts, (now, 0), lists)
        };
        if asked.flags > LIMIT {
            asked.settle_flags(entries, &mut self.placements);
        }
        for placement in &self.placements[..asked.resident] {
            pool.policy.hit(offset + placement.expert);
        }
        sort_ascending(&mut self.missing, asked.misses);
        let missing = &self.missing[..asked.misses];
        let placements = &mut self.placements[..asked.resident + asked.misses];
        let (unplaced, wasted) = if overflow {
            for (placement, &expert) in placements[asked.resident..].iter_mut().zip(missing) {
                *placement = Placement { expert, ..Placement::NONE };
            }
            (asked.misses as u32, 0)
        } else {
            admit_missing(
                pool,
                &mut self.entries[pool_base as usize..pool_end as usize],
                missing,
                (pool_base, offset, floor, self.fetched),
                &mut placements[asked.resident..],
                &mut self.dropped,
            )
        };
        Plan {
            placements,
            dropped: &self.dropped,
            hits: asked.resident as u32 - asked.pending,
            prefetch_hits: asked.prefetch_hits,
            pending: asked.pending,
            fetches: asked.misses as u32 - unplaced,
            unplaced,
            wasted,
            overflow,
        }
    }

    /// Brings in experts that a layer is predicted to need, in the order given. A resident one is
    /// not touched, only kept from then on until the demands that are open now are released; an
    /// absent one is admitted as if it had been used, evicting none that an open demand needs and
    /// none of the predictions before it. Predictions that find no room are
    /// [`Action::Unplaced`].
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range.
    pub fn prefetch<E: ExpertId>(&mut self, layer: usize, predictions: &[E]) -> Plan<'_> {
        let now = self.begin_event();
        let floor = self.floor();
        let base = self.bases[layer];
        let pool_base = if self.global { 0 } else { base };
        let pool_end = if self.global { self.entries.len() as u32 } else { self.bases[layer + 1] };
        let pool = &mut self.pools[if self.global { 0 } else { layer }];
        let entries = &mut self.entries[pool_base as usize..pool_end as usize];
        self.dropped.clear();
        let (mut planned, mut wasted) = (0, 0);
        let (mut hits, mut pending, mut fetches, mut unplaced) = (0, 0, 0, 0);
        for expert in predictions {
            let expert = expert.index();
            assert!(base + expert < self.bases[layer + 1], "expert {expert} of layer {layer}");
            let key = base - pool_base + expert;
            let entry = &mut entries[key as usize];
            if entry.stamp == now {
                continue;
            }
            if self.protects {
                entry.stamp = now;
            }
            let entry = *entry;
            let mut placement =
                Placement { expert, slot: entry.slot(), evicted: NOBODY, action: Action::Hit };
            if entry.is_pending() {
                placement.action = Action::Pending;
                pending += 1;
            } else if entry.is_resident() {
                hits += 1;
            } else {
                let mut room =
                    PoolRoom::new(entries, pool_base, floor, &mut pool.free, &mut self.dropped);
                let admitted = pool.policy.admit(key, &mut room);
                let slot = if admitted { room.take_slot() } else { None };
                placement.evicted = room.evicted;
                wasted += room.wasted;
                if let Some(slot) = slot {
                    entries[key as usize].word = slot | self.fetched | PREFETCHED;
                    (placement.slot, placement.action) = (slot, Action::Fetch);
                    fetches += 1;
                } else {
                    (placement.slot, placement.action) = (0, Action::Unplaced);
                    unplaced += 1;
                }
            }
            self.placements[planned] = placement;
            planned += 1;
        }
        Plan {
            placements: &self.placements[..planned],
            dropped: &self.dropped,
            hits,
            prefetch_hits: 0,
            pending,
            fetches,
            unplaced,
            wasted,
            overflow: false,
        }
    }

    /// The copy of an expert into its slot is complete. Returns whether it was in flight.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range.
    #[inline(always)]
    pub fn complete(&mut self, layer: usize, expert: u32) -> bool {
        let key = self.key(layer, expert);
        let entry = &mut self.entries[key];
        let was_pending = entry.is_pending();
        if was_pending {
            entry.word &= !PENDING;
        }
        was_pending
    }

    /// The layer's experts have been used: their slots may be given away again. Releases take
    /// effect in the order of the demands, so a later layer's slots stay while an earlier demand
    /// is open. A new demand of the same layer releases the one before it.
    #[inline(always)]
    pub fn release(&mut self, layer: usize) {
        if let [(_, open)] = self.open[..] {
            if open == layer as u32 {
                self.open.clear();
            }
        } else if let Some(index) = self.open.iter().position(|&(_, open)| open == layer as u32) {
            self.open.remove(index);
        }
    }

    #[inline(always)]
    pub(super) fn pool_of(&self, layer: usize) -> usize {
        if self.global { 0 } else { layer }
    }

    #[inline(always)]
    pub(super) fn key(&self, layer: usize, expert: u32) -> usize {
        let key = self.bases[layer] + expert;
        assert!(key < self.bases[layer + 1], "expert {expert} of layer {layer}");
        key as usize
    }

    /// Experts asked for by this event or a later one are needed by an open demand.
    #[inline(always)]
    pub(super) fn floor(&self) -> u32 {
        self.open.first().map_or(self.now, |&(event, _)| event)
    }

    #[inline(always)]
    fn open_event(&mut self, layer: usize) {
        self.release(layer);
        self.open.push((self.now, layer as u32));
    }

    #[inline(always)]
    fn begin_event(&mut self) -> u32 {
        if self.now == u32::MAX {
            self.renumber();
        }
        self.now += 1;
        self.now
    }

    /// Starts numbering events again after 2^32 of them: what is needed keeps a number that says
    /// so, everything else is as if it had never been asked for.
    #[cold]
    fn renumber(&mut self) {
        let floor = self.open.first().map_or(u32::MAX, |&(event, _)| event);
        for entry in &mut self.entries {
            entry.stamp = u32::from(entry.stamp >= floor);
        }
        for (event, _) in &mut self.open {
            *event = 1;
        }
        self.now = 1;
    }

    #[cold]
    fn count_distinct<E: ExpertId>(&mut self, layer: usize, experts: &[E]) -> u32 {
        // Marking needs a number of its own, and must not keep what it marks from leaving.
        self.begin_event();
        let base = self.bases[layer];
        let mut distinct = 0;
        for expert in experts {
            let key = (base + expert.index()) as usize;
            if std::mem::replace(&mut self.entries[key].stamp, self.now) != self.now {
                distinct += 1;
            }
        }
        distinct
    }

    /// Marks and lists an event's distinct experts and tells an observing policy of them, before
    /// their hits and misses. Returns how many they are.
    #[inline(always)]
    fn observe<E: ExpertId>(&mut self, layer: usize, experts: &[E], weights: &[f32]) -> usize {
        let (base, end) = (self.bases[layer], self.bases[layer + 1]);
        let offset = if self.global { base } else { 0 };
        let entries = &mut self.entries[base as usize..end as usize];
        let mut distinct = 0;
        self.event_weights.clear();
        for (position, expert) in experts.iter().enumerate() {
            let (expert, weight) = (expert.index(), weights.get(position).copied());
            let key = offset + expert;
            if std::mem::replace(&mut entries[expert as usize].stamp, self.now) != self.now {
                self.event_keys[distinct] = key;
                self.event_weights.extend(weight);
                distinct += 1;
            } else if let Some(weight) = weight
                && let Some(known) = self.event_keys.iter().position(|&other| other == key)
            {
                self.event_weights[known] += weight;
            }
        }
        if distinct > 0 {
            let pool = self.pool_of(layer);
            self.pools[pool].policy.begin_event(&Event {
                layer: if self.global { layer as u32 } else { 0 },
                keys: &self.event_keys[..distinct],
                weights: &self.event_weights,
            });
        }
        distinct
    }
}
