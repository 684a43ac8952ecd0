//! [`ExpertCache`]: the experts that a layer needs now.

use super::entry::{ExpertId, LIMIT};
use super::serve::{EventLists, EventNumbers, PoolPlace, admit_missing, look_up, sort_ascending};
use super::{ExpertCache, Placement, Plan};
use crate::policy::{Event, Policy};

impl<P: Policy> ExpertCache<P> {
    /// The experts that a layer needs in this step. Duplicates (a batch's tokens share experts)
    /// are one demand. Hits are touched in the order given; then the distinct misses, in ascending
    /// id, take a free slot or that of an expert which neither this event nor another unreleased
    /// one needs and whose own copy is complete.
    ///
    /// An event that needs more experts than its pool has slots admits nothing: its misses are
    /// [`Action::Unplaced`](super::Action::Unplaced).
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range. Nothing was admitted then; of a layer that there
    /// is, the demand counts as open.
    #[inline]
    pub fn demand<E: ExpertId>(&mut self, layer: usize, experts: &[E]) -> Plan<'_> {
        self.demand_weighted(layer, experts, &[])
    }

    /// [`demand`](Self::demand) with the router's weight of each entry of `experts`, which
    /// policies that read weights need; empty where there are none.
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range. Nothing was admitted then; of a layer that there
    /// is, the demand counts as open.
    #[inline]
    pub fn demand_weighted<E: ExpertId>(
        &mut self,
        layer: usize,
        experts: &[E],
        weights: &[f32],
    ) -> Plan<'_> {
        assert!(layer < self.layers(), "layer {layer} of {}", self.layers());
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
        let lists =
            EventLists { placements: &mut self.placements[..], missing: &mut self.missing[..] };
        let mut found = if P::OBSERVES {
            let event = EventNumbers { now, first_id: offset };
            look_up::<true, _>(entries, &self.event_keys[..distinct], event, lists)
        } else {
            look_up::<false, _>(entries, experts, EventNumbers { now, first_id: 0 }, lists)
        };
        if found.flags > LIMIT {
            found.settle_flags(entries, &mut self.placements);
        }
        for placement in &self.placements[..found.resident] {
            pool.policy.hit(offset + placement.expert);
        }
        sort_ascending(&mut self.missing, found.misses);
        let missing = &self.missing[..found.misses];
        let placements = &mut self.placements[..found.resident + found.misses];
        let (unplaced, wasted) = if overflow {
            for (placement, &expert) in placements[found.resident..].iter_mut().zip(missing) {
                *placement = Placement { expert, ..Placement::NONE };
            }
            (found.misses as u32, 0)
        } else {
            admit_missing(
                pool,
                &mut self.entries[pool_base as usize..pool_end as usize],
                missing,
                PoolPlace { base: pool_base, offset, floor, fetched: self.fetched },
                &mut placements[found.resident..],
                &mut self.dropped,
            )
        };
        Plan {
            placements,
            dropped: &self.dropped,
            hits: found.resident as u32 - found.pending,
            prefetch_hits: found.prefetch_hits,
            pending: found.pending,
            fetches: found.misses as u32 - unplaced,
            unplaced,
            wasted,
            overflow,
        }
    }

    #[inline(always)]
    fn open_event(&mut self, layer: usize) {
        self.release(layer);
        self.open.push((self.now, layer as u32));
    }

    #[inline(always)]
    pub(super) fn begin_event(&mut self) -> u32 {
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
        let (base, end) = (self.bases[layer] as usize, self.bases[layer + 1] as usize);
        let entries = &mut self.entries[base..end];
        let mut distinct = 0;
        for expert in experts {
            let entry = &mut entries[expert.index() as usize];
            if std::mem::replace(&mut entry.stamp, self.now) != self.now {
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
            let entry = &mut entries[expert as usize];
            let key = offset + expert;
            if std::mem::replace(&mut entry.stamp, self.now) != self.now {
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
