//! What a timeline adds to a replay: `cargo run --release -p hotset-sim --example timeline_speed`.
//!
//! Best of several runs over the bundled trace's decode steps, LRU at a quarter of the experts.

use std::time::{Duration, Instant};

use hotset_cost_models::find_machine;
use hotset_policies::{PolicySpec, Slots};
use hotset_sim::{
    Ahead, Compute, Futures, Prefetch, Semantics, Setting, Steps, TimeModel, Timeline, replay,
    replay_timed,
};
use hotset_traces::Phase;

fn best(mut run: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..15).map(timed).min().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = hotset_traces::bundled()?;
    let machine = find_machine("h200")?;
    let compute = Compute::of_machine(&machine, 8 << 20).unwrap_or_default();
    let model = TimeModel { compute, ..TimeModel::default() };
    let steps = Steps::of(&trace, 512);
    let phase = Some(Phase::Decode);
    let futures = Futures::new(&trace, &steps, Semantics::Event, phase);
    let plain =
        Setting { phase, ..Setting::new(PolicySpec::Lru(Default::default()), Slots::Global(256)) };
    let ahead = Setting { prefetch: Prefetch::Ahead(Ahead::default()), ..plain.clone() };
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
