//! The clock of a timeline: kernels, waits and what they cost.

use std::ops::Range;

use hotset_cost_models::{Contention, HostContention};
use hotset_traces::Phase;

use super::copies::Copies;
use super::disk::DiskQueue;
use super::overlap::{Job, beside};
use super::record::{Lane, Recorder};
use super::spent::{Spent, Times};
use super::split::Slowdown;

/// Where the compute stream stands, what it waited for until then, and the copies beside it.
#[derive(Debug)]
pub(super) struct Clock {
    pub now: u64,
    pub copies: Copies,
    pub times: Times,
    pub recorder: Option<Box<Recorder>>,
    /// The disk, where there is one.
    pub disk: Option<Box<DiskQueue>>,
    contention: Contention,
    host: HostContention,
    /// Until when the host's cores are at work for layers before the one that runs.
    host_busy: u64,
    /// Where the running phase's and window's cells begin.
    row: usize,
}

impl Clock {
    pub fn new(
        layers: usize,
        copies: Copies,
        contention: Contention,
        host: HostContention,
    ) -> Self {
        let times = Times::new(layers);
        Self {
            now: 0,
            copies,
            times,
            recorder: None,
            disk: None,
            contention,
            host,
            host_busy: 0,
            row: 0,
        }
    }

    /// What a layer spends in the running phase and window.
    #[inline(always)]
    pub fn cell(&mut self, layer: usize) -> &mut Spent {
        self.times.cell(self.row + layer)
    }

    /// A step of this phase and window begins. Where they change, the copies that are in flight
    /// are waited for, on the account of `layer`, so that no figure pays for another's.
    #[inline(always)]
    pub fn begin_step(&mut self, phase: Phase, steady: bool, layer: usize) {
        let row = self.times.row_of(phase, steady);
        if row != self.row {
            self.drain(layer);
        }
        self.row = row;
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_step();
        }
    }

    /// A kernel runs, beside copies if there are any.
    #[inline(always)]
    pub fn kernel(&mut self, layer: usize, alone: u64, name: &'static str) {
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
        let cell = self.cell(layer);
        cell.compute = cell.compute.saturating_add(alone);
        cell.slowed = cell.slowed.saturating_add(time - alone);
        self.now = begin.saturating_add(time);
        if self.recorder.is_some() {
            self.record(Lane::Compute, name, layer, None, begin..self.now);
        }
    }

    /// Work that nothing disturbs.
    #[inline(always)]
    pub fn spend(&mut self, layer: usize, time: u64) {
        let cell = self.cell(layer);
        cell.compute = cell.compute.saturating_add(time);
        self.now = self.now.saturating_add(time);
    }

    /// Waits for what the layer's kernel reads, whose own copies take `alone` on an idle link.
    #[inline(always)]
    pub fn wait_for_copies(&mut self, layer: usize, alone: u64) {
        let wait = self.copies.arrived(self.now).saturating_sub(self.now);
        let demand = wait.min(alone);
        let cell = self.cell(layer);
        cell.demand = cell.demand.saturating_add(demand);
        cell.prefetch = cell.prefetch.saturating_add(wait - demand);
        self.now = self.now.saturating_add(wait);
    }

    /// Waits for the host's cores, which are done at `done`.
    #[inline(always)]
    pub fn wait_for_host(&mut self, layer: usize, done: u64) {
        if done > self.now {
            self.cell(layer).host += done - self.now;
            self.now = done;
        }
    }

    /// Waits until the disk has given what the layer needs.
    #[inline(always)]
    pub fn wait_for_disk(&mut self, layer: usize, done: u64) {
        if done > self.now {
            self.cell(layer).disk += done - self.now;
            self.now = done;
        }
    }

    /// The host's cores work until `done` at least: for an expert that came late.
    pub fn keep_host_busy(&mut self, done: u64) {
        self.host_busy = self.host_busy.max(done);
    }

    /// Reads an expert from disk, asked for now; returns when it is in host memory.
    pub fn read(&mut self, layer: usize, expert: u32, name: &'static str) -> u64 {
        let now = self.now;
        let Some(disk) = &mut self.disk else { return 0 };
        let begin = disk.free.max(now);
        let done = disk.read(layer, expert, now);
        if self.recorder.is_some() {
            self.record(Lane::Disk, name, layer, Some(expert), begin..done);
        }
        done
    }

    /// Whether the host's cores are still at work for layers before the one that runs.
    #[inline(always)]
    pub fn host_is_busy(&self) -> bool {
        self.host_busy > self.now
    }

    /// What copies and the host's cores cost each other.
    pub fn beside_host(&self) -> Slowdown {
        Slowdown { copy: self.host.copy_permille, host: self.host.host_permille }
    }

    /// The host's cores work from now on, behind what the layer before left them and beside the
    /// copies. Returns when the layer has all that it waits for: they go on with `later`.
    #[cold]
    pub fn serve_on_host(&mut self, layer: usize, work: u64, later: u64) -> u64 {
        let handoff = if work > 0 { self.host.handoff_ps } else { 0 };
        let behind =
            work.saturating_add(handoff).saturating_add(self.host_busy.saturating_sub(self.now));
        let queued = self.copies.left(self.now);
        let ends = beside(
            Job { alone: behind, permille: self.host.host_permille },
            Job { alone: queued, permille: self.host.copy_permille },
        );
        self.copies.hold(ends.second - queued);
        let cell = self.cell(layer);
        cell.host_work = cell.host_work.saturating_add(work.saturating_add(later));
        let done = self.now.saturating_add(ends.first);
        self.host_busy = done.saturating_add(later);
        self.record(Lane::Host, "host", layer, None, self.now..done);
        done
    }

    /// Waits for all copies and the host's cores, on the account of `layer`.
    pub fn drain(&mut self, layer: usize) {
        let reads = self.disk.as_ref().map_or(0, |disk| disk.free.saturating_sub(self.now));
        let host = self.host_busy.saturating_sub(self.now);
        let left = self.copies.left(self.now).max(host).max(reads);
        if left > 0 {
            let cell = self.cell(layer);
            cell.drained = cell.drained.saturating_add(left);
            self.now = self.now.saturating_add(left);
        }
    }

    /// When a copy that is queued now begins, for the record.
    #[inline(always)]
    pub fn next_copy(&self) -> u64 {
        self.copies.last_arrival().max(self.now)
    }

    /// Records the copy that was queued last and begins at `begin`.
    #[inline(always)]
    pub fn record_copy(
        &mut self,
        name: &'static str,
        layer: usize,
        expert: Option<u32>,
        begin: u64,
    ) {
        if self.recorder.is_some() {
            let end = self.copies.last_arrival();
            self.record(Lane::Copy, name, layer, expert, begin..end);
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
