//! One setting in full: per layer, per phase, percentiles of step times, and what ran when.

use hotset_cost_models::Link;
use hotset_policies::{Need, PolicySpec};
use hotset_traces::{Phase, Shape, Trace};
use serde::Serialize;

use crate::report::{Report, Row, Settings, TraceSummary};
use crate::timeline::{Recorder, percentile};
use crate::{
    Breakdown, Bucket, Compare, Counts, Futures, Misses, Prefetch, Prices, Progress, Semantics,
    Setting, SimError, Timeline, Times, Window, compare, replay_timed,
};

/// A replay in full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The schema.
    pub schema: &'static str,
    /// The trace.
    pub trace: TraceSummary,
    /// The flags.
    pub settings: Settings,
    /// One row a phase and window, as a comparison gives them.
    pub rows: Vec<Row>,
    /// One row a phase and layer, over the whole run.
    pub layers: Vec<LayerRow>,
    /// One row a phase, window and link.
    pub step_times: Vec<StepTimes>,
    /// What a reader must know to read the rows right.
    pub warnings: Vec<String>,
}

/// One layer in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerRow {
    /// Phase.
    pub phase: Phase,
    /// The layer's number in the model.
    pub layer: u32,
    /// Distinct experts asked for over all steps.
    pub accesses: u64,
    /// Of those, resident and usable at once.
    pub hits: u64,
    /// hits / accesses; absent without accesses.
    pub hit_rate: Option<f64>,
    /// Distinct experts a step needs.
    pub experts_per_step: f64,
    /// Copies of experts that were asked for.
    pub demand_fetches: u64,
    /// Copies of experts that were predicted for this layer.
    pub prefetches: u64,
    /// Where a token's time in this layer went, by link.
    pub links: Vec<LayerTime>,
}

/// A layer's time over one link, a token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerTime {
    /// The link.
    pub link: String,
    /// The layer's share of the timeline.
    pub ms_per_token: f64,
    /// Where it went.
    pub time: Breakdown,
}

/// How long steps take: what a user who waits for a token sees.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTimes {
    /// Phase of the steps.
    pub phase: Phase,
    /// Part of the run.
    pub window: Window,
    /// The link.
    pub link: String,
    /// Steps that ran.
    pub steps: u64,
    /// Mean time of a step.
    pub mean_ms: f64,
    /// Half of the steps take no longer.
    pub p50_ms: f64,
    /// Nine in ten take no longer.
    pub p90_ms: f64,
    /// 99 in a hundred take no longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Which part of a replay is recorded as spans, over the first link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recording {
    /// Steps before the first that is recorded.
    pub skip_steps: u64,
    /// Spans at most.
    pub most_spans: usize,
}

