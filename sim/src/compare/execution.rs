//! Runs the jobs of a comparison, in parallel over rayon's current pool.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

use hotset_policies::PolicySpec;
use hotset_traces::Trace;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::jobs::Job;
use crate::drive::Way;
use crate::prepare::Preparation;
use crate::replay::replay_watched;
use crate::sequences::take_step_times;
use crate::size::Size;
use crate::{
    Counts, LruCurve, Prefetch, Prefill, ReplayProgress, Scope, Semantics, Serving, SimError,
    Timeline, Times,
};

/// What a replay gave: counts, and the times over each link where there are timelines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReplayResult {
    pub counts: Counts,
    pub times: Vec<Times>,
}

impl ReplayResult {
    /// Whether a replay over so many layers and links can have given it.
    pub fn is_possible(&self, layers: usize, links: usize) -> bool {
        self.counts.are_possible(layers, links)
            && (self.times.is_empty() || self.times.len() == links)
            && self.times.iter().all(|times| times.are_possible(layers))
    }

    fn counted(counts: Counts) -> Self {
        Self { counts, times: Vec::new() }
    }

    fn timed(counts: Counts, timelines: Vec<Timeline>) -> Self {
        let times = timelines.into_iter().map(|timeline| timeline.finish().0).collect();
        Self { counts, times }
    }
}

/// Keeps finished replays.
pub(crate) trait Keeper: Sync {
    /// The result of a replay that was finished before.
    fn take(&self, replay: usize) -> Option<ReplayResult>;
    /// A replay is finished.
    fn keep(&self, replay: usize, result: &ReplayResult) -> Result<(), SimError>;
}

impl Keeper for () {
    fn take(&self, _: usize) -> Option<ReplayResult> {
        None
    }
    fn keep(&self, _: usize, _: &ReplayResult) -> Result<(), SimError> {
        Ok(())
    }
}

/// What jobs are run with.
pub(super) struct Run<'r, K, W> {
    /// The whole trace, as it was opened.
    pub trace: &'r Trace,
    pub prepared: &'r Preparation<'r>,
    pub curves: &'r Curves<'r>,
    pub keeper: &'r K,
    pub progress: &'r W,
}

/// Runs the jobs of a part of the list; the results are in their order, whatever the number of
/// threads.
pub(super) fn run_part<K: Keeper, W: ReplayProgress>(
    jobs: &[Job],
    part: Range<usize>,
    run: &Run<'_, K, W>,
) -> Result<Vec<ReplayResult>, SimError> {
    let Run { trace, prepared, curves, keeper, progress } = run;
    let first = part.start;
    let run = |(place, job): (usize, &Job)| {
        let index = first + place;
        if progress.cancelled() {
            return Err(SimError::Interrupted);
        }
        if let Some(result) = keeper.take(index) {
            progress.skip();
            return Ok(result);
        }
        let result = unless_changed(trace, || run_one(*job, prepared, curves, *progress))?;
        keeper.keep(index, &result)?;
        progress.advance();
        Ok(result)
    };
    jobs[part].par_iter().enumerate().map(run).collect()
}

/// The result of `work` over a trace that is still what it was. Ids that somebody writes into a
/// mapped file are not checked again and may end the work in a panic.
fn unless_changed<T>(
    trace: &Trace,
    work: impl FnOnce() -> Result<T, SimError>,
) -> Result<T, SimError> {
    if !trace.is_mapped() {
        return work();
    }
    let worked = catch_unwind(AssertUnwindSafe(work));
    trace.check_unchanged()?;
    worked.unwrap_or_else(|panic| resume_unwind(panic))
}

