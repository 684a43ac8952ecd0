//! MIN with bypass, a bound that no cache can run: counted event by event.

use hotset_policies::BypassBound;
use hotset_traces::{Phase, Trace};

use crate::capacity::dimensions;
use crate::drive::{EventSink, Way, drive_wide};
use crate::meter::{Meter, Served};
use crate::timeline::{LayerDemand, Timeline};
use crate::{Counts, Futures, Semantics, Setting, SimError, Steps};

/// The counts of MIN with bypass with the setting's slots. What is not admitted is counted as
/// unplaced.
pub(crate) fn replay_bypass(
    trace: &Trace,
    way: &Way<'_>,
    futures: &Futures<'_>,
    setting: &Setting,
    timelines: Vec<Timeline>,
) -> Result<(Counts, Vec<Timeline>), SimError> {
    let (experts, top_k) = dimensions(trace.shape());
    let pools = setting.slots.pools(&experts, &top_k)?;
    let capacities = pools.iter().map(|pool| pool.capacity);
    let futures = futures.of(setting.scope())?;
    let mut sink = BypassCounter {
        pools: futures
            .iter()
            .zip(capacities.clone())
            .map(|(future, capacity)| BypassBound::new(future.clone(), capacity))
            .collect(),
        meter: Meter::new(experts.len(), setting.warmup).with_sequences(way.sequences),
        one_at_a_time: setting.semantics == Semantics::Sequential,
        resident: 0,
        capacity: capacities.sum(),
        timelines,
    };
    let wanted = |phase: Phase| setting.phase.wants(phase);
    let single;
    let steps = match setting.semantics {
        Semantics::Event => way.steps,
        Semantics::Sequential => {
            single = Steps::of(trace, 1);
            &single
        }
    };
    drive_wide(trace, &Way { steps, ..*way }, wanted, &mut sink)?;
    Ok((sink.meter.finish(), sink.timelines))
}

struct BypassCounter {
    pools: Vec<BypassBound>,
    meter: Meter<false>,
    one_at_a_time: bool,
    resident: u32,
    capacity: u32,
    timelines: Vec<Timeline>,
}

impl EventSink<u16> for BypassCounter {
    const WEIGHTS: bool = false;

    fn begin_sequence(&mut self, sequence: u32) {
        self.meter.begin_sequence(sequence);
    }

    fn begin_step(&mut self, _: usize, phase: Phase, tokens: u32) {
        let is_full = self.resident == self.capacity;
        self.meter.begin_step(phase, tokens, || is_full);
        for timeline in &mut self.timelines {
            timeline.begin_step(phase, self.meter.clock().is_steady(), tokens);
        }
    }

    fn event(&mut self, layer: usize, experts: &[u16], _: &[f32]) {
        let pool = if self.pools.len() == 1 { 0 } else { layer };
        let events = if self.one_at_a_time { experts.len() } else { 1 };
        let mut all = 0;
        for _ in 0..events {
            let distinct = (experts.len() / events) as u32;
            let event = self.pools[pool].event(distinct as usize);
            let (copies, unplaced) = (event.misses, event.misses - event.admitted);
            let hits = distinct - copies;
            let served = Served { distinct, hits, copies, unplaced, ..Served::default() };
            self.meter.serve(layer, served);
            self.resident += event.admitted;
            self.resident -= event.evicted;
            all += copies;
        }
        for timeline in &mut self.timelines {
            timeline.demand(LayerDemand::unplanned(layer, experts.len() as u32, all, 0));
            timeline.finish_layer();
        }
    }

    fn end_step(&mut self) {
        self.timelines.iter_mut().for_each(Timeline::end_step);
    }
}
