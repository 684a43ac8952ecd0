//! What would take too much memory is refused by itself, before any of it is taken.

use hotset_policies::PolicySpec;
use hotset_sim::{
    Capacity, Compare, Named, POLICY_MEMORY, PhaseFilter, Report, Scope, Semantics, Serving,
    SimError, TimeModel, Training, compare,
};
use hotset_traces::{Ids, LayerShape, Shape, Trace, TraceBuilder};

/// Two layers; the first has experts up to 65,535, as after one stray id.
fn stray() -> Trace {
    let layer = |number, experts| LayerShape { number, experts, top_k: 1, expert_bytes: 0 };
    let shape = Shape::new(vec![layer(0, 65_536), layer(1, 8)]).unwrap();
    let ids = [3, 1, 65_535, 2, 3, 1, 4, 2];
    TraceBuilder::new("stray", shape, Ids::U16(ids.to_vec())).build().unwrap()
}

fn request(policies: &[&str], scope: Scope) -> Compare {
    let spec = |name: &&str| Named::new(*name, name.parse::<PolicySpec>().unwrap());
    Compare {
        policies: policies.iter().map(spec).collect(),
        scopes: vec![scope],
        capacities: vec![Named::new("50%", Capacity::Percent(50.0))],
        links: Vec::new(),
        machine: None,
        phase: PhaseFilter::All,
        semantics: Semantics::Event,
        warmup: None,
        chunk: 512,
        expert_bytes: None,
        serving: Serving::default(),
        time: TimeModel::default(),
        timelines: false,
        training: Training::default(),
        sample: None,
        policy_memory: POLICY_MEMORY,
        seed: 0,
    }
}

fn names(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = report.rows.iter().map(|row| &*row.policy).collect();
    names.dedup();
    names
}

#[test]
fn a_policy_that_is_too_large_is_left_out_alone() {
    let trace = stray();
    for scope in [Scope::Global, Scope::Layer] {
        let report = compare(&trace, &request(&["lru", "td-table", "fifo"], scope), &()).unwrap();
        assert_eq!(names(&report), ["lru", "fifo"]);
        let told = &report.warnings[0];
        assert!(told.starts_with("policy 'td-table', "), "{told}");
        assert!(told.contains("may take 4294967296: left out at 1 of 1 sizes"), "{told}");
        // What is left is what it is without the other.
        let alone = compare(&trace, &request(&["lru", "fifo"], scope), &()).unwrap();
        assert_eq!(alone.rows, report.rows);
        assert_eq!(alone.warnings[..], report.warnings[1..]);
    }
}

#[test]
fn where_none_is_left_the_size_is_the_error() {
    let trace = stray();
    let refused = compare(&trace, &request(&["td-table"], Scope::Layer), &()).unwrap_err();
    let SimError::Memory { what, bytes, limit } = &refused else { panic!("{refused}") };
    assert_eq!((&**what, *limit), ("policy 'td-table'", POLICY_MEMORY));
    // Four bytes for each pair of experts of the wide layer, and more.
    assert!(*bytes > 4 << 32, "{bytes} bytes");
    // The limit is the request's.
    let small = Compare { policy_memory: 1 << 10, ..request(&["fifo"], Scope::Layer) };
    let told = compare(&trace, &small, &()).unwrap_err().to_string();
    assert!(told.contains("may take 1024"), "{told}");
}

#[test]
fn predictors_and_splits_are_asked_too() {
    let trace = stray();
    let learned = "cross-layer".parse().unwrap();
    let serving = Serving { prefetch: learned, ..Serving::default() };
    let asked = Compare { serving, policy_memory: 1 << 22, ..request(&["fifo"], Scope::Layer) };
    let told = compare(&trace, &asked, &()).unwrap_err().to_string();
    assert!(told.starts_with("predictor 'cross-layer' would take "), "{told}");
    let shape = Shape::uniform(64, 60_000, 1).unwrap();
    let ids = (0..128).map(|n| n as u16).collect();
    let wide = TraceBuilder::new("wide", shape, Ids::U16(ids)).build().unwrap();
    let adaptive = Compare { policy_memory: 1 << 28, ..request(&["lru"], Scope::Adaptive) };
    let told = compare(&halves(&wide), &adaptive, &()).unwrap_err().to_string();
    assert!(told.starts_with("an adaptive split of the slots would take "), "{told}");
}

/// Asks to stop as soon as the first replay has begun.
struct StopAtOnce(std::sync::atomic::AtomicU32);

impl hotset_sim::ReplayProgress for StopAtOnce {
    fn begin(&self, _: u64) {}
    fn advance(&self) {
        panic!("a replay came to its end");
    }
    fn cancelled(&self) -> bool {
        // Not before the first replay, which asks before it begins.
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0
    }
}

#[test]
fn a_replay_stops_on_the_way() {
    let config = hotset_traces::SynthConfig { layers: 4, tokens: 40_000, ..Default::default() };
    let trace = hotset_traces::synth::generate(&config).unwrap();
    for (semantics, policy) in
        [(Semantics::Event, "lru"), (Semantics::Sequential, "lru"), (Semantics::Event, "belady")]
    {
        let request = Compare { semantics, ..request(&[policy], Scope::Global) };
        // A single thread, so that the first replay alone has begun.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let stopped = pool.install(|| compare(&trace, &request, &StopAtOnce(0.into())));
        assert_eq!(stopped.unwrap_err(), SimError::Interrupted);
    }
}

/// The two tokens as two sequences, one to train on.
fn halves(trace: &Trace) -> Trace {
    let sequences = trace.sequences();
    let mut first = sequences[0].clone();
    let mut second = first.clone();
    (first.rows, second.rows, second.id) = (0..1, 1..2, 1);
    let ids = trace.ids().to_ids(0..trace.ids().len());
    let builder = TraceBuilder::new("halves", trace.shape().clone(), ids);
    builder.sequences(vec![first, second]).build().unwrap()
}
