//! Drives a policy and its naive reference through the same events and compares who is in.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotset_policies::{Anyone, Belady, Event, ExpertCache, Future, Key, Policy, PoolShape, Slots};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A policy told plainly: vectors, no shared code. The calls mean what [`Policy`]'s mean.
pub trait Naive {
    fn hit(&mut self, key: Key);
    /// Keys that leave for `key`, which then is resident; `None` if nobody may leave.
    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>>;
    fn residents(&self) -> BTreeSet<Key>;
    fn begin_step(&mut self, _tokens: u32) {}
    fn begin_event(&mut self, _event: &Event<'_>) {}
}

/// Layers of 5, 3 and 6 experts; a step asks each layer for a few of them.
pub const EXPERTS: [u32; 3] = [5, 3, 6];
pub const TOP_K: [u32; 3] = [3, 2, 3];
const BASES: [u32; 3] = [0, 5, 8];

/// One layer of one step: layer, distinct experts in rank order, a weight for each.
#[derive(Debug, Clone)]
pub struct Ask {
    pub layer: usize,
    pub experts: Vec<u32>,
    pub weights: Vec<f32>,
}

/// Random steps with some repetition, so that every policy sees hits, ghosts and scans.
pub fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let step = (any::<[[u8; 3]; 3]>(), any::<[[u8; 3]; 3]>(), 0u8..4);
    prop::collection::vec(step, 1..60).prop_map(|steps| {
        let mut asks: Vec<Ask> = Vec::new();
        for (ids, weights, repeat) in steps {
            for layer in 0..3 {
                let mut experts = Vec::new();
                let mut of_experts = Vec::new();
                for rank in 0..TOP_K[layer] as usize {
                    let expert = u32::from(ids[layer][rank]) % EXPERTS[layer];
                    if !experts.contains(&expert) {
                        experts.push(expert);
                        of_experts.push(f32::from(weights[layer][rank]) / 256.0);
                    }
                }
                // Some layers of some steps ask again for what they had three events before.
                match asks.len().checked_sub(3) {
                    Some(before) if repeat == layer as u8 => asks.push(asks[before].clone()),
                    _ => asks.push(Ask { layer, experts, weights: of_experts }),
                }
            }
        }
        asks
    })
}

/// Both semantics, both scopes, several capacities.
pub fn check_all<P: Policy, N: Naive>(
    policy: impl Fn(&PoolShape) -> P,
    naive: impl Fn(&PoolShape) -> N,
) {
    run(|asks| {
        for capacity in [1, 2, 3, 5, 9, 14] {
            sequential(&policy, &naive, asks, capacity);
            events(&policy, &naive, asks, &Slots::Global(capacity));
        }
        for slots in [[1, 1, 1], [2, 1, 3], [4, 2, 5], [5, 3, 6], [3, 0, 3]] {
            events(&policy, &naive, asks, &Slots::Layer(slots.to_vec()));
        }
    });
}

/// Belady's policies are built over the stream that then drives them. Who of two equally distant
/// keys leaves is free, so the number of misses is compared.
pub fn check_future<N: Naive>(naive: impl Fn(&PoolShape, Vec<Key>) -> N) {
    run(|asks| {
        let stream: Vec<Key> = asks
            .iter()
            .flat_map(|ask| ask.experts.iter().map(|&expert| BASES[ask.layer] + expert))
            .collect();
        let future = Arc::new(Future::new(stream.clone(), 14).unwrap());
        for capacity in [1, 2, 3, 5, 9, 14] {
            let pool = PoolShape::flat(capacity, 14);
            let mut reference = naive(&pool, stream.clone());
            let mut policy = Belady::<false>::new(&pool, Arc::clone(&future));
            let (mut misses, mut expected) = (0, 0);
            for &key in &stream {
                misses += u32::from(access(&mut policy, key));
                expected += u32::from(naive_access(&mut reference, key, &|_| true));
                assert_eq!(policy.validate(), Ok(()));
            }
            assert_eq!(misses, expected, "capacity {capacity} of {asks:?}");
        }
    });
}

fn run(test: impl Fn(&[Ask])) {
    TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() })
        .run(&asks(), |asks| {
            test(&asks);
            Ok(())
        })
        .unwrap();
}

