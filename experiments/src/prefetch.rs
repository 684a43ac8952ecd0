//! The experiment `prefetch`: what each predictor knows, what it moves, what that costs over each
//! link, and how good it would have to be.

use std::time::Instant;

use hotset_sim::{
    Forecast, PhaseFilter, Prefetch, Quality, ReplayProgress, SimError, TraceSummary, score,
    trained,
};
use hotset_traces::{Shape, Trace};
use rayon::prelude::*;
use serde::Serialize;

use crate::break_even::{BreakEven, break_even};
use crate::compared::too_few_draws;
use crate::run::{Ground, steps};
use crate::verdict::{self, Verdict};
use crate::workload_run::{arms, run_workload, too_few, warnings};
use crate::{Arm, Block, ExperimentError, Folds, LeftOut, Protocol, ProtocolSummary};

/// Halvings of the search for the break-even: precision to within 1%.
const HALVINGS: u32 = 7;

/// Results of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrefetchReport {
    /// `hotset/1`.
    pub schema: &'static str,
    /// `prefetch`.
    pub experiment: &'static str,
    /// The trace.
    pub trace: TraceSummary,
    /// The flags.
    pub settings: ProtocolSummary,
    /// What each predictor knows, by distance.
    pub predictors: Vec<PredictorRow>,
    /// What each does to the cache, and what that costs.
    pub block: Block,
    /// How good a predictor must be, on each link.
    pub break_even: Vec<BreakEven>,
    /// Arms that this trace cannot run.
    pub left_out: Vec<LeftOut>,
    /// What follows from the intervals.
    pub verdicts: Vec<Verdict>,
    /// What a reader must know of the trace to read the rows right.
    pub warnings: Vec<String>,
}

/// What a predictor knows at one distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictorRow {
    /// The arm.
    pub arm: String,
    /// Counts.
    #[serde(flatten)]
    pub quality: Quality,
    /// right / guesses.
    pub precision: Option<f64>,
    /// right / wanted.
    pub recall: Option<f64>,
}

/// How long a predictor takes to learn and to guess.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictionCost {
    /// The arm.
    pub arm: String,
    /// Layers of tokens that were learnt from and predicted.
    pub events: u64,
    /// Nanoseconds an event, reading the trace included.
    pub ns_per_event: f64,
}

/// The predictors that are compared where no arm is named.
const PREDICTORS: [&str; 10] = [
    "ahead",
    "cross-layer",
    "cross-layer:order=2",
    "linear",
    "previous-token",
    "activation-map",
    "expert-map",
    "semantic",
    "popularity",
    "oracle",
];

/// Every predictor at each of the distances.
fn default_arms(lookaheads: &[u32]) -> Vec<String> {
    let at = |name: &str, lookahead: u32| match (lookahead, name.contains(':')) {
        (1, _) => format!("lru/{name}"),
        (_, true) => format!("lru/{name},lookahead={lookahead}"),
        (_, false) => format!("lru/{name}:lookahead={lookahead}"),
    };
    let arms = lookaheads.iter().flat_map(|&ahead| PREDICTORS.map(|name| at(name, ahead)));
    arms.collect()
}

/// Runs the experiment. `lookaheads`: the distances, in layers, at which the experiment's own arms
/// predict.
///
/// # Errors
/// A protocol that cannot be run; an arm that was named and that the trace cannot run.
pub fn prefetch(
    trace: &Trace,
    protocol: &Protocol,
    lookaheads: &[u32],
    progress: &impl ReplayProgress,
) -> Result<PrefetchReport, ExperimentError> {
    let shape = protocol.shape(trace)?;
    let (arms, left_out) = arms(trace, protocol, &default_arms(lookaheads))?;
    let of_arms: Vec<Option<u32>> = arms.iter().map(|arm| width(arm, &shape)).collect();
    let mut widths: Vec<u32> = of_arms.iter().copied().flatten().collect();
    // Each has a break-even of its own.
    widths.sort_unstable();
    widths.dedup();
    progress.begin((2 * arms.len() + protocol.links.len() * widths.len()) as u64);
    let ran = run_workload(trace, protocol, &shape, protocol.workload, &arms, progress)?;
    let folds = &ran.folds;
    let ground = Ground { protocol, shape: &shape, folds, sequences: trace.sequences().len() };
    let predictors: Vec<Vec<PredictorRow>> = arms
        .par_iter()
        .map(|arm| {
            let rows = quality(arm, folds)?;
            progress.advance();
            Ok(rows)
        })
        .collect::<Result<_, ExperimentError>>()?;
    let each: Vec<_> = protocol
        .links
        .iter()
        .flat_map(|link| widths.iter().map(move |&width| (link, width)))
        .collect();
    let break_even: Vec<BreakEven> = each
        .into_par_iter()
        .map(|(link, width)| {
            if progress.cancelled() {
                return Err(SimError::Interrupted.into());
            }
            let found = break_even(&ground, link, width, HALVINGS)?;
            progress.advance();
            Ok(found)
        })
        .collect::<Result<_, ExperimentError>>()?;
    let mut verdicts = pays(&ran.block, &of_arms, &break_even);
    let mut warnings = warnings(trace, &arms);
    warnings.extend(too_few(ran.units.len()));
    warnings.extend(too_few_draws(arms.len(), protocol.resamples));
    verdicts.extend(verdict::against_references(&ran.block));
    verdicts.extend(verdict::over_links(&ran.block));
    Ok(PrefetchReport {
        schema: hotset_sim::SCHEMA,
        experiment: "prefetch",
        trace: TraceSummary::of(trace),
        settings: protocol.summary(&shape)?,
        predictors: predictors.into_iter().flatten().collect(),
        block: ran.block,
        break_even,
        left_out,
        verdicts,
        warnings,
    })
}

