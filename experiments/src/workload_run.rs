//! All arms under one workload: what both experiments run, whatever they ask of the result.

use hotset_sim::{ReplayProgress, SimError};
use hotset_traces::{Phase, Shape, Trace, Workload};
use rayon::prelude::*;

use crate::protocol::with_baseline;
use crate::report::{Figures, row};
use crate::run::{Ground, Outcome, run};
use crate::{Arm, Block, ExperimentError, Folds, LeftOut, Protocol, Resamples};

/// What ran under one workload.
pub(crate) struct WorkloadRun {
    pub folds: Folds,
    pub block: Block,
    pub outcomes: Vec<Outcome>,
    pub units: Vec<usize>,
    pub draws: Resamples,
}

/// Few sequences have no interval.
pub(crate) fn too_few(units: usize) -> Option<String> {
    (units < Resamples::FEWEST).then(|| {
        format!(
            "{units} different sequences were tested: intervals need at least {}, so every verdict \
             is open",
            Resamples::FEWEST
        )
    })
}

/// What arms say that this trace cannot.
pub(crate) fn warnings(trace: &Trace, arms: &[Arm]) -> Vec<String> {
    let mut warnings = Vec::new();
    let prompts = trace.phases().contains(&(Phase::Prefill as u8));
    let by_routes: Vec<&str> =
        arms.iter().filter(|arm| arm.reads_prompt_routes()).map(|arm| arm.name.as_str()).collect();
    if !prompts && !by_routes.is_empty() {
        warnings.push(format!(
            "the prompts' routes are not recorded: {} go by the first tokens of the answer \
             (32, or after=N) instead",
            by_routes.join(", ")
        ));
    }
    let loops = trace.sequences().iter().filter(|s| s.has_repetition == Some(true)).count();
    if loops > 0 {
        warnings.push(format!(
            "{loops} of {} sequences fell into a loop while generating, which inflates hit rates",
            trace.sequences().len()
        ));
    }
    warnings
}

/// The arms of a protocol behind the baseline, and those of its own choice that the trace cannot run.
pub(crate) fn arms(
    trace: &Trace,
    protocol: &Protocol,
    defaults: &[String],
) -> Result<(Vec<Arm>, Vec<LeftOut>), ExperimentError> {
    if !protocol.arms.is_empty() {
        return Ok((with_baseline(protocol.arms.clone())?, Vec::new()));
    }
    let (mut able, mut left_out) = (Vec::new(), Vec::new());
    for text in defaults {
        let arm: Arm = text.parse()?;
        match hotset_sim::check_needs(trace, &arm.policy, &arm.prefetch) {
            Ok(()) => able.push(arm),
            Err(
                lacks @ (SimError::MissingColumn { .. }
                | SimError::Lookahead { .. }
                | SimError::LookaheadPastEnd { .. }
                | SimError::OneLayer),
            ) => {
                left_out.push(LeftOut { arm: arm.name, reason: lacks.to_string() });
            }
            Err(other) => return Err(other.into()),
        }
    }
    Ok((with_baseline(able)?, left_out))
}

/// Runs all arms under one workload.
pub(crate) fn run_workload(
    trace: &Trace,
    protocol: &Protocol,
    shape: &Shape,
    workload: Option<Workload>,
    arms: &[Arm],
    progress: &impl ReplayProgress,
) -> Result<WorkloadRun, ExperimentError> {
    let folds = Folds::of(trace, protocol.parts, workload.as_ref())?;
    let ground = Ground { protocol, shape, folds: &folds, sequences: trace.sequences().len() };
    let outcomes: Vec<Outcome> = arms
        .par_iter()
        .map(|arm| {
            if progress.cancelled() {
                return Err(SimError::Interrupted.into());
            }
            let outcome = run(&ground, arm)?;
            progress.advance();
            Ok(outcome)
        })
        .collect::<Result<_, ExperimentError>>()?;
    let lru = &outcomes[0];
    let was_tested = |unit: &usize| lru.tallies[*unit].tokens > 0;
    let units: Vec<usize> = (0..trace.sequences().len()).filter(was_tested).collect();
    let draws = Resamples::new(units.len(), protocol.resamples, protocol.seed)?;
    let rows = arms.par_iter().zip(&outcomes).map(|(arm, outcome)| {
        row(protocol, shape, arm, &Figures { arm: outcome, lru, units: &units }, &draws)
    });
    let block = Block {
        repetition_asked: workload.map(|workload| workload.repetition),
        repetition: folds.repetition(),
        tested_sequences: folds.tested(),
        rows: rows.collect(),
    };
    Ok(WorkloadRun { folds, block, outcomes, units, draws })
}
