//! The bounds: Belady with forced admission and with bypass equal the exhaustive optimum in event
//! semantics, and no policy of the registry beats the bound that holds for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotset_policies::*;
use proptest::prelude::*;

/// Distinct keys below `keys`, up to `most` of them.
fn event(keys: u32, most: usize) -> impl Strategy<Value = Vec<Key>> {
    prop::collection::btree_set(0..keys, 1..=most)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

/// The fewest misses of any decisions: all resident sets are followed, as bits of a word.
/// Afterwards the set must hold the event (forced) or may be anything that was at hand (bypass).
fn exhaustive(events: &[Vec<Key>], keys: u32, capacity: u32, forced: bool) -> u32 {
    let mut fewest: BTreeMap<u32, u32> = BTreeMap::from([(0, 0)]);
    for event in events {
        let asked = event.iter().fold(0u32, |set, key| set | 1 << key);
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        for (&residents, &before) in &fewest {
            let misses = before + (asked & !residents).count_ones();
            for after in 0..1u32 << keys {
                let at_hand = after & !(residents | asked) == 0;
                let fits = after.count_ones() <= capacity;
                if at_hand && fits && (!forced || asked & !after == 0) {
                    let best = next.entry(after).or_insert(misses);
                    *best = misses.min(*best);
                }
            }
        }
        fewest = next;
    }
    fewest.into_values().min().unwrap()
}

fn future(events: &[Vec<Key>], keys: u32) -> Arc<Future> {
    Arc::new(Future::new(events.concat(), keys).unwrap())
}

fn bypass_misses(events: &[Vec<Key>], keys: u32, capacity: u32) -> u32 {
    let mut bound = BypassBound::new(future(events, keys), capacity);
    let (mut misses, mut resident) = (0, 0);
    for event in events {
        let served = bound.event(event.len());
        misses += served.misses;
        resident = resident + served.admitted - served.evicted;
        assert!(resident <= capacity);
    }
    misses
}

/// Misses of events of one layer through the real cache.
fn misses<P: Policy>(cache: &mut ExpertCache<P>, events: &[Vec<Key>]) -> u32 {
    let mut misses = 0;
    for event in events {
        cache.begin_step(1);
        let weights: Vec<f32> = event.iter().map(|&key| (key % 5 + 1) as f32 / 8.0).collect();
        misses += cache.demand_weighted(0, event, &weights).misses();
        event.iter().for_each(|&key| {
            cache.complete(0, key);
        });
        cache.release(0);
    }
    misses
}

fn cache<P: Policy>(
    keys: u32,
    capacity: u32,
    policy: impl FnMut(usize, &PoolShape) -> P,
) -> ExpertCache<P> {
    ExpertCache::new(&[keys], &[1], &Slots::Global(capacity), policy).unwrap()
}

fn belady_misses(events: &[Vec<Key>], keys: u32, capacity: u32) -> u32 {
    let future = future(events, keys);
    let belady = |_: usize, pool: &PoolShape| Belady::<true>::new(pool, Arc::clone(&future));
    misses(&mut cache(keys, capacity, belady), events)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn both_bounds_are_the_exhaustive_optimum(
        events in prop::collection::vec(event(6, 3), 1..12),
        capacity in 1u32..6,
    ) {
        prop_assert_eq!(bypass_misses(&events, 6, capacity), exhaustive(&events, 6, capacity, false));
        // An event wider than the cache is not admitted at all, which is no choice of MIN's.
        if capacity >= 3 {
            let optimum = exhaustive(&events, 6, capacity, true);
            prop_assert_eq!(belady_misses(&events, 6, capacity), optimum);
        }
    }

    #[test]
    fn in_sequence_both_bounds_are_the_exhaustive_optimum(
        stream in prop::collection::vec(0u32..6, 1..16),
        capacity in 1u32..6,
    ) {
        let events: Vec<Vec<Key>> = stream.iter().map(|&key| vec![key]).collect();
        prop_assert_eq!(bypass_misses(&events, 6, capacity), exhaustive(&events, 6, capacity, false));
        let optimum = exhaustive(&events, 6, capacity, true);
        prop_assert_eq!(belady_misses(&events, 6, capacity), optimum);
    }

    #[test]
    fn no_policy_beats_its_bound(
        events in prop::collection::vec(event(12, 4), 1..80),
        capacity in 4u32..12,
    ) {
        let forced = belady_misses(&events, 12, capacity);
        let bypass = bypass_misses(&events, 12, capacity);
        prop_assert!(bypass <= forced);
        for info in POLICIES {
            let spec: PolicySpec = info.name.parse().unwrap();
            let found = spec.visit(Misses { events: &events, keys: 12, capacity });
            // Only training lets a policy refuse to admit.
            let bound = if info.needs == Need::Training { bypass } else { forced };
            let bound = if info.name == "belady-bypass" { bypass } else { bound };
            prop_assert!(found >= bound, "{} misses {found} of {bound}", info.name);
        }
    }
}

struct Misses<'a> {
    events: &'a [Vec<Key>],
    keys: u32,
    capacity: u32,
}

impl Visitor for Misses<'_> {
    type Output = u32;

    fn online<P: Policy + Send>(self, build: impl Fn(&PoolShape) -> P) -> u32 {
        misses(&mut cache(self.keys, self.capacity, |_, pool| build(pool)), self.events)
    }

    fn offline(self, bound: Bound) -> u32 {
        match bound {
            Bound::Belady => belady_misses(self.events, self.keys, self.capacity),
            Bound::BeladyBypass => bypass_misses(self.events, self.keys, self.capacity),
        }
    }

    /// In sample, but cold: the chosen ones come in as they are asked for.
    fn trained<P: Policy + Send>(self, build: impl Fn(&PoolShape, &[u64]) -> P) -> u32 {
        let mut counts = vec![0; self.keys as usize];
        for &key in self.events.iter().flatten() {
            counts[key as usize] += 1;
        }
        misses(&mut cache(self.keys, self.capacity, |_, pool| build(pool, &counts)), self.events)
    }
}