/// Guesses of a token and layer; `None` where nothing is prefetched.
fn width(arm: &Arm, shape: &Shape) -> Option<u32> {
    match &arm.prefetch {
        Prefetch::By(forecast) if forecast.control.width > 0 => Some(forecast.control.width),
        Prefetch::By(_) => shape.layers().iter().map(|layer| layer.top_k).min(),
        Prefetch::None => None,
    }
}

/// Precision and recall over all folds, by distance.
fn quality(arm: &Arm, folds: &Folds) -> Result<Vec<PredictorRow>, ExperimentError> {
    let Prefetch::By(forecast) = &arm.prefetch else { return Ok(Vec::new()) };
    let mut sums: Vec<Quality> = Vec::new();
    for fold in &folds.folds {
        for (index, more) in judged(forecast, fold)?.into_iter().enumerate() {
            match sums.get_mut(index) {
                None => sums.push(more),
                Some(sum) => {
                    sum.events += more.events;
                    sum.guesses += more.guesses;
                    sum.right += more.right;
                    sum.wanted += more.wanted;
                }
            }
        }
    }
    let row = |quality: Quality| PredictorRow {
        arm: arm.name.clone(),
        precision: quality.precision(),
        recall: quality.recall(),
        quality,
    };
    Ok(sums.into_iter().map(row).collect())
}

/// A predictor trained on a fold's training part and asked over its tested part.
fn judged(forecast: &Forecast, fold: &crate::Fold) -> Result<Vec<Quality>, ExperimentError> {
    let phase = PhaseFilter::Decode;
    let predictor = trained(forecast, &fold.training, &steps(&fold.training)?, phase)?;
    Ok(score(&fold.tested, &steps(&fold.tested)?, phase, forecast, predictor.as_ref())?)
}

/// Times each predictor over the first fold, one after another on one thread. The result depends
/// on the machine and on what else it does.
///
/// # Errors
/// Those of [`prefetch`].
pub fn prediction_costs(
    trace: &Trace,
    protocol: &Protocol,
    lookaheads: &[u32],
) -> Result<Vec<PredictionCost>, ExperimentError> {
    let (arms, _) = arms(trace, protocol, &default_arms(lookaheads))?;
    let folds = Folds::of(trace, protocol.parts, protocol.workload.as_ref())?;
    let mut costs = Vec::new();
    for arm in &arms {
        let (Prefetch::By(forecast), Some(fold)) = (&arm.prefetch, folds.folds.first()) else {
            continue;
        };
        // Where it is trained it has learnt; what is timed goes on learning as it guesses.
        let phase = PhaseFilter::Decode;
        let predictor = trained(forecast, &fold.training, &steps(&fold.training)?, phase)?;
        let steps = steps(&fold.tested)?;
        let begun = Instant::now();
        let scored = score(&fold.tested, &steps, phase, forecast, predictor.as_ref())?;
        let events = scored.iter().map(|quality| quality.events).sum::<u64>();
        let ns = begun.elapsed().as_nanos() as f64;
        costs.push(PredictionCost {
            arm: arm.name.clone(),
            events,
            ns_per_event: ns / events.max(1) as f64,
        });
    }
    Ok(costs)
}

/// Whether each predictor pays over each link, beside what the break-even of its width says of its
/// precision.
fn pays(block: &Block, widths: &[Option<u32>], break_even: &[BreakEven]) -> Vec<Verdict> {
    let predictors = block.rows.iter().zip(widths).filter(|(row, _)| row.prefetches > 0);
    let mut verdicts = Vec::new();
    for (row, width) in predictors {
        for (index, link) in row.links.iter().enumerate() {
            let saved = crate::Interval {
                estimate: -link.timeline_change_ms.estimate,
                low: -link.timeline_change_ms.high,
                high: -link.timeline_change_ms.low,
            };
            let precision = row.prefetches_used as f64 / row.prefetches as f64;
            let needed = break_even
                .iter()
                .find(|needed| needed.link == link.link && Some(needed.width) == *width);
            let needed = match needed {
                Some(BreakEven { replayed: Some(needed), .. }) => {
                    format!(
                        "; {:.0}% of its copies are used, {:.0}% break even",
                        precision * 100.0,
                        needed * 100.0
                    )
                }
                Some(BreakEven { always: Some(true), .. }) => {
                    "; an oracle that is right in 1% of its guesses would pay".to_owned()
                }
                Some(BreakEven { always: Some(false), .. }) => {
                    "; not even a perfect oracle would pay".to_owned()
                }
                _ => String::new(),
            };
            verdicts.push(Verdict {
                question: format!("does {} pay over {}?", row.arm, link.link),
                answer: verdict::is_faster(block, &row.arm, index),
                because: format!(
                    "saves {:+.3} ms a token {}{needed}",
                    saved.estimate,
                    verdict::ends(&saved, 1.0, 3)
                ),
            });
        }
    }
    verdicts
}
