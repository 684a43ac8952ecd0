//! Steps, prefill modes and changing slots: counted per step and distinct, and what they cost.

use std::collections::BTreeMap;

use crate::common::{decode_trace, random_trace};
use hotset_cost_models::Link;
use hotset_policies::{PolicySpec, Slots};
use hotset_sim::{
    Arrival, Bucket, Change, Composition, Counts, Futures, PhaseFilter, Prefill, Semantics,
    Setting, Steps, TimeModel, Timeline, Times, Window, replay, replay_timed,
};
use hotset_traces::{
    Format, Ids, ImportOptions, Phase, Sequence, Shape, Trace, TraceBuilder, import,
    testing::shared,
};

fn lru(slots: u32) -> Setting {
    Setting::new(PolicySpec::Lru(Default::default()), Slots::Global(slots))
}

fn counts(trace: &Trace, steps: &Steps, setting: &Setting) -> Counts {
    let futures = Futures::new(trace, steps, Semantics::Event, PhaseFilter::All)
        .with_prefill(setting.prefill);
    replay(trace, steps, &futures, setting).unwrap()
}

fn times(trace: &Trace, steps: &Steps, setting: &Setting, link: &Link) -> Times {
    let futures = Futures::new(trace, steps, Semantics::Event, PhaseFilter::All);
    let timeline = Timeline::new(trace.shape(), link, &TimeModel::default()).with_steps();
    let (_, mut timelines) = replay_timed(trace, steps, &futures, setting, vec![timeline]).unwrap();
    timelines.remove(0).finish().0
}

fn sequence(id: u32, rows: std::ops::Range<usize>) -> Sequence {
    let (label, document, has_repetition) = (String::new(), None, None);
    Sequence { id, label, document, prompt_tokens: 0, has_repetition, rows }
}

/// Two sequences of one token, top-2: {0, 1} and {1, 2}. Together they are one step that needs
/// three experts, not four: three copies, and a second such step is three hits.
#[test]
fn a_batch_counts_distinct_experts_once_a_step() {
    let rows: [&[&[u8]]; 4] = [&[&[0, 1]], &[&[0, 1]], &[&[1, 2]], &[&[1, 2]]];
    let trace = decode_trace(4, 1 << 20, &rows)
        .sequences(vec![sequence(0, 0..2), sequence(1, 2..4)])
        .build()
        .unwrap();
    let how = Composition { concurrency: 2, ..Composition::default() };
    let steps = Steps::compose(&trace, &how).unwrap();
    let bucket = counts(&trace, &steps, &lru(4)).bucket(Phase::Decode, Window::All);
    assert_eq!((bucket.tokens, bucket.accesses, bucket.hits), (4, 6, 3));
    assert_eq!(bucket.demanded(), 3);
    let times = times(&trace, &steps, &lru(4), &Link::affine("ten", 10, 0));
    assert_eq!(times.steps.iter().map(|step| step.ps).collect::<Vec<_>>(), [30, 0]);
}

/// With and without timelines, composed or not: the same decisions, the same counts.
#[test]
fn a_timeline_watches_and_decides_nothing() {
    for seed in 0..50 {
        let trace = random_trace(seed);
        let how = Composition { concurrency: 2, chunk: 5, ..Composition::default() };
        let steps = Steps::compose(&trace, &how).unwrap();
        let setting = lru(1 + trace.shape().total_experts() / 3);
        let futures = Futures::new(&trace, &steps, Semantics::Event, PhaseFilter::All);
        let link = Link::affine("ten", 10, 0);
        let timeline = Timeline::new(trace.shape(), &link, &TimeModel::default());
        let (watched, _) =
            replay_timed(&trace, &steps, &futures, &setting, vec![timeline]).unwrap();
        let plain = counts(&trace, &steps, &setting);
        for phase in Phase::ALL {
            for window in [Window::Cold, Window::Steady] {
                assert_eq!(watched.bucket(phase, window), plain.bucket(phase, window));
            }
        }
    }
}

