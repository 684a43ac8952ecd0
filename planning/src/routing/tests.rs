//! Routing of the bundled trace: batches, windows, stand-ins.

use hotset_traces::{LayerCounts, bundled};

use hotset_policies::Slots;
use hotset_sim::{CurveSetting, LruCurve, PhaseFilter, Scope, Semantics, Window};

use super::chance::{power, union_of_uniform};
use super::measured::{LruMisses, arranged, grouped};
use super::*;

fn kind(users: u32, tokens: u32) -> StepKind {
    StepKind { users, tokens }
}

fn olmoe() -> Model {
    Model::builtin("OLMoE-1B-7B").unwrap()
}

#[test]
fn powers_are_products() {
    assert_eq!(power(0.5, 0), 1.0);
    assert_eq!(power(0.5, 5), 1.0 / 32.0);
    assert_eq!(
        union_of_uniform(MeanLayer { experts: 4.0, top_k: 1.0 }, 2),
        4.0 * (1.0 - 0.75 * 0.75)
    );
    assert_eq!(union_of_uniform(MeanLayer { experts: 8.0, top_k: 2.0 }, 1), 2.0);
}

#[test]
fn steps_hold_the_same_users_throughout() {
    let trace = bundled().unwrap();
    let steps = arranged(&trace, kind(3, 4)).unwrap();
    // 48 sequences of 256 decode tokens: 16 rounds of 3, 64 windows each.
    assert_eq!(steps.len(), 16 * 64);
    for step in [0, 64, steps.len() - 1] {
        let places = steps.places(step);
        assert_eq!(places.len(), 12);
        let of: Vec<usize> = places.map(|place| trace.sequence_of(steps.row(place))).collect();
        assert_eq!(of[0], of[3]);
        assert_ne!(of[3], of[4]);
    }
    assert!(matches!(
        arranged(&trace, kind(49, 1)),
        Err(PlanError::Users { sequences: 48, users: 49, .. })
    ));
}

#[test]
fn misses_never_rise_with_slots_and_end_at_nothing() {
    let trace = bundled().unwrap();
    let routing = Routing::of_trace(&olmoe(), &trace, false).unwrap();
    let miss = |share| routing.need(kind(1, 1), share).unwrap().misses;
    let misses: Vec<f64> = (0..=100).map(|n| miss(f64::from(n) / 100.0)).collect();
    assert!(misses.windows(2).all(|pair| pair[1] <= pair[0]));
    assert_eq!(misses[0], 8.0, "without slots everything");
    assert_eq!(misses[100], 0.0);
    assert!(misses[25] > 2.0 && misses[25] < 6.0, "{}", misses[25]);
}

#[test]
fn batches_and_windows_need_different_numbers() {
    let trace = bundled().unwrap();
    let routing = Routing::of_trace(&olmoe(), &trace, false).unwrap();
    let batch = routing.unions(kind(8, 1)).unwrap().unwrap();
    let window = routing.unions(kind(1, 8)).unwrap().unwrap();
    // Skew without order says nearly what unrelated sequences need; fewer than uniform.
    assert!((batch.windows / batch.replayed - 1.0).abs() < 0.05, "{batch:?}");
    assert!(batch.replayed < batch.uniform);
    // Consecutive tokens share far more.
    assert!(window.replayed < 0.9 * batch.replayed, "{window:?} {batch:?}");
    assert!((window.windows - window.replayed).abs() < 0.5, "{window:?}");
    for union in [batch, window] {
        assert!(union.replayed >= 8.0 && union.replayed <= 64.0);
    }
    assert_eq!(batch.uniform, window.uniform);
}

#[test]
fn another_models_trace_stands_in_only_when_asked() {
    let trace = bundled().unwrap();
    let model = Model::builtin("Qwen3-30B-A3B").unwrap();
    let error = Routing::of_trace(&model, &trace, false).unwrap_err().to_string();
    assert!(error.contains("16 layers x 64 experts, top-8"), "{error}");
    assert!(error.contains("48 layers x 128 experts, top-8"), "{error}");
    assert!(error.contains("`Routing::of_trace::stand_in`"), "{error}");
    let routing = Routing::of_trace(&model, &trace, true).unwrap();
    let own = Routing::of_trace(&olmoe(), &trace, false).unwrap();
    let rate = |routing: &Routing<'_>, share| {
        let need = routing.need(kind(1, 1), share).unwrap();
        need.misses / need.distinct
    };
    // A quarter of 16 tokens' experts are the experts of 4 tokens, half way to all of 16 on a logarithmic
    // scale; half way to 8 are those of the square root of 8.
    assert!((rate(&routing, 0.25) - rate(&own, 0.125 * 8f64.sqrt())).abs() < 1e-9);
    assert_eq!(routing.need(kind(1, 1), 0.5).unwrap().distinct, 8.0);
    assert!(matches!(routing.summary(), RoutingSummary::StandIn { .. }));
}

