//! [`Timeline`]: the clock of one replay over one link.

mod finish;
mod over_disk;

use hotset_cost_models::{Contention, HostKernel, Link};
use hotset_policies::{Action, Placement, Plan};
use hotset_traces::{Phase, Shape};

use super::ahead::CopiedAhead;
use super::clock::Clock;
use super::copies::{Copies, Ticket};
use super::costs::Costs;
use super::demand::LayerDemand;
use super::disk::DiskQueue;
use super::model::{Compute, TimeModel, Wait};
use super::record::Recorder;
use super::spent::{Splits, StepTime, Times};
use super::split::{Judged, SplitEvent, judge};
use crate::counts::low_bytes;

/// The layer that runs.
#[derive(Debug, Default, Clone, Copy)]
struct Running {
    layer: usize,
    distinct: u32,
    host: u32,
    host_further: u32,
    /// Of `host`, whose output the next layer adds; of `distinct`, not computed.
    deferred: u32,
    dropped: u32,
    /// Experts that had not arrived when the routing was known.
    waiting: u32,
    /// More than copies on demand is to be looked at: the fields from here on, or a busy host.
    beside: bool,
    /// What the layer's own copies take on an idle link.
    alone: u64,
    /// When what the layer copies, and what the host computes, has come from disk.
    read: u64,
    host_read: u64,
}

/// The step that runs: when it began, and what it has queued since.
#[derive(Debug, Clone, Copy)]
struct RunningStep {
    phase: Phase,
    steady: bool,
    tokens: u32,
    begin: u64,
    copies: u32,
    prefetches: u32,
}

/// The clock of one replay over one link: call, for each step, [`begin_step`](Self::begin_step),
/// then for each layer [`demand`](Self::demand), [`prefetch`](Self::prefetch) as often as copies
/// are queued behind it, and [`finish_layer`](Self::finish_layer); then
/// [`end_step`](Self::end_step). Nothing is allocated between calls, but 24 bytes a step where
/// step times are kept.
#[derive(Debug)]
pub struct Timeline {
    costs: Costs,
    /// Those of smaller copies, where there are any.
    low: Option<Costs>,
    hits_first: bool,
    clock: Clock,
    judges_splits: bool,
    /// Every demand is looked at for more than copies: splits to judge, smaller copies, a disk, a
    /// recording, copies that share the link.
    looks_beside: bool,
    ahead: CopiedAhead,
    /// Experts of each layer, and whole layers that stream through two buffers.
    experts: Vec<u32>,
    buffers: [Ticket; 2],
    step: RunningStep,
    running: Running,
    /// The layer's routing is known already.
    routed: bool,
    keep_steps: bool,
    /// Copies of the running layer that wait for their reads: when they may begin, and of whom.
    late: Vec<(u64, u32)>,
}

impl Timeline {
    /// A timeline of a model over a link. Every layer's expert bytes must be known.
    #[must_use]
    pub fn new(shape: &Shape, link: &Link, model: &TimeModel) -> Self {
        let contention =
            if model.contention { link.contention.clone() } else { Contention::default() };
        let host = model.host_beside(link);
        let rate = model.host_kernel(link);
        let copies = Copies::new(model.copies);
        let widest = model.disk.as_ref().map_or(0, |_| shape.max_experts() as usize);
        let mut clock = Clock::new(shape.layers().len(), copies, contention, host);
        clock.disk = model.disk.as_ref().map(|disk| Box::new(DiskQueue::new(shape, disk)));
        let step = RunningStep {
            phase: Phase::Decode,
            steady: false,
            tokens: 0,
            begin: 0,
            copies: 0,
            prefetches: 0,
        };
        let judges_splits = model.judges_splits && rate.ps_per_mib > 0;
        Self {
            costs: Costs::new(shape, link, &model.compute, rate),
            low: None,
            hits_first: model.wait == Wait::HitsFirst,
            looks_beside: judges_splits || clock.disk.is_some() || clock.copies.is_shared(),
            clock,
            judges_splits,
            ahead: CopiedAhead::new(shape),
            experts: shape.layers().iter().map(|layer| layer.experts).collect(),
            buffers: [Ticket::default(); 2],
            step,
            running: Running::default(),
            routed: false,
            keep_steps: false,
            late: Vec::with_capacity(widest),
        }
    }

