//! [`Timeline`]: the clock of one replay over one link.

use std::ops::Range;

use hotset_cost_models::{Contention, HostContention, Link};
use hotset_policies::{Action, Placement, Plan};
use hotset_traces::{Phase, Shape};

use super::cancel::Cancellable;
use super::copies::{Copies, Ticket};
use super::costs::Costs;
use super::demand::LayerDemand;
use super::model::{TimeModel, Wait};
use super::overlap::{Job, beside};
use super::record::{Lane, Recorder};
use super::spent::{Splits, StepTime, Times};
use super::split::{Judged, Slowdown, SplitEvent, judge};

/// The layer that runs.
#[derive(Debug, Default, Clone, Copy)]
struct Running {
    layer: usize,
    distinct: u32,
    host: u32,
    /// Of `host`, whose output the next layer adds; of `distinct`, not computed.
    deferred: u32,
    dropped: u32,
    /// Experts that had not arrived when the routing was known.
    waiting: u32,
    /// What the layer's own copies take on an idle link.
    alone: u64,
}

/// The clock of one replay over one link: call, for each step, [`begin_step`](Self::begin_step),
/// then for each layer [`demand`](Self::demand), [`prefetch`](Self::prefetch) as often as copies
/// are queued behind it, and [`finish_layer`](Self::finish_layer); then
/// [`end_step`](Self::end_step). Nothing is allocated between calls, but 24 bytes a step where
/// step times are kept.
#[derive(Debug)]
pub struct Timeline {
    costs: Costs,
    copies: Copies,
    hits_first: bool,
    contention: Contention,
    host: HostContention,
    /// Until when the host's cores are at work for layers before the one that runs.
    host_busy: u64,
    judges_splits: bool,
    /// Dense key of each layer's expert 0, and the copy that last brought each expert ahead.
    bases: Vec<u32>,
    ahead: Vec<Ticket>,
    /// Whole layers that stream through two buffers.
    buffers: [Ticket; 2],
    experts: Vec<u32>,
    now: u64,
    tokens: u32,
    step_start: u64,
    step_copies: u32,
    step_prefetches: u32,
    keep_steps: bool,
    phase: Phase,
    steady: bool,
    row: usize,
    running: Running,
    /// The layer's routing is known already.
    routed: bool,
    /// Prefetches that may be taken back.
    queue: Option<Box<Cancellable>>,
    times: Times,
    recorder: Option<Box<Recorder>>,
}

impl Timeline {
    /// A timeline of a model over a link. Every layer's expert bytes must be known.
    #[must_use]
    pub fn new(shape: &Shape, link: &Link, model: &TimeModel) -> Self {
        let layers = shape.layers().len();
        let contention =
            if model.contention { link.contention.clone() } else { Contention::default() };
        let host = model.host_beside(link);
        let rate = link.host_kernel.map_or(host.host_ps_per_mib, |kernel| kernel.ps_per_mib);
        Self {
            costs: Costs::new(shape, link, &model.compute, rate),
            copies: Copies::new(model.copies),
            hits_first: model.wait == Wait::HitsFirst,
            contention,
            host,
            host_busy: 0,
            judges_splits: model.judges_splits && rate > 0,
            bases: (0..layers).map(|layer| shape.key_base(layer)).collect(),
            ahead: vec![Ticket::default(); shape.total_experts() as usize],
            buffers: [Ticket::default(); 2],
            experts: shape.layers().iter().map(|layer| layer.experts).collect(),
            now: 0,
            tokens: 0,
            step_start: 0,
            step_copies: 0,
            step_prefetches: 0,
            keep_steps: false,
            phase: Phase::Decode,
            steady: false,
            row: 0,
            running: Running::default(),
            routed: false,
            queue: None,
            times: Times::new(layers),
            recorder: None,
        }
    }

    /// Keeps each step's time.
    #[must_use]
    pub fn with_steps(mut self) -> Self {
        self.keep_steps = true;
        self
    }

