//! What planning takes: one plan of a 61-layer model with a trace of 16 million accesses, and a
//! what-if of 500 points over that trace, held against 2 s and 60 s on two threads. Curves are
//! measured within these times, making the trace is not. Both are of the clock on the wall: what
//! else the machine does counts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hotset::cost_models::{Model, WeightFormat, find_hardware};
use hotset::planning::{Axis, Request, Routing, plan, what_if};
use hotset::traces::{SynthConfig, Trace, synth};

const THREADS: usize = 2;
const PLAN: Duration = Duration::from_secs(2);
const WHAT_IF: Duration = Duration::from_secs(60);

/// DeepSeek-V3's 58 layers with experts, of 61.
fn trace(accesses: usize) -> Trace {
    let config = SynthConfig {
        layers: 58,
        experts: 256,
        top_k: 8,
        tokens: accesses / (58 * 8),
        sequence_tokens: 512,
        ..SynthConfig::default()
    };
    synth::generate(&config).expect("the configuration is sound")
}

fn main() {
    // `cargo bench -- --test` runs everything once, small.
    let small = std::env::args().any(|argument| argument == "--test");
    let accesses = if small { 400_000 } else { 16_000_000 };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().expect("threads");
    pool.install(|| run(&trace(accesses), small));
}

fn run(trace: &Trace, small: bool) {
    let model = Model::builtin("DeepSeek-V3").expect("it is built in");
    let mut request = Request::new(model, find_hardware("rtx-pro-6000").expect("it is built in"));
    request.storage.format = Some(WeightFormat::Nvfp4);
    let routing = |model: &Model| Routing::of_trace(model, trace, false);

    let start = Instant::now();
    let report = plan(&request, &routing(&request.model).expect("its own trace")).expect("it fits");
    let of_plan = start.elapsed();
    black_box(&report);

    // 25 numbers of users, each with a curve of its own, at 20 sizes of memory.
    let users = if small { "1..5" } else { "1..25" };
    let memory: Vec<String> = (0..20).map(|n| (48 + 8 * n).to_string()).collect();
    let axes: Vec<Axis> = [format!("users={users}"), format!("gpu-memory={}", memory.join(","))]
        .iter()
        .map(|text| text.parse().expect("an axis"))
        .collect();
    let start = Instant::now();
    let report = what_if(&request, &axes, routing).expect("all can be");
    let of_what_if = start.elapsed();

    let said = |took: Duration, limit: Duration| match took <= limit {
        true => format!("{:>8.3} s  within {limit:?}", took.as_secs_f64()),
        false => format!("{:>8.3} s  OVER {limit:?}", took.as_secs_f64()),
    };
    println!("plan     {}, {} accesses", said(of_plan, PLAN), trace.ids().len());
    println!("what-if  {}, {} points", said(of_what_if, WHAT_IF), report.points.len());
}