fn access<P: Policy>(policy: &mut P, key: Key) -> bool {
    let miss = !policy.contains(key);
    if miss {
        policy.admit(key, &mut Anyone);
    } else {
        policy.hit(key);
    }
    miss
}

fn naive_access<N: Naive>(naive: &mut N, key: Key, may_evict: &dyn Fn(Key) -> bool) -> bool {
    let miss = !naive.residents().contains(&key);
    if miss {
        naive.admit(key, may_evict);
    } else {
        naive.hit(key);
    }
    miss
}

/// One access at a time over one pool of all layers' keys; each access is a step and an event.
fn sequential<P: Policy, N: Naive>(
    policy: &impl Fn(&PoolShape) -> P,
    naive: &impl Fn(&PoolShape) -> N,
    asks: &[Ask],
    capacity: u32,
) {
    let pool = PoolShape::flat(capacity, 14);
    let (mut policy, mut naive) = (policy(&pool), naive(&pool));
    for ask in asks {
        for (&expert, weight) in ask.experts.iter().zip(&ask.weights) {
            let key = BASES[ask.layer] + expert;
            let event = Event { layer: 0, keys: &[key], weights: std::slice::from_ref(weight) };
            if P::OBSERVES {
                policy.begin_step(1);
                policy.begin_event(&event);
            }
            naive.begin_step(1);
            naive.begin_event(&event);
            let miss = access(&mut policy, key);
            assert_eq!(miss, naive_access(&mut naive, key, &|_| true), "{key} at {capacity}");
            assert_eq!(policy.validate(), Ok(()));
            let residents: BTreeSet<Key> = (0..14).filter(|&key| policy.contains(key)).collect();
            assert_eq!(residents, naive.residents(), "after {key} at {capacity}");
            assert_eq!(policy.len() as usize, residents.len());
        }
    }
}

/// Whole events through the real cache, against the event rules written out on naive pools.
fn events<P: Policy, N: Naive>(
    policy: &impl Fn(&PoolShape) -> P,
    naive: &impl Fn(&PoolShape) -> N,
    asks: &[Ask],
    slots: &Slots,
) {
    let mut pools: Vec<N> = Vec::new();
    let mut capacities = Vec::new();
    let mut cache = ExpertCache::new(&EXPERTS, &TOP_K, slots, |_, pool| {
        pools.push(naive(pool));
        capacities.push(pool.capacity);
        policy(pool)
    })
    .unwrap();
    let global = matches!(slots, Slots::Global(_));
    for (number, ask) in asks.iter().enumerate() {
        if number % 3 == 0 {
            cache.begin_step(1);
            pools.iter_mut().for_each(|pool| pool.begin_step(1));
        }
        let (pool, offset, layer) =
            if global { (0, BASES[ask.layer], ask.layer) } else { (ask.layer, 0, 0) };
        let keys: Vec<Key> = ask.experts.iter().map(|expert| offset + expert).collect();
        let event = Event { layer: layer as u32, keys: &keys, weights: &ask.weights };
        pools[pool].begin_event(&event);
        let before = pools[pool].residents();
        let (hits, mut misses): (Vec<Key>, Vec<Key>) =
            keys.iter().partition(|key| before.contains(key));
        for &key in &hits {
            pools[pool].hit(key);
        }
        misses.sort_unstable();
        let fits = keys.len() <= capacities[pool] as usize;
        let mut fetches = 0;
        for &key in misses.iter().filter(|_| fits) {
            let admitted = pools[pool].admit(key, &|other| !keys.contains(&other));
            fetches += u32::from(admitted.is_some());
        }

        let plan = cache.demand_weighted(ask.layer, &ask.experts, &ask.weights);
        assert_eq!(plan.hits as usize, hits.len(), "event {number} with {slots:?}");
        assert_eq!(plan.fetches, fetches, "event {number} with {slots:?}");
        assert_eq!(plan.misses() as usize, misses.len());
        for expert in &ask.experts {
            cache.complete(ask.layer, *expert);
        }
        cache.release(ask.layer);
        assert_eq!(cache.validate(), Ok(()));
        let expected: Vec<Key> = pools
            .iter()
            .zip(if global { &[0][..] } else { &BASES[..] })
            .flat_map(|(pool, base)| pool.residents().into_iter().map(move |key| base + key))
            .collect();
        assert_eq!(cache.residents().collect::<Vec<_>>(), expected, "event {number}, {slots:?}");
    }
}
