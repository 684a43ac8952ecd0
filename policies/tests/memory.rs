//! What policies and predictors say that they will allocate, against what they allocate.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use allocation_counter::measure;
use hotset_policies::predict::{Horizon, Layers, PREDICTORS, PredictorSpec};
use hotset_policies::{
    ExpertCache, POLICIES, PolicyError, PolicySpec, PoolShape, SharedCache, Slots, Static, Ticket,
};

/// One layer of many experts, many layers of some, and few slots of few.
fn pools() -> [PoolShape; 3] {
    let layer_bases = (0..24).map(|layer| 64 * layer).collect();
    let layers = PoolShape { capacity: 384, keys: 24 * 64, layer_bases, keys_per_token: 8 };
    [PoolShape::flat(100, 1000), layers, PoolShape::flat(3, 7)]
}

/// Bytes that `build` leaves allocated.
fn kept<T>(build: impl FnOnce() -> T) -> u64 {
    let mut built = None;
    let measured = measure(|| built = Some(build()));
    assert!(built.is_some());
    u64::try_from(measured.bytes_current).unwrap()
}

fn agree(name: &str, stated: u64, taken: u64) {
    // A box around the policy and its scalars are not arrays: half a KiB and a bit.
    assert!(taken <= stated + 1024, "{name} states {stated} bytes and takes {taken}");
    assert!(stated <= taken + taken / 8 + 64, "{name} states {stated} bytes and takes {taken}");
}

#[test]
fn policies_take_the_memory_that_they_state() {
    for pool in pools() {
        for info in POLICIES {
            let spec: PolicySpec = info.name.parse().unwrap();
            if spec.is_online() {
                agree(info.name, spec.memory(&pool), kept(|| spec.build(&pool).unwrap()));
            }
        }
        for text in ["lru-k:k=5", "dali:each_layer=true", "w-tinylfu:counts=exact"] {
            let spec: PolicySpec = text.parse().unwrap();
            agree(text, spec.memory(&pool), kept(|| spec.build(&pool).unwrap()));
        }
        for text in ["lru+tinylfu", "lru+upload-cap"] {
            let spec: PolicySpec = text.parse().unwrap();
            agree(text, spec.memory(&pool), kept(|| spec.build(&pool).unwrap()));
        }
        let counts = vec![0; pool.keys as usize];
        agree("static", PolicySpec::Static.memory(&pool), kept(|| Static::new(&pool, &counts)));
    }
}

/// One stray id, 65535, makes one layer of 65,536 experts: 16 GiB of transitions.
#[test]
fn what_does_not_fit_is_refused_before_anything_is_allocated() {
    let pool = PoolShape::flat(1000, 1 << 16);
    for name in ["td-table", "td-logistic"] {
        let spec: PolicySpec = name.parse().unwrap();
        let mut refused = Ok(());
        let measured = measure(|| refused = spec.check_memory(&pool, 1 << 30));
        assert_eq!(measured.bytes_total, 0, "{name} allocated before it refused");
        match refused {
            Err(PolicyError::TooLarge { policy, bytes, limit }) => {
                assert_eq!((policy, limit), (name, 1 << 30));
                assert!((17_179_869_184..17_200_000_000).contains(&bytes), "{bytes}");
            }
            other => panic!("{other:?}"),
        }
    }
    // All others take less than 1 KiB a key, and nothing overflows at the largest shape.
    let largest = PoolShape::flat(u32::MAX, u32::MAX);
    for info in POLICIES {
        let spec: PolicySpec = info.name.parse().unwrap();
        assert!(spec.memory(&largest) > u64::from(u32::MAX));
        if !info.name.starts_with("td-") {
            assert_eq!(spec.check_memory(&pool, 1 << 26), Ok(()), "{}", info.name);
        }
    }
}

/// The largest shape that engines serve: 60 layers of 512 experts.
#[test]
fn td_pairs_fits_a_processors_cache() {
    let layer_bases = (0..60).map(|layer| 512 * layer).collect();
    let pool = PoolShape { capacity: 7680, keys: 60 * 512, layer_bases, keys_per_token: 10 };
    let spec: PolicySpec = "td-pairs".parse().unwrap();
    let bytes = spec.memory(&pool);
    assert!(bytes < 16 << 20, "{bytes} bytes");
    agree("td-pairs", bytes, kept(|| spec.build(&pool).unwrap()));
}