fn run_one(
    job: Job,
    prepared: &Preparation<'_>,
    curves: &Curves<'_>,
    progress: &dyn ReplayProgress,
) -> Result<ReplayResult, SimError> {
    let (policy, size, timelines) = match job {
        Job::Bound { size } => (&PolicySpec::Belady, &prepared.sizes()[size], Vec::new()),
        Job::Bypass { size } => (&PolicySpec::BeladyBypass, &prepared.sizes()[size], Vec::new()),
        Job::Policy { policy, size } => {
            let (policy, size) =
                (&prepared.request().policies[policy].value, &prepared.sizes()[size]);
            if !prepared.is_timed()
                && prepared.sequence_prices().is_none()
                && let Some(counts) = curves.counts(policy, size, progress)
            {
                return Ok(ReplayResult::counted(counts));
            }
            (policy, size, prepared.timelines())
        }
    };
    let setting = prepared.setting(policy, size);
    let (trace, steps) = (prepared.trace(), prepared.steps());
    let way = &Way { steps, progress, sequences: prepared.sequence_prices() };
    if way.sequences.is_none() {
        let (counts, timelines) =
            replay_watched(trace, way, prepared.futures(), &setting, timelines)?;
        return Ok(ReplayResult::timed(counts, timelines));
    }
    let timelines = timelines.into_iter().map(Timeline::with_steps).collect();
    let (counts, timelines) = replay_watched(trace, way, prepared.futures(), &setting, timelines)?;
    let mut result = ReplayResult::timed(counts, timelines);
    take_step_times(&mut result.counts, (trace, steps), setting.phase, &mut result.times);
    Ok(result)
}

/// LRU's curves, each made when it is first asked for.
pub(crate) struct Curves<'a> {
    prepared: &'a Preparation<'a>,
    /// LRU is asked for, and the engine does nothing beside evicting that changes its counts.
    applies: bool,
    /// So many replays cost more than a curve.
    pays: bool,
    global: OnceLock<Option<LruCurve>>,
    layer: OnceLock<Option<LruCurve>>,
}

impl<'a> Curves<'a> {
    pub fn new(prepared: &'a Preparation<'a>) -> Self {
        let request = prepared.request();
        let Serving { prefetch, misses, prefill, host, schedule, composition: _ } =
            &request.serving;
        let plain = *prefetch == Prefetch::None
            && misses.fetches_all()
            && host.is_none()
            && *prefill == Prefill::OnDemand
            && schedule.is_empty();
        let replays = match request.semantics {
            Semantics::Event => 12,
            Semantics::Sequential => 6,
        };
        Self {
            prepared,
            applies: plain && request.policies.iter().any(|policy| is_lru(&policy.value)),
            pays: request.capacities.len() >= replays,
            global: OnceLock::new(),
            layer: OnceLock::new(),
        }
    }

    /// `None` where it would take more memory than is allowed, or was stopped; replays count the same.
    fn of(&self, scope: Scope, progress: &dyn ReplayProgress) -> Option<&LruCurve> {
        let bytes = LruCurve::memory(self.prepared.trace().shape(), scope);
        if bytes > self.prepared.request().policy_memory {
            return None;
        }
        let cell = if scope == Scope::Global { &self.global } else { &self.layer };
        let (trace, steps) = (self.prepared.trace(), self.prepared.steps());
        let setting = self.prepared.request().curve(scope);
        cell.get_or_init(|| LruCurve::until(trace, (steps, progress), &setting).ok()).as_ref()
    }

    /// What a replay of `policy` would count, where a curve tells and is worth its while.
    fn counts(
        &self,
        policy: &PolicySpec,
        size: &Size,
        progress: &dyn ReplayProgress,
    ) -> Option<Counts> {
        let told = self.applies && self.pays && is_lru(policy) && size.scope != Scope::Adaptive;
        told.then(|| self.of(size.scope, progress)?.counts(&size.slots)).flatten()
    }

    /// The curves of the request's scopes; none where none apply.
    pub fn all(&self, progress: &dyn ReplayProgress) -> Vec<(Scope, LruCurve)> {
        let scopes = self.prepared.request().scopes.iter();
        let scopes = scopes.filter(|scope| self.applies && **scope != Scope::Adaptive);
        scopes.filter_map(|&scope| Some((scope, self.of(scope, progress)?.clone()))).collect()
    }
}

fn is_lru(policy: &PolicySpec) -> bool {
    matches!(policy, PolicySpec::Lru(_))
}
