//! One preparation: `compare` and `replay` accept the same settings and count the same.

use std::sync::Arc;

use hotset_cost_models::{Link, find_link};
use hotset_policies::PolicySpec;
use hotset_policies::miss::MissHandler;
use hotset_sim::{
    Compare, Composition, CountedUses, Named, POLICY_MEMORY, PREFILL_CHUNK, PhaseFilter, Prefetch,
    Prefill, ReplayReport, Row, Scope, Semantics, Serving, Shuffle, SimError, TimeModel, Training,
    Window, compare, replay_in_full,
};
use hotset_traces::Trace;

use crate::common::{Numbers, random_trace};

const POLICIES: [&str; 9] =
    ["lru", "lfu", "slru", "static", "td-table", "semantic:from=mean", "belady", "random", "arc"];

const PREFETCHES: [&str; 7] = [
    "none",
    "none",
    "ahead",
    "cross-layer:priority=confidence",
    "popularity:learn=trained,width=2",
    "previous-token:learn=online,protect=nothing",
    "ahead:budget=1,threshold=0.2",
];

fn pick<'a>(numbers: &mut Numbers, of: &[&'a str]) -> &'a str {
    of[numbers.below(of.len() as u32) as usize]
}

fn links() -> Vec<Link> {
    ["h200-pcie", "freetoken-pcie"].map(|name| find_link(name).unwrap()).to_vec()
}

/// A request of one setting, drawn: nearly all of them can be replayed.
fn drawn(numbers: &mut Numbers, trace: &Trace) -> Compare {
    let policy = pick(numbers, &POLICIES);
    let keys = trace.shape().total_experts();
    let histogram = (numbers.below(4) == 0).then(|| CountedUses {
        source: "counted".to_owned(),
        uses: (0..keys).map(|_| u64::from(numbers.below(100))).collect::<Arc<[u64]>>(),
    });
    let scope = [Scope::Global, Scope::Layer, Scope::Adaptive][numbers.below(3) as usize];
    let capacity = format!("{}%", 20 + numbers.below(70));
    let phase = [PhaseFilter::All, PhaseFilter::All, PhaseFilter::Decode, PhaseFilter::Prefill];
    let schedule = if numbers.below(5) == 0 { "3:50%,9:40%" } else { "" };
    let misses = [
        MissHandler::Fetch,
        MissHandler::Fetch,
        MissHandler::Host,
        MissHandler::balanced(numbers.below(1001)),
    ];
    Compare {
        policies: vec![Named::new(policy, policy.parse::<PolicySpec>().unwrap())],
        scopes: vec![scope],
        capacities: vec![Named::new(capacity.clone(), capacity.parse().unwrap())],
        links: links(),
        machine: None,
        phase: phase[numbers.below(4) as usize],
        semantics: Semantics::Event,
        warmup: (numbers.below(3) == 0).then(|| u64::from(numbers.below(30))),
        chunk: [3, PREFILL_CHUNK][numbers.below(2) as usize],
        expert_bytes: (numbers.below(2) == 0).then_some(1 << 20),
        serving: Serving {
            prefetch: pick(numbers, &PREFETCHES).parse().unwrap(),
            misses: misses[numbers.below(4) as usize],
            prefill: if numbers.below(4) == 0 { Prefill::Bypass } else { Prefill::OnDemand },
            composition: (numbers.below(2) == 0)
                .then(|| Composition { concurrency: 1 + numbers.below(2), ..Default::default() }),
            host: None,
            schedule: schedule.parse().unwrap(),
        },
        time: TimeModel::default(),
        timelines: numbers.below(4) > 0,
        training: Training {
            shuffle: (numbers.below(3) == 0).then_some(Shuffle::Tokens),
            share: [None, Some(40.0), Some(67.0)][numbers.below(3) as usize],
            histogram,
        },
        sample: None,
        policy_memory: POLICY_MEMORY,
        seed: u64::from(numbers.below(9)),
    }
}

/// Counts of the rows over the whole run, phase by phase, are the sums of the layers' rows, which
/// another replay counted.
fn check_layers(rows: &[Row], report: &ReplayReport) {
    for row in rows.iter().filter(|row| row.window == Window::All) {
        let layers = || report.layers.iter().filter(|layer| layer.phase == row.phase);
        assert_eq!(layers().map(|layer| layer.accesses).sum::<u64>(), row.accesses);
        assert_eq!(layers().map(|layer| layer.hits).sum::<u64>(), row.hits);
        assert_eq!(layers().map(|layer| layer.demand_fetches).sum::<u64>(), row.demand_fetches);
        assert_eq!(layers().map(|layer| layer.prefetches).sum::<u64>(), row.prefetches);
    }
}

#[test]
fn replay_and_compare_accept_the_same_settings_and_count_the_same() {
    let (mut accepted, mut trained, mut refused) = (0, 0, 0);
    for seed in 0..400 {
        let trace = random_trace(seed);
        let request = drawn(&mut Numbers(seed.wrapping_mul(0x9e37_79b9)), &trace);
        let compared = compare(&trace, &request, &());
        let replayed = replay_in_full(&trace, &request, None, &());
        match (compared, replayed) {
            (Ok(compared), Ok((replayed, _))) => {
                assert_eq!(compared.rows, replayed.rows, "{request:?}");
                assert_eq!(compared.settings, replayed.settings);
                assert_eq!(
                    (compared.trace, compared.warnings),
                    (replayed.trace.clone(), replayed.warnings.clone())
                );
                check_layers(&compared.rows, &replayed);
                assert_eq!(replayed.step_times.is_empty(), !request.timelines);
                accepted += 1;
                trained += usize::from(compared.settings.split.is_some());
            }
            (Err(compared), Err(replayed)) => {
                assert_eq!(compared, replayed, "{request:?}");
                refused += 1;
            }
            (compared, replayed) => {
                panic!("{request:?}: {:?}, {:?}", compared.err(), replayed.err())
            }
        }
    }
    // The draws are worth something: most can be replayed, and half of those were trained.
    assert!(accepted > 200 && trained > 100, "{accepted} {trained} {refused}");
}

/// What `replay` refused before: places by an engine's counts, with no part to train on.
#[test]
fn a_histogram_places_in_a_replay_as_in_a_comparison() {
    let trace = random_trace(7);
    let mut request = drawn(&mut Numbers(1), &trace);
    let keys = u64::from(trace.shape().total_experts());
    request.policies = vec![Named::new("static", "static".parse().unwrap())];
    request.scopes = vec![Scope::Global];
    request.serving = Serving::default();
    request.training = Training {
        histogram: Some(CountedUses { source: "counted".to_owned(), uses: (0..keys).collect() }),
        ..Training::default()
    };
    let (report, _) = replay_in_full(&trace, &request, None, &()).unwrap();
    assert_eq!(report.rows, compare(&trace, &request, &()).unwrap().rows);
    assert_eq!(report.settings.split, None, "nothing is trained on");
    let both = Compare { policies: [&request.policies[..]; 2].concat(), ..request };
    assert_eq!(replay_in_full(&trace, &both, None, &()).unwrap_err(), SimError::OneSetting);
    assert_eq!(both.serving.prefetch, Prefetch::None);
}
