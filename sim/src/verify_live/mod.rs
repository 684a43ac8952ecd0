//! The timeline against live runs: the same settings predicted from link measurements alone.
//!
//! A live point is one cache that ran on a GPU, token by token, with its misses, prefetches and
//! times. Nothing of it is used for the prediction but its setting and its routes.

mod error;
mod points;
mod score;

use std::borrow::Cow;
use std::path::Path;

use hotset_cost_models::{Link, LinkKind, MachineProfile};
use hotset_policies::{PolicySpec, Slots};
use hotset_traces::{Phase, Trace};
use rayon::prelude::*;
use serde::Serialize;

pub use self::error::LiveError;

use self::points::{LiveToken, Point};
use self::score::{median, percentile, r_squared};
use crate::timeline::{Compute, StepTime, TimeModel, Timeline, Times};
use crate::{
    Compare, Forecast, Named, POLICY_MEMORY, Parts, PhaseFilter, Prefetch, PrefetchSource,
    Preparation, Scope, Semantics, Serving, SimError, Size, Training, Window, replay_timed,
};

/// Live points and what was predicted for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveReport {
    /// The schema.
    pub schema: &'static str,
    /// The machine whose measurements were used.
    pub machine: String,
    /// One a point, in the file's order.
    pub rows: Vec<LiveRow>,
    /// The largest error of a point's time.
    pub max_error: f64,
    /// The median error.
    pub median_error: f64,
    /// Whether misses and prefetches of every token of every point are those of the run.
    pub counts_exact: bool,
    /// What prefetch did to the time of the same cache, predicted and measured.
    pub prefetch_effects: Vec<PrefetchEffect>,
}

/// One live point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveRow {
    /// The routes.
    pub trace: String,
    /// `host` or `peer`.
    pub link: String,
    /// Bytes of an expert.
    pub expert_bytes: u64,
    /// Slots of the cache.
    pub slots: u32,
    /// `none` or `ahead`.
    pub prefetch: String,
    /// Tokens after the warm-up, over which all means go.
    pub tokens: usize,
    /// Predicted time a token.
    pub predicted_ms: f64,
    /// Measured time a token (wall clock).
    pub measured_ms: f64,
    /// |predicted - measured| / measured.
    pub error: f64,
    /// Predicted misses a token.
    pub predicted_misses_per_token: f64,
    /// The run's, as printed.
    pub measured_misses_per_token: f64,
    /// Predicted prefetches a token.
    pub predicted_prefetches_per_token: f64,
    /// The run's, as printed.
    pub measured_prefetches_per_token: f64,
    /// Whether both are equal to the printed digits.
    pub counts_match: bool,
    /// Tokens, the warm-up included, whose misses or prefetches are not the run's.
    pub tokens_miscounted: usize,
    /// Share of the variance of the measured token times that the predicted ones explain; absent
    /// where they do not vary.
    pub token_r2: Option<f64>,
    /// Error that 99% of the tokens' times do not exceed, relative to the measured.
    pub token_error_p99: f64,
    /// 99th percentile of the token times, predicted.
    pub p99_predicted_ms: f64,
    /// And measured.
    pub p99_measured_ms: f64,
    /// |predicted - measured| / measured of those.
    pub p99_error: f64,
    /// Where the predicted time went, ms a token.
    pub spent: LiveSpent,
}

/// Where a token's predicted time goes, in ms; the sum is `predicted_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LiveSpent {
    /// Kernels alone.
    pub compute: f64,
    /// What they took longer beside copies.
    pub slowed: f64,
    /// Waiting for missing experts.
    pub exposed_demand: f64,
    /// Waiting that prefetch caused.
    pub exposed_prefetch: f64,
}

/// What prefetch changed at one cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrefetchEffect {
    /// The routes.
    pub trace: String,
    /// `host` or `peer`.
    pub link: String,
    /// Bytes of an expert.
    pub expert_bytes: u64,
    /// Slots of the cache.
    pub slots: u32,
    /// Predicted time with prefetch over that without, minus 1.
    pub predicted_change: f64,
    /// Measured time with prefetch over that without, minus 1.
    pub measured_change: f64,
}

