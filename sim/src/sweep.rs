//! Policies over many capacities: hit rate, bytes and time as curves, their knees, and LRU at
//! every capacity there is.

use std::ops::Range;
use std::path::{Path, PathBuf};

use hotset_cost_models::HbmModel;
use hotset_policies::Slots;
use hotset_traces::{Phase, Trace};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::compare::{self, Curves, Keeper, ReplayResult};
use crate::journal::{FORMAT, Journal, Work};
use crate::knee::knees;
use crate::parts::Parts;
use crate::prepare::Preparation;
use crate::report::Settings;
use crate::{
    Bucket, Compare, Compute, Knee, LruCurve, ReplayProgress, Report, Scope, SimError, Window,
};

/// What to sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Everything that [`crate::compare()`] takes; its capacities are the sizes of the sweep.
    pub compare: Compare,
    /// Also find the size from which no larger one saves so many ms a token for each GiB.
    pub knee_ms_per_gib: Option<f64>,
    /// Where finished replays are kept.
    pub journal: Option<PathBuf>,
}

/// A sweep's results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepReport {
    /// The rows, as a comparison has them.
    #[serde(flatten)]
    pub report: Report,
    /// The knees of each policy, scope, phase and link.
    pub knees: Vec<Knee>,
    /// LRU at every capacity, where it was asked for and is not changed by what the engine does
    /// beside evicting.
    pub lru_curves: Vec<LruPoints>,
}

/// LRU's misses at every capacity, of one scope and phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LruPoints {
    /// Scope of the slots.
    pub scope: Scope,
    /// Phase of the tokens counted.
    pub phase: Phase,
    /// Tokens counted.
    pub tokens: u64,
    /// Accesses counted.
    pub accesses: u64,
    /// Slots of the first entry of `misses`: with fewer, events overflow and only a replay tells.
    pub from_slots: u32,
    /// From one entry to the next: 1 in global scope, one slot in each layer in layer scope.
    pub step_slots: u32,
    /// Misses with `from_slots`, `from_slots + step_slots`, ... slots, up to all experts.
    pub misses: Vec<u64>,
}

/// Replays every policy at every size, in parallel over rayon's current pool; the result depends
/// neither on the number of threads nor on how often the run was killed and resumed.
///
/// # Errors
/// As [`crate::compare()`]; a journal that is of other work, damaged or cannot be written.
pub fn sweep(
    trace: &Trace,
    request: &Sweep,
    progress: &impl ReplayProgress,
) -> Result<SweepReport, SimError> {
    let (compare, left_out) = distinct_sizes(trace, &request.compare)?;
    let compare = &compare;
    let parts = Parts::of(trace, compare)?;
    let prepared = Preparation::of(&parts, compare)?;
    let curves = Curves::new(&prepared);
    let mut report = match &request.journal {
        None => compare::report(trace, &prepared, &curves, |_| Ok(()), progress)?,
        Some(path) => {
            let journal = |replays| journal(path, trace, &prepared, replays);
            compare::report(trace, &prepared, &curves, journal, progress)?
        }
    };
    report.warnings.extend(left_out);
    let all = curves.all(progress);
    if progress.cancelled() {
        return Err(SimError::Interrupted);
    }
    Ok(SweepReport {
        knees: knees(&report, request.knee_ms_per_gib),
        lru_curves: lru_points(trace, &report, &all),
        report,
    })
}

/// Replays a part of a sweep's replays, by their numbers, into its journal; gives how many there are in
/// all. Journals of one sweep's parts begin with the same line, and their other lines together, in
/// any order, are the journal of the whole: so many machines share a sweep.
///
/// # Errors
/// As [`sweep`]; a request without a journal.
pub fn sweep_part(
    trace: &Trace,
    request: &Sweep,
    part: Range<usize>,
    progress: &impl ReplayProgress,
) -> Result<usize, SimError> {
    let (compare, _) = distinct_sizes(trace, &request.compare)?;
    let parts = Parts::of(trace, &compare)?;
    let prepared = Preparation::of(&parts, &compare)?;
    let path = request.journal.as_deref().ok_or_else(|| SimError::Journal {
        path: PathBuf::new(),
        problem: "a part of a sweep is kept in a journal, and none was given".to_owned(),
    })?;
    let journal = |replays| journal(path, trace, &prepared, replays);
    compare::part(trace, &prepared, part, journal, progress)
}

fn journal(
    path: &Path,
    trace: &Trace,
    prepared: &Preparation<'_>,
    replays: usize,
) -> Result<Journal<ReplayResult>, SimError> {
    let fault =
        |e: serde_json::Error| SimError::Journal { path: path.to_owned(), problem: e.to_string() };
    let work = Work {
        journal: FORMAT.to_owned(),
        hotset: env!("CARGO_PKG_VERSION").to_owned(),
        trace: trace.content_digest().to_owned(),
        flags: digest(prepared).map_err(fault)?,
        replays,
    };
    let (layers, links) = (trace.shape().layers().len(), prepared.request().links.len());
    Journal::open(path, &work, |_, result: &ReplayResult| result.is_possible(layers, links))
}

