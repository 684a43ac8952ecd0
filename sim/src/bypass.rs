//! MIN with bypass, a bound that no cache can run: counted event by event.

use hotset_policies::{BypassBound, ExpertId};
use hotset_traces::{Phase, Trace};

use crate::{Counts, EventSink, Futures, Scope, Semantics, SimError, Steps, drive};

/// The counts of MIN with bypass with these slots (one number a pool). What is not admitted is
/// counted as unplaced.
pub(crate) fn replay_bypass<E: ExpertId + Default>(
    (trace, ids, steps): (&Trace, &[E], &Steps),
    futures: &Futures<'_>,
    (scope, capacities): (Scope, &[u32]),
    semantics: Semantics,
    (phase, warmup): (Option<Phase>, Option<u64>),
) -> Result<Counts, SimError> {
    let pools = futures.of(scope)?;
    let mut sink = BypassCounter {
        pools: pools
            .iter()
            .zip(capacities)
            .map(|(future, &capacity)| BypassBound::new(future.clone(), capacity))
            .collect(),
        counts: Counts::new(trace.shape().layers().len()),
        one_at_a_time: semantics == Semantics::Sequential,
        phase: Phase::Decode,
        steady: false,
        resident: 0,
        capacity: capacities.iter().sum(),
        tokens: 0,
        warmup,
    };
    let wanted = |of: Phase| phase.is_none_or(|only| only == of);
    match semantics {
        Semantics::Event => drive(trace, ids, steps, wanted, &mut sink),
        Semantics::Sequential => drive(trace, ids, &Steps::of(trace, 1), wanted, &mut sink),
    }
    Ok(sink.counts)
}

struct BypassCounter {
    pools: Vec<BypassBound>,
    counts: Counts,
    one_at_a_time: bool,
    phase: Phase,
    steady: bool,
    resident: u32,
    capacity: u32,
    tokens: u64,
    warmup: Option<u64>,
}

impl<E: ExpertId> EventSink<E> for BypassCounter {
    const WEIGHTS: bool = false;

    fn begin_step(&mut self, _: usize, phase: Phase, tokens: u32) {
        self.steady = match self.warmup {
            Some(warmup) => self.tokens >= warmup,
            None => self.steady || self.resident == self.capacity,
        };
        self.phase = phase;
        self.tokens += u64::from(tokens);
        self.counts.bucket_mut(phase, self.steady).tokens += u64::from(tokens);
    }

    fn event(&mut self, layer: usize, experts: &[E], _: &[f32]) {
        let pool = if self.pools.len() == 1 { 0 } else { layer };
        let events = if self.one_at_a_time { experts.len() } else { 1 };
        let bucket = self.counts.bucket_mut(self.phase, self.steady);
        for _ in 0..events {
            let served = self.pools[pool].event(experts.len() / events);
            bucket.accesses += (experts.len() / events) as u64;
            bucket.hits += experts.len() as u64 / events as u64 - u64::from(served.misses);
            bucket.demand_fetches[layer] += u64::from(served.misses);
            bucket.unplaced += u64::from(served.misses - served.admitted);
            self.resident += served.admitted;
            self.resident -= served.evicted;
        }
    }

    fn end_step(&mut self) {}
}
