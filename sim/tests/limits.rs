//! What no timeline may break: its place between the prices that bound it.

use hotset_cost_models::{Contention, Link, Picos, find_link, find_machine};
use hotset_policies::miss::MissHandler;
use hotset_policies::{Need, POLICIES, PolicySpec, Slots, TierMode};
use hotset_sim::{
    Composition, Compute, CopyOrder, Futures, HostSetting, PhaseFilter, Prefetch, Prefill, Prices,
    Scope, Semantics, Setting, Steps, TimeModel, Timeline, Wait, Window, even_split, replay_timed,
};
use hotset_traces::{Phase, Trace};
use proptest::prelude::*;

const ORDERS: [CopyOrder; 3] = [CopyOrder::InOrder, CopyOrder::DemandFirst, CopyOrder::TwoEngines];

/// A setting and a model of time for one case.
#[derive(Debug)]
struct Case {
    setting: Setting,
    steps: Steps,
    model: TimeModel,
    link: Link,
}

/// Any predictor that needs no weights, under any control.
fn any_prefetch(numbers: &mut crate::common::Numbers) -> Prefetch {
    const WHO: [&str; 8] = [
        "ahead:",
        "cross-layer:order=2,",
        "previous-token:",
        "popularity:",
        "activation-map:",
        "linear:",
        "semantic:by=routes,after=1,",
        "oracle:precision=0.4,recall=0.7,",
    ];
    let who = WHO[numbers.below(WHO.len() as u32) as usize];
    let cancel = numbers.below(3) == 0;
    let priority = ["token", "confidence"][numbers.below(2) as usize];
    let protect = ["guesses", "nothing"][numbers.below(2) as usize];
    let (width, reach) = (numbers.below(4), 1 + numbers.below(2));
    let threshold = f64::from(numbers.below(3)) / 4.0;
    let budget = f64::from(numbers.below(3)) / 100.0;
    let text = format!(
        "{who}width={width},reach={reach},threshold={threshold},budget={budget},\
         priority={priority},protect={protect},cancel={cancel}"
    );
    text.parse().unwrap()
}

/// Any choice of what a setting may be, from a seed.
fn case(trace: &Trace, seed: u64) -> Option<Case> {
    let mut numbers = crate::common::Numbers(seed);
    let shape = trace.shape();
    let total = shape.total_experts();
    let info = POLICIES[numbers.below(POLICIES.len() as u32) as usize];
    if matches!(info.needs, Need::Weights | Need::Embeddings | Need::Training) {
        return None;
    }
    let policy: PolicySpec = info.name.parse().unwrap();
    let bound = info.needs == Need::Future;
    let slots = 1 + numbers.below(total);
    let scope = [Scope::Global, Scope::Layer][numbers.below(2) as usize];
    let mut setting = Setting::new(
        policy,
        match scope {
            Scope::Global => Slots::Global(slots),
            _ => Slots::Layer(even_split(shape, slots)),
        },
    );
    setting.expert_bytes = shape.layers().iter().map(|layer| layer.expert_bytes).collect();
    setting.prefill = Prefill::ALL[numbers.below(3) as usize];
    if info.name == "belady-bypass" {
        setting.prefill = Prefill::OnDemand;
    } else if Prefill::borrowed(shape, &setting.slots).is_err() {
        setting.prefill = Prefill::Bypass;
    }
    if !bound {
        let (lookahead, width) = (1 + numbers.below(2), numbers.below(4));
        setting.prefetch = match numbers.below(3) {
            0 => Prefetch::None,
            1 => format!("ahead:lookahead={lookahead},width={width}").parse().unwrap(),
            _ => any_prefetch(&mut numbers),
        };
        let layers = shape.layers().len();
        if matches!(&setting.prefetch, Prefetch::By(f) if f.horizon().nearest >= layers) {
            setting.prefetch = Prefetch::None;
        }
        setting.misses = match numbers.below(7) {
            0 => MissHandler::Host,
            1 => MissHandler::balanced(numbers.below(1001)),
            2 => MissHandler::Defer { n: numbers.below(3) },
            3 => MissHandler::UploadCap { n: numbers.below(3) },
            4 => MissHandler::Hybrimoe { copy: Some(3), host: Some(u64::from(numbers.below(6))) },
            _ => MissHandler::Fetch,
        };
    }
    let how = Composition {
        concurrency: 1 + numbers.below(3),
        chunk: 1 + numbers.below(8),
        verify: 1 + numbers.below(3),
        ..Composition::default()
    };
    let h200 = find_machine("h200").unwrap();
    let mut link = match numbers.below(5) {
        0 => Link::affine("odd", u64::from(numbers.below(99)), u64::from(numbers.below(9999))),
        1 => find_link("freetoken-pcie").unwrap(),
        2 => find_link("zgx-pcie").unwrap(),
        3 => h200.link("h200-nvlink").unwrap().clone(),
        _ => h200.link("h200-pcie").unwrap().clone(),
    };
    if numbers.below(4) == 0 {
        link.submission.handoff_ps = u64::from(numbers.below(5_000_000));
    }
    let compute = match numbers.below(4) {
        0 => Compute::None,
        1 => Compute::PerToken(Picos(u64::from(numbers.below(1000)))),
        2 => Compute::per_token_ms(3.53),
        _ => Compute::of_machine(&h200, 1 << (10 + numbers.below(14))).unwrap(),
    };
    // Copies can be taken back where they run in order.
    let cancels = matches!(&setting.prefetch, Prefetch::By(forecast) if forecast.control.cancel);
    let model = TimeModel {
        compute,
        copies: ORDERS[if cancels { 0 } else { numbers.below(3) as usize }],
        wait: [Wait::All, Wait::HitsFirst][numbers.below(2) as usize],
        contention: false,
        host_threads: None,
        disk: (numbers.below(2) == 0).then(|| "3GB/s:50us:4".parse().unwrap()),
        judges_splits: numbers.below(2) == 0,
    };
    if !bound && setting.prefill == Prefill::OnDemand && numbers.below(2) == 0 {
        let policy = ["lru", "page-cache"][numbers.below(2) as usize].parse().unwrap();
        setting.host = Some(HostSetting {
            mode: [TierMode::Inclusive, TierMode::Exclusive][numbers.below(2) as usize],
            read_ahead: numbers.below(3),
            prefetches: numbers.below(3) == 0,
            ..HostSetting::new(policy, 1 + numbers.below(total))
        });
    }
    Some(Case { setting, steps: Steps::compose(trace, &how).unwrap(), model, link })
}

