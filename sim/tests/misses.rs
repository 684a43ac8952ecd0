//! What becomes of misses, through the replay core: placed before the run, split, gone without.

use std::sync::Arc;

use hotset_cost_models::{HostContention, HostKernel, Link, find_link};
use hotset_policies::Slots;
use hotset_policies::miss::{MISS_HANDLERS, MissHandler};
use hotset_sim::{
    Bucket, Futures, PREFILL_CHUNK, PhaseFilter, Semantics, Setting, SimError, Spent, Steps,
    TimeModel, Timeline, Window, replay_timed, uses,
};
use hotset_traces::{Phase, Trace, Weights};
use proptest::prelude::*;

use crate::common::{decode_trace, random_trace, random_weighted};

/// The names of all handlers that compute what the model does, or do so a layer later.
fn handlers() -> impl Iterator<Item = &'static str> {
    let whole = |name: &&str| !name.parse::<MissHandler>().unwrap().loses_weight();
    MISS_HANDLERS.iter().map(|info| info.name).filter(whole)
}

/// The names of those that lose router weight.
fn lossy() -> impl Iterator<Item = &'static str> {
    let loses = |name: &&str| name.parse::<MissHandler>().unwrap().loses_weight();
    MISS_HANDLERS.iter().map(|info| info.name).filter(loses)
}

fn run(trace: &Trace, setting: &Setting, link: &Link) -> Result<(Bucket, Spent), SimError> {
    let steps = Steps::of(trace, PREFILL_CHUNK);
    let futures = Futures::new(trace, &steps, Semantics::Event, setting.phase);
    let model = TimeModel { judges_splits: true, ..TimeModel::default() };
    let timeline = Timeline::new(trace.shape(), link, &model).with_low_precision(
        trace.shape(),
        link,
        setting.misses.low_size_ppm(),
    );
    let (counts, timelines) = replay_timed(trace, &steps, &futures, setting, vec![timeline])?;
    let mut spent = Spent::default();
    for timeline in timelines {
        let (times, _) = timeline.finish();
        Phase::ALL.into_iter().for_each(|phase| spent += times.bucket(phase, Window::All));
    }
    Ok((counts.total(), spent))
}

fn setting(policy: &str, slots: u32, misses: &str, trace: &Trace) -> Setting {
    Setting {
        misses: misses.parse().unwrap(),
        training: Some(uses(trace, PhaseFilter::All)),
        ..Setting::new(policy.parse().unwrap(), Slots::Global(slots))
    }
}

/// A link of 20 ps a copy and a host of 9 an expert, beside each other 1.6 and 1.2 times as long.
fn link() -> Link {
    let mut link = Link::affine("l", 20, 0);
    link.host_kernel = Some(HostKernel { ps_per_mib: 9, more_ps_per_mib: 0 });
    link.contention.host = vec![HostContention {
        threads: 32,
        copy_permille: 1600,
        host_permille: 1200,
        host_ps_per_mib: 9,
        more_ps_per_mib: 0,
        handoff_ps: 0,
    }];
    link
}

/// Two layers of four experts, of which a token uses two.
fn small() -> Trace {
    let rows: [&[&[u8]]; 4] =
        [&[&[0, 1], &[2, 3]], &[&[0, 2], &[2, 1]], &[&[0, 1], &[2, 3]], &[&[3, 1], &[0, 3]]];
    decode_trace(4, 1 << 20, &rows).build().unwrap()
}

/// Uses: 0 three times, 1 three times, 2 once, 3 once; 2 three times, 3 three times, 0, 1 once.
#[test]
fn static_hits_from_the_first_step_under_every_handler() {
    let trace = small();
    for misses in handlers().filter(|name| *name != "cpu-layers") {
        // 0 and 1 of the first layer, 2 and 3 of the second: 12 of 16 accesses.
        let (bucket, _) = run(&trace, &setting("static", 4, misses, &trace), &link()).unwrap();
        assert_eq!((bucket.accesses, bucket.hits), (16, 12), "{misses}");
        let served = bucket.demanded() + bucket.host_served;
        assert_eq!(served, 4, "{misses}: {bucket:?}");
    }
    // One access at a time, too.
    let steps = Steps::of(&trace, PREFILL_CHUNK);
    let futures = Futures::new(&trace, &steps, Semantics::Sequential, PhaseFilter::All);
    let one = Setting { semantics: Semantics::Sequential, ..setting("static", 4, "fetch", &trace) };
    let counts = hotset_sim::replay(&trace, &steps, &futures, &one).unwrap().total();
    assert_eq!(counts.hits, 12);
}

