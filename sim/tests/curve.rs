//! LRU's curves and the adaptive split against replays at every capacity.

use hotset_policies::{PolicySpec, Slots};
use hotset_sim::{
    AdaptiveSplit, Counts, CurveSetting, Futures, LruCurve, PhaseFilter, Scope, Semantics, Setting,
    Steps, even_split, replay,
};
use hotset_traces::{Ids, Sequence, Shape, SynthConfig, Trace, TraceBuilder, synth};
use proptest::prelude::*;

fn replayed(trace: &Trace, steps: &Steps, setting: &CurveSetting, slots: &Slots) -> Counts {
    let futures = Futures::new(trace, steps, setting.semantics, setting.phase);
    let setting = Setting {
        semantics: setting.semantics,
        phase: setting.phase,
        warmup: setting.warmup,
        ..Setting::new("lru".parse().unwrap(), slots.clone())
    };
    replay(trace, steps, &futures, &setting).unwrap()
}

/// Compares the curve with a replay at each of `capacities` slots (a pool).
fn check(
    trace: &Trace,
    chunk: u32,
    setting: CurveSetting,
    capacities: impl Iterator<Item = u32>,
) -> usize {
    let steps = Steps::of(trace, chunk);
    let curve = LruCurve::of(trace, &steps, &setting);
    let layers = trace.shape().layers().len();
    let mut compared = 0;
    for capacity in capacities {
        let slots = match setting.scope {
            Scope::Global => Slots::Global(capacity),
            _ => Slots::Layer(vec![capacity; layers]),
        };
        let Some(counts) = curve.counts(&slots) else { continue };
        let expected = replayed(trace, &steps, &setting, &slots);
        assert_eq!(counts, expected, "{setting:?}, {slots:?}");
        if setting.scope != Scope::Global {
            let misses: u64 = (0..layers).map(|l| curve.misses(l, capacity).unwrap()).sum();
            assert_eq!(misses, expected.total().misses());
        }
        compared += 1;
    }
    compared
}

fn settings(semantics: Semantics, warmup: Option<u64>) -> impl Iterator<Item = CurveSetting> {
    [Scope::Global, Scope::Layer].into_iter().flat_map(move |scope| {
        [PhaseFilter::All, PhaseFilter::Decode].map(|phase| CurveSetting {
            scope,
            semantics,
            phase,
            warmup,
        })
    })
}

/// A random trace: prompts run in chunks, so that events of many sizes meet.
fn random(layers: u32, experts: u32, top_k: u32, tokens: usize, seed: u64) -> Trace {
    synth::generate(&SynthConfig {
        layers,
        experts,
        top_k,
        tokens,
        sequence_tokens: 40,
        prompt_tokens: 13,
        topic_tokens: 8,
        seed,
        ..SynthConfig::default()
    })
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn equals_the_replay_at_every_capacity(
        layers in 1u32..5, experts in 1u32..24, chosen in 1u32..9, chunk in 1u32..9,
        warmup in prop::option::of(0u64..200), seed in any::<u64>(),
    ) {
        let trace = random(layers, experts, chosen.min(experts), 160, seed);
        for semantics in [Semantics::Event, Semantics::Sequential] {
            for setting in settings(semantics, warmup) {
                check(&trace, chunk, setting, 1..=layers * experts);
            }
        }
    }

    /// Events of more than 64 experts: answers over several words.
    #[test]
    fn equals_the_replay_with_wide_events(seed in any::<u64>(), chunk in 8u32..40) {
        let trace = random(2, 150, 9, 120, seed);
        for setting in settings(Semantics::Event, None) {
            check(&trace, chunk, setting, (1..=300).step_by(7));
        }
    }
}

#[test]
fn equals_the_replay_on_the_bundled_trace() {
    let trace = hotset_traces::bundled().unwrap();
    let experts = trace.shape().total_experts();
    for semantics in [Semantics::Event, Semantics::Sequential] {
        for setting in settings(semantics, None) {
            check(&trace, 512, setting, (1..=experts).step_by(experts as usize / 24));
        }
    }
    let warm = CurveSetting {
        scope: Scope::Global,
        semantics: Semantics::Event,
        phase: PhaseFilter::Decode,
        warmup: Some(1000),
    };
    // Around one token's experts, where groups are cut most often.
    let token = trace.shape().experts_per_token();
    assert_eq!(check(&trace, 512, warm, token - 8..token + 9), 17);
}