/// Replays one setting (`request` has one policy, one scope and one capacity) in full detail.
///
/// # Errors
/// As [`compare`]; [`SimError::OneSetting`]; [`SimError::WholeTrace`] for what is trained or
/// shuffled; sequential semantics, or experts of unknown size,
/// which have no timeline.
pub fn replay_in_full(
    trace: &Trace,
    request: &Compare,
    recording: Option<Recording>,
    progress: &impl Progress,
) -> Result<(ReplayReport, Option<Recorder>), SimError> {
    let ([(_, policy)], [scope], [(_, capacity)]) =
        (&request.policies[..], &request.scopes[..], &request.capacities[..])
    else {
        return Err(SimError::OneSetting);
    };
    if request.semantics != Semantics::Event {
        return Err(SimError::EventsOnly { what: "a replay in full" });
    }
    if request.training_share().is_some() || request.shuffle.is_some() || !request.timelines {
        return Err(SimError::WholeTrace);
    }
    let shape = request.shape(trace);
    if shape.layers().iter().any(|layer| layer.expert_bytes == 0) {
        return Err(SimError::ExpertSizeUnknown { text: capacity.to_string() });
    }
    let Report { schema, trace: summary, settings, rows, warnings } =
        compare(trace, request, progress)?;

    let serving = &request.serving;
    let steps = serving.steps(trace, request.chunk)?;
    let futures = Futures::new(trace, &steps, Semantics::Event, request.phase.only())
        .with_prefill(serving.prefill);
    let bound = policy.info().needs == Need::Future;
    let setting = Setting {
        phase: request.phase.only(),
        warmup: request.warmup,
        prefill: serving.prefill,
        prefetch: if bound { Prefetch::None } else { serving.prefetch.clone() },
        expert_bytes: shape.layers().iter().map(|layer| layer.expert_bytes).collect(),
        misses: if bound { Misses::Fetch } else { serving.misses },
        resizes: serving.resizes(trace, &shape, *scope, request.phase.only())?,
        ..Setting::new(PolicySpec::clone(policy), capacity.slots(&shape, *scope)?)
    };
    let timelines = request.links.iter().enumerate().map(|(index, link)| {
        let timeline = Timeline::new(&shape, link, &request.time).with_steps();
        match recording.filter(|_| index == 0) {
            Some(r) => timeline.with_recorder(Recorder::new(r.skip_steps, r.most_spans)),
            None => timeline,
        }
    });
    let (counts, timelines) = replay_timed(trace, &steps, &futures, &setting, timelines.collect())?;
    let (mut times, mut recorder) = (Vec::new(), None);
    for (timeline, link) in timelines.into_iter().zip(&request.links) {
        let (time, recorded) = timeline.finish();
        recorder = recorder.or(recorded);
        times.push((link, time));
    }
    let mut layers = Vec::new();
    let mut step_times = Vec::new();
    for phase in Phase::ALL {
        if counts.bucket(phase, Window::All).tokens == 0 {
            continue;
        }
        layers.extend((0..shape.layers().len()).map(|l| layer(&shape, &counts, &times, phase, l)));
        for window in [Window::All, Window::Cold, Window::Steady] {
            let of = |(link, times): &(&Link, Times)| steps_of(link, times, phase, window);
            step_times.extend(times.iter().filter_map(of));
        }
    }
    let report =
        ReplayReport { schema, trace: summary, settings, rows, layers, step_times, warnings };
    Ok((report, recorder))
}

fn layer(
    shape: &Shape,
    counts: &Counts,
    times: &[(&Link, Times)],
    phase: Phase,
    layer: usize,
) -> LayerRow {
    let bucket = counts.bucket(phase, Window::All);
    let (accesses, hits) = counts.layer(phase, layer);
    let mut only = Bucket {
        demand_fetches: vec![0; shape.layers().len()],
        prefetches: vec![0; shape.layers().len()],
        ..Bucket::default()
    };
    only.demand_fetches[layer] = bucket.demand_fetches[layer];
    only.prefetches[layer] = bucket.prefetches[layer];
    let links = times.iter().filter_map(|(link, times)| {
        let spent = times.layer(phase, Window::All, layer);
        let time = Prices::of(link, shape, &only, 0, Some(spent)).breakdown(bucket.tokens)?;
        let ms_per_token = spent.wall() as f64 / 1e9 / bucket.tokens as f64;
        Some(LayerTime { link: link.name.clone(), ms_per_token, time })
    });
    let steps = times.first().map(|(_, times)| times.sorted_steps(phase, Window::All).len());
    LayerRow {
        phase,
        layer: shape.layers()[layer].number,
        accesses,
        hits,
        hit_rate: (accesses > 0).then(|| hits as f64 / accesses as f64),
        experts_per_step: accesses as f64 / steps.unwrap_or(0).max(1) as f64,
        demand_fetches: bucket.demand_fetches[layer],
        prefetches: bucket.prefetches[layer],
        links: links.collect(),
    }
}

fn steps_of(link: &Link, times: &Times, phase: Phase, window: Window) -> Option<StepTimes> {
    let sorted = times.sorted_steps(phase, window);
    let ms = |percent| percentile(&sorted, percent).map(|ps| ps as f64 / 1e9);
    let sum: u128 = sorted.iter().map(|&ps| u128::from(ps)).sum();
    Some(StepTimes {
        phase,
        window,
        link: link.name.clone(),
        steps: sorted.len() as u64,
        mean_ms: sum as f64 / 1e9 / sorted.len() as f64,
        p50_ms: ms(50.0)?,
        p90_ms: ms(90.0)?,
        p99_ms: ms(99.0)?,
        max_ms: ms(100.0)?,
    })
}
