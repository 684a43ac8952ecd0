//! Replays of 19.2 million accesses at 25% capacity: a plain array LRU as the limit, then every
//! policy one access at a time and through the real cache. `bench_table` makes the table of it.

mod support;

use criterion::{
    BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use hotset::policies::{POLICIES, PolicySpec};
use hotset::sim::{Semantics, Window};
use hotset::traces::Phase;
use support::{TOKENS, Workload, array_lru};

fn replays(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    let workload = Workload::new(if testing { 200 } else { TOKENS });

    let mut limit = group(criterion, "limit", &workload);
    limit.bench_function("array-lru", |bencher| {
        bencher.iter(|| array_lru(&workload.keys, workload.slots));
    });
    limit.finish();
    check_limit(&workload);

    for semantics in [Semantics::Sequential, Semantics::Event] {
        let mut group = group(criterion, semantics.name(), &workload);
        for info in POLICIES {
            let policy: PolicySpec = info.name.parse().expect("a policy knows its own name");
            // Some need what no synthetic trace has: say so and go on.
            match workload.replay(&policy, semantics) {
                Ok(_) => group.bench_function(info.name, |bencher| {
                    bencher.iter(|| workload.replay(&policy, semantics));
                }),
                Err(why) => {
                    eprintln!("{}: {why}", info.name);
                    continue;
                }
            };
        }
        group.finish();
    }
}

fn group<'a>(
    criterion: &'a mut Criterion,
    name: &str,
    workload: &Workload,
) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(workload.accesses()));
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group
}

/// The limit is a limit only if it does the same work.
fn check_limit(workload: &Workload) {
    let lru: PolicySpec = "lru".parse().expect("there is LRU");
    let counts = workload.replay(&lru, Semantics::Sequential).expect("LRU needs nothing");
    let misses = counts.bucket(Phase::Decode, Window::All).misses();
    assert_eq!(misses, array_lru(&workload.keys, workload.slots));
}

criterion_group!(benches, replays);
criterion_main!(benches);
