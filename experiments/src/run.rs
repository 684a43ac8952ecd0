//! Runs an arm over all folds.

use std::sync::Arc;

use hotset_policies::{Need, PolicySpec};
use hotset_sim::{
    Bucket, Composition, Futures, Misses, Prefetch, Prefill, Prices, Semantics, Setting, SimError,
    Spent, Steps, Timeline, Window, replay_timed, trained, trained_guide,
};
use hotset_traces::{Phase, Shape, Trace};

use crate::tally::by_sequence;
use crate::{Arm, ExperimentError, Fold, Folds, Plan, Tally};

/// What an arm did over all folds.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// One tally for each sequence of the whole trace that was tested; its repeats are in it.
    pub tallies: Vec<Tally>,
    /// Counts of all folds.
    pub counts: Sums,
    /// Prices of all folds on each link, picoseconds.
    pub prices: Vec<LinkSums>,
}

/// Counts over decode steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub tokens: u64,
    pub accesses: u64,
    pub hits: u64,
    pub demand_fetches: u64,
    pub prefetches: u64,
    pub prefetches_used: u64,
}

impl Sums {
    fn add(&mut self, bucket: &Bucket) {
        self.tokens += bucket.tokens;
        self.accesses += bucket.accesses;
        self.hits += bucket.hits;
        self.demand_fetches += bucket.demanded();
        self.prefetches += bucket.prefetched();
        self.prefetches_used += bucket.prefetches_used;
    }

    /// Experts copied.
    pub fn moved(&self) -> u64 {
        self.demand_fetches + self.prefetches
    }

    /// hits / accesses.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.accesses.max(1) as f64
    }
}

/// Prices over one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinkSums {
    pub serial: u128,
    pub timeline: u128,
    pub prefetch_hidden: u128,
    pub perfect: u128,
    /// Prefetched experts that were asked for before they had arrived.
    pub late: u64,
}

impl LinkSums {
    fn add(&mut self, prices: &Prices, spent: Spent) {
        self.serial += prices.serial;
        self.timeline += prices.timeline.unwrap_or(0);
        self.prefetch_hidden += prices.prefetch_hidden;
        self.perfect += prices.perfect;
        self.late += spent.late;
    }
}

/// The steps of a part: one conversation after another, whatever batches the engine ran them in,
/// so that each has a cost of its own.
pub(crate) fn steps(trace: &Trace) -> Result<Steps, SimError> {
    Steps::compose(trace, &Composition::default())
}

/// Runs an arm over every fold: trains it on the fold's training part and replays the decode steps
/// of the tested part, from an empty cache. `sequences` is how many the whole trace has.
pub(crate) fn run(
    plan: &Plan,
    shape: &Shape,
    folds: &Folds,
    sequences: usize,
    arm: &Arm,
) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome {
        tallies: vec![Tally::default(); sequences],
        counts: Sums::default(),
        prices: vec![LinkSums::default(); plan.links.len()],
    };
    for fold in &folds.folds {
        run_fold(plan, shape, fold, arm, &mut outcome)?;
    }
    Ok(outcome)
}

fn run_fold(
    plan: &Plan,
    shape: &Shape,
    fold: &Fold,
    arm: &Arm,
    outcome: &mut Outcome,
) -> Result<(), ExperimentError> {
    let phase = Some(Phase::Decode);
    let (trace, steps) = (&fold.tested, steps(&fold.tested)?);
    let futures =
        Futures::new(trace, &steps, Semantics::Event, phase).with_prefill(Prefill::OnDemand);
    let timelines =
        plan.links.iter().map(|link| Timeline::new(shape, link, &plan.time).with_steps());
    let setting = setting(plan, shape, &fold.training, arm)?;
    let (counts, timelines) = replay_timed(trace, &steps, &futures, &setting, timelines.collect())?;
    let times: Vec<_> = timelines.into_iter().map(|timeline| timeline.finish().0).collect();
    for (origin, tally) in fold.origins.iter().zip(by_sequence(trace, &steps, &times)) {
        outcome.tallies[*origin].add(&tally);
    }
    let bucket = counts.bucket(Phase::Decode, Window::All);
    outcome.counts.add(&bucket);
    for ((sums, link), times) in outcome.prices.iter_mut().zip(&plan.links).zip(&times) {
        let spent = times.bucket(Phase::Decode, Window::All);
        sums.add(&Prices::of(link, shape, &bucket, 0, Some(spent)), spent);
    }
    Ok(())
}

/// The arm, trained.
fn setting(
    plan: &Plan,
    shape: &Shape,
    training: &Trace,
    arm: &Arm,
) -> Result<Setting, ExperimentError> {
    let phase = Some(Phase::Decode);
    let training_steps = steps(training)?;
    let predictor = match &arm.prefetch {
        Prefetch::None => None,
        Prefetch::By(forecast) => trained(forecast, training, &training_steps, phase)?,
    };
    let policy: &PolicySpec = &arm.policy;
    let name = policy.info().name;
    let guide = match policy.guide() {
        None => None,
        Some(config) => Some(trained_guide((name, &config), training, &training_steps, phase)?),
    };
    let uses = (policy.info().needs == Need::Training).then(|| hotset_sim::uses(training, phase));
    Ok(Setting {
        phase,
        prefetch: arm.prefetch.clone(),
        predictor: predictor.map(Arc::new),
        guide: guide.map(Arc::new),
        training: uses,
        misses: Misses::Fetch,
        expert_bytes: shape.layers().iter().map(|layer| layer.expert_bytes).collect(),
        ..Setting::new(policy.clone(), plan.capacity.1.slots(shape, plan.scope)?)
    })
}