/// One layer of 4 experts with top-1 and 8 slots over two such layers: a prompt of two tokens
/// {0, 1} between the decode tokens 2 and 2.
///
/// | prefill | second decode token |
/// |---|---|
/// | on demand | the prompt's experts were admitted; 2 is still there: a hit |
/// | bypass | the prompt's two were copied and not admitted; 2: a hit |
/// | streamed | all 4 experts of both layers were copied, the slots are overwritten: 2 again |
#[test]
fn prefill_modes_and_what_they_cost_the_decode_after() {
    let rows: [&[&[u8]]; 4] = [&[&[2], &[2]], &[&[0], &[0]], &[&[1], &[1]], &[&[2], &[2]]];
    let trace = decode_trace(4, 1 << 20, &rows).phases(vec![1, 0, 0, 1]).build().unwrap();
    let steps = Steps::of(&trace, 512);
    let run = |prefill| {
        let counts = counts(&trace, &steps, &Setting { prefill, ..lru(8) });
        [Phase::Prefill, Phase::Decode].map(|phase| counts.bucket(phase, Window::All))
    };
    let moved = |b: &Bucket| (b.hits, b.demanded(), b.unplaced, b.refetches);
    let [prefill, decode] = run(Prefill::OnDemand);
    assert_eq!((moved(&prefill), moved(&decode)), ((0, 4, 0, 0), (2, 2, 0, 0)));
    let [prefill, decode] = run(Prefill::Bypass);
    assert_eq!((moved(&prefill), moved(&decode)), ((0, 4, 4, 0), (2, 2, 0, 0)));
    let [prefill, decode] = run(Prefill::Streamed);
    assert_eq!((moved(&prefill), moved(&decode)), ((0, 8, 0, 0), (0, 4, 0, 2)));
}

/// Streaming in time: both layers' 4 experts at 10 each, the second layer's behind the first's;
/// without compute the prompt takes 80. Too few slots to borrow is an error, as is layer scope.
#[test]
fn a_streamed_prefill_takes_the_time_of_whole_layers() {
    let rows: [&[&[u8]]; 1] = [&[&[2], &[2]]];
    let trace = decode_trace(4, 1 << 20, &rows).phases(vec![0]).build().unwrap();
    let steps = Steps::of(&trace, 512);
    let setting = Setting { prefill: Prefill::Streamed, ..lru(8) };
    let times = times(&trace, &steps, &setting, &Link::affine("ten", 10, 0));
    let spent = times.bucket(Phase::Prefill, Window::All);
    assert_eq!((spent.demand, spent.wall(), times.steps[0].copies), (80, 80, 8));

    let futures = Futures::new(&trace, &steps, Semantics::Event, PhaseFilter::All);
    let told = |slots| {
        let setting = Setting { slots, ..setting.clone() };
        replay(&trace, &steps, &futures, &setting).unwrap_err().to_string()
    };
    assert!(told(Slots::Global(7)).contains("borrows 8 slots (two layers' experts)"));
    assert!(told(Slots::Layer(vec![4, 4])).contains("global scope"));
}

/// Tokens 0 1 2 | 0 1 2 over 3 slots hit on the second round; with 2 slots from token 3 on, LRU
/// over a loop of three hits nothing; with 3 again from token 6 on, the fourth round hits.
#[test]
fn slots_come_and_go_by_schedule() {
    let rows: Vec<[u8; 1]> = (0..12u8).map(|token| [token % 3]).collect();
    let shape = Shape::uniform(1, 4, 1).unwrap();
    let ids = Ids::U8(rows.concat());
    let trace = TraceBuilder::new("loop", shape, ids).build().unwrap();
    let steps = Steps::of(&trace, 1);
    let hits = |resizes: &[(u64, u32)]| {
        let resizes = resizes
            .iter()
            .map(|&(token, slots)| Change { token, to: Slots::Global(slots) })
            .collect();
        let setting = Setting { resizes, ..lru(3) };
        counts(&trace, &steps, &setting).bucket(Phase::Decode, Window::All).hits
    };
    assert_eq!(hits(&[]), 9);
    assert_eq!(hits(&[(3, 2)]), 0);
    // Tokens 3, 4, 5 miss in two slots; 1 and 2 stay, so of 6, 7, 8 the first misses, and then
    // everything is there.
    assert_eq!(hits(&[(3, 2), (6, 3)]), 5);
    assert_eq!(hits(&[(6, 4)]), 9);
}

