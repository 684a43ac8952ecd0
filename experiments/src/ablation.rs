//! The experiment `ablation`: what each part of a learning policy is worth, whether it is the order
//! of the tokens that it learns from, and what it costs over each link against what engines ship.

use hotset_sim::{ReplayProgress, SimError, TraceSummary};
use hotset_traces::Trace;
use serde::Serialize;

use crate::compared::too_few_draws;
use crate::verdict::{self, Verdict};
use crate::workload_run::{WorkloadRun, arms, run_workload, too_few, warnings};
use crate::{Arm, Block, ExperimentError, Interval, LeftOut, Protocol, ProtocolSummary};

/// The policy whose parts are left out where nothing else is said.
pub const ABLATED: &str = "td-pairs";
/// What is left out of it, one at a time.
const WITHOUT: [&str; 7] = [
    "td-pairs:without=own",
    "td-pairs:without=before",
    "td-pairs:without=pairs",
    "td-pairs:without=fast",
    "td-pairs:without=slow",
    "td-pairs:gamma=0.8,widen=0",
    "td-pairs:guard=false",
];
/// What it is held against.
const OTHERS: [&str; 4] = ["td-table", "td-logistic", "class-lru", "s3-fifo"];
/// Who knows the future: the end of the gap.
const BOUND: &str = "belady";

/// Results of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AblationReport {
    /// `hotset/1`.
    pub schema: &'static str,
    /// `ablation`.
    pub experiment: &'static str,
    /// The trace.
    pub trace: TraceSummary,
    /// The flags.
    pub settings: ProtocolSummary,
    /// What each arm closes of the gap, the ablated policy and its parts first.
    pub gaps: Vec<Gap>,
    /// The arms on the sequences as they lie.
    pub block: Block,
    /// Arms that this trace cannot run.
    pub left_out: Vec<LeftOut>,
    /// What follows from the intervals.
    pub verdicts: Vec<Verdict>,
    /// What a reader must know of the trace to read the rows right.
    pub warnings: Vec<String>,
}

/// What an arm closes of the gap between LRU and Belady, in misses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// The arm.
    pub arm: String,
    /// Experts copied because they were asked for.
    pub misses: u64,
    /// (LRU - arm) / (LRU - Belady).
    pub closed: Interval,
    /// The ablated policy's share minus this one's: what the part that is left out is worth.
    pub lost: Interval,
    /// `closed` with the tokens of each sequence in a random order.
    pub closed_shuffled: Interval,
}

/// Runs the experiment: the protocol's arms, or the parts of [`ABLATED`] and what engines ship, all
/// against LRU and the first of them, as the tokens lie and in a random order within each sequence.
///
/// # Errors
/// A protocol that cannot be run; an arm that was named and that the trace cannot run.
pub fn ablation(
    trace: &Trace,
    protocol: &Protocol,
    progress: &impl ReplayProgress,
) -> Result<AblationReport, ExperimentError> {
    let shape = protocol.shape(trace)?;
    let defaults = [ABLATED].into_iter().chain(WITHOUT).chain(OTHERS);
    let defaults: Vec<String> = defaults.map(str::to_owned).collect();
    let mut protocol = protocol.clone();
    let ablated = match protocol.arms.first() {
        Some(named) => named.clone(),
        None => ABLATED.parse()?,
    };
    protocol.against.insert(0, ablated.clone());
    let (mut arms, left_out) = arms(trace, &protocol, &defaults)?;
    let bound: Arm = BOUND.parse()?;
    if arms.iter().all(|arm| arm.name != bound.name) {
        arms.push(bound);
    }
    progress.begin(2 * arms.len() as u64);
    let run =
        |trace: &Trace| run_workload(trace, &protocol, &shape, protocol.workload, &arms, progress);
    let as_they_lie = run(trace)?;
    let shuffled = run(&trace.shuffle_tokens(protocol.seed).map_err(SimError::from)?)?;
    let gaps = gaps(&arms, &ablated.name, &as_they_lie, &shuffled);
    let mut warnings = warnings(trace, &arms);
    warnings.extend(too_few(as_they_lie.units.len()));
    warnings.extend(too_few_draws(arms.len(), protocol.resamples));
    Ok(AblationReport {
        schema: hotset_sim::SCHEMA,
        experiment: "ablation",
        trace: TraceSummary::of(trace),
        settings: protocol.summary(&shape)?,
        gaps,
        verdicts: verdict::of_ablation(&as_they_lie.block, &ablated.name),
        block: as_they_lie.block,
        left_out,
        warnings,
    })
}

fn gaps(arms: &[Arm], ablated: &str, lie: &WorkloadRun, shuffled: &WorkloadRun) -> Vec<Gap> {
    let place = |name: &str| arms.iter().position(|arm| arm.name == name);
    let (Some(ablated), Some(bound)) = (place(ablated), place(BOUND)) else { return Vec::new() };
    let saved = |run: &WorkloadRun, arm: usize, drawn: &[u32]| {
        1.0 - run.figures(arm, 0).ratio(drawn, |tally| tally.misses)
    };
    let closed = |run: &WorkloadRun, arm: usize, drawn: &[u32]| {
        saved(run, arm, drawn) / saved(run, bound, drawn)
    };
    // LRU and the bound are the two ends.
    let others = (1..arms.len()).filter(|&arm| arm != bound);
    others
        .map(|arm| Gap {
            arm: arms[arm].name.clone(),
            misses: lie.block.rows[arm].demand_fetches,
            closed: lie.draws.interval(|drawn| closed(lie, arm, drawn)),
            lost: lie.draws.interval(|drawn| closed(lie, ablated, drawn) - closed(lie, arm, drawn)),
            closed_shuffled: shuffled.draws.interval(|drawn| closed(shuffled, arm, drawn)),
        })
        .collect()
}
