//! Plans of the real cache, worked out by hand: flags of copies and prefetches, duplicates, and
//! what an observing policy is told.

use std::cell::RefCell;
use std::rc::Rc;

use hotset_policies::{
    Action, Event, ExpertCache, Key, Lru, Occupancy, POLICIES, Plan, Policy, PolicySpec, PoolShape,
    Slots,
};

/// Expert, slot and action of each placement.
fn rows(plan: &Plan<'_>) -> Vec<(u32, u32, Action)> {
    plan.placements.iter().map(|placed| (placed.expert, placed.slot, placed.action)).collect()
}

fn cache(slots: u32) -> ExpertCache<Lru> {
    ExpertCache::new(&[8, 8], &[2, 2], &Slots::Global(slots), |_, pool| Lru::new(pool)).unwrap()
}

#[test]
fn an_expert_is_pending_until_its_copy_is_complete() {
    let mut cache = cache(4);
    assert_eq!(rows(&cache.demand(0, &[5u8, 3])), [(3, 0, Action::Fetch), (5, 1, Action::Fetch)]);
    assert!(cache.complete(0, 3));
    let plan = cache.demand(0, &[5u8, 3, 5]);
    assert_eq!(rows(&plan), [(5, 1, Action::Pending), (3, 0, Action::Hit)]);
    assert_eq!((plan.hits, plan.pending, plan.misses()), (1, 1, 1));
    assert!(cache.complete(0, 5) && !cache.complete(0, 5));
    assert_eq!(cache.demand(0, &[5u8]).hits, 1);
}

#[test]
fn a_prefetch_is_credited_once_and_counts_as_wasted_if_nobody_asked() {
    let mut cache = cache(2).with_ordered_copies();
    cache.prefetch(1, &[6u8, 4]);
    let plan = cache.demand(1, &[4u8]);
    assert_eq!(rows(&plan), [(4, 1, Action::PrefetchHit)]);
    assert_eq!((plan.hits, plan.prefetch_hits), (1, 1));
    let plan = cache.demand(1, &[4u8, 0]);
    assert_eq!(rows(&plan), [(4, 1, Action::Hit), (0, 0, Action::Fetch)]);
    assert_eq!(plan.placements[1].evicted(), Some(8 + 6));
    assert_eq!((plan.prefetch_hits, plan.wasted), (0, 1));
    assert_eq!(cache.validate(), Ok(()));
}

#[test]
fn a_prefetch_in_flight_is_pending_and_then_no_longer_a_prefetch() {
    let mut cache = cache(2);
    cache.prefetch(0, &[1u8]);
    let plan = cache.demand(0, &[1u8, 2]);
    assert_eq!(rows(&plan), [(1, 0, Action::Pending), (2, 1, Action::Fetch)]);
    cache.complete(0, 1);
    assert_eq!(rows(&cache.demand(0, &[1u8])), [(1, 0, Action::Hit)]);
}

#[test]
fn a_prefetch_that_was_taken_back_leaves_no_trace() {
    let mut cache = cache(2);
    cache.prefetch(0, &[1u8, 2]);
    assert!(cache.discard(0, 1) && !cache.discard(0, 1) && !cache.discard(1, 1));
    assert_eq!((cache.resident(), cache.validate()), (1, Ok(())));
    cache.complete(0, 2);
    assert_eq!(
        rows(&cache.demand(0, &[2u8, 3])),
        [(2, 1, Action::PrefetchHit), (3, 0, Action::Fetch)]
    );
    assert!(!cache.discard(0, 2), "it has been asked for");
}

