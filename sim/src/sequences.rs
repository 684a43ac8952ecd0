//! What each sequence of a run counts by itself: the units that an interval is drawn over.

use std::sync::Arc;

use hotset_cost_models::{Disk, Link};
use hotset_traces::{Phase, Shape, Trace};

use crate::sequence_counts::SequenceCounts;
use crate::{Bucket, Compare, Counts, PhaseFilter, Prices, Steps, Times, Window};

/// What a sequence's counts cost over each link, one thing after another.
#[derive(Debug)]
pub(crate) struct SequencePrices {
    links: Vec<Link>,
    shape: Shape,
    disk: Option<Disk>,
    /// Compute a token, in picoseconds.
    compute: u64,
}

impl SequencePrices {
    /// The prices of a request; `sized`: whether the experts' size is known.
    pub fn of(request: &Compare, shape: &Shape, sized: bool) -> Arc<Self> {
        Arc::new(Self {
            links: if sized { request.links.clone() } else { Vec::new() },
            shape: shape.clone(),
            disk: request.time.disk.clone(),
            compute: request.time.compute.token_ps(shape),
        })
    }

    fn serial(&self, bucket: &Bucket) -> Vec<u64> {
        let compute = u128::from(self.compute) * u128::from(bucket.tokens);
        let price = |link| {
            let prices = Prices::of(link, &self.shape, bucket, compute, None);
            let prices = prices.over_disk(self.disk.as_ref(), &self.shape, bucket);
            u64::try_from(prices.serial).unwrap_or(u64::MAX)
        };
        self.links.iter().map(price).collect()
    }
}

/// Counts sequence by sequence beside the whole run.
pub(crate) struct BySequence {
    prices: Arc<SequencePrices>,
    running: Option<u32>,
    /// Counts of the sequences before the running one.
    before: Counts,
    all: Vec<SequenceCounts>,
}

impl BySequence {
    /// Nothing counted yet; `before` is empty counts of the run.
    pub fn new(prices: Arc<SequencePrices>, before: Counts) -> Self {
        Self { prices, running: None, before, all: Vec::new() }
    }

    /// What follows is of `next`; `counts`, those of the running sequence, begin anew.
    pub fn begin(&mut self, next: u32, counts: &mut Counts) {
        self.leave(counts);
        self.running = Some(next);
    }

    fn leave(&mut self, counts: &mut Counts) {
        let fresh = counts.none();
        let left = std::mem::replace(counts, fresh);
        for (phase, steady) in Phase::ALL.into_iter().flat_map(|p| [(p, false), (p, true)]) {
            let window = if steady { Window::Steady } else { Window::Cold };
            let bucket = left.bucket(phase, window);
            let Some(sequence) = self.running.filter(|_| bucket.tokens > 0) else { continue };
            self.all.push(SequenceCounts {
                sequence,
                phase,
                steady,
                tokens: bucket.tokens,
                accesses: bucket.accesses,
                hits: bucket.hits,
                ps: self.prices.serial(&bucket),
            });
        }
        self.before.add(&left);
    }

    /// The counts of the run, with those of each sequence, in their order.
    pub fn finish(mut self, mut counts: Counts) -> Counts {
        self.leave(&mut counts);
        // A sequence whose steps lie apart was left more than once.
        self.all.sort_by_key(SequenceCounts::key);
        let mut merged: Vec<SequenceCounts> = Vec::with_capacity(self.all.len());
        for counted in self.all {
            match merged.last_mut().filter(|last| last.key() == counted.key()) {
                Some(last) => last.add(&counted),
                None => merged.push(counted),
            }
        }
        self.before.with_sequences(merged)
    }
}

/// Gives each sequence its time on the timelines: `times` are of the links, with steps kept, of a run
/// whose steps are each of one sequence. The steps are let go.
pub(crate) fn take_step_times(
    counts: &mut Counts,
    (trace, steps): (&Trace, &Steps),
    phase: PhaseFilter,
    times: &mut [Times],
) {
    let first = |step: usize| steps.row(steps.places(step).start);
    let ran = (0..steps.len()).map(first).filter(|&row| phase.wants(trace.phase(row)));
    let mut of_step: Vec<u32> = Vec::new();
    of_step.extend(ran.map(|row| trace.sequence_of(row) as u32));
    for (link, times) in times.iter_mut().enumerate() {
        for of in counts.sequences_mut() {
            if let Some(ps) = of.ps.get_mut(link) {
                *ps = 0;
            }
        }
        for (step, &sequence) in std::mem::take(&mut times.steps).iter().zip(&of_step) {
            let key = (sequence, step.phase as u8, step.steady);
            let all = counts.sequences_mut();
            if let Ok(place) = all.binary_search_by_key(&key, SequenceCounts::key)
                && let Some(ps) = all[place].ps.get_mut(link)
            {
                *ps = ps.saturating_add(step.ps);
            }
        }
    }
}