#[test]
fn pins_and_seeds_are_there_from_the_first_step() {
    let trace = small();
    let hits = |policy: &str, slots| {
        run(&trace, &setting(policy, slots, "fetch", &trace), &link()).unwrap().0.hits
    };
    assert_eq!((hits("lru+seeded", 8), hits("lru+pin:100%", 8), hits("lru", 8)), (16, 16, 8));
    assert_eq!(hits("lru+pin:100%", 4), 12, "static by another name");
    assert!(hits("lru+pin:50%", 6) >= 8);
}

#[test]
fn a_cache_placed_by_whole_layers_misses_nothing_in_them() {
    let trace = small();
    let (bucket, spent) = run(&trace, &setting("lru", 4, "cpu-layers", &trace), &link()).unwrap();
    // Four slots hold the second layer: the first is the host's.
    assert_eq!((bucket.hits, bucket.host_served, bucket.demanded()), (8, 8, 0));
    assert_eq!(spent.host, 8 * 9);
    let (bucket, _) = run(&trace, &setting("lru", 4, "cpu-layers:n=0", &trace), &link()).unwrap();
    assert_eq!(bucket.host_served, 0);
}

/// Every event misses both of its experts: the host takes 9 for each.
#[test]
fn deferred_experts_are_waited_for_a_layer_later() {
    let trace = small();
    let at = |misses: &str| run(&trace, &setting("lru", 4, misses, &trace), &link()).unwrap();
    let (_, all) = at("host");
    assert_eq!((all.host, all.host_work), (8 * 18, 8 * 18));
    // A layer's late expert is done before the next layer's two: nothing is saved without compute to
    // hide it behind, and nothing is lost.
    let (bucket, late) = at("defer:n=1");
    assert_eq!((bucket.deferred, bucket.host_served), (4, 16));
    assert_eq!((late.host, late.host_work), (8 * 18, 8 * 18));
    // Beside kernels of 5 before and after each routing, one of 9 hides behind 10 of them.
    let timed = |misses: &str| {
        let compute = hotset_sim::Compute::PerToken(hotset_cost_models::Picos(20));
        let model = TimeModel { compute, ..TimeModel::default() };
        let steps = Steps::of(&trace, PREFILL_CHUNK);
        let futures = Futures::new(&trace, &steps, Semantics::Event, PhaseFilter::All);
        let timeline = Timeline::new(trace.shape(), &link(), &model);
        let setting = setting("lru", 4, misses, &trace);
        let (_, timelines) =
            replay_timed(&trace, &steps, &futures, &setting, vec![timeline]).unwrap();
        let times = timelines.into_iter().map(Timeline::finish).next().unwrap().0;
        times.bucket(Phase::Decode, Window::All)
    };
    let (all, late) = (timed("host"), timed("defer:n=1"));
    assert_eq!(all.compute, late.compute);
    // No kernel on the GPU runs for what the host serves: the dense 5 of the next layer hide 5 of 9.
    assert_eq!(all.host - late.host, 4 * 5);
}

#[test]
fn what_is_dropped_or_replaced_is_a_miss_and_its_weight_is_told() {
    let weights = [0.75f32, 0.25].repeat(8);
    let rows: [&[&[u8]]; 4] =
        [&[&[0, 1], &[2, 3]], &[&[0, 2], &[2, 1]], &[&[0, 1], &[2, 3]], &[&[3, 1], &[0, 3]]];
    let trace = decode_trace(4, 1 << 20, &rows).weights(Weights::F32(weights)).build().unwrap();
    let (bucket, _) = run(&trace, &setting("lru", 8, "drop:below=0.3", &trace), &link()).unwrap();
    // Whoever comes second is never brought in: only 0, 3 and 2, 0 ever hit.
    assert_eq!(bucket.dropped + bucket.hits + bucket.demanded(), 16);
    assert_eq!((bucket.hits, bucket.demanded(), bucket.dropped), (4, 4, 8));
    assert_eq!(bucket.lost_weight, 8 * 250_000_000);
    let (bucket, _) = run(&trace, &setting("lru", 3, "substitute", &trace), &link()).unwrap();
    assert!(bucket.substituted > 0);
    assert_eq!(bucket.hits + bucket.demanded() + bucket.substituted, 16);
    // Without weights nobody knows what is lost.
    let refused = run(&small(), &setting("lru", 4, "drop", &small()), &link()).unwrap_err();
    assert!(
        refused.to_string().contains("miss handler 'drop' needs the column 'weights'"),
        "{refused}"
    );
}