#[test]
fn predictors_take_the_memory_that_they_state() {
    let layers = Layers::new(&[64; 12], &[4; 12]);
    let horizon = Horizon { nearest: 1, farthest: 3 };
    for (name, parameters) in [
        ("cross-layer", ""),
        ("cross-layer", "order=2"),
        ("popularity", ""),
        ("linear", "kind=logistic"),
        ("linear", "kind=logistic,order=2"),
    ] {
        let spec = PredictorSpec::read(name, parameters).unwrap().unwrap();
        let taken = kept(|| spec.build(&layers, horizon));
        let stated = spec.memory(&layers, horizon);
        let text = format!("{name}:{parameters} states {stated} bytes and takes {taken}");
        assert!(stated <= taken + taken / 8 + 64 && taken <= stated + stated / 8 + 4096, "{text}");
    }
    // Ridge regression has its weights only once they are fitted: two thirds of these pairs.
    let ridge = PredictorSpec::read("linear", "").unwrap().unwrap();
    let (stated, taken) = (ridge.memory(&layers, horizon), kept(|| ridge.build(&layers, horizon)));
    assert!(taken <= stated && stated <= 3 * taken, "{taken} of {stated}");
    for info in PREDICTORS {
        let spec = PredictorSpec::read(info.name, "").unwrap().unwrap();
        let built = kept(|| spec.build(&layers, horizon));
        let stated = spec.memory(&layers, horizon);
        assert!(built <= stated + 8192, "{}: {built} of {stated}", info.name);
        assert_eq!(spec.check_memory(&layers, horizon, stated), Ok(()));
    }
    let wide = Layers::new(&[1 << 16; 2], &[4; 2]);
    let cross_layer = PredictorSpec::read("cross-layer", "").unwrap().unwrap();
    let refused = cross_layer.check_memory(&wide, Horizon::at(1), 1 << 30).unwrap_err();
    assert!(refused.bytes > 8 << 32 && refused.to_string().starts_with("predictor 'cross-layer'"));
}

/// Events of eight experts over 48 layers of 128; with completions, releases and a prefetch now and
/// then, as an engine calls.
fn drive(events: u32, mut event: impl FnMut(usize, &[u8; 8], bool)) {
    let mut state = 1u32;
    for number in 0..events {
        let experts = [(); 8].map(|()| {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (state >> 25) as u8
        });
        event(number as usize % 48, &experts, number % 5 == 4);
    }
}

/// What serving `events` allocates in the cache alone.
fn alone(policy: &PolicySpec, events: u32) -> u64 {
    let build = |_: usize, pool: &PoolShape| policy.build(pool).unwrap();
    let slots = Slots::Global(1536);
    let mut cache = ExpertCache::new(&[128; 48], &[8; 48], &slots, build).unwrap();
    let measured = measure(|| {
        cache.begin_step(1);
        drive(events, |layer, experts, ahead| {
            let plan =
                if ahead { cache.prefetch(layer, experts) } else { cache.demand(layer, experts) };
            assert!(plan.distinct() > 0);
            for &expert in experts {
                cache.complete(layer, expert.into());
            }
            cache.release(layer);
        });
    });
    measured.count_total
}

/// The same, shared: its planner, and a thread that completes what it plans.
fn shared(policy: &PolicySpec, events: u32) -> [u64; 2] {
    let build = |_: usize, pool: &PoolShape| policy.build(pool).unwrap();
    let slots = Slots::Global(1536);
    let cache = ExpertCache::new(&[128; 48], &[8; 48], &slots, build).unwrap();
    let mut cache = SharedCache::new(cache);
    // A ring of tickets, the last place's number first: handing over allocates nothing either.
    let ring: Vec<AtomicU64> = (0..4096).map(|_| AtomicU64::new(0)).collect();
    let (given, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let residency = cache.residency();
    std::thread::scope(|threads| {
        let copier = threads.spawn(|| {
            let copying = measure(|| {
                let mut done = 0;
                while !(ended.load(Acquire) && done == given.load(Acquire)) {
                    while done < given.load(Acquire) {
                        residency
                            .complete(Ticket::from_bits(ring[done % ring.len()].load(Relaxed)));
                        done += 1;
                    }
                    std::thread::yield_now();
                }
            });
            copying.count_total
        });
        let planning = measure(|| {
            cache.begin_step(1);
            drive(events, |layer, experts, ahead| {
                let shared = if ahead {
                    cache.prefetch(layer, experts)
                } else {
                    cache.demand(layer, experts)
                };
                for (_, ticket) in shared.copies() {
                    let place = given.load(Relaxed);
                    ring[place % ring.len()].store(ticket.to_bits(), Relaxed);
                    given.store(place + 1, Release);
                }
                if ahead {
                    cache.discard(layer, experts[0].into());
                }
                cache.release(layer);
            });
        });
        ended.store(true, Release);
        [planning.count_total, copier.join().unwrap()]
    })
}

#[test]
fn serving_allocates_nothing_under_any_policy() {
    for info in POLICIES {
        let spec: PolicySpec = info.name.parse().unwrap();
        if spec.is_online() {
            let events = if info.name.starts_with("td-") { 200 } else { 2000 };
            assert_eq!(alone(&spec, events), 0, "{}", info.name);
            assert_eq!(shared(&spec, events), [0, 0], "{}, shared", info.name);
        }
    }
}
