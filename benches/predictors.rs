//! What a predictor costs: one token through all layers, each observed and the next one asked for,
//! in two models. Stores are full, and learning goes on, as in a replay.

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use hotset::policies::predict::{
    AnyPredictor, Guess, Horizon, Layers, Opening, PREDICTORS, Predictor, PredictorSpec, Token,
    TokenPlace,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Numbers of a prompt's embedding.
const DIMENSIONS: usize = 512;

/// Layers, experts and top-k of the models.
const MODELS: [(usize, u32, u32); 2] = [(16, 64, 8), (61, 256, 8)];

/// Parameters besides the defaults that cost something else.
const VARIANTS: [(&str, &str); 7] = [
    ("cross-layer", "order=2"),
    ("activation-map", "store=48"),
    ("expert-map", "store=48"),
    ("expert-map", "map=sequence"),
    ("linear", "order=2"),
    ("linear", "kind=logistic"),
    ("linear", "kind=logistic,order=2"),
];

/// A model, and tokens that choose at random: the larger half of the experts four times as often.
struct Workload {
    layers: Layers,
    rows: Vec<Vec<u32>>,
    weights: Vec<f32>,
    embeddings: Vec<Vec<f32>>,
}

impl Workload {
    fn new((layers, experts, top_k): (usize, u32, u32), tokens: usize) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut chosen = || {
            let mut chosen: Vec<u32> = Vec::new();
            while chosen.len() < top_k as usize {
                let first = if rng.random_range(0..5) == 0 { 0 } else { experts / 2 };
                let expert = first + rng.random_range(0..experts / 2);
                if !chosen.contains(&expert) {
                    chosen.push(expert);
                }
            }
            chosen
        };
        let rows = (0..tokens).map(|_| (0..layers).flat_map(|_| chosen()).collect()).collect();
        let ranks = (0..top_k).map(|rank| 1.0 / (2.0 + rank as f32));
        let mut embedding = || (0..DIMENSIONS).map(|_| rng.random_range(-1.0..1.0)).collect();
        Self {
            layers: Layers::new(&vec![experts; layers], &vec![top_k; layers]),
            rows,
            weights: ranks.collect::<Vec<f32>>().repeat(layers),
            embeddings: (0..tokens).map(|_| embedding()).collect(),
        }
    }

    /// A predictor that has seen each token as a sequence of its own, and begins another.
    fn trained(&self, name: &str, parameters: &str) -> AnyPredictor {
        let spec = PredictorSpec::read(name, parameters).expect("a predictor of that name");
        let mut predictor = spec.expect("its parameters").build(&self.layers, Horizon::at(1));
        let mut guesses = Vec::new();
        for (number, embedding) in self.embeddings.iter().enumerate() {
            predictor.begin_sequence(0, &Opening { embedding, ..Opening::default() });
            self.pass(&mut predictor, number, &mut guesses);
            predictor.end_sequence(0);
        }
        let embedding = &self.embeddings[0];
        predictor.begin_sequence(0, &Opening { embedding, ..Opening::default() });
        predictor
    }

    /// A token through all layers.
    fn pass(&self, predictor: &mut AnyPredictor, number: usize, guesses: &mut Vec<Guess>) {
        let row = &self.rows[number % self.rows.len()];
        for layer in 0..self.layers.len() {
            let place = TokenPlace { lane: 0, row: number, layer: layer as u32 };
            let token = Token::new(place, &self.layers, row, &self.weights);
            predictor.observe(&token);
            guesses.clear();
            if layer + 1 < self.layers.len() {
                predictor.predict(&token, layer as u32 + 1, 8, guesses);
            }
            std::hint::black_box(&guesses);
        }
    }
}

fn predictors(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    for model in MODELS {
        let workload = Workload::new(model, if testing { 70 } else { 1000 });
        let title = format!("{}x{} top-{}", model.0, model.1, model.2);
        let mut group = criterion.benchmark_group(title);
        group.throughput(Throughput::Elements(workload.layers.len() as u64));
        group.sampling_mode(SamplingMode::Flat).sample_size(10);
        let defaults = PREDICTORS.iter().map(|info| (info.name, ""));
        for (name, parameters) in defaults.chain(VARIANTS) {
            one(&mut group, &workload, name, parameters);
        }
        fit(&mut group, &workload);
        group.finish();
    }
}

fn one(
    group: &mut BenchmarkGroup<'_, WallTime>,
    workload: &Workload,
    name: &str,
    parameters: &str,
) {
    let title =
        if parameters.is_empty() { name.to_owned() } else { format!("{name}:{parameters}") };
    let mut trained = None;
    let (mut guesses, mut number) = (Vec::new(), 0);
    group.bench_function(title, |bencher| {
        // (Not where a filter leaves it out.)
        let predictor = trained.get_or_insert_with(|| workload.trained(name, parameters));
        bencher.iter(|| {
            workload.pass(predictor, number, &mut guesses);
            number += 1;
        });
    });
}

/// What one fit of all the ridge models takes; a replay does it each time a quarter is new.
fn fit(group: &mut BenchmarkGroup<'_, WallTime>, workload: &Workload) {
    let mut trained = None;
    let (mut guesses, mut number) = (Vec::new(), 0);
    group.bench_function("linear, one fit of all layers", |bencher| {
        let predictor = trained.get_or_insert_with(|| workload.trained("linear", ""));
        bencher.iter(|| {
            workload.pass(predictor, number, &mut guesses);
            number += 1;
            predictor.set_learning(false);
            predictor.set_learning(true);
        });
    });
}

criterion_group!(benches, predictors);
criterion_main!(benches);