/// Predicts every point of `points` (a `points.csv`) from `machine`, with the routes in `traces`
/// and the recorded tokens in its folder `points`. `host` is the machine's PCIe link (else one into
/// coherent or unified memory), `peer` its NVLink peer.
///
/// # Errors
/// [`LiveError`], naming the file, and line or column.
pub fn verify_live(
    points: &Path,
    machine: &MachineProfile,
    traces: &Path,
) -> Result<LiveReport, LiveError> {
    let points = points::points(points)?;
    let rows: Vec<LiveRow> =
        points.par_iter().map(|point| check(point, machine, traces)).collect::<Result<_, _>>()?;
    let errors: Vec<f64> = rows.iter().map(|row| row.error).collect();
    Ok(LiveReport {
        schema: crate::SCHEMA,
        machine: machine.name.clone(),
        max_error: errors.iter().copied().fold(0.0, f64::max),
        median_error: median(errors).unwrap_or(0.0),
        counts_exact: rows.iter().all(|row| row.counts_match && row.tokens_miscounted == 0),
        prefetch_effects: prefetch_effects(&rows),
        rows,
    })
}

fn check(point: &Point, machine: &MachineProfile, folder: &Path) -> Result<LiveRow, LiveError> {
    let link = link_of(point, machine)?;
    let Some(compute) = Compute::of_machine(machine, point.dense_bytes_per_layer) else {
        return Err(lacks(machine, "hbm (kernel) measurements"));
    };
    let trace = point.trace(folder)?;
    let live = point.tokens_of(folder)?;
    let replayed = |source| LiveError::Replay { point: point.name(), source };

    let request = request(point, compute, link);
    let slots = Slots::Global(point.slots);
    let times = predict(&trace, &request, slots).map_err(replayed)?;
    Ok(row(point, &times, &live))
}

/// The request that a point is a run of; the slots are the point's own, whatever a capacity may be.
fn request(point: &Point, compute: Compute, link: &Link) -> Compare {
    let prefetch = match point.prefetch.as_str() {
        "none" => Prefetch::None,
        _ => Prefetch::By(Forecast::new(PrefetchSource::Recorded)),
    };
    Compare {
        policies: vec![Named::new("lru", PolicySpec::Lru(Default::default()))],
        scopes: vec![Scope::Global],
        capacities: Vec::new(),
        links: vec![link.clone()],
        machine: None,
        phase: PhaseFilter::All,
        semantics: Semantics::Event,
        warmup: Some(point.warmup_tokens as u64),
        chunk: 1,
        expert_bytes: None,
        serving: Serving { prefetch, ..Serving::default() },
        time: TimeModel { compute, ..TimeModel::default() },
        timelines: true,
        training: Training::default(),
        sample: None,
        policy_memory: POLICY_MEMORY,
        seed: 0,
    }
}

/// The times of a request of one policy over one link with these slots, with each step's kept.
fn predict(trace: &Trace, request: &Compare, slots: Slots) -> Result<Times, SimError> {
    let parts = Parts::untrained(Cow::Borrowed(trace));
    let size = Size { scope: Scope::Global, slots, resizes: Vec::new() };
    let prepared = Preparation::of(&parts, request)?;
    let setting = prepared.setting(&request.policies[0].value, &size);
    let timelines = prepared.timelines().into_iter().map(Timeline::with_steps).collect();
    let (steps, futures) = (prepared.steps(), prepared.futures());
    let (_, mut timelines) = replay_timed(trace, steps, futures, &setting, timelines)?;
    Ok(timelines.remove(0).finish().0)
}