#[test]
fn smaller_copies_cost_their_size_and_no_slot_keeps_them() {
    // One layer, weights 0.75 and 0.25: the second expert comes as a quarter of its bytes, every time.
    let rows: [&[&[u8]]; 3] = [&[&[0, 1]], &[&[0, 1]], &[&[0, 1]]];
    let weights = [0.75f32, 0.25].repeat(3);
    let trace = decode_trace(4, 1 << 20, &rows).weights(Weights::F32(weights)).build().unwrap();
    let link = Link::affine("l", 0, 400);
    let misses = "low-precision:whole=0.5,low=0.8,size=0.25";
    let (bucket, spent) = run(&trace, &setting("lru", 4, misses, &trace), &link).unwrap();
    assert_eq!((bucket.accesses, bucket.hits, bucket.demanded()), (6, 2, 1));
    assert_eq!((&bucket.low_precision[..], bucket.dropped), (&[3][..], 0));
    assert_eq!((bucket.lost_weight, bucket.misses()), (0, 4));
    assert_eq!(bucket.moved_bytes(trace.shape()), (1 << 20) + 3 * (1 << 18));
    // One whole copy of 400 and three of 100.
    assert_eq!(spent.demand, 700);
    let refused = run(&small(), &setting("lru", 4, "bias", &small()), &link).unwrap_err();
    assert!(refused.to_string().contains("miss handler 'bias' needs the column 'weights'"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is gone without is a miss: every access is a hit, a copy, a smaller copy, or dropped or
    /// replaced, and weight is lost only by the last two.
    #[test]
    fn what_is_gone_without_is_never_a_hit(seed in any::<u64>(), share in 1u32..100) {
        let trace = random_weighted(seed);
        let slots = (trace.shape().total_experts() * share).div_ceil(100);
        for name in lossy().filter(|name| *name != "top") {
            let (bucket, _) = run(&trace, &setting("lru", slots, name, &trace), &link()).unwrap();
            let low: u64 = bucket.low_precision.iter().sum();
            let gone = bucket.dropped + bucket.substituted;
            prop_assert_eq!(bucket.hits + bucket.demanded() + low + gone, bucket.accesses, "{}", name);
            prop_assert_eq!(bucket.lost_weight > 0, gone > 0, "{}", name);
            let plain = run(&small(), &setting("lru", 4, name, &small()), &link());
            prop_assert!(plain.is_err(), "{} without weights", name);
        }
    }

    /// A host that cannot serve leaves every rule with fetching; every access is of one kind; the best
    /// split is never longer than the rule's, all fetched, all by the host or the unaware one's.
    #[test]
    fn rules_agree_at_the_ends(seed in any::<u64>(), share in 1u32..100) {
        let trace = random_trace(seed);
        let slots = (trace.shape().total_experts() * share).div_ceil(100);
        let none = find_link("h200-nvlink").unwrap();
        let rates = TimeModel::default().rates(&none, 1 << 20);
        let fetch = run(&trace, &setting("lru", slots, "fetch", &trace), &none).unwrap();
        for name in handlers() {
            let handler: MissHandler = name.parse().unwrap();
            let zero = Setting {
                misses: handler.with_rates(&rates),
                ..setting("lru", slots, "fetch", &trace)
            };
            prop_assert_eq!(&run(&trace, &zero, &none).unwrap(), &fetch, "{}", name);
            let told = Setting { misses: handler.with_rates(&TimeModel::default().rates(&link(), 1 << 20)), ..zero };
            let (bucket, spent) = run(&trace, &told, &link()).unwrap();
            prop_assert_eq!(bucket.hits + bucket.demanded() + bucket.host_served, bucket.accesses);
            let splits = spent.splits;
            for other in [splits.rule, splits.uncontended, splits.fetch_all, splits.host_all] {
                prop_assert!(splits.best <= other);
            }
        }
    }

    /// A link that takes no time: the split never leaves the host anything.
    #[test]
    fn an_infinite_link_needs_no_host(seed in any::<u64>(), share in 1u32..100) {
        let trace = random_trace(seed);
        let slots = (trace.shape().total_experts() * share).div_ceil(100);
        let mut link = link();
        link.cost = Link::affine("l", 0, 0).cost;
        let rates = TimeModel::default().rates(&link, 1 << 20);
        for name in ["balanced", "freetoken", "hybrimoe"] {
            let misses = name.parse::<MissHandler>().unwrap().with_rates(&rates);
            let setting = Setting { misses, ..setting("lru", slots, "fetch", &trace) };
            prop_assert_eq!(run(&trace, &setting, &link).unwrap().0.host_served, 0, "{}", name);
        }
    }
}

#[test]
fn training_is_asked_for_where_something_is_placed() {
    let trace = small();
    let bare = Setting { training: None, ..setting("lru+pin:50%", 4, "fetch", &trace) };
    let told = run(&trace, &bare, &link()).unwrap_err().to_string();
    assert!(told.contains("is trained on a part of the trace"), "{told}");
    let counts: Arc<[u64]> = vec![0; 8].into();
    let counted = Setting { training: Some(counts), ..bare };
    assert!(run(&trace, &counted, &link()).is_ok());
}
