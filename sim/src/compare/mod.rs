//! The main job: policies x scopes x capacities over one trace, each priced on every link.
//!
//! Along the data's way: a [`Compare`] is prepared, its jobs are listed and run, their results
//! become rows, and what a reader must know of these becomes warnings.

mod bounds;
mod execution;
mod jobs;
mod rows;
mod several;
mod warnings;

use std::ops::Range;

use hotset_policies::PolicySpec;
use hotset_traces::Trace;

use self::bounds::Bounds;
use self::execution::Run;
use self::jobs::Jobs;
use crate::memory::{self, policy_bytes};
use crate::parts::Parts;
use crate::prepare::Preparation;
use crate::report::{Report, SCHEMA, Settings, TraceSummary};
use crate::request::Compare;
use crate::{Compute, ReplayProgress, SimError};

pub use self::several::compare_misses;

pub(crate) use self::execution::{Curves, Keeper, ReplayResult};

/// Replays every combination, in parallel over rayon's current pool; the result does not depend on
/// the number of threads.
///
/// # Errors
/// An impossible capacity, a phase that the trace does not have, a column that a policy lacks.
pub fn compare(
    trace: &Trace,
    request: &Compare,
    progress: &impl ReplayProgress,
) -> Result<Report, SimError> {
    let parts = Parts::of(trace, request)?;
    let prepared = Preparation::of(&parts, request)?;
    report(trace, &prepared, &Curves::new(&prepared), |_| Ok(()), progress)
}

/// [`compare()`] of a request that is prepared, with a keeper, made for a number of replays.
pub(crate) fn report<K: Keeper>(
    trace: &Trace,
    prepared: &Preparation<'_>,
    curves: &Curves<'_>,
    keeper: impl FnOnce(usize) -> Result<K, SimError>,
    progress: &impl ReplayProgress,
) -> Result<Report, SimError> {
    let jobs = jobs(trace, prepared, progress)?;
    let all = 0..jobs.list.len();
    progress.begin(all.len() as u64);
    let keeper = keeper(all.len())?;
    let run = Run { trace, prepared, curves, keeper: &keeper, progress };
    let results = execution::run_part(&jobs.list, all, &run)?;
    let rows = rows::rows(prepared, &jobs.cells, &results)?;
    Ok(Report {
        schema: SCHEMA,
        trace: TraceSummary::of(prepared.parts().whole(trace)),
        settings: settings(prepared),
        warnings: warnings::warnings(prepared, &rows),
        rows,
    })
}

/// Replays a part of what [`report()`] replays, for its keeper alone; gives how many there are in all.
pub(crate) fn part<K: Keeper>(
    trace: &Trace,
    prepared: &Preparation<'_>,
    part: Range<usize>,
    keeper: impl FnOnce(usize) -> Result<K, SimError>,
    progress: &impl ReplayProgress,
) -> Result<usize, SimError> {
    let jobs = jobs(trace, prepared, progress)?;
    let all = jobs.list.len();
    let part = part.start.min(all)..part.end.clamp(part.start.min(all), all);
    progress.begin(part.len() as u64);
    let (curves, keeper) = (&Curves::new(prepared), &keeper(all)?);
    let run = Run { trace, prepared, curves, keeper, progress };
    execution::run_part(&jobs.list, part, &run)?;
    Ok(all)
}

/// The replays of a request.
fn jobs(
    trace: &Trace,
    prepared: &Preparation<'_>,
    progress: &impl ReplayProgress,
) -> Result<Jobs, SimError> {
    // Its digests stand in the report, and in a journal they decide what is gone on with.
    trace.check_digests()?;
    let request = prepared.request();
    for size in prepared.sizes() {
        for bound in [PolicySpec::Belady, PolicySpec::BeladyBypass] {
            let bytes = policy_bytes(&bound, &size.slots, prepared.shape());
            let name = format!("the bound, {},", bound.info().name);
            memory::check(&name, bytes, request.policy_memory)?;
        }
    }
    let refused = |policy, size| {
        prepared.refused().iter().any(|refused| (refused.policy, refused.size) == (policy, size))
    };
    let (sizes, timed) = (prepared.sizes().len(), prepared.is_timed());
    let jobs = Jobs::of(&request.policies, sizes, timed, refused);
    let bounds = Bounds::of(prepared, progress)?;
    Ok(jobs.with_bypass(|policy, size| bounds.is_bypass(policy, size)))
}

/// What made a result, for its reader.
pub(crate) fn settings(prepared: &Preparation<'_>) -> Settings {
    let request = prepared.request();
    let histogram = request.training.histogram.as_ref();
    Settings {
        hotset: env!("CARGO_PKG_VERSION"),
        policies: request.policies.iter().map(|policy| policy.text.clone()).collect(),
        scopes: request.scopes.clone(),
        capacities: request.capacities.iter().map(|size| size.text.clone()).collect(),
        links: request.links.iter().map(|link| link.name.clone()).collect(),
        phase: request.phase,
        semantics: request.semantics,
        warmup_tokens: request.warmup,
        steps: request.serving.steps_text(prepared.trace(), request.chunk),
        expert_bytes: prepared.shape().layers().iter().map(|layer| layer.expert_bytes).collect(),
        compute_ms_per_token: match request.time.compute {
            Compute::PerToken(token) => Some(token.as_ms_f64()),
            Compute::None | Compute::Memory { .. } => None,
        },
        dense_bytes_per_layer: match request.time.compute {
            Compute::Memory { dense_bytes, .. } => Some(dense_bytes),
            Compute::None | Compute::PerToken(_) => None,
        },
        serving: request.serving.clone(),
        misses: Vec::new(),
        copies: request.time.copies,
        wait: request.time.wait,
        contention: request.time.contention,
        host_threads: request.time.host_threads,
        disk: request.time.disk.as_ref().map(|disk| disk.name.clone()),
        machine: request.machine.clone(),
        histogram: histogram.map(|counted| counted.source.clone()),
        seed: request.seed,
        shuffle: request.training.shuffle,
        sample: prepared.parts().sample().cloned(),
        split: prepared.parts().split().cloned(),
    }
}
