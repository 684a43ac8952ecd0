//! One setting in full: per layer, per phase, percentiles of step times, and what ran when.

use hotset_cost_models::{Disk, Link};
use hotset_policies::PolicySpec;
use hotset_traces::{Phase, Shape, Trace};
use serde::Serialize;

use crate::compare::{self, Curves};
use crate::drive::Way;
use crate::parts::Parts;
use crate::prepare::{Preparation, is_sized};
use crate::replay::replay_watched;
use crate::report::{Report, Row, Settings, TraceSummary};
use crate::timeline::{Recorder, percentile};
use crate::{
    Breakdown, Bucket, Compare, Counts, Prices, ReplayProgress, Semantics, SimError, Times, Window,
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
    /// Of those, in a slot when the event began, its copy complete or on its way.
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

/// Replays one setting (`request` has one policy, one scope and one capacity) in full detail, of
/// the same preparation as [`compare`](crate::compare()).
///
/// # Errors
/// As [`compare`](crate::compare()); [`SimError::OneSetting`]; sequential semantics, or experts of
/// unknown size, which have no timeline.
pub fn replay_in_full(
    trace: &Trace,
    request: &Compare,
    recording: Option<Recording>,
    progress: &impl ReplayProgress,
) -> Result<(ReplayReport, Option<Recorder>), SimError> {
    let ([policy], [_], [capacity]) =
        (&request.policies[..], &request.scopes[..], &request.capacities[..])
    else {
        return Err(SimError::OneSetting);
    };
    if request.semantics != Semantics::Event {
        return Err(SimError::EventsOnly { what: "a replay in full" });
    }
    if !is_sized(&request.shape(trace)) {
        return Err(SimError::ExpertSizeUnknown { text: capacity.value.to_string() });
    }
    let parts = Parts::of(trace, request)?;
    let prepared = Preparation::of(&parts, request)?;
    let curves = Curves::new(&prepared);
    let Report { schema, trace: summary, settings, rows, warnings } =
        compare::report(trace, &prepared, &curves, |_| Ok(()), progress)?;
    let detail = Detail::of(&prepared, &policy.value, recording, progress)?;
    let (layers, step_times) = (detail.layers(&prepared), detail.step_times());
    let report =
        ReplayReport { schema, trace: summary, settings, rows, layers, step_times, warnings };
    Ok((report, detail.recorder))
}

/// The one setting, replayed with its steps' times kept.
struct Detail<'r> {
    counts: Counts,
    /// Over each link whose timeline was asked for.
    times: Vec<LinkTimes<'r>>,
    recorder: Option<Recorder>,
}

/// The times of a replay over one link.
struct LinkTimes<'r> {
    link: &'r Link,
    times: Times,
}

impl<'r> Detail<'r> {
    fn of(
        prepared: &Preparation<'r>,
        policy: &PolicySpec,
        recording: Option<Recording>,
        progress: &dyn ReplayProgress,
    ) -> Result<Self, SimError> {
        let request = prepared.request();
        let (trace, size) = (prepared.trace(), &prepared.sizes()[0]);
        let way = &Way::new(prepared.steps(), progress);
        let timelines = prepared.timelines_to_count().into_iter().enumerate();
        let timelines = timelines.map(|(index, timeline)| {
            match recording.filter(|_| index == 0 && prepared.is_timed()) {
                Some(r) => timeline.with_recorder(Recorder::new(r.skip_steps, r.most_spans)),
                None => timeline,
            }
            .with_steps()
        });
        let setting = prepared.setting(policy, size);
        let (counts, timelines) =
            replay_watched(trace, way, prepared.futures(), &setting, timelines.collect())?;
        let mut detail = Self { counts, times: Vec::new(), recorder: None };
        let links = if prepared.is_timed() { &request.links[..] } else { &[] };
        for (timeline, link) in timelines.into_iter().zip(links) {
            let (times, recorder) = timeline.finish();
            detail.recorder = detail.recorder.or(recorder);
            detail.times.push(LinkTimes { link, times });
        }
        Ok(detail)
    }

    /// The phases that ran.
    fn phases(&self) -> impl Iterator<Item = Phase> + '_ {
        let ran = |phase: &Phase| self.counts.bucket(*phase, Window::All).tokens > 0;
        Phase::ALL.into_iter().filter(ran)
    }

    fn layers(&self, prepared: &Preparation<'_>) -> Vec<LayerRow> {
        let of = (prepared.shape(), prepared.request().time.disk.as_ref());
        let of_phase = |phase| {
            let steps = prepared.steps_of(phase);
            (0..prepared.shape().layers().len())
                .map(move |layer| self.layer(of, phase, layer, steps))
        };
        self.phases().flat_map(of_phase).collect()
    }

    fn step_times(&self) -> Vec<StepTimes> {
        let mut step_times = Vec::new();
        for phase in self.phases() {
            for window in [Window::All, Window::Cold, Window::Steady] {
                step_times.extend(self.times.iter().filter_map(|of| of.steps(phase, window)));
            }
        }
        step_times
    }

    /// One layer in one phase of `steps` steps.
    fn layer(
        &self,
        (shape, disk): (&Shape, Option<&Disk>),
        phase: Phase,
        layer: usize,
        steps: usize,
    ) -> LayerRow {
        let bucket = self.counts.bucket(phase, Window::All);
        let (accesses, hits) = self.counts.layer(phase, layer);
        let mut only = Bucket {
            demand_fetches: vec![0; shape.layers().len()],
            prefetches: vec![0; shape.layers().len()],
            low_precision: vec![0; shape.layers().len()],
            low_size_ppm: bucket.low_size_ppm,
            tiers: bucket.tiers.of_layer(layer),
            ..Bucket::default()
        };
        only.low_precision[layer] = bucket.low_precision.get(layer).copied().unwrap_or(0);
        only.demand_fetches[layer] = bucket.demand_fetches[layer];
        only.prefetches[layer] = bucket.prefetches[layer];
        let links = self.times.iter().filter_map(|LinkTimes { link, times }| {
            let spent = times.layer(phase, Window::All, layer);
            let prices = Prices::of(link, shape, &only, 0, Some(spent));
            let time = prices.over_disk(disk, shape, &only).breakdown(bucket.tokens)?;
            let ms_per_token = spent.wall() as f64 / 1e9 / bucket.tokens as f64;
            Some(LayerTime { link: link.name.clone(), ms_per_token, time })
        });
        LayerRow {
            phase,
            layer: shape.layers()[layer].number,
            accesses,
            hits,
            hit_rate: (accesses > 0).then(|| hits as f64 / accesses as f64),
            experts_per_step: accesses as f64 / steps.max(1) as f64,
            demand_fetches: bucket.demand_fetches[layer],
            prefetches: bucket.prefetches[layer],
            links: links.collect(),
        }
    }
}

impl LinkTimes<'_> {
    fn steps(&self, phase: Phase, window: Window) -> Option<StepTimes> {
        let sorted = self.times.sorted_steps(phase, window);
        let ms = |percent| percentile(&sorted, percent).map(|ps| ps as f64 / 1e9);
        let sum: u128 = sorted.iter().map(|&ps| u128::from(ps)).sum();
        Some(StepTimes {
            phase,
            window,
            link: self.link.name.clone(),
            steps: sorted.len() as u64,
            mean_ms: sum as f64 / 1e9 / sorted.len() as f64,
            p50_ms: ms(50.0)?,
            p90_ms: ms(90.0)?,
            p99_ms: ms(99.0)?,
            max_ms: ms(100.0)?,
        })
    }
}
