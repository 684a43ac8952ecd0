//! FreeToken's hybrid step against a straightforward reference of its own words.
//!
//! The reference keeps what FreeToken keeps: `slot_for_id`, `id_of_slot`, `usage`, `expert_recency`,
//! one tick an event. Its victims are the least (usage, slot). Within one tick its ties go to the
//! lowest slot, ours to whoever was used earlier in it: residents are therefore compared under an LRU
//! that the reference runs with the same order of ties.

use hotset_policies::miss::{Asked, FetchOrder, MissDispatcher, MissHandler, Split};
use hotset_policies::{ExpertCache, Lru, Slots};
use proptest::prelude::*;

struct Reference {
    experts: usize,
    slot_for_id: Vec<Option<usize>>,
    id_of_slot: Vec<Option<usize>>,
    /// When a slot was last used: the tick, and the place within it.
    usage: Vec<(u64, usize)>,
    recency: Vec<u64>,
    step: u64,
}

impl Reference {
    fn new(layers: usize, experts: usize, slots: usize) -> Self {
        Self {
            experts,
            slot_for_id: vec![None; layers * experts],
            id_of_slot: vec![None; slots],
            usage: vec![(0, 0); slots],
            recency: vec![0; layers * experts],
            step: 0,
        }
    }

    /// Ids that are fetched, ascending, and how many the host serves.
    fn ensure(&mut self, layer: usize, experts: &[u16], split: &Split) -> (Vec<u16>, u32) {
        self.step += 1;
        let ids: Vec<usize> =
            experts.iter().map(|&expert| layer * self.experts + usize::from(expert)).collect();
        let mut missing = Vec::new();
        for (place, &id) in ids.iter().enumerate() {
            match self.slot_for_id[id] {
                Some(slot) => self.usage[slot] = (self.step, place),
                None => missing.push(id),
            }
        }
        let m = missing.len() as u64;
        let f = u64::from(split.fetch_q16.unwrap());
        let fetch = if f > 0 {
            let low = (m * f) >> 16;
            let cost = |fetch: u64| (fetch * (65536 - f)).max(m.saturating_sub(fetch) * f);
            (if cost(low) <= cost(low + 1) { low } else { low + 1 }).min(m)
        } else {
            m.min(u64::from(split.max_fetch))
        };
        match split.order {
            FetchOrder::Recent => {
                missing.sort_by_key(|&id| (std::cmp::Reverse(self.recency[id]), id));
            }
            FetchOrder::Lowest => missing.sort_unstable(),
        }
        let mut fetched = missing[..fetch as usize].to_vec();
        fetched.sort_unstable();
        for (rank, &id) in fetched.iter().enumerate() {
            let free = (0..self.usage.len()).filter(|&slot| self.usage[slot].0 != self.step);
            let victim = free.min_by_key(|&slot| (self.usage[slot], slot)).unwrap();
            if let Some(old) = self.id_of_slot[victim] {
                self.slot_for_id[old] = None;
            }
            self.id_of_slot[victim] = Some(id);
            self.slot_for_id[id] = Some(victim);
            self.usage[victim] = (self.step, ids.len() + rank);
        }
        for &id in &ids {
            self.recency[id] = self.step;
        }
        let local = |id: &usize| (id % self.experts) as u16;
        (fetched.iter().map(local).collect(), (m - fetch) as u32)
    }

    fn residents(&self) -> Vec<u32> {
        (0..self.slot_for_id.len() as u32)
            .filter(|&id| self.slot_for_id[id as usize].is_some())
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// 64 steps over two layers: the same misses are fetched, the same experts are in the same slots.
    #[test]
    fn sixty_four_steps_are_freetokens(
        events in prop::collection::vec(prop::collection::btree_set(0u16..12, 1..6), 64),
        turns in prop::collection::vec(any::<u16>(), 64),
        share in 0u32..=65_536,
        max_fetch in 0u32..4,
        lowest in any::<bool>(),
        slots in 6usize..20,
    ) {
        let order = if lowest { FetchOrder::Lowest } else { FetchOrder::Recent };
        let split = Split { fetch_q16: Some(if share % 5 == 0 { 0 } else { share }), max_fetch, order };
        let mut reference = Reference::new(2, 12, slots);
        let mut dispatcher = MissDispatcher::new(MissHandler::Balanced(split), &[12, 12]);
        let pool = Slots::Global(slots as u32);
        let mut cache = ExpertCache::new(&[12, 12], &[4, 4], &pool, |_, pool| Lru::new(pool))
            .unwrap()
            .with_ordered_copies();
        for (step, (event, turn)) in events.iter().zip(&turns).enumerate() {
            let layer = step % 2;
            let mut experts: Vec<u16> = event.iter().copied().collect();
            let by = usize::from(*turn) % experts.len();
            experts.rotate_left(by);
            let (fetched, host) = reference.ensure(layer, &experts, &split);
            let chosen = dispatcher.choose(&cache, &Asked::by_one_token(layer, &experts, &[]));
            prop_assert_eq!(chosen.host, host);
            let demanded = chosen.demanded.to_vec();
            let plan = cache.demand(layer, &demanded);
            let hits = plan.hits as usize;
            let copied: Vec<u16> =
                plan.placements[hits..].iter().map(|placed| placed.expert as u16).collect();
            prop_assert_eq!(copied, fetched);
            cache.release(layer);
            prop_assert_eq!(cache.residents().collect::<Vec<_>>(), reference.residents());
            for id in cache.residents() {
                let slot = cache.slot_of(id as usize / 12, id % 12).map(|slot| slot as usize);
                prop_assert_eq!(slot, reference.slot_for_id[id as usize]);
            }
        }
    }
}