#[test]
fn what_a_trace_or_a_setting_lacks_is_told() {
    let rows: [&[&[u8]]; 1] = [&[&[0], &[0]]];
    let trace = decode_trace(4, 1, &rows).build().unwrap();
    let steps = Steps::of(&trace, 1);
    let told = |setting: &Setting| {
        let futures = Futures::new(&trace, &steps, setting.semantics, PhaseFilter::All);
        replay(&trace, &steps, &futures, setting).unwrap_err().to_string()
    };
    let ahead = Setting { prefetch: "ahead".parse().unwrap(), ..lru(2) };
    assert!(told(&ahead).contains("needs the column 'predictions'"), "{}", told(&ahead));
    let sequential = Setting { semantics: Semantics::Sequential, ..ahead.clone() };
    assert!(told(&sequential).contains("needs event semantics"));
    let bound = Setting { policy: PolicySpec::Belady, ..ahead };
    assert!(told(&bound).contains("is a bound"));
}

/// Distinct experts a layer over the steps in which all of `concurrency` requests run.
fn distinct_experts(trace: &Trace, concurrency: u32) -> (u64, u64) {
    let how = Composition { concurrency, arrival: Arrival::Shuffled(1), ..Composition::default() };
    let steps = Steps::compose(trace, &how).unwrap();
    let (mut experts, mut events) = (0, 0);
    for step in (0..steps.len()).filter(|&s| steps.places(s).len() == concurrency as usize) {
        for layer in 0..trace.shape().layers().len() {
            let mut seen = 0u64;
            for place in steps.places(step) {
                let ids = trace.layer_ids(steps.row(place), layer);
                ids.iter().for_each(|expert| seen |= 1 << expert);
            }
            experts += u64::from(seen.count_ones());
            events += 1;
        }
    }
    (experts, events)
}

/// Receipt `concurrency-union`: 13.9 distinct experts a layer in a step of 8 requests on
/// gpt-oss-20b (32 experts, top-4), to within 1.0. It holds for eight like requests that start
/// together (here: of one category, over every category that has eight); eight requests on
/// different subjects, at different places, share less and need about 18.
#[test]
fn eight_like_requests_need_as_many_experts_as_published() {
    let Some(path) = shared("data/gpt-oss-20b/experts.npy") else { return };
    let options = ImportOptions { experts: Some(32), ..ImportOptions::default() };
    let trace = import(Format::Npy, path, &options).unwrap();
    let mut categories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, sequence) in trace.sequences().iter().enumerate() {
        let category = sequence.label.split_once('/').map_or("", |(_, category)| category);
        categories.entry(category).or_default().push(index);
    }
    let (mut experts, mut events) = (0, 0);
    for sequences in categories.values().filter(|sequences| sequences.len() >= 8) {
        let like = trace.select_sequences(&sequences[..8]).unwrap();
        let (more_experts, more_events) = distinct_experts(&like, 8);
        (experts, events) = (experts + more_experts, events + more_events);
    }
    let at_8 = experts as f64 / events as f64;
    assert!((at_8 - 13.9).abs() <= 1.0, "{at_8}");

    let first: Vec<usize> = (0..64).collect();
    let mixed = trace.select_sequences(&first).unwrap();
    let (experts, events) = distinct_experts(&mixed, 1);
    assert_eq!(experts, 4 * events);
    let (experts, events) = distinct_experts(&mixed, 8);
    assert!(
        (experts as f64 / events as f64 - 17.5).abs() <= 1.0,
        "{}",
        experts as f64 / events as f64
    );
}