fn row(point: &Point, times: &Times, live: &[LiveToken]) -> LiveRow {
    let miscounted = |(step, token): &(&StepTime, &LiveToken)| {
        (u64::from(step.copies), u64::from(step.prefetches)) != (token.misses, token.prefetches)
    };
    let steps = &times.steps[point.warmup_tokens..];
    let tokens = steps.len();
    let mean = |sum: u64| sum as f64 / tokens as f64;
    let ms = |ps: u64| ps as f64 / 1e9;
    let predicted: Vec<f64> = steps.iter().map(|step| ms(step.ps)).collect();
    let measured: Vec<f64> =
        live[point.warmup_tokens..].iter().map(|token| token.ms_wall).collect();
    let relative = |(p, m): (&f64, &f64)| (p - m).abs() / m;
    let errors = predicted.iter().zip(&measured).map(relative).collect();
    let (p99_predicted_ms, p99_measured_ms) =
        (percentile(predicted.clone(), 99.0), percentile(measured.clone(), 99.0));

    let predicted_ms = mean(steps.iter().map(|step| step.ps).sum()) / 1e9;
    let misses = mean(steps.iter().map(|step| u64::from(step.copies)).sum());
    let prefetches = mean(steps.iter().map(|step| u64::from(step.prefetches)).sum());
    let spent = times.bucket(Phase::Decode, Window::Steady);
    LiveRow {
        trace: point.trace.clone(),
        link: point.link.clone(),
        expert_bytes: point.expert_bytes,
        slots: point.slots,
        prefetch: point.prefetch.clone(),
        tokens,
        predicted_ms,
        measured_ms: point.wall_ms_per_token,
        error: relative((&predicted_ms, &point.wall_ms_per_token)),
        predicted_misses_per_token: misses,
        measured_misses_per_token: point.misses_per_token.value,
        predicted_prefetches_per_token: prefetches,
        measured_prefetches_per_token: point.prefetches_per_token.value,
        counts_match: point.misses_per_token.prints(misses)
            && point.prefetches_per_token.prints(prefetches),
        tokens_miscounted: times.steps.iter().zip(live).filter(miscounted).count(),
        token_r2: r_squared(&predicted, &measured),
        token_error_p99: percentile(errors, 99.0),
        p99_predicted_ms,
        p99_measured_ms,
        p99_error: relative((&p99_predicted_ms, &p99_measured_ms)),
        spent: LiveSpent {
            compute: ms(spent.compute) / tokens as f64,
            slowed: ms(spent.slowed) / tokens as f64,
            exposed_demand: ms(spent.demand) / tokens as f64,
            exposed_prefetch: ms(spent.prefetch) / tokens as f64,
        },
    }
}

fn link_of<'m>(point: &Point, machine: &'m MachineProfile) -> Result<&'m Link, LiveError> {
    use LinkKind::{NvlinkC2c, NvlinkPeer, Pcie, Unified};
    let (kinds, what) = match point.link.as_str() {
        "host" => (&[Pcie, NvlinkC2c, Unified][..], "link to host memory"),
        _ => (&[NvlinkPeer][..], "link to a peer"),
    };
    let of = |kind: &LinkKind| machine.links.iter().find(|link| link.kind == *kind);
    kinds.iter().find_map(of).ok_or_else(|| lacks(machine, what))
}

fn lacks(machine: &MachineProfile, what: &'static str) -> LiveError {
    LiveError::Machine { machine: machine.name.clone(), what }
}

/// Every cache that ran with and without prefetch.
fn prefetch_effects(rows: &[LiveRow]) -> Vec<PrefetchEffect> {
    let effect = |with: &LiveRow| {
        let cache =
            |row: &LiveRow| (row.trace.clone(), row.link.clone(), row.expert_bytes, row.slots);
        let same = |row: &&LiveRow| row.prefetch == "none" && cache(row) == cache(with);
        let without = rows.iter().find(same)?;
        Some(PrefetchEffect {
            trace: with.trace.clone(),
            link: with.link.clone(),
            expert_bytes: with.expert_bytes,
            slots: with.slots,
            predicted_change: with.predicted_ms / without.predicted_ms - 1.0,
            measured_change: with.measured_ms / without.measured_ms - 1.0,
        })
    };
    rows.iter().filter(|row| row.prefetch != "none").filter_map(effect).collect()
}
