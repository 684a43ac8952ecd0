//! The experiment `semantic`: does a cache keyed on the meaning of the conversation beat recency,
//! and what does each way cost over each link?

use hotset_sim::{Progress, SimError, TraceSummary};
use hotset_traces::{Phase, Shape, Trace, Workload};
use rayon::prelude::*;
use serde::Serialize;

use crate::plan::with_baseline;
use crate::report::{Figures, row};
use crate::run::{Outcome, run};
use crate::verdict::{self, Verdict};
use crate::{Arm, Block, ExperimentError, Folds, LeftOut, Plan, PlanSummary, Resamples};

/// Results of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SemanticReport {
    /// `hotset/1`.
    pub schema: &'static str,
    /// `semantic`.
    pub experiment: &'static str,
    /// The trace.
    pub trace: TraceSummary,
    /// The flags.
    pub settings: PlanSummary,
    /// One a share of repetition.
    pub blocks: Vec<Block>,
    /// Arms that this trace cannot run.
    pub left_out: Vec<LeftOut>,
    /// What follows from the intervals.
    pub verdicts: Vec<Verdict>,
    /// What a reader must know of the trace to read the rows right.
    pub warnings: Vec<String>,
}

/// The arms that are compared where none are named: protection, prefetch and both by meaning,
/// controls and ceiling, and what the article compares with.
fn default_arms(has_embeddings: bool) -> Vec<String> {
    let mut arms = vec!["semantic", "semantic:by=out", "semantic:from=clusters"];
    if !has_embeddings {
        arms.extend(["semantic:by=routes", "semantic:from=clusters,by=routes"]);
    }
    arms.extend([
        "semantic:from=mean",
        "semantic:from=shuffled",
        "semantic:from=prompt",
        "semantic:from=own",
    ]);
    arms.extend(match has_embeddings {
        true => ["lru/semantic", "semantic/semantic"],
        false => ["lru/semantic:by=routes", "semantic:by=routes/semantic:by=routes"],
    });
    arms.extend(["finemoe/expert-map", "lru/cross-layer", "lru/ahead", "belady"]);
    arms.into_iter().map(str::to_owned).collect()
}

/// What ran under one workload.
pub(crate) struct Ran {
    pub folds: Folds,
    pub block: Block,
    pub outcomes: Vec<Outcome>,
    pub units: Vec<usize>,
    pub draws: Resamples,
}

/// Runs the experiment: `repetitions` shares of repeats, each a block (none: the sequences run as
/// they lie, or as the plan's workload says).
///
/// # Errors
/// A plan that cannot be run; an arm that was named and that the trace cannot run.
pub fn semantic(
    trace: &Trace,
    plan: &Plan,
    repetitions: &[f64],
    progress: &impl Progress,
) -> Result<SemanticReport, ExperimentError> {
    let shape = plan.shape(trace)?;
    let (arms, left_out) = arms(trace, plan, &default_arms(trace.embeddings().is_some()))?;
    for (index, share) in repetitions.iter().enumerate() {
        if repetitions[..index].contains(share) {
            let name = format!("{}%", share * 100.0);
            return Err(ExperimentError::Twice { what: "repetition share", name });
        }
    }
    let workloads: Vec<Option<Workload>> = match repetitions {
        [] => vec![plan.workload],
        shares => shares
            .iter()
            .map(|&repetition| Some(Workload { repetition, ..plan.workload.unwrap_or_default() }))
            .collect(),
    };
    progress.begin((workloads.len() * arms.len()) as u64);
    let mut ran = Vec::new();
    for workload in workloads {
        ran.push(block(trace, plan, &shape, workload, &arms, progress)?);
    }
    let verdicts = verdict::of_semantic(&ran);
    let mut warnings = warnings(trace, &arms);
    warnings.extend(ran.iter().find_map(|ran| too_few(ran.units.len())));
    Ok(SemanticReport {
        schema: hotset_sim::SCHEMA,
        experiment: "semantic",
        trace: TraceSummary::of(trace),
        settings: plan.summary(&shape)?,
        blocks: ran.into_iter().map(|ran| ran.block).collect(),
        left_out,
        verdicts,
        warnings,
    })
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

/// The arms of a plan behind the baseline, and those of its own choice that the trace cannot run.
pub(crate) fn arms(
    trace: &Trace,
    plan: &Plan,
    defaults: &[String],
) -> Result<(Vec<Arm>, Vec<LeftOut>), ExperimentError> {
    if !plan.arms.is_empty() {
        return Ok((with_baseline(plan.arms.clone())?, Vec::new()));
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
pub(crate) fn block(
    trace: &Trace,
    plan: &Plan,
    shape: &Shape,
    workload: Option<Workload>,
    arms: &[Arm],
    progress: &impl Progress,
) -> Result<Ran, ExperimentError> {
    let folds = Folds::of(trace, plan.parts, workload.as_ref())?;
    let outcomes: Vec<Outcome> = arms
        .par_iter()
        .map(|arm| {
            if progress.cancelled() {
                return Err(SimError::Interrupted.into());
            }
            let outcome = run(plan, shape, &folds, trace.sequences().len(), arm)?;
            progress.advance();
            Ok(outcome)
        })
        .collect::<Result<_, ExperimentError>>()?;
    let lru = &outcomes[0];
    let ran = |unit: &usize| lru.tallies[*unit].tokens > 0;
    let units: Vec<usize> = (0..trace.sequences().len()).filter(ran).collect();
    let draws = Resamples::new(units.len(), plan.resamples, plan.seed)?;
    let rows = arms.par_iter().zip(&outcomes).map(|(arm, outcome)| {
        row(plan, shape, arm, &Figures { arm: outcome, lru, units: &units }, &draws)
    });
    let block = Block {
        repetition_asked: workload.map(|workload| workload.repetition),
        repetition: folds.repetition(),
        tested_sequences: folds.tested(),
        rows: rows.collect(),
    };
    Ok(Ran { folds, block, outcomes, units, draws })
}
