//! Random calls of the cache, hostile ones among them, against a model of who is in which slot.
//!
//! After every call the cache's invariants hold and its residents are the model's; a call with a
//! layer or an expert that there is not panics as documented and changes nobody's place. Every
//! policy that an engine can run takes part, in both scopes, in the cache alone and in the shared
//! one, whose tickets come late too. 100,000 calls of each by default; for more:
//! `HOTSET_RANDOM_CALLS=50000000 cargo test --release -p hotset-policies --test main random_calls`

#[path = "random_calls/driven.rs"]
mod driven;
#[path = "random_calls/model.rs"]
mod model;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use driven::{Driven, Shared};
use hotset_policies::{AnyPolicy, ExpertCache, Lru, POLICIES, PolicySpec, Slots};
use model::{EXPERTS, Model};
use rand::{Rng, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Ids that no layer has; the first is the padding of some engines.
const HOSTILE: [u32; 5] = [u32::MAX, u32::MAX - 1, 1 << 31, 9, 6];

thread_local! {
    /// Whether a panic of this thread is expected, and says nothing.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Whether `call` panics; the panic is not printed.
fn panics<T>(call: impl FnOnce() -> T) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let panicked = catch_unwind(AssertUnwindSafe(call)).is_err();
    QUIET.set(false);
    panicked
}

fn calls() -> u64 {
    match std::env::var("HOTSET_RANDOM_CALLS") {
        Ok(text) => text.parse().expect("HOTSET_RANDOM_CALLS is a number of calls"),
        Err(_) => 100_000,
    }
}

#[test]
fn random_calls_keep_every_invariant() {
    random_calls::<ExpertCache<AnyPolicy>>();
}

#[test]
fn random_calls_of_the_shared_cache_keep_every_invariant() {
    random_calls::<Shared>();
}

fn random_calls<C: Driven>() {
    let policies: Vec<PolicySpec> = POLICIES
        .iter()
        .filter_map(|info| info.name.parse().ok())
        .filter(PolicySpec::is_online)
        .collect();
    let runs = 2 * policies.len() as u64;
    for (number, policy) in policies.iter().enumerate() {
        for (scope, slots) in
            [Slots::Global(7), Slots::Layer(vec![3, 0, 4])].into_iter().enumerate()
        {
            let seed = 2 * number as u64 + scope as u64;
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let mut model = Model::<C>::new(policy, slots, rng.next_u32() % 4);
            for call in 0..calls().div_ceil(runs) {
                random_call(&mut model, &mut rng);
                let held = model.check();
                assert_eq!(held, Ok(()), "{}, seed {seed}, call {call}", policy.info().name);
            }
        }
    }
}

fn below(rng: &mut Pcg64Mcg, bound: u32) -> u32 {
    rng.next_u32() % bound
}

/// A layer, and up to nine of its experts, repeats among them.
fn some_experts(rng: &mut Pcg64Mcg) -> (usize, Vec<u32>) {
    let layer = below(rng, EXPERTS.len() as u32) as usize;
    let experts = (0..below(rng, 10)).map(|_| below(rng, EXPERTS[layer])).collect();
    (layer, experts)
}

fn random_call<C: Driven>(model: &mut Model<C>, rng: &mut Pcg64Mcg) {
    let (layer, mut experts) = some_experts(rng);
    let expert = below(rng, EXPERTS[layer]);
    match below(rng, 18) {
        0..=4 => model.demand(layer, &experts, below(rng, 2) == 0),
        5..=6 => model.prefetch(layer, &experts),
        7..=8 => model.complete(layer, expert),
        9..=10 => model.release(layer),
        11 => model.discard(layer, expert),
        12 => model.slot_of(layer, expert),
        13 => model.resize(&[1 + below(rng, 9), below(rng, 6), below(rng, 4)]),
        14 => model.invalidate(below(rng, 3) as usize, below(rng, 8)..below(rng, 8)),
        15..=16 => model.complete_ticket(below(rng, 40) as usize),
        _ => {
            let hostile = HOSTILE[below(rng, HOSTILE.len() as u32) as usize];
            let place = below(rng, experts.len() as u32 + 1) as usize;
            experts.insert(place, hostile);
            let no_layer = [3, usize::MAX, 1 << 32][below(rng, 3) as usize];
            hostile_call(model, below(rng, 12), layer, no_layer, &experts, hostile);
        }
    }
}

/// A call with an expert that `layer` does not have, or with a layer that there is not. Beside a
/// demand that stays open nothing may have changed.
fn hostile_call<C: Driven>(
    model: &mut Model<C>,
    which: u32,
    layer: usize,
    no_layer: usize,
    experts: &[u32],
    hostile: u32,
) {
    if which == 0 {
        model.refused_demand(layer, experts, |cache| {
            assert!(panics(|| cache.demand(layer, experts, &[])));
        });
        return;
    }
    let cache = model.cache_mut();
    let panicked = match which {
        1 => panics(|| cache.prefetch(layer, experts)),
        2 => panics(|| cache.complete(layer, hostile)),
        3 => panics(|| cache.discard(layer, hostile)),
        4 => panics(|| cache.slot_of(layer, hostile)),
        5 => panics(|| cache.demand(no_layer, &[0], &[])),
        6 => panics(|| cache.prefetch(no_layer, &[0])),
        7 => panics(|| cache.complete(no_layer, 0)),
        8 => panics(|| cache.discard(no_layer, 0)),
        9 => panics(|| cache.expert_of(hostile | 1 << 20)),
        10 => panics(|| cache.invalidate(no_layer, 0..1)),
        // Nothing is open of a layer that there is not.
        _ => {
            cache.release(no_layer);
            true
        }
    };
    assert!(panicked, "hostile call {which} of {layer}, {no_layer}, {experts:?}");
}

/// Each wrapped in release builds and hit layer 0, or panicked where it should not.
#[test]
fn ids_that_no_layer_has_panic_and_repeated_predictions_do_not() {
    let new =
        || ExpertCache::new(&[8, 8], &[2, 2], &Slots::Global(4), |_, pool| Lru::new(pool)).unwrap();
    let mut cache = new();
    cache.prefetch(0, &[7u8]);
    // Layer 1's expert u32::MAX would be key 7, layer 0's last.
    assert!(panics(|| cache.complete(1, u32::MAX)));
    assert!(panics(|| cache.discard(1, u32::MAX)));
    assert!(panics(|| cache.slot_of(1, u32::MAX)));
    assert!(panics(|| cache.prefetch(1, &[u32::MAX]).placements.len()));
    assert!(panics(|| cache.demand(1, &[u32::MAX]).placements.len()));
    assert_eq!(cache.slot_of(0, 7), None, "still in flight");
    assert!(cache.complete(0, 7));
    assert_eq!((cache.residents().collect::<Vec<_>>(), cache.validate()), (vec![7], Ok(())));

    let mut unprotected = new().with_unprotected_prefetch();
    let plan = unprotected.prefetch(0, &[1u8; 20]);
    assert_eq!((plan.distinct(), plan.fetches), (1, 1));
    assert_eq!(unprotected.validate(), Ok(()));
}

/// What the docs say of a layer that is never released, and of a completion that comes late.
#[test]
fn unreleased_layers_keep_their_slots_and_late_completions_change_nothing() {
    let mut cache =
        ExpertCache::new(&[8, 8], &[2, 2], &Slots::Global(4), |_, pool| Lru::new(pool)).unwrap();
    for (layer, experts) in [(0, [0u8, 1]), (1, [0, 1])] {
        cache.demand(layer, &experts);
        experts.iter().for_each(|&expert| assert!(cache.complete(layer, expert.into())));
    }
    cache.release(1);
    // Layer 0 is open: neither its experts nor those demanded after it may leave.
    assert_eq!(cache.demand(1, &[2u8, 3]).unplaced, 2);
    cache.release(0);
    assert_eq!(cache.demand(1, &[2u8, 3]).fetches, 2);
    // 0 and 1 of layer 0 have left: their completions come too late.
    assert!(!cache.complete(0, 0) && !cache.complete(0, 1));
    assert_eq!(cache.validate(), Ok(()));
}
