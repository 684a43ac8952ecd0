//! The shared cache beside the cache alone: the same calls give the same plans, under every policy,
//! whatever its threads do.

use std::sync::mpsc;

use hotset_policies::{
    AnyPolicy, ExpertCache, Key, POLICIES, Placement, Plan, PolicySpec, PoolShape, SharedCache,
    Slots, Ticket,
};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

const EXPERTS: [u32; 3] = [6, 3, 5];

#[derive(Debug, Clone)]
enum Call {
    Step,
    Demand(usize, Vec<u32>),
    Prefetch(usize, Vec<u32>),
    Complete(usize, u32),
    Release(usize),
    Discard(usize, u32),
    Resize([u32; 3]),
    Invalidate(usize, u32),
    Place(Vec<Key>),
}

fn call() -> impl Strategy<Value = Call> {
    let layer = 0..EXPERTS.len();
    let one = layer.clone().prop_flat_map(|layer| (Just(layer), 0..EXPERTS[layer]));
    let some = layer
        .clone()
        .prop_flat_map(|layer| (Just(layer), proptest::collection::vec(0..EXPERTS[layer], 0..8)));
    prop_oneof![
        1 => Just(Call::Step),
        6 => some.clone().prop_map(|(layer, experts)| Call::Demand(layer, experts)),
        2 => some.prop_map(|(layer, experts)| Call::Prefetch(layer, experts)),
        5 => one.clone().prop_map(|(layer, expert)| Call::Complete(layer, expert)),
        3 => layer.clone().prop_map(Call::Release),
        1 => one.prop_map(|(layer, expert)| Call::Discard(layer, expert)),
        1 => [1..10u32, 0..6, 0..4].prop_map(Call::Resize),
        1 => (layer, 0..8u32).prop_map(|(pool, slot)| Call::Invalidate(pool, slot)),
        1 => proptest::collection::vec(0..14u32, 0..3).prop_map(Call::Place),
    ]
}

/// All that a plan says.
type Told = (Vec<Placement>, Vec<Key>, [u32; 6], bool);

fn told(plan: &Plan<'_>) -> Told {
    let Plan { hits, prefetch_hits, pending, fetches, unplaced, wasted, overflow, .. } = *plan;
    let numbers = [hits, prefetch_hits, pending, fetches, unplaced, wasted];
    (plan.placements.to_vec(), plan.dropped.to_vec(), numbers, overflow)
}

fn cache(
    policy: &PolicySpec,
    global: bool,
    ordered: bool,
    protects: bool,
) -> ExpertCache<AnyPolicy> {
    let slots = if global { Slots::Global(7) } else { Slots::Layer(vec![3, 0, 4]) };
    let build = |_: usize, pool: &PoolShape| policy.build(pool).unwrap();
    let cache = ExpertCache::new(&EXPERTS, &[2, 2, 2], &slots, build).unwrap();
    let cache = if ordered { cache.with_ordered_copies() } else { cache };
    if protects { cache } else { cache.with_unprotected_prefetch() }
}

/// Makes a call of both, and holds them against each other.
fn same(
    alone: &mut ExpertCache<AnyPolicy>,
    shared: &mut SharedCache<AnyPolicy>,
    global: bool,
    call: &Call,
) {
    let residency = shared.residency();
    match call {
        Call::Step => {
            alone.begin_step(1);
            shared.begin_step(1);
        }
        Call::Demand(layer, experts) => {
            let weights = vec![0.25; experts.len()];
            let expected = told(&alone.demand_weighted(*layer, experts, &weights));
            assert_eq!(told(&shared.demand_weighted(*layer, experts, &weights).plan), expected);
        }
        Call::Prefetch(layer, experts) => {
            let expected = told(&alone.prefetch(*layer, experts));
            assert_eq!(told(&shared.prefetch(*layer, experts).plan), expected);
        }
        Call::Complete(layer, expert) => {
            let ticket = residency.ticket_of(*layer, *expert);
            let completed = ticket.is_some_and(|ticket| residency.complete(ticket));
            assert_eq!(completed, alone.complete(*layer, *expert));
        }
        Call::Release(layer) => {
            alone.release(*layer);
            shared.release(*layer);
        }
        Call::Discard(layer, expert) => {
            assert_eq!(shared.discard(*layer, *expert), alone.discard(*layer, *expert));
        }
        Call::Resize(sizes) => {
            let global = Slots::Global(sizes.iter().sum());
            for slots in [global, Slots::Layer(sizes.to_vec())] {
                assert_eq!(shared.resize(&slots), alone.resize(&slots));
            }
        }
        Call::Invalidate(pool, slot) => {
            let pool = if global { 0 } else { *pool };
            let slots = *slot..slot + 2;
            assert_eq!(shared.invalidate(pool, slots.clone()), alone.invalidate(pool, slots));
        }
        Call::Place(keys) => {
            assert_eq!(shared.place(keys.iter().copied()), alone.place(keys.iter().copied()));
        }
    }
    assert_eq!(shared.validate(), Ok(()));
    for key in 0..14 {
        let (layer, expert) = alone.expert_of(key);
        assert_eq!(residency.slot_of(layer, expert), alone.slot_of(layer, expert));
    }
}