    /// Records what ran when.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(Box::new(recorder));
        self
    }

    /// A step of `tokens` tokens begins. Where the phase or the window changes, the copies that
    /// are in flight are waited for, so that no figure pays for another's.
    #[inline(always)]
    pub fn begin_step(&mut self, phase: Phase, steady: bool, tokens: u32) {
        let row = self.times.row_of(phase, steady);
        if row != self.row {
            self.drain();
        }
        (self.phase, self.steady, self.row, self.tokens) = (phase, steady, row, tokens);
        self.step_start = self.now;
        (self.step_copies, self.step_prefetches) = (0, 0);
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_step();
        }
    }

    /// The layer's routing becomes known.
    #[inline(always)]
    fn route(&mut self, layer: usize) {
        let dense = self.costs.dense(layer, self.tokens);
        self.kernel(layer, dense, "dense");
        self.copies.begin(self.now);
    }

    /// The layer's routing becomes known, and copies of a prefetch for it that have not begun and
    /// that nobody wants are taken back: `unwanted` is told of each expert whose copy has not
    /// begun and says whether it is. The layer's [`demand`](Self::demand) follows. Only where
    /// copies run in order and were told to be kept track of.
    pub fn route_and_cancel(&mut self, layer: usize, mut unwanted: impl FnMut(u32) -> bool) {
        self.route(layer);
        self.routed = true;
        let Some(mut queue) = self.queue.take() else { return };
        let base = self.bases[layer];
        let keys = base..base + self.experts[layer];
        let unwanted = |key: u32| unwanted(key - base);
        let cancelled = queue.cancel(&mut self.copies, &mut self.ahead, keys, unwanted);
        self.step_prefetches = self.step_prefetches.saturating_sub(cancelled);
        self.queue = Some(queue);
    }

    /// Keeps track of the prefetches that are queued, so that they can be taken back.
    #[must_use]
    pub fn with_cancelling(mut self) -> Self {
        self.queue = Some(Box::default());
        self
    }

    /// Whether queued copies can be taken back: they run in order.
    #[must_use]
    pub fn can_cancel(&self) -> bool {
        !self.copies.is_shared()
    }

    /// The layer's routing becomes known and its missing experts are queued for copying.
    #[inline(always)]
    pub fn demand(&mut self, demand: LayerDemand<'_>) {
        let layer = demand.layer;
        if !std::mem::take(&mut self.routed) {
            self.route(layer);
        }
        self.step_copies += demand.copies;
        self.running = Running {
            layer,
            distinct: demand.distinct,
            host: demand.host,
            deferred: demand.deferred,
            dropped: demand.dropped,
            waiting: demand.copies,
            alone: 0,
        };
        if demand.prefetched > 0 || self.copies.is_shared() {
            self.need_prefetched(&demand);
        }
        if self.judges_splits && demand.copies + demand.host > 0 {
            self.judge_split(&demand);
        }
        if demand.copies > 0 {
            if self.recorder.is_some() {
                self.demand_recorded(&demand);
            } else {
                let size = self.costs.size(layer);
                self.running.alone = self.copies.demand(size, demand.copies);
            }
        }
    }

    #[cold]
    fn judge_split(&mut self, demand: &LayerDemand<'_>) {
        let misses = demand.copies + demand.host;
        let event = SplitEvent {
            layer: demand.layer,
            tokens: self.tokens,
            distinct: demand.distinct,
            resident: demand.distinct.saturating_sub(misses + demand.dropped),
            misses,
            busy: self.copies.left(self.now),
        };
        let slowed = Slowdown { copy: self.host.copy_permille, host: self.host.host_permille };
        let Judged { rule, best, uncontended, fetch_all, host_all } =
            judge(&self.costs, &event, demand.copies, slowed);
        let cell = self.times.cell(self.row + demand.layer);
        cell.splits += Splits { rule, best, uncontended, fetch_all, host_all };
    }

    fn need_prefetched(&mut self, demand: &LayerDemand<'_>) {
        let base = self.bases[demand.layer];
        let mut late = 0;
        for placement in demand.placements {
            match placement.action {
                Action::PrefetchHit => {
                    let key = base + placement.expert;
                    late += u32::from(self.copies.need(self.ahead[key as usize]));
                }
                Action::Fetch => {
                    if let Some(key) = placement.evicted() {
                        self.copies.follow(self.ahead[key as usize]);
                    }
                }
                _ => {}
            }
        }
        self.running.waiting += late;
        self.times.cell(self.row + demand.layer).late += u64::from(late);
    }

    #[cold]
    fn demand_recorded(&mut self, demand: &LayerDemand<'_>) {
        let copied =
            |placement: &&Placement| matches!(placement.action, Action::Fetch | Action::Unplaced);
        let mut experts = demand.placements.iter().filter(copied).map(|p| p.expert);
        for _ in 0..demand.copies {
            let begin = self.copies.last_arrival().max(self.now);
            let size = self.costs.size(demand.layer);
            self.running.alone = self.copies.demand(size, 1);
            let end = self.copies.last_arrival();
            self.record(Lane::Copy, "demand", demand.layer, experts.next(), begin..end);
        }
    }

    /// Copies of a prefetch for `layer` are queued behind those of the layer that runs.
    pub fn prefetch(&mut self, layer: usize, plan: &Plan<'_>) {
        let base = self.bases[layer];
        for placement in plan.placements {
            if placement.action == Action::Fetch {
                let begin = self.copies.last_arrival().max(self.now);
                let busy = self.copies.busy_until();
                let ticket = self.copies.ahead(self.costs.size(layer), 1);
                let key = base + placement.expert;
                self.ahead[key as usize] = ticket;
                if let Some(queue) = &mut self.queue {
                    queue.push(key, busy, ticket);
                }
                self.step_prefetches += 1;
                if self.recorder.is_some() {
                    let span = begin..self.copies.last_arrival();
                    self.record(Lane::Copy, "prefetch", layer, Some(placement.expert), span);
                }
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
        let dense = self.costs.dense(layer, self.tokens);
        self.kernel(layer, dense, "dense");
        self.copies.begin(self.now);
        let late = self.copies.need(self.buffers[layer % 2]);
        let waiting = if late { distinct } else { 0 };
        self.running = Running { layer, distinct, waiting, alone: u64::MAX, ..Running::default() };
        self.finish_layer();
    }

    fn queue_layer(&mut self, layer: usize) {
        self.copies.begin(self.now);
        let begin = self.copies.last_arrival().max(self.now);
        self.buffers[layer % 2] = self.copies.ahead(self.costs.size(layer), self.experts[layer]);
        self.step_copies += self.experts[layer];
        if self.recorder.is_some() {
            let span = begin..self.copies.last_arrival();
            self.record(Lane::Copy, "whole layer", layer, None, span);
        }
    }

    /// The layer's experts run once they are there.
    #[inline(always)]
    pub fn finish_layer(&mut self) {
        let Running { layer, distinct, host, deferred, dropped, waiting, alone } = self.running;
        let on_gpu = distinct - host - dropped;
        let serves = host > 0 || self.host_busy > self.now;
        let host_done = if serves { self.serve_on_host(layer, host, deferred) } else { 0 };
        let mut left = on_gpu;
        if waiting > 0 {
            let ready = on_gpu - waiting;
            if self.hits_first && ready > 0 && self.copies.arrived(self.now) > self.now {
                let experts = self.costs.experts(layer, self.tokens, ready, distinct);
                self.kernel(layer, experts, "experts (hits)");
                left = waiting;
            }
            let wait = self.copies.arrived(self.now).saturating_sub(self.now);
            let demand = wait.min(alone);
            let cell = self.times.cell(self.row + layer);
            cell.demand = cell.demand.saturating_add(demand);
            cell.prefetch = cell.prefetch.saturating_add(wait - demand);
            self.now = self.now.saturating_add(wait);
        }
        if host_done > self.now {
            self.times.cell(self.row + layer).host += host_done - self.now;
            self.now = host_done;
        }
        let experts = self.costs.experts(layer, self.tokens, left, distinct);
        self.kernel(layer, experts, "experts");
    }

    /// The host's cores serve experts from now on, behind what the layer before left them and beside
    /// the copies. Returns when the layer has all that it waits for: they go on with what is deferred.
    #[cold]
    fn serve_on_host(&mut self, layer: usize, experts: u32, deferred: u32) -> u64 {
        let each = self.costs.size(layer).host;
        let late = each.saturating_mul(u64::from(deferred));
        let work = each.saturating_mul(u64::from(experts - deferred));
        let whole = work.saturating_add(late);
        let work = work.saturating_add(self.host_busy.saturating_sub(self.now));
        let queued = self.copies.left(self.now);
        let ends = beside(
            Job { alone: work, permille: self.host.host_permille },
            Job { alone: queued, permille: self.host.copy_permille },
        );
        self.copies.hold(ends.second - queued);
        let cell = self.times.cell(self.row + layer);
        cell.host_work = cell.host_work.saturating_add(whole);
        let done = self.now.saturating_add(ends.first);
        self.host_busy = done.saturating_add(late);
        self.record(Lane::Host, "host", layer, None, self.now..done);
        done
    }

    /// A kernel runs, beside copies if there are any.
    #[inline(always)]
    fn kernel(&mut self, layer: usize, alone: u64, name: &'static str) {
        let begin = self.now;
        let queued = self.copies.left(begin);
        let mut time = alone;
        if queued > 0 && alone > 0 {
            let ends = beside(
                Job { alone, permille: self.contention.kernel_beside_copy_permille },
                Job { alone: queued, permille: self.contention.copy_beside_kernel_permille },
            );
            self.copies.hold(ends.second - queued);
            time = ends.first;
        }
        let cell = self.times.cell(self.row + layer);
        cell.compute = cell.compute.saturating_add(alone);
        cell.slowed = cell.slowed.saturating_add(time - alone);
        self.now = begin.saturating_add(time);
        if self.recorder.is_some() {
            self.record(Lane::Compute, name, layer, None, begin..self.now);
        }
    }

    /// The step ends with its last kernel and the host's learning of that; copies may go on.
    #[inline(always)]
    pub fn end_step(&mut self) {
        if self.costs.step > 0 {
            let cell = self.times.cell(self.row + self.running.layer);
            cell.compute = cell.compute.saturating_add(self.costs.step);
            self.now = self.now.saturating_add(self.costs.step);
        }
        if self.keep_steps {
            let ps = self.now - self.step_start;
            self.times.steps.push(StepTime {
                ps,
                copies: self.step_copies,
                prefetches: self.step_prefetches,
                phase: self.phase,
                steady: self.steady,
            });
        }
    }

    /// What the run took, its last copies included, and the recording if one was demand for.
    #[must_use]
    pub fn finish(mut self) -> (Times, Option<Recorder>) {
        self.drain();
        (self.times, self.recorder.map(|recorder| *recorder))
    }

    fn drain(&mut self) {
        let left = self.copies.left(self.now).max(self.host_busy.saturating_sub(self.now));
        if left > 0 {
            let cell = self.times.cell(self.row + self.running.layer);
            cell.drained = cell.drained.saturating_add(left);
            self.now = self.now.saturating_add(left);
        }
    }

    #[cold]
    fn record(
        &mut self,
        lane: Lane,
        name: &'static str,
        layer: usize,
        expert: Option<u32>,
        span: Range<u64>,
    ) {
        if let Some(recorder) = &mut self.recorder {
            recorder.add(lane, name, layer as u32, expert, span);
        }
    }
}