#[test]
fn without_a_trace_all_experts_are_alike() {
    let routing = Routing::uniform(&olmoe());
    let need = routing.need(kind(1, 1), 0.25).unwrap();
    assert_eq!((need.distinct, need.misses), (8.0, 6.0));
    assert_eq!(routing.unions(kind(8, 1)).unwrap(), None);
}

/// Counts of OLMoE's experts.
fn counts(of: impl Fn(u32, u32) -> u64) -> Histogram {
    let layer = |number| LayerCounts { number, counts: (0..64).map(|e| of(number, e)).collect() };
    Histogram {
        name: "counts".to_owned(),
        format: "imatrix",
        layers: (0..16).map(layer).collect(),
        tokens: None,
        notes: Vec::new(),
    }
}

#[test]
fn counts_pin_the_most_used_experts() {
    // In each layer 16 experts share all uses; counted on four ranks, which changes nothing.
    let even = counts(|_, expert| if expert < 16 { 12 } else { 0 });
    let routing = Routing::of_histogram(&olmoe(), &even).unwrap();
    let need = |of, share| routing.need(of, share).unwrap();
    assert_eq!(need(kind(1, 1), 0.25), RoutingNeed::new(8.0, 0.0));
    assert_eq!(need(kind(1, 1), 0.125), RoutingNeed::new(8.0, 4.0));
    assert_eq!(need(kind(1, 1), 0.0), RoutingNeed::new(8.0, 8.0));
    // Two tokens on their own: each of the 16 is needed by one of them in 3 of 4 steps.
    assert_eq!(need(kind(2, 1), 0.0).distinct, 12.0);
    assert_eq!(need(kind(1, 2), 0.125), need(kind(2, 1), 0.125));
    assert_eq!(routing.unions(kind(2, 1)).unwrap(), None);
    assert!(matches!(routing.summary(), RoutingSummary::Histogram { uses: 3072, .. }));
}

#[test]
fn counts_of_another_model_are_refused() {
    let refused =
        |histogram: &Histogram| Routing::of_histogram(&olmoe(), histogram).unwrap_err().to_string();
    // One expert takes a quarter of the uses: with top-8 that is two uses a token.
    let greedy = refused(&counts(|_, expert| if expert == 0 { 21 } else { 1 }));
    assert!(greedy.contains("21 times in 84 uses: with top-8"), "{greedy}");
    let empty = refused(&counts(|layer, _| u64::from(layer != 3)));
    assert!(empty.contains("no uses in layer 3"), "{empty}");
    let mut short = counts(|_, _| 1);
    short.layers.pop();
    assert!(refused(&short).contains("no counts of layer 15"), "{}", refused(&short));
    // What counts overflow into.
    let huge = Routing::of_histogram(&olmoe(), &counts(|_, _| u64::MAX)).unwrap();
    assert_eq!(huge.need(kind(1, 1), 0.5).unwrap(), RoutingNeed::new(8.0, 4.0));
}

#[test]
fn groups_say_what_the_exact_curve_says() {
    let trace = bundled().unwrap();
    for (users, tokens) in [(1, 1), (4, 1), (1, 4), (8, 2), (32, 1)] {
        let steps = arranged(&trace, kind(users, tokens)).unwrap();
        let setting = CurveSetting {
            scope: Scope::Global,
            semantics: Semantics::Event,
            phase: PhaseFilter::Decode,
            warmup: Some(0),
        };
        let curve = LruCurve::of(&trace, &steps, &setting);
        let LruMisses { accesses, from, misses } = grouped(&trace, (&steps, &()), 0).unwrap();
        assert_eq!(from, curve.exact_from(0));
        assert_eq!(misses.len(), 1024 - from as usize + 1);
        let (mut sum, mut most) = (0.0, 0.0f64);
        for (slots, misses) in (from..).zip(misses) {
            let exact = curve.counts(&Slots::Global(slots)).unwrap();
            let exact = exact.bucket(Phase::Decode, Window::Steady);
            assert_eq!(exact.accesses as f64, accesses);
            // In points of the miss rate.
            let error = (misses - exact.misses() as f64).abs() / accesses * 100.0;
            (sum, most) = (sum + error, most.max(error));
        }
        let mean = sum / f64::from(1024 - from + 1);
        assert!(mean < 0.1 && most < 2.5, "{users} x {tokens}: {mean} points, {most} at most");
    }
}
