//! [`ExpertCache`]: the experts that a layer is predicted to need.

use super::entry::{ExpertId, PREFETCHED};
use super::plan::NOBODY;
use super::room::PoolRoom;
use super::{Action, ExpertCache, Placement, Plan};
use crate::policy::Policy;

impl<P: Policy> ExpertCache<P> {
    /// Brings in experts that a layer is predicted to need, in the order given. A resident one is
    /// not touched, only kept from then on until the demands that are open now are released; an
    /// absent one is admitted as if it had been used, evicting none that an open demand needs and
    /// none of the predictions before it (unless
    /// [unprotected](Self::with_unprotected_prefetch)). Predictions that find no room are
    /// [`Action::Unplaced`]; a repeated one counts once.
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range; nothing has changed then.
    pub fn prefetch<E: ExpertId>(&mut self, layer: usize, predictions: &[E]) -> Plan<'_> {
        for expert in predictions {
            self.key(layer, expert.index());
        }
        assert!(layer < self.layers(), "layer {layer} of {}", self.layers());
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
            let key = base - pool_base + expert;
            if std::mem::replace(&mut self.predicted[expert as usize], true) {
                continue;
            }
            let entry = &mut entries[key as usize];
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
        let placements = &self.placements[..planned];
        for placed in placements {
            self.predicted[placed.expert as usize] = false;
        }
        Plan {
            placements,
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
}