#[test]
fn unprotected_guesses_push_each_other_out() {
    let mut protected = cache(1).with_ordered_copies();
    let actions = |plan: Plan<'_>| rows(&plan).iter().map(|row| row.2).collect::<Vec<_>>();
    let guessed = actions(protected.prefetch(0, &[1u8, 2]));
    assert_eq!(guessed, [Action::Fetch, Action::Unplaced]);
    let mut open = cache(1).with_ordered_copies().with_unprotected_prefetch();
    assert_eq!(actions(open.prefetch(0, &[1u8, 2])), [Action::Fetch, Action::Fetch]);
    assert_eq!(open.residents().collect::<Vec<_>>(), [2]);
    // What the running layer needs stays in any case.
    open.demand(0, &[2u8]);
    assert_eq!(actions(open.prefetch(0, &[5u8])), [Action::Unplaced]);
}

type Told = Rc<RefCell<Vec<(u32, Vec<Key>, Vec<f32>)>>>;

/// LRU that writes down the events that it is told of.
struct Observer(Lru, Told);

impl Policy for Observer {
    const OBSERVES: bool = true;

    fn slots(&self) -> &Occupancy {
        self.0.slots()
    }
    fn slots_mut(&mut self) -> &mut Occupancy {
        self.0.slots_mut()
    }
    fn contains(&self, key: Key) -> bool {
        self.0.contains(key)
    }
    fn hit(&mut self, key: Key) {
        self.0.hit(key);
    }
    fn enter(&mut self, key: Key) {
        self.0.enter(key);
    }
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.0.pop(may_leave)
    }
    fn discard(&mut self, key: Key) {
        self.0.discard(key);
    }
    fn begin_event(&mut self, event: &Event<'_>) {
        self.1.borrow_mut().push((event.layer, event.keys.to_vec(), event.weights.to_vec()));
    }
    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }
}

#[test]
fn an_observer_sees_distinct_keys_in_order_with_the_weights_of_duplicates_added_up() {
    for (slots, layer, base) in [(Slots::Global(6), 1, 8), (Slots::Layer(vec![3, 3]), 0, 0)] {
        let told = Told::default();
        let policy = |_, pool: &PoolShape| Observer(Lru::new(pool), Rc::clone(&told));
        let mut cache = ExpertCache::new(&[8, 8], &[2, 2], &slots, policy).unwrap();
        let plan = cache.demand_weighted(1, &[7u8, 2, 7, 5], &[0.5, 0.25, 0.125, 1.0]);
        assert_eq!(plan.placements.iter().map(|p| p.expert).collect::<Vec<_>>(), [2, 5, 7]);
        assert_eq!(plan.fetches, 3);
        // Without weights there are none; of more experts than slots nothing is admitted.
        let plan = cache.demand(1, &[0u8, 7, 1, 2, 3, 4, 5, 0]);
        assert_eq!((plan.distinct(), plan.hits, plan.unplaced), (7, 0, 7 - plan.pending));
        assert!(plan.overflow);
        assert_eq!(cache.validate(), Ok(()));
        let first = (layer, vec![base + 7, base + 2, base + 5], vec![0.625, 0.25, 1.0]);
        let second = [0, 7, 1, 2, 3, 4, 5].map(|expert| base + expert).to_vec();
        assert_eq!(*told.borrow(), [first, (layer, second, vec![])]);
    }
}

#[test]
fn a_layer_that_asks_for_nothing_is_no_event_for_any_policy() {
    for info in POLICIES {
        let spec: PolicySpec = info.name.parse().unwrap();
        let build = |_: usize, pool: &PoolShape| spec.build(pool);
        let Some(_) = build(0, &PoolShape::flat(4, 16)) else { continue };
        let policy = |index: usize, pool: &PoolShape| build(index, pool).unwrap();
        let slots = Slots::Global(4);
        let mut cache = ExpertCache::new(&[8, 8], &[2, 2], &slots, policy).unwrap();
        for round in 0..3 {
            cache.begin_step(1);
            let nothing: [u8; 0] = [];
            assert_eq!(cache.demand(0, &nothing).distinct(), 0, "{}", info.name);
            assert_eq!(cache.demand_weighted(1, &[round, 7u8], &[0.5, 0.5]).distinct(), 2);
            cache.release(0);
            cache.release(1);
        }
        assert_eq!(cache.validate(), Ok(()), "{}", info.name);
    }
}