fn online() -> Vec<PolicySpec> {
    let specs = POLICIES.iter().filter_map(|info| info.name.parse().ok());
    let with_admission = ["lru+tinylfu", "lru+upload-cap:n=2"].map(|text| text.parse().unwrap());
    specs.filter(PolicySpec::is_online).chain(with_admission).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_same_calls_give_the_same_plans_under_every_policy(
        calls in proptest::collection::vec(call(), 1..60),
        [global, ordered, protects] in any::<[bool; 3]>(),
    ) {
        for policy in online() {
            let mut alone = cache(&policy, global, ordered, protects);
            let mut shared = SharedCache::new(cache(&policy, global, ordered, protects));
            for call in &calls {
                same(&mut alone, &mut shared, global, call);
            }
        }
    }
}

/// What the planner did: the completions that it took in, then its call.
struct Logged {
    taken: Vec<Key>,
    layer: usize,
    experts: Vec<u32>,
    prefetch: bool,
    told: Told,
    released: bool,
}

/// Plans while two threads copy, in whatever order they come to it.
fn live(policy: &PolicySpec, seed: u64, events: u32) -> Vec<Logged> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut cache = SharedCache::new(cache(policy, true, false, true));
    let mut log = Vec::new();
    let queues = [0, 1].map(|_| mpsc::channel::<Ticket>());
    let (senders, receivers): (Vec<_>, Vec<_>) = queues.into_iter().unzip();
    std::thread::scope(|threads| {
        for queue in receivers {
            let residency = cache.residency();
            threads.spawn(move || {
                for ticket in queue {
                    // A ticket that is reported twice counts once.
                    residency.complete(ticket);
                    assert!(!residency.complete(ticket));
                }
            });
        }
        for event in 0..events {
            let layer = event as usize % EXPERTS.len();
            let experts: Vec<u32> = (0..2).map(|_| rng.next_u32() % EXPERTS[layer]).collect();
            let prefetch = rng.next_u32().is_multiple_of(4);
            let shared = if prefetch {
                cache.prefetch(layer, &experts)
            } else {
                cache.demand(layer, &experts)
            };
            for (placed, ticket) in shared.copies() {
                senders[placed.slot as usize % 2].send(ticket).unwrap();
            }
            let told = told(&shared.plan);
            let taken = cache.taken().to_vec();
            let released = !prefetch && !rng.next_u32().is_multiple_of(3);
            if released {
                cache.release(layer);
            }
            log.push(Logged { taken, layer, experts, prefetch, told, released });
            if rng.next_u32().is_multiple_of(8) {
                std::thread::yield_now();
            }
        }
        drop(senders);
    });
    assert_eq!(cache.validate(), Ok(()));
    log
}

#[test]
fn what_was_planned_beside_copying_threads_replays_plan_for_plan() {
    let mut completions = 0;
    for (seed, policy) in (0..).zip(online()) {
        let mut alone = cache(&policy, true, false, true);
        for (number, logged) in live(&policy, seed, 400).into_iter().enumerate() {
            completions += logged.taken.len();
            for key in logged.taken {
                let (layer, expert) = alone.expert_of(key);
                assert!(alone.complete(layer, expert));
            }
            let plan = if logged.prefetch {
                alone.prefetch(logged.layer, &logged.experts)
            } else {
                alone.demand(logged.layer, &logged.experts)
            };
            assert_eq!(told(&plan), logged.told, "{} call {number}", policy.info().name);
            if logged.released {
                alone.release(logged.layer);
            }
        }
    }
    assert!(completions > 1000, "{completions}");
}
