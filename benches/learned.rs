//! What the policies that learn cost an engine: one event at a time through the real cache, a
//! quarter of the experts resident, in the shapes that engines serve. At the end a table of the best
//! of several rounds, in which every policy ran in turn, with the ratio to LRU of the same run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hotset::policies::{
    ExpertCache, Lru, Policy, PoolShape, Slots, TdLogistic, TdLogisticConfig, TdPairs,
    TdPairsConfig, TdTable, TdTableConfig,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Layers, experts and top-k of the models.
const MODELS: [(usize, u32, u32); 5] =
    [(24, 32, 4), (24, 32, 8), (16, 64, 8), (48, 128, 8), (60, 256, 8)];
const TOKENS: usize = 200;
const ROUNDS: usize = 5;

/// A model, and tokens that keep half of each layer's experts of the token before and draw the
/// others with a preference for low ids.
struct Workload {
    shape: (usize, u32, u32),
    rows: Vec<Vec<u32>>,
}

impl Workload {
    fn new(shape: (usize, u32, u32), tokens: usize) -> Self {
        let (layers, experts, top_k) = shape;
        let mut rng = Pcg64Mcg::seed_from_u64(20_261_201);
        let mut sets: Vec<Vec<u32>> = vec![(0..top_k).collect(); layers];
        let mut rows = Vec::with_capacity(tokens * layers);
        for _ in 0..tokens {
            for set in &mut sets {
                for place in 0..top_k as usize {
                    let low = rng.random_range(0..experts);
                    let drawn = low.min(rng.random_range(0..experts));
                    if rng.random_range(0..2) == 0 && !set.contains(&drawn) {
                        set[place] = drawn;
                    }
                }
                rows.push(set.clone());
            }
        }
        Self { shape, rows }
    }

    fn cache<P: Policy>(&self, policy: impl FnMut(usize, &PoolShape) -> P) -> ExpertCache<P> {
        let (layers, experts, top_k) = self.shape;
        let slots = Slots::Global(layers as u32 * experts / 4);
        let cache = ExpertCache::new(&vec![experts; layers], &vec![top_k; layers], &slots, policy);
        cache.expect("a quarter of the experts fits").with_ordered_copies()
    }

    /// Serves all tokens; returns the misses.
    fn serve<P: Policy>(&self, cache: &mut ExpertCache<P>) -> u64 {
        let mut misses = 0;
        for (event, ids) in self.rows.iter().enumerate() {
            let layer = event % self.shape.0;
            misses += u64::from(cache.demand(layer, ids).misses());
            cache.release(layer);
        }
        misses
    }
}

/// Something that serves the workload once more, in a cache that is full.
type Server<'a> = Box<dyn FnMut() -> u64 + 'a>;

fn server<'a, P: Policy + 'a>(
    workload: &'a Workload,
    policy: impl FnMut(usize, &PoolShape) -> P,
) -> Server<'a> {
    let mut cache = workload.cache(policy);
    workload.serve(&mut cache);
    Box::new(move || workload.serve(&mut cache))
}

fn servers(workload: &Workload) -> Vec<(&'static str, Server<'_>)> {
    let table = TdTableConfig::default();
    let logistic = TdLogisticConfig::default();
    let pairs = TdPairsConfig::default();
    vec![
        ("lru", server(workload, |_, pool| Lru::new(pool))),
        ("td-table", server(workload, |_, pool| TdTable::new(pool, &table))),
        ("td-logistic", server(workload, |_, pool| TdLogistic::new(pool, &logistic))),
        ("td-pairs", server(workload, |_, pool| TdPairs::new(pool, &pairs))),
    ]
}

fn events(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    let mut lines = Vec::new();
    for shape in MODELS {
        let workload = Workload::new(shape, if testing { 4 } else { TOKENS });
        let name = format!("{} of {}, {} layers", shape.2, shape.1, shape.0);
        let mut group = criterion.benchmark_group("event");
        group.throughput(Throughput::Elements(workload.rows.len() as u64)).sample_size(10);
        let mut servers = servers(&workload);
        for (policy, serve) in &mut servers {
            group.bench_function(BenchmarkId::new(*policy, &name), |bencher| {
                bencher.iter(|| black_box(serve()));
            });
        }
        group.finish();
        lines.extend(table(&name, &mut servers, workload.rows.len()));
    }
    println!("{}", lines.join("\n"));
}

/// Lines of the table: the best of the rounds, and the ratio to LRU, which comes first.
fn table(name: &str, servers: &mut [(&'static str, Server<'_>)], events: usize) -> Vec<String> {
    let mut best = vec![Duration::MAX; servers.len()];
    for _ in 0..ROUNDS {
        for (best, (_, serve)) in best.iter_mut().zip(servers.iter_mut()) {
            let start = Instant::now();
            black_box(serve());
            *best = (*best).min(start.elapsed());
        }
    }
    let nanos = |time: Duration| time.as_secs_f64() * 1e9 / events as f64;
    let line = |(time, (policy, _)): (&Duration, &(&str, Server<'_>))| {
        let (event, ratio) = (nanos(*time), nanos(*time) / nanos(best[0]));
        format!("{name:24} {policy:12} {event:8.0} ns an event, {ratio:6.1} times LRU")
    };
    best.iter().zip(servers.iter()).map(line).collect()
}

criterion_group!(benches, events);
criterion_main!(benches);