    /// Whether it asks how many tokens want the experts that miss, whatever becomes of these.
    #[must_use]
    pub fn weighs_tokens(&self) -> bool {
        self.judges_splits && self.costs.host_weighs_tokens()
    }

    /// Keeps each step's time.
    #[must_use]
    pub fn with_steps(mut self) -> Self {
        self.keep_steps = true;
        self
    }

    /// Prices smaller copies of this share of an expert's bytes, in millionths; nothing for 0.
    #[must_use]
    pub fn with_low_precision(mut self, shape: &Shape, link: &Link, size_ppm: u32) -> Self {
        if size_ppm > 0 {
            let small = shape.map_expert_bytes(|bytes| low_bytes(bytes, size_ppm));
            self.low = Some(Costs::new(&small, link, &Compute::None, HostKernel::default()));
            self.looks_beside = true;
        }
        self
    }

    /// Records what ran when.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.clock.recorder = Some(Box::new(recorder));
        self.looks_beside = true;
        self
    }

    /// Keeps track of the prefetches that are queued, so that they can be taken back.
    #[must_use]
    pub fn with_cancelling(mut self) -> Self {
        self.ahead.keep_track();
        self
    }

    /// A step of `tokens` tokens begins. Where the phase or the window changes, the copies that
    /// are in flight are waited for, so that no figure pays for another's.
    #[inline(always)]
    pub fn begin_step(&mut self, phase: Phase, steady: bool, tokens: u32) {
        self.clock.begin_step(phase, steady, self.running.layer);
        let begin = self.clock.now;
        self.step = RunningStep { phase, steady, tokens, begin, copies: 0, prefetches: 0 };
    }

    /// The layer's routing becomes known.
    #[inline(always)]
    fn route(&mut self, layer: usize) {
        let dense = self.costs.dense(layer, self.step.tokens);
        self.clock.kernel(layer, dense, "dense");
        self.clock.copies.begin(self.clock.now);
    }

    /// The layer's routing becomes known, and copies of a prefetch for it that have not begun and
    /// that nobody wants are taken back: `unwanted` is told of each expert whose copy has not
    /// begun and says whether it is. The layer's [`demand`](Self::demand) follows. Only where
    /// copies run in order and were told to be kept track of.
    pub fn route_and_cancel(&mut self, layer: usize, unwanted: impl FnMut(u32) -> bool) {
        self.route(layer);
        self.routed = true;
        let cancelled = self.ahead.cancel(layer, &mut self.clock.copies, unwanted);
        self.step.prefetches = self.step.prefetches.saturating_sub(cancelled);
    }

    /// Whether queued copies can be taken back: they run in order.
    #[must_use]
    pub fn can_cancel(&self) -> bool {
        !self.clock.copies.is_shared()
    }

    /// The layer's routing becomes known and its missing experts are queued for copying.
    #[inline(always)]
    pub fn demand(&mut self, demand: LayerDemand<'_>) {
        let layer = demand.layer;
        if !std::mem::take(&mut self.routed) {
            self.route(layer);
        }
        self.step.copies += demand.copies;
        let more = demand.host | demand.dropped | demand.low | demand.prefetched;
        if self.looks_beside || more != 0 {
            return self.demand_more(&demand);
        }
        let (distinct, waiting) = (demand.distinct, demand.copies);
        self.running = Running { layer, distinct, waiting, ..Running::default() };
        if waiting > 0 {
            self.running.alone = self.clock.copies.demand(self.costs.size(layer), waiting);
        }
    }

    /// A demand with more to it than copies.
    fn demand_more(&mut self, demand: &LayerDemand<'_>) {
        let layer = demand.layer;
        self.running = Running {
            layer,
            beside: true,
            distinct: demand.distinct,
            host: demand.host,
            host_further: demand.host_further,
            deferred: demand.deferred,
            dropped: demand.dropped,
            waiting: demand.copies + demand.low,
            ..Running::default()
        };
        if demand.prefetched > 0 || self.clock.copies.is_shared() {
            let late = self.ahead.need(layer, demand.placements, &mut self.clock.copies);
            self.running.waiting += late;
            self.clock.cell(layer).late += u64::from(late);
        }
        // Smaller copies are none of the ways that a split is judged by.
        if self.judges_splits && self.low.is_none() && demand.copies + demand.host > 0 {
            self.judge_split(demand);
        }
        if self.clock.disk.is_some() {
            return self.demand_over_disk(demand);
        }
        if demand.copies > 0 {
            if self.clock.recorder.is_some() {
                self.demand_recorded(demand);
            } else {
                let size = self.costs.size(layer);
                self.running.alone = self.clock.copies.demand(size, demand.copies);
            }
        }
        if demand.low > 0 {
            let size = self.low.as_ref().unwrap_or(&self.costs).size(layer);
            let alone = self.clock.copies.demand(size, demand.low);
            self.running.alone = self.running.alone.saturating_add(alone);
        }
    }

    #[cold]
    fn judge_split(&mut self, demand: &LayerDemand<'_>) {
        let misses = demand.copies + demand.host;
        let event = SplitEvent {
            layer: demand.layer,
            tokens: self.step.tokens,
            distinct: demand.distinct,
            resident: demand.distinct.saturating_sub(misses + demand.dropped + demand.low),
            misses,
            further: demand.miss_further,
            busy: self.clock.copies.left(self.clock.now),
        };
        let Judged { rule, best, uncontended, fetch_all, host_all } =
            judge(&self.costs, &event, demand.copies, self.clock.beside_host());
        self.clock.cell(demand.layer).splits +=
            Splits { rule, best, uncontended, fetch_all, host_all };
    }

    #[cold]
    fn demand_recorded(&mut self, demand: &LayerDemand<'_>) {
        let copied =
            |placement: &&Placement| matches!(placement.action, Action::Fetch | Action::Unplaced);
        let mut experts = demand.placements.iter().filter(copied).map(|p| p.expert);
        for _ in 0..demand.copies {
            let begin = self.clock.next_copy();
            self.running.alone = self.clock.copies.demand(self.costs.size(demand.layer), 1);
            self.clock.record_copy("demand", demand.layer, experts.next(), begin);
        }
    }

    /// Copies of a prefetch for `layer` are queued behind those of the layer that runs.
    /// Of those, `reads` and whoever else it names come from disk first.
    pub fn prefetch(&mut self, layer: usize, plan: &Plan<'_>, reads: &[u32]) {
        for &expert in reads {
            self.clock.read(layer, expert, "ahead");
        }
        for placement in plan.placements {
            if placement.action == Action::Fetch {
                let begin = self.clock.next_copy();
                let busy = self.clock.copies.busy_until();
                let size = self.costs.size(layer);
                let ready = self.ready(layer, placement.expert);
                let ticket = self.clock.copies.ahead_once(size, ready);
                self.ahead.push(layer, placement.expert, busy, ticket);
                self.step.prefetches += 1;
                self.clock.record_copy("prefetch", layer, Some(placement.expert), begin);
            }
        }
    }

    /// A layer of a prefill whose experts stream, all of them, through one of two buffers while
    /// the layer before it runs.
    pub fn stream_layer(&mut self, layer: usize, distinct: u32) {
        if layer == 0 {
            self.queue_layer(0);
        }
        if layer + 1 < self.experts.len() {
            // Its buffer was that of the layer before this one, which is done.
            self.queue_layer(layer + 1);
        }
        self.route(layer);
        let late = self.clock.copies.need(self.buffers[layer % 2]);
        let waiting = if late { distinct } else { 0 };
        self.running = Running { layer, distinct, waiting, alone: u64::MAX, ..Running::default() };
        self.finish_layer();
    }

    fn queue_layer(&mut self, layer: usize) {
        self.clock.copies.begin(self.clock.now);
        let begin = self.clock.next_copy();
        let experts = self.experts[layer];
        self.buffers[layer % 2] = self.clock.copies.ahead(self.costs.size(layer), experts);
        self.step.copies += experts;
        self.clock.record_copy("whole layer", layer, None, begin);
    }

    /// The step ends with its last kernel and the host's learning of that; copies may go on.
    #[inline(always)]
    pub fn end_step(&mut self) {
        if self.costs.step > 0 {
            self.clock.spend(self.running.layer, self.costs.step);
        }
        if self.keep_steps {
            let RunningStep { phase, steady, begin, copies, prefetches, .. } = self.step;
            let ps = self.clock.now - begin;
            self.clock.times.steps.push(StepTime { ps, copies, prefetches, phase, steady });
        }
    }

    /// What the run took, its last copies included, and the recording if one was asked for.
    #[must_use]
    pub fn finish(mut self) -> (Times, Option<Recorder>) {
        self.clock.drain(self.running.layer);
        (self.clock.times, self.clock.recorder.map(|recorder| *recorder))
    }
}