/// The request with each size once, and without sizes that are less than a slot in some scope;
/// the latter come back as warnings.
fn distinct_sizes(trace: &Trace, request: &Compare) -> Result<(Compare, Vec<String>), SimError> {
    let shape = request.shape(trace);
    let (mut known, mut kept, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_error = None;
    for capacity in &request.capacities {
        let slots = |scope: &Scope| capacity.value.slots(&shape, *scope);
        match request.scopes.iter().map(slots).collect::<Result<Vec<_>, _>>() {
            Ok(slots) if known.contains(&slots) => {}
            Ok(slots) => {
                known.push(slots);
                kept.push(capacity.clone());
            }
            Err(error @ SimError::CapacityZero { .. }) => {
                left_out.push(format!("{error}: left out"));
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match first_error {
        Some(error) if kept.is_empty() => Err(error),
        _ => Ok((Compare { capacities: kept, ..request.clone() }, left_out)),
    }
}

impl Keeper for Journal<ReplayResult> {
    fn take(&self, replay: usize) -> Option<ReplayResult> {
        self.take(replay)
    }

    fn keep(&self, replay: usize, result: &ReplayResult) -> Result<(), SimError> {
        self.keep(replay, result)
    }
}

/// Everything beside the trace that a replay's result depends on, in a form that only a change of
/// its meaning changes.
#[derive(Serialize)]
struct Flags<'a> {
    settings: Settings,
    policy_memory: u64,
    chunk: u32,
    timed: bool,
    /// The links, as their files have them.
    links: Vec<Result<String, String>>,
    kernels: Option<HbmModel>,
    capacities: Vec<String>,
    uses: Option<&'a [u64]>,
}

/// 128 bits of XXH3 of the flags as JSON: it tells flags apart that a person changed.
fn digest(prepared: &Preparation<'_>) -> Result<String, serde_json::Error> {
    let request = prepared.request();
    let links = request.links.iter();
    let flags = Flags {
        settings: compare::settings(prepared),
        policy_memory: request.policy_memory,
        chunk: request.chunk,
        timed: prepared.is_timed(),
        links: links.map(|link| link.to_toml().map_err(|error| error.to_string())).collect(),
        kernels: match &request.time.compute {
            Compute::Memory { hbm, .. } => Some(hbm.clone()),
            Compute::None | Compute::PerToken(_) => None,
        },
        capacities: request.capacities.iter().map(|size| size.value.to_string()).collect(),
        uses: request.training.histogram.as_ref().map(|counted| &*counted.uses),
    };
    let json = serde_json::to_string(&flags)?;
    Ok(format!("{:032x}", xxh3_128(json.as_bytes())))
}

fn lru_points(trace: &Trace, report: &Report, curves: &[(Scope, LruCurve)]) -> Vec<LruPoints> {
    let mut phases: Vec<Phase> = Vec::new();
    for row in &report.rows {
        if !phases.contains(&row.phase) {
            phases.push(row.phase);
        }
    }
    let layers = trace.shape().layers();
    let experts: Vec<u32> = layers.iter().map(|layer| layer.experts).collect();
    let mut points = Vec::new();
    for &(scope, ref curve) in curves {
        let (least, most, step) = match scope {
            Scope::Global => (curve.exact_from(0), experts.iter().sum(), 1),
            _ => (
                (0..experts.len()).map(|layer| curve.exact_from(layer)).max().unwrap_or(1),
                experts.iter().min().copied().unwrap_or(0),
                experts.len() as u32,
            ),
        };
        let slots = |slots: u32| match scope {
            Scope::Global => Slots::Global(slots),
            _ => Slots::Layer(vec![slots; experts.len()]),
        };
        let from = LruPoints {
            scope,
            phase: Phase::Decode,
            tokens: 0,
            accesses: 0,
            from_slots: least * step,
            step_slots: step,
            misses: Vec::new(),
        };
        points.extend(points_of(curve, &from, &phases, (least..=most).map(slots)));
    }
    points
}

/// One curve's points in each phase, from `from` on. Counts are by layer, so those of one size are
/// let go before the next: all at once would be layers times experts.
fn points_of(
    curve: &LruCurve,
    from: &LruPoints,
    phases: &[Phase],
    sizes: impl Iterator<Item = Slots>,
) -> Vec<LruPoints> {
    let mut points: Vec<LruPoints> = Vec::new();
    for counts in sizes.filter_map(|slots| curve.counts(&slots)) {
        for &phase in phases {
            let Bucket { tokens, accesses, hits, .. } = counts.bucket(phase, Window::All);
            let misses = accesses - hits;
            match points.iter_mut().find(|of| of.phase == phase) {
                Some(of) => of.misses.push(misses),
                None if accesses > 0 => {
                    let misses = vec![misses];
                    points.push(LruPoints { phase, tokens, accesses, misses, ..from.clone() });
                }
                None => {}
            }
        }
    }
    points
}
