//! Policies over many capacities: hit rate, bytes and time as curves, their knees, and LRU at
//! every capacity there is.

use std::path::PathBuf;

use hotset_policies::Slots;
use hotset_traces::{Phase, Trace};
use serde::Serialize;

use crate::compare::{self, Curves, Keeper, ReplayResult};
use crate::journal::{FORMAT, Journal, Work};
use crate::knee::knees;
use crate::parts::Parts;
use crate::prepare::Preparation;
use crate::{Compare, Knee, LruCurve, ReplayProgress, Report, Scope, SimError, Window};

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
            let journal = |replays| {
                let work = Work {
                    journal: FORMAT.to_owned(),
                    hotset: env!("CARGO_PKG_VERSION").to_owned(),
                    trace: trace.content_digest().to_owned(),
                    flags: digest(&format!("{compare:?}")),
                    replays,
                };
                Journal::<ReplayResult>::open(path, &work)
            };
            compare::report(trace, &prepared, &curves, journal, progress)?
        }
    };
    report.warnings.extend(left_out);
    Ok(SweepReport {
        knees: knees(&report, request.knee_ms_per_gib),
        lru_curves: lru_points(trace, &report, &curves.all()),
        report,
    })
}

/// The request with each size once, and without sizes that are less than a slot in some scope;
/// the latter come back as warnings.
fn distinct_sizes(trace: &Trace, request: &Compare) -> Result<(Compare, Vec<String>), SimError> {
    let shape = request.shape(trace);
    let (mut known, mut kept, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_error = None;
    for (text, capacity) in &request.capacities {
        let slots = |scope: &Scope| capacity.slots(&shape, *scope);
        match request.scopes.iter().map(slots).collect::<Result<Vec<_>, _>>() {
            Ok(slots) if known.contains(&slots) => {}
            Ok(slots) => {
                known.push(slots);
                kept.push((text.clone(), *capacity));
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

/// 64 bits of FNV-1a: it tells flags apart that a person changed.
fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
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
        let counts: Vec<_> = (least..=most).filter_map(|n| curve.counts(&slots(n))).collect();
        for &phase in &phases {
            let buckets: Vec<_> =
                counts.iter().map(|counts| counts.bucket(phase, Window::All)).collect();
            if let Some(first) = buckets.first().filter(|bucket| bucket.accesses > 0) {
                points.push(LruPoints {
                    scope,
                    phase,
                    tokens: first.tokens,
                    accesses: first.accesses,
                    from_slots: least * step,
                    step_slots: step,
                    misses: buckets.iter().map(|bucket| bucket.misses()).collect(),
                });
            }
        }
    }
    points
}
