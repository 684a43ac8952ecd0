//! What a timeline adds to a replay: `cargo run --release --example timeline_speed`.
//!
//! Best of several runs over the bundled trace's decode steps, LRU at a quarter of the experts. With
//! `-- --million` instead: a million steps of 32 tokens on the timeline, and the memory they took.

use std::time::{Duration, Instant};

use hotset::cost_models::find_machine;
use hotset::policies::{PolicySpec, Slots};
use hotset::sim::{
    Arrival, Composition, Compute, Futures, PhaseFilter, Semantics, Setting, Steps, TimeModel,
    Timeline, replay, replay_timed,
};
use hotset::traces::{SynthConfig, synth};

fn best(mut run: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..15).map(timed).min().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().any(|argument| argument == "--million") {
        return million();
    }
    let trace = hotset::traces::bundled()?;
    let machine = find_machine("h200")?;
    let compute = Compute::of_machine(&machine, 8 << 20).unwrap_or_default();
    let model = TimeModel { compute, ..TimeModel::default() };
    let steps = Steps::of(&trace, 512);
    let phase = PhaseFilter::Decode;
    let futures = Futures::new(&trace, &steps, Semantics::Event, phase);
    let plain =
        Setting { phase, ..Setting::new(PolicySpec::Lru(Default::default()), Slots::Global(256)) };
    let ahead = Setting { prefetch: "ahead".parse().expect("a prefetcher"), ..plain.clone() };
    let accesses = replay(&trace, &steps, &futures, &plain)?.total().accesses;

    let count = best(|| drop(replay(&trace, &steps, &futures, &plain)));
    let say = |name: &str, time: Duration| {
        println!(
            "{name:28} {:8.3} ms  {:6.1} M accesses/s  {:.2} x",
            time.as_secs_f64() * 1e3,
            accesses as f64 / time.as_secs_f64() / 1e6,
            time.as_secs_f64() / count.as_secs_f64()
        );
    };
    say("count only", count);
    for links in 1..=machine.links.len() {
        let timelines = || {
            let links = machine.links[..links].iter();
            links.map(|link| Timeline::new(trace.shape(), link, &model)).collect()
        };
        let run = |setting| drop(replay_timed(&trace, &steps, &futures, setting, timelines()));
        say(&format!("timeline, {links} link(s)"), best(|| run(&plain)));
        say(&format!("with prefetch, {links} link(s)"), best(|| run(&ahead)));
    }
    say("prefetch, count only", best(|| drop(replay(&trace, &steps, &futures, &ahead))));
    Ok(())
}

/// Peak resident memory of this process, MiB.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}

fn million() -> Result<(), Box<dyn std::error::Error>> {
    let shape = SynthConfig { layers: 2, experts: 64, top_k: 2, ..SynthConfig::default() };
    let trace =
        synth::generate(&SynthConfig { tokens: 32_000_000, sequence_tokens: 1_000_000, ..shape })?;
    let trace_mib = (trace.tokens() * (trace.shape().row_len() + 5)) >> 20;
    println!(
        "{} tokens, {trace_mib} MiB of columns; peak so far {:?} MiB",
        trace.tokens(),
        peak_mib()
    );
    let composition =
        Composition { concurrency: 32, chunk: 512, verify: 1, arrival: Arrival::Recorded };
    let steps = Steps::compose(&trace, &composition)?;
    let machine = find_machine("h200")?;
    let compute = Compute::of_machine(&machine, 8 << 20).unwrap_or_default();
    let model = TimeModel { compute, ..TimeModel::default() };
    let sized = trace.shape().with_expert_bytes(1_769_472);
    let futures = Futures::new(&trace, &steps, Semantics::Event, PhaseFilter::All);
    let setting = Setting::new(PolicySpec::Lru(Default::default()), Slots::Global(96));
    let start = Instant::now();
    let timelines = vec![Timeline::new(&sized, &machine.links[0], &model)];
    let (counts, _) = replay_timed(&trace, &steps, &futures, &setting, timelines)?;
    println!(
        "{} steps, {} accesses in {:.1} s; peak {:?} MiB",
        steps.len(),
        counts.total().accesses,
        start.elapsed().as_secs_f64(),
        peak_mib(),
    );
    Ok(())
}
