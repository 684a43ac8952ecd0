//! What stands in where a model has no trace: measured again, and left out one by one.

use std::path::PathBuf;

use hotset_cost_models::Model;
use hotset_planning::{RecordedTrace, Recordings, Routing, StepKind};
use hotset_traces::testing::shared;
use hotset_traces::{Detected, ImportOptions, Trace, bundled, import, recognise};

fn again(name: &str, trace: &Trace) {
    let kept = Recordings::builtin().traces().iter().find(|kept| kept.name == name).unwrap();
    assert_eq!(*kept, RecordedTrace::of(trace, name, &kept.source).unwrap());
}

#[test]
fn the_bundled_trace_gives_its_entry() {
    again("h200-moe", &bundled().unwrap());
}

#[test]
fn shared_traces_give_their_entries() {
    let files = [
        ("h200-two-turn", "data/h200-two-turn/routes.npz"),
        ("DeepSeek-V2-Lite", "data/nvmoe/dsv2lite-all.tokens.jsonl"),
        ("gpt-oss-120b", "data/nvmoe/gptoss-all.tokens.jsonl"),
        ("OLMoE-1B-7B", "data/nvmoe/olmoe-all.tokens.jsonl"),
        ("Kimi-Linear-48B", "data/warp/trace_kimi_300.jsonl"),
        ("OLMoE-1B-7B-0125", "data/warp/trace_olmoe_299.jsonl"),
    ];
    for (name, path) in files {
        let Some(path) = shared(path) else { return };
        again(name, &imported(path));
    }
}

fn imported(path: PathBuf) -> Trace {
    let Detected::Trace(format) = recognise(&path).unwrap().unwrap() else { panic!("no trace") };
    import(format, &path, &ImportOptions::default()).unwrap()
}

#[test]
fn a_recording_that_is_left_out_is_told_by_the_others() {
    let left_out = Recordings::builtin().left_out_error();
    println!("{left_out:?}");
    assert!(left_out.mean_points < 8.0 && left_out.worst_points < 20.0, "{left_out:?}");
    // Uniform routing, which stood here before, is many times worse.
    let recordings = Recordings::builtin();
    let uniform: f64 = recordings.traces().iter().map(uniform_error).sum::<f64>();
    assert!(uniform / recordings.traces().len() as f64 > 3.0 * left_out.mean_points);
}

/// Mean distance in points of uniform routing's misses, `1 - slots / all`, from a recording.
fn uniform_error(trace: &RecordedTrace) -> f64 {
    let last = (trace.misses.len() - 1) as f64;
    let distance = |(n, misses): (usize, &f64)| {
        let share = (trace.experts / trace.top_k).powf(n as f64 / last - 1.0);
        (1.0 - share - misses).abs()
    };
    100.0 * trace.misses.iter().enumerate().map(distance).sum::<f64>() / (last + 1.0)
}

#[test]
fn below_one_steps_experts_everything_misses_and_above_never_more_with_more_slots() {
    let model = Model::builtin("Qwen3-30B-A3B").unwrap();
    let routing = Routing::recorded(&model);
    for kind in [(1, 1), (8, 1), (1, 4), (33, 2)].map(|(users, tokens)| StepKind { users, tokens })
    {
        let need = |share| routing.need(kind, share).unwrap();
        let cliff = need(1.0).distinct / 128.0;
        assert_eq!(need(0.99 * cliff).misses, need(1.0).distinct, "{kind:?}");
        assert!(need(1.01 * cliff).misses < 0.8 * need(1.0).distinct, "{kind:?}");
        let misses: Vec<f64> = (0..=100).map(|n| need(f64::from(n) / 100.0).misses).collect();
        assert!(misses.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{kind:?}");
        assert_eq!(misses[100], 0.0);
        let [low, high] = need(0.5).between.unwrap();
        assert!(low <= need(0.5).misses && need(0.5).misses <= high, "{kind:?}");
    }
}

#[test]
fn batches_and_windows_of_the_bundled_trace_are_told_by_other_models() {
    let trace = bundled().unwrap();
    let model = Model::builtin("OLMoE-1B-7B").unwrap();
    let (own, recorded) =
        (Routing::of_trace(&model, &trace, false).unwrap(), Routing::recorded(&model));
    for (users, tokens) in [(1, 1), (4, 1), (16, 1), (1, 4)] {
        let kind = StepKind { users, tokens };
        for share in [0.25, 0.5, 0.75, 0.9] {
            let of = |routing: &Routing<'_>| routing.need(kind, share).unwrap();
            let (own, told) = (of(&own), of(&recorded));
            let points = 100.0 * (own.misses / own.distinct - told.misses / told.distinct).abs();
            assert!(points < 20.0, "{kind:?} {share}: {points} points");
            assert!((told.distinct / own.distinct - 1.0).abs() < 0.1, "{kind:?}: {told:?} {own:?}");
        }
    }
}
