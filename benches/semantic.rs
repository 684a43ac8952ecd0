//! The nearest of 10,000 conversations at 512 dimensions, exactly, held against one plain pass
//! over the same embeddings in f32: what a search that reads every number at least costs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use hotset::policies::semantic::{ConversationStore, Search, StoreConfig};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const DIMENSION: usize = 512;
const KEYS: usize = 1024;
const NEAREST: usize = 8;

struct Run {
    store: ConversationStore,
    search: Search,
    /// The stored embeddings in one piece, for the plain pass.
    plain: Vec<f32>,
    queries: Vec<Vec<f32>>,
}

impl Run {
    /// Embeddings around `topics` directions, in reach of a tenth of their length; `None`: in all
    /// directions.
    fn new(conversations: usize, topics: Option<usize>) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(20_261_129);
        let mut numbers = |many: usize| -> Vec<f32> {
            // Sums of four are near enough to normal.
            (0..many).map(|_| (0..4).map(|_| random.random::<f32>() - 0.5).sum()).collect()
        };
        let centres: Vec<Vec<f32>> = (0..topics.unwrap_or(0)).map(|_| numbers(DIMENSION)).collect();
        let mut embedding = |n: usize| -> Vec<f32> {
            let own = numbers(DIMENSION);
            let Some(topics) = topics else { return own };
            centres[n % topics].iter().zip(own).map(|(centre, own)| centre + 0.1 * own).collect()
        };
        let sizes = StoreConfig::new(conversations, DIMENSION, KEYS);
        let mut store = ConversationStore::new(&sizes).expect("the sizes are possible");
        let mut profile: Vec<f32> = (0..KEYS).map(|key| (key * 7 % 101) as f32 / 800.0).collect();
        for id in 0..conversations {
            profile.rotate_left(1);
            store.insert(&embedding(id), &profile, id as u64).expect("the numbers are finite");
        }
        let plain = (0..conversations as u32).flat_map(|index| store.embedding(index).to_vec());
        let (plain, queries) = (plain.collect(), (0..64).map(embedding).collect());
        Self { search: store.search().expect("there is room"), store, plain, queries }
    }

    fn nearest(&mut self, query: usize) -> f32 {
        let query = &self.queries[query % self.queries.len()];
        let nearest = self.store.nearest(query, NEAREST, &mut self.search);
        nearest.expect("the query is finite")[0].cosine
    }

    fn pass(&self) -> u32 {
        self.plain.iter().fold(0, |sum, number| sum.wrapping_add(number.to_bits()))
    }

    /// Best times of a search and of a plain pass over rounds in which both run in turn.
    fn times(&mut self, rounds: usize) -> [Duration; 2] {
        let mut best = [Duration::MAX; 2];
        for round in 0..rounds {
            let start = Instant::now();
            black_box(self.nearest(round));
            best[0] = best[0].min(start.elapsed());
            let start = Instant::now();
            black_box(self.pass());
            best[1] = best[1].min(start.elapsed());
        }
        best
    }
}

fn searches(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    let conversations = if testing { 100 } else { 10_000 };
    let mut group = criterion.benchmark_group("semantic");
    for (name, topics) in [("spread", None), ("20-topics", Some(20)), ("one-topic", Some(1))] {
        let mut run = Run::new(conversations, topics);
        let mut query = 0;
        group.bench_function(format!("nearest-{name}"), |bencher| {
            bencher.iter(|| {
                query += 1;
                run.nearest(query)
            });
        });
        let [search, pass] =
            run.times(if testing { 1 } else { 500 }).map(|time| time.as_secs_f64());
        eprintln!(
            "{name}: {:.3} ms a search of {conversations}, {:.2} of a plain pass ({:.3} ms)",
            search * 1e3,
            search / pass,
            pass * 1e3
        );
    }
    group.finish();
}

criterion_group!(benches, searches);
criterion_main!(benches);