/// Why event semantics need more than distances: 5 slots hold expert 0 in the end, 6 do not.
#[test]
fn event_lru_does_not_include() {
    let rows: [[u8; 3]; 6] = [
        [0, 1, 2],
        [3, 4, 5], // 5 slots drop 0, the oldest; 6 hold all
        [0, 3, 4], // 5 slots: hits 3 4, then miss 0, in this order; 6: hits 0 3 4
        [6, 7, 8], // 5 slots keep 4 0; 6 keep 0 3 4
        [6, 7, 9], // 5 slots drop 4 and keep 0; 6 drop 0 and keep 3 4
        [0, 6, 7], // a hit in 5 slots, a miss in 6
    ];
    let shape = Shape::uniform(1, 10, 3).unwrap();
    let trace = TraceBuilder::new("t", shape, Ids::U8(rows.concat())).build().unwrap();
    let setting = CurveSetting {
        scope: Scope::Global,
        semantics: Semantics::Event,
        phase: PhaseFilter::All,
        warmup: None,
    };
    assert_eq!(check(&trace, 1, setting, 1..=10), 8); // from 3 slots on
    let curve = LruCurve::of(&trace, &Steps::of(&trace, 1), &setting);
    let hits = |slots| curve.counts(&Slots::Global(slots)).unwrap().total().hits;
    // 5 slots: 3 4, 6 7, 0 6 7. 6 slots: 0 3 4, 6 7, 6 7. 7 slots: all of these.
    assert_eq!([5, 6, 7].map(hits), [7, 7, 8]);
}

#[test]
fn sequences_without_a_wanted_token_are_no_trouble() {
    let shape = Shape::uniform(1, 4, 1).unwrap();
    let sequence = |id, rows| Sequence {
        id,
        label: String::new(),
        document: None,
        prompt_tokens: 0,
        has_repetition: None,
        rows,
    };
    let trace = TraceBuilder::new("t", shape, Ids::U8(vec![0, 1, 0, 1]))
        .sequences(vec![sequence(0, 0..2), sequence(1, 2..4)])
        .phases(vec![0, 0, 1, 1])
        .build()
        .unwrap();
    let setting = CurveSetting {
        scope: Scope::Layer,
        semantics: Semantics::Event,
        phase: PhaseFilter::Verify,
        warmup: None,
    };
    let curve = LruCurve::of(&trace, &Steps::of(&trace, 8), &setting);
    assert_eq!(curve.counts(&Slots::Layer(vec![2])).unwrap().total().accesses, 0);
    assert_eq!(check(&trace, 8, CurveSetting { phase: PhaseFilter::All, ..setting }, 1..=4), 3);
}

/// On its training part, that is.
#[test]
fn an_adaptive_split_is_what_the_replay_counts_and_no_worse_than_an_even_split() {
    let trace = synth::generate(&SynthConfig {
        layers: 5,
        experts: 12,
        top_k: 3,
        tokens: 600,
        sequence_tokens: 60,
        prompt_tokens: 20,
        ..SynthConfig::default()
    })
    .unwrap();
    let steps = Steps::of(&trace, 7);
    for (semantics, phase) in [
        (Semantics::Event, PhaseFilter::All),
        (Semantics::Event, PhaseFilter::Decode),
        (Semantics::Sequential, PhaseFilter::All),
    ] {
        let setting = CurveSetting { scope: Scope::Layer, semantics, phase, warmup: None };
        let split = AdaptiveSplit::train(&trace, &steps, &setting).unwrap();
        let futures = Futures::new(&trace, &steps, semantics, phase);
        for total in (1..=60).step_by(3) {
            let misses = |each: Vec<u32>| {
                let setting = Setting {
                    semantics,
                    phase,
                    ..Setting::new(PolicySpec::Lru(Default::default()), Slots::Layer(each))
                };
                replay(&trace, &steps, &futures, &setting).unwrap().total().misses()
            };
            let each = split.slots(total);
            assert_eq!(each.iter().sum::<u32>(), total);
            assert!(each.iter().all(|&slots| slots <= 12));
            let own = misses(each);
            assert_eq!(own, split.training_misses(total));
            assert!(own <= misses(even_split(trace.shape(), total)));
        }
    }
}
