//! The one bookkeeping of a replay: which phase and which part of the run the running step
//! belongs to, and what its events add to the counts.

use std::sync::Arc;

use hotset_policies::Plan;
use hotset_traces::Phase;

use crate::sequences::{BySequence, SequencePrices};
use crate::{Bucket, Counts};

/// Where a run is: the running step's phase, and whether it counts as cold or steady.
#[derive(Debug, Clone)]
pub(crate) struct RunClock {
    /// Tokens that count as cold; `None`: all until the cache has first been full.
    warmup: Option<u64>,
    tokens: u64,
    phase: Phase,
    steady: bool,
}

impl RunClock {
    /// A run that has not begun.
    pub fn new(warmup: Option<u64>) -> Self {
        Self { warmup, tokens: 0, phase: Phase::Decode, steady: false }
    }

    /// A step begins; `is_full` is asked whether the cache is, where that decides.
    #[inline(always)]
    pub fn begin_step(&mut self, phase: Phase, tokens: u32, is_full: impl FnOnce() -> bool) {
        self.steady = match self.warmup {
            Some(warmup) => self.tokens >= warmup,
            None => self.steady || is_full(),
        };
        self.phase = phase;
        self.tokens += u64::from(tokens);
    }

    /// The running step's phase.
    #[inline(always)]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the running step counts as steady.
    #[inline(always)]
    pub fn is_steady(&self) -> bool {
        self.steady
    }

    /// Tokens that ran, those of the running step included.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

/// What became of one event's distinct experts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Served {
    pub distinct: u32,
    pub hits: u32,
    /// Copied now, with or without a slot.
    pub copies: u32,
    /// Of those, without a slot.
    pub unplaced: u32,
    /// Served by the host's cores.
    pub host: u32,
    /// Whether the event needed more experts than its pool has slots.
    pub overflow: bool,
}

impl Served {
    /// What a demand's plan says.
    #[inline(always)]
    pub fn of(plan: &Plan<'_>) -> Self {
        Self {
            distinct: plan.distinct(),
            hits: plan.hits,
            copies: plan.fetches + plan.unplaced,
            unplaced: plan.unplaced,
            host: 0,
            overflow: plan.overflow,
        }
    }
}

/// Counts a run, step by step and event by event; `BY_LAYER`: accesses and hits by layer too.
pub(crate) struct Meter<const BY_LAYER: bool> {
    clock: RunClock,
    counts: Counts,
    by_sequence: Option<Box<BySequence>>,
}

impl<const BY_LAYER: bool> Meter<BY_LAYER> {
    /// Nothing counted yet, of a model with so many layers.
    pub fn new(layers: usize, warmup: Option<u64>) -> Self {
        let counts = Counts::new(layers);
        let counts = if BY_LAYER { counts.with_layers() } else { counts };
        Self { clock: RunClock::new(warmup), counts, by_sequence: None }
    }

    /// Counts each sequence by itself too, if somebody wants to know its price.
    pub fn with_sequences(mut self, prices: Option<&Arc<SequencePrices>>) -> Self {
        self.by_sequence =
            prices.map(|prices| Box::new(BySequence::new(Arc::clone(prices), self.counts.none())));
        self
    }

    /// The steps that follow are of this sequence.
    pub fn begin_sequence(&mut self, sequence: u32) {
        if let Some(by_sequence) = &mut self.by_sequence {
            by_sequence.begin(sequence, &mut self.counts);
        }
    }

    /// A step begins: see [`RunClock::begin_step`].
    #[inline(always)]
    pub fn begin_step(&mut self, phase: Phase, tokens: u32, is_full: impl FnOnce() -> bool) {
        self.clock.begin_step(phase, tokens, is_full);
        self.bucket().tokens += u64::from(tokens);
    }

    /// The running step's place in the run.
    #[inline(always)]
    pub fn clock(&self) -> &RunClock {
        &self.clock
    }

    /// The counts that the running step adds to.
    #[inline(always)]
    pub fn bucket(&mut self) -> &mut Bucket {
        self.counts.bucket_mut(self.clock.phase(), self.clock.is_steady())
    }

    /// Counts an event of `layer`, and returns the counts that it was added to.
    #[inline(always)]
    pub fn serve(&mut self, layer: usize, served: Served) -> &mut Bucket {
        if BY_LAYER {
            self.counts.add_layer(self.clock.phase(), layer, served.distinct, served.hits);
        }
        let bucket = self.bucket();
        bucket.accesses += u64::from(served.distinct);
        bucket.hits += u64::from(served.hits);
        bucket.demand_fetches[layer] += u64::from(served.copies);
        bucket.unplaced += u64::from(served.unplaced);
        bucket.host_served += u64::from(served.host);
        bucket.overflow_events += u64::from(served.overflow);
        bucket
    }

    /// The counts of the run.
    pub fn finish(self) -> Counts {
        match self.by_sequence {
            Some(by_sequence) => by_sequence.finish(self.counts),
            None => self.counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;

    #[test]
    fn a_step_is_steady_once_the_cache_was_full_before_it_or_the_warm_up_is_over() {
        let steady = |warmup, full: [bool; 3]| {
            let mut clock = RunClock::new(warmup);
            full.map(|full| {
                clock.begin_step(Phase::Decode, 2, || full);
                clock.is_steady()
            })
        };
        // Once full it stays steady, whatever a change of slots does to it.
        assert_eq!(steady(None, [false, true, false]), [false, true, true]);
        // Two tokens a step: three are over before the third step.
        assert_eq!(steady(Some(3), [true, true, true]), [false, false, true]);
        assert_eq!(steady(Some(0), [false; 3]), [true; 3]);
    }

    #[test]
    fn events_are_counted_where_their_step_belongs() {
        let mut meter: Meter<true> = Meter::new(2, Some(1));
        let served =
            Served { distinct: 3, hits: 1, copies: 2, unplaced: 2, host: 0, overflow: true };
        meter.begin_step(Phase::Prefill, 4, || false);
        meter.serve(1, served);
        meter.begin_step(Phase::Decode, 1, || false);
        meter.serve(0, Served { distinct: 2, host: 2, ..Served::default() });
        let counts = meter.finish();
        let cold = counts.bucket(Phase::Prefill, Window::Cold);
        assert_eq!((cold.tokens, cold.accesses, cold.hits), (4, 3, 1));
        assert_eq!((&cold.demand_fetches[..], cold.unplaced), (&[0, 2][..], 2));
        assert_eq!(cold.overflow_events, 1);
        let steady = counts.bucket(Phase::Decode, Window::Steady);
        assert_eq!((steady.tokens, steady.accesses, steady.host_served), (1, 2, 2));
        assert_eq!(
            (counts.layer(Phase::Prefill, 1), counts.layer(Phase::Decode, 0)),
            ((3, 1), (2, 0))
        );
    }
}
