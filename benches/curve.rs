//! LRU at every capacity in one pass, held against one LRU replay of the same run: 19.2 million
//! accesses, one access at a time and by events, one pool and one a layer.

mod support;

use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use hotset::policies::{PolicySpec, Slots};
use hotset::sim::{
    CurveSetting, Futures, LruCurve, PREFILL_CHUNK, PhaseFilter, Scope, Semantics, Setting, Steps,
    replay,
};
use hotset::traces::Trace;
use support::{TOKENS, synthetic};

struct Run {
    trace: Trace,
    steps: Steps,
    semantics: Semantics,
    scope: Scope,
}

impl Run {
    fn replay(&self) -> u64 {
        let shape = self.trace.shape();
        let slots = match self.scope {
            Scope::Global => Slots::Global(shape.total_experts() / 4),
            _ => Slots::Layer(shape.layers().iter().map(|layer| layer.experts / 4).collect()),
        };
        let lru: PolicySpec = "lru".parse().expect("there is LRU");
        let setting = Setting { semantics: self.semantics, ..Setting::new(lru, slots) };
        let futures = Futures::new(&self.trace, &self.steps, self.semantics, PhaseFilter::All);
        let counts = replay(&self.trace, &self.steps, &futures, &setting);
        counts.expect("LRU needs nothing").total().hits
    }

    fn curve(&self) -> LruCurve {
        let Self { scope, semantics, .. } = *self;
        let setting = CurveSetting { scope, semantics, phase: PhaseFilter::All, warmup: None };
        LruCurve::of(&self.trace, &self.steps, &setting)
    }

    /// The best of some rounds in which both run in turn: a busy machine slows both.
    fn ratio(&self, rounds: u32) -> f64 {
        let timed = |work: &dyn Fn()| {
            let start = Instant::now();
            work();
            start.elapsed()
        };
        let (mut replay, mut curve) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds {
            replay = replay.min(timed(&|| {
                std::hint::black_box(self.replay());
            }));
            curve = curve.min(timed(&|| drop(std::hint::black_box(self.curve()))));
        }
        curve.as_secs_f64() / replay.as_secs_f64()
    }
}

fn curves(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    let trace = synthetic(if testing { 200 } else { TOKENS });
    for semantics in [Semantics::Sequential, Semantics::Event] {
        for scope in [Scope::Global, Scope::Layer] {
            let steps = Steps::of(&trace, PREFILL_CHUNK);
            let run = Run { trace: trace.clone(), steps, semantics, scope };
            let name = format!("curve-{}-{}", semantics.name(), scope.name());
            let mut group = criterion.benchmark_group(&name);
            group.throughput(Throughput::Elements(trace.ids().len() as u64));
            group.sampling_mode(SamplingMode::Flat).sample_size(10);
            group.bench_function("one-replay", |bencher| bencher.iter(|| run.replay()));
            group.bench_function("all-capacities", |bencher| bencher.iter(|| run.curve()));
            group.finish();
            let ratio = run.ratio(if testing { 1 } else { 7 });
            eprintln!("{name}: a curve costs {ratio:.2} replays of one capacity");
        }
    }
}

criterion_group!(benches, curves);
criterion_main!(benches);
