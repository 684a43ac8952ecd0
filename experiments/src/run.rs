//! Runs an arm over all folds.

use hotset_policies::Need;
use hotset_sim::{
    Bucket, Compare, Composition, Named, POLICY_MEMORY, PREFILL_CHUNK, Parts, PhaseFilter,
    Prefetch, Preparation, Prices, Semantics, Serving, SimError, Spent, Steps, Timeline, Training,
    Window, replay_timed,
};
use hotset_traces::{Phase, Repeat, Shape, Trace};

use crate::tally::by_sequence;
use crate::{Arm, ExperimentError, Fold, Folds, Protocol, Tally};

/// Which runs of the sequences count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// All.
    All,
    /// Those that have this to do with the runs before them.
    Only(Repeat),
}

/// What an arm did over all folds.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// One tally for each sequence of the whole trace that was tested; its repeats are in it.
    all: Vec<Tally>,
    /// The same, each run where it belongs: new documents, new parts of known ones, verbatim repeats.
    by_repeat: [Vec<Tally>; 3],
    /// Counts of all folds.
    pub counts: Sums,
    /// Prices of all folds on each link, picoseconds.
    pub prices: Vec<LinkSums>,
}

impl Outcome {
    fn empty(sequences: usize, links: usize) -> Self {
        let none = || vec![Tally::default(); sequences];
        Self {
            all: none(),
            by_repeat: [none(), none(), none()],
            counts: Sums::default(),
            prices: vec![LinkSums::default(); links],
        }
    }

    /// One tally for each sequence of the whole trace, of the runs that count.
    pub fn tallies(&self, runs: Runs) -> &[Tally] {
        match runs {
            Runs::All => &self.all,
            Runs::Only(repeat) => &self.by_repeat[place(repeat)],
        }
    }
}

fn place(repeat: Repeat) -> usize {
    match repeat {
        Repeat::New => 0,
        Repeat::SameDocument => 1,
        Repeat::SameSequence => 2,
    }
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
    /// Evicted before anything asked for them.
    pub prefetches_wasted: u64,
}

impl Sums {
    fn add(&mut self, bucket: &Bucket) {
        let Self {
            tokens,
            accesses,
            hits,
            demand_fetches,
            prefetches,
            prefetches_used,
            prefetches_wasted,
        } = self;
        *tokens += bucket.tokens;
        *accesses += bucket.accesses;
        *hits += bucket.hits;
        *demand_fetches += bucket.demanded();
        *prefetches += bucket.prefetched();
        *prefetches_used += bucket.prefetches_used;
        *prefetches_wasted += bucket.prefetches_wasted;
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
        let Self { serial, timeline, prefetch_hidden, perfect, late } = self;
        *serial += prices.serial;
        *timeline += prices.timeline.unwrap_or(0);
        *prefetch_hidden += prices.prefetch_hidden;
        *perfect += prices.perfect;
        *late += spent.late;
    }
}

/// The steps of a part: one conversation after another, whatever batches the engine ran them in,
/// so that each has a cost of its own.
pub(crate) fn steps(trace: &Trace) -> Result<Steps, SimError> {
    Steps::compose(trace, &Composition::default())
}

/// What every arm of an experiment runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub protocol: &'a Protocol,
    pub shape: &'a Shape,
    pub folds: &'a Folds,
    /// Sequences of the whole trace.
    pub sequences: usize,
}

/// Runs an arm over every fold: trains it on the fold's training part and replays the decode steps
/// of the tested part, from an empty cache.
pub(crate) fn run(ground: &Ground<'_>, arm: &Arm) -> Result<Outcome, ExperimentError> {
    if arm.policy.info().needs == Need::Future && arm.prefetch != Prefetch::None {
        let policy = arm.policy.info().name.to_owned();
        return Err(SimError::BoundAlone { policy }.into());
    }
    let request = request(ground.protocol, arm);
    let mut outcome = Outcome::empty(ground.sequences, request.links.len());
    for fold in &ground.folds.folds {
        run_fold(&request, ground.shape, fold, &mut outcome)?;
    }
    Ok(outcome)
}

/// The request that an arm is, of the decode steps of a trace.
fn request(protocol: &Protocol, arm: &Arm) -> Compare {
    Compare {
        policies: vec![Named::new(arm.name.clone(), arm.policy.clone())],
        scopes: vec![protocol.scope],
        capacities: vec![protocol.capacity.clone()],
        links: protocol.links.clone(),
        machine: None,
        phase: PhaseFilter::Decode,
        semantics: Semantics::Event,
        warmup: None,
        chunk: PREFILL_CHUNK,
        expert_bytes: protocol.expert_bytes,
        serving: Serving {
            prefetch: arm.prefetch.clone(),
            composition: Some(Composition::default()),
            ..Serving::default()
        },
        time: protocol.time.clone(),
        timelines: true,
        training: Training::default(),
        sample: None,
        policy_memory: POLICY_MEMORY,
        seed: protocol.seed,
    }
}

fn run_fold(
    request: &Compare,
    shape: &Shape,
    fold: &Fold,
    outcome: &mut Outcome,
) -> Result<(), ExperimentError> {
    let parts = Parts::trained(&fold.training, &fold.tested);
    let prepared = Preparation::of(&parts, request)?;
    let (trace, steps) = (prepared.trace(), prepared.steps());
    let setting = prepared.setting(&request.policies[0].value, &prepared.sizes()[0]);
    let timelines = prepared.timelines().into_iter().map(Timeline::with_steps).collect();
    let (counts, timelines) = replay_timed(trace, steps, prepared.futures(), &setting, timelines)?;
    let times: Vec<_> = timelines.into_iter().map(|timeline| timeline.finish().0).collect();
    for (run, tally) in by_sequence(trace, steps, &times).iter().enumerate() {
        let origin = fold.origins[run];
        outcome.all[origin].add(tally);
        outcome.by_repeat[place(fold.repeat(run))][origin].add(tally);
    }
    let bucket = counts.bucket(Phase::Decode, Window::All);
    outcome.counts.add(&bucket);
    for ((sums, link), times) in outcome.prices.iter_mut().zip(&request.links).zip(&times) {
        let spent = times.bucket(Phase::Decode, Window::All);
        sums.add(&Prices::of(link, shape, &bucket, 0, Some(spent)), spent);
    }
    Ok(())
}
