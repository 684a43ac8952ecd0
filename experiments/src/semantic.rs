//! The experiment `semantic`: does a cache keyed on the meaning of the conversation beat recency,
//! and what does each way cost over each link?

use hotset_sim::{ReplayProgress, TraceSummary};
use hotset_traces::{Trace, Workload};
use serde::Serialize;

use crate::compared::too_few_draws;
use crate::verdict::{self, Verdict};
use crate::workload_run::{arms, run_workload, too_few, warnings};
use crate::{Block, ExperimentError, LeftOut, Protocol, ProtocolSummary};

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
    pub settings: ProtocolSummary,
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

/// Runs the experiment: `repetitions` shares of repeats, each a block (none: the sequences run as
/// they lie, or as the protocol's workload says).
///
/// # Errors
/// A protocol that cannot be run; an arm that was named and that the trace cannot run.
pub fn semantic(
    trace: &Trace,
    protocol: &Protocol,
    repetitions: &[f64],
    progress: &impl ReplayProgress,
) -> Result<SemanticReport, ExperimentError> {
    let shape = protocol.shape(trace)?;
    let (arms, left_out) = arms(trace, protocol, &default_arms(trace.embeddings().is_some()))?;
    for (index, share) in repetitions.iter().enumerate() {
        if repetitions[..index].contains(share) {
            let name = format!("{}%", share * 100.0);
            return Err(ExperimentError::Twice { what: "repetition share", name });
        }
    }
    let workloads: Vec<Option<Workload>> = match repetitions {
        [] => vec![protocol.workload],
        shares => shares
            .iter()
            .map(|&repetition| {
                let as_they_come = Workload { seed: protocol.seed, ..Workload::default() };
                Some(Workload { repetition, ..protocol.workload.unwrap_or(as_they_come) })
            })
            .collect(),
    };
    progress.begin((workloads.len() * arms.len()) as u64);
    let mut runs = Vec::new();
    for workload in workloads {
        runs.push(run_workload(trace, protocol, &shape, workload, &arms, progress)?);
    }
    let verdicts = verdict::of_semantic(&runs);
    let mut warnings = warnings(trace, &arms);
    warnings.extend(runs.iter().find_map(|run| too_few(run.units.len())));
    warnings.extend(too_few_draws(arms.len(), protocol.resamples));
    Ok(SemanticReport {
        schema: hotset_sim::SCHEMA,
        experiment: "semantic",
        trace: TraceSummary::of(trace),
        settings: protocol.summary(&shape)?,
        blocks: runs.into_iter().map(|run| run.block).collect(),
        left_out,
        verdicts,
        warnings,
    })
}
