//! Replays every setting of a grid.

use hotset_sim::{
    Breakdown, Bucket, Compare, OpenLoop, Parts, Preparation, Prices, ReplayProgress, Scope,
    SimError, Spent, Timeline, Window, replay_timed,
};
use hotset_traces::{Phase, Trace};
use rayon::prelude::*;

use super::grid::{Grid, OverLink};
use super::units::Units;
use crate::ExperimentError;

/// What one setting did.
pub(super) struct Ran {
    pub policy: String,
    pub scope: Scope,
    /// Place of its capacity.
    pub capacity: usize,
    pub slots: u32,
    pub bucket: Bucket,
    pub spent: Spent,
    pub mib_per_token: f64,
    pub time: Option<Breakdown>,
    pub open_loop: Option<OpenLoop>,
    /// Time of its steps by unit, in picoseconds.
    pub unit_ps: Vec<u64>,
}

/// The replays over one link: of each request, policies within sizes.
pub(super) struct RanLink {
    pub references: Vec<Ran>,
    /// One list for each way to serve.
    pub served: Vec<Vec<Ran>>,
}

/// Everything that ran.
pub(super) struct RanGrid {
    pub links: Vec<RanLink>,
    pub units: Units,
    pub unit_tokens: Vec<u64>,
    pub steps: String,
}

/// Replays all links' requests.
pub(super) fn run(
    trace: &Trace,
    grid: &Grid,
    progress: &impl ReplayProgress,
) -> Result<RanGrid, ExperimentError> {
    let link = |link: &OverLink| -> Result<RanLink, ExperimentError> {
        let served = link.served.par_iter();
        let served = served.map(|served| run_request(trace, &served.request, grid.phase, progress));
        Ok(RanLink {
            references: run_request(trace, &link.references, grid.phase, progress)?,
            served: served.collect::<Result<_, _>>()?,
        })
    };
    let links = grid.links.iter().map(link).collect::<Result<_, _>>()?;
    let request = &grid.links[0].references;
    let parts = Parts::of(trace, request)?;
    let prepared = Preparation::of(&parts, request)?;
    let units = Units::of(prepared.trace(), prepared.steps(), request.phase, grid.phase);
    Ok(RanGrid {
        links,
        unit_tokens: units.tokens(prepared.trace(), prepared.steps(), request.phase),
        units,
        steps: request.serving.steps_text(prepared.trace(), request.chunk),
    })
}

/// What the steps of one setting (a policy, a scope, a capacity, a link) took by unit, in
/// picoseconds, and what the units are; no unit where its policy was left out.
pub(crate) fn unit_times(
    trace: &Trace,
    request: &Compare,
    phase: Phase,
    progress: &impl ReplayProgress,
) -> Result<(Vec<u64>, &'static str), ExperimentError> {
    let parts = Parts::of(trace, request)?;
    let prepared = Preparation::of(&parts, request)?;
    let units = Units::of(prepared.trace(), prepared.steps(), request.phase, phase);
    let ran = run_request(trace, request, phase, progress)?.into_iter().next();
    Ok((ran.map_or_else(Vec::new, |ran| ran.unit_ps), units.what))
}

/// Every policy at every size; what would take too much memory is left out.
fn run_request(
    trace: &Trace,
    request: &Compare,
    phase: Phase,
    progress: &impl ReplayProgress,
) -> Result<Vec<Ran>, ExperimentError> {
    let parts = Parts::of(trace, request)?;
    let prepared = Preparation::of(&parts, request)?;
    let units = Units::of(prepared.trace(), prepared.steps(), request.phase, phase);
    let cells: Vec<(usize, usize)> = (0..prepared.sizes().len())
        .flat_map(|size| (0..request.policies.len()).map(move |policy| (size, policy)))
        .filter(|&(size, policy)| !prepared.leaves_out(policy, size))
        .collect();
    let one = |&(size, policy): &(usize, usize)| {
        if progress.cancelled() {
            return Err(SimError::Interrupted.into());
        }
        let ran = run_cell(&prepared, (size, policy), phase, &units);
        trace.check_unchanged().map_err(SimError::from)?;
        progress.advance();
        ran
    };
    cells.par_iter().map(one).collect()
}

fn run_cell(
    prepared: &Preparation<'_>,
    (size, policy): (usize, usize),
    phase: Phase,
    units: &Units,
) -> Result<Ran, ExperimentError> {
    let request = prepared.request();
    let named = &request.policies[policy];
    let at = &prepared.sizes()[size];
    let setting = prepared.setting(&named.value, at);
    let timelines = prepared.timelines().into_iter().map(Timeline::with_steps).collect();
    let (counts, timelines) =
        replay_timed(prepared.trace(), prepared.steps(), prepared.futures(), &setting, timelines)?;
    let times = timelines.into_iter().next().map(|timeline| timeline.finish().0);
    let times = times.ok_or(ExperimentError::NoTimes)?;
    let bucket = counts.bucket(phase, Window::All);
    let spent = times.bucket(phase, Window::All);
    let prices = Prices::of(&request.links[0], prepared.shape(), &bucket, 0, Some(spent));
    let tokens = bucket.tokens.max(1);
    let bytes = bucket.moved_bytes(prepared.shape());
    Ok(Ran {
        policy: named.text.clone(),
        scope: at.scope,
        capacity: size / request.scopes.len(),
        slots: at.slots.total(),
        spent,
        mib_per_token: bytes as f64 / f64::from(1 << 20) / tokens as f64,
        time: prices.breakdown(tokens),
        open_loop: OpenLoop::of(prepared, phase, &bucket),
        unit_ps: units.sums(times.steps.iter().map(|step| step.ps)),
        bucket,
    })
}
