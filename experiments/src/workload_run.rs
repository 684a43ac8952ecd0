//! All arms under one workload: what both experiments run, whatever they ask of the result.

use hotset_sim::{ReplayProgress, SimError};
use hotset_traces::{Phase, Repeat, Shape, Trace, Workload};
use rayon::prelude::*;

use crate::compared::{Compared, with_references};
use crate::figures::Figures;
use crate::protocol::with_baseline;
use crate::report::row;
use crate::run::Runs;
use crate::run::{Ground, Outcome, run};
use crate::{Arm, Block, ExperimentError, Folds, LeftOut, Protocol, Repeats, Resamples};

/// What ran under one workload.
pub(crate) struct WorkloadRun {
    pub folds: Folds,
    pub block: Block,
    pub outcomes: Vec<Outcome>,
    pub units: Vec<usize>,
    pub draws: Resamples,
}

impl WorkloadRun {
    /// An arm against another, by place, over all runs.
    pub fn figures(&self, arm: usize, reference: usize) -> Figures<'_> {
        let (arm, reference) = (&self.outcomes[arm], &self.outcomes[reference]);
        Figures { arm, reference, units: &self.units, runs: Runs::All }
    }
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
        let arms = with_baseline(protocol.arms.clone())?;
        return Ok((with_references(arms, protocol), Vec::new()));
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
    Ok((with_references(with_baseline(able)?, protocol), left_out))
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
    let was_tested = |unit: &usize| lru.tallies(Runs::All)[*unit].tokens > 0;
    let units: Vec<usize> = (0..trace.sequences().len()).filter(was_tested).collect();
    let draws = Resamples::new(units.len(), protocol.resamples, protocol.seed)?;
    let rows = arms.par_iter().zip(&outcomes).map(|(arm, outcome)| {
        let figures = Figures { arm: outcome, reference: lru, units: &units, runs: Runs::All };
        row(protocol, shape, arm, &figures, &draws)
    });
    let compared = Compared { arms, outcomes: &outcomes, units: &units, draws: &draws };
    let block = Block {
        repetition_asked: workload.map(|workload| workload.repetition),
        repetition: folds.repetition(),
        tested_sequences: folds.tested(),
        repeats: Repeats {
            new: folds.count(Repeat::New),
            same_document: folds.count(Repeat::SameDocument),
            same_sequence: folds.count(Repeat::SameSequence),
        },
        rows: rows.collect(),
        comparisons: compared.all(protocol),
    };
    Ok(WorkloadRun { folds, block, outcomes, units, draws })
}