/// Prices of every phase and window that has tokens.
fn prices(trace: &Trace, case: &Case, link: &Link, model: &TimeModel) -> Vec<Prices> {
    let futures = Futures::new(trace, &case.steps, Semantics::Event, PhaseFilter::All)
        .with_prefill(case.setting.prefill);
    let timeline = Timeline::new(trace.shape(), link, model).with_steps();
    let (counts, mut timelines) =
        replay_timed(trace, &case.steps, &futures, &case.setting, vec![timeline]).unwrap();
    let (times, _) = timelines.remove(0).finish();
    let mut all = Vec::new();
    for phase in Phase::ALL {
        let parts: u64 = times.sorted_steps(phase, Window::All).iter().sum();
        let whole = times.bucket(phase, Window::All);
        assert_eq!(parts + whole.drained, whole.wall(), "steps add up to the run");
        for window in [Window::All, Window::Cold, Window::Steady] {
            let bucket = counts.bucket(phase, window);
            let spent = times.bucket(phase, window);
            let prices = Prices::of(link, trace.shape(), &bucket, 0, Some(spent));
            all.push(prices.over_disk(model.disk.as_ref(), trace.shape(), &bucket));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Neither link nor kernels can do their work faster than alone, and one of both is always
    /// busy.
    #[test]
    fn without_contention_the_timeline_lies_between_serial_and_perfect(seed: u64) {
        let trace = crate::common::random_trace(seed);
        let Some(case) = case(&trace, seed) else { return Ok(()) };
        for p in prices(&trace, &case, &case.link, &case.model) {
            let timeline = p.timeline.unwrap();
            prop_assert!(p.serial >= timeline, "{p:?} {case:?}");
            prop_assert!(timeline >= p.perfect, "{p:?} {case:?}");
            prop_assert!(p.serial >= p.prefetch_hidden, "{p:?} {case:?}");
            prop_assert!(p.prefetch_hidden >= p.perfect, "{p:?} {case:?}");
        }
    }

    /// With contention the lower bound stays: nothing gets faster for being disturbed.
    #[test]
    fn contention_never_helps_below_perfect(seed: u64) {
        let trace = crate::common::random_trace(seed);
        let Some(mut case) = case(&trace, seed) else { return Ok(()) };
        case.model.contention = true;
        case.link.contention.copy_beside_kernel_permille = 1250;
        case.link.contention.kernel_beside_copy_permille = 1500;
        for p in prices(&trace, &case, &case.link, &case.model) {
            prop_assert!(p.timeline.unwrap() >= p.perfect, "{p:?} {case:?}");
            let spent = p.spent.unwrap();
            prop_assert!(spent.wall() >= spent.compute + spent.slowed);
        }
    }

    #[test]
    fn over_an_infinitely_fast_link_everything_is_compute(seed: u64) {
        let trace = crate::common::random_trace(seed);
        let Some(mut case) = case(&trace, seed) else { return Ok(()) };
        case.setting.misses = MissHandler::Fetch;
        case.model.disk = None;
        let mut link = Link::affine("instant", 0, 0);
        link.contention = Contention { kernel_beside_copy_permille: 1500, ..Default::default() };
        case.model.contention = true;
        for p in prices(&trace, &case, &link, &case.model) {
            let compute = u128::from(p.spent.unwrap().compute);
            prop_assert_eq!(
                (p.serial, p.timeline, p.prefetch_hidden, p.perfect),
                (compute, Some(compute), compute, compute)
            );
        }
    }
}
