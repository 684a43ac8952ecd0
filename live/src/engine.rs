//! The engine's loop: what a cache decides, carried out on two streams.

use std::time::Instant;

use hotset_policies::{Action, Key, Plan, Resized};
use hotset_sim::{DecisionDigest, Device, DeviceEvent, PassedExpert};
use hotset_traces::Phase;

use crate::LiveError;
use crate::checks::Checks;
use crate::copies::Copies;
use crate::gpu::{DeviceMemory, Event, ExpertKernel, MOST_PLACES, Stream};
use crate::host::{Flags, Workers};
use crate::model::LiveModel;
use crate::pool::Pool;
use crate::record::Log;
use crate::run::LiveStep;

/// A fault put into the loop on purpose, to see that the sums find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// The kernel does not wait for its copies.
    NoWait,
    /// Copies do not wait until their slots' last kernel has run.
    EarlyReuse,
    /// Each copy takes the expert behind the one that was asked for.
    WrongExpert,
}

/// How slots of all pools lie one after another.
#[derive(Debug, Clone)]
pub(crate) struct SlotMap {
    /// First slot of each layer's pool.
    pub bases: Vec<u32>,
    /// Slots over all pools, and behind them those of the transient buffer.
    pub total: u32,
    pub transient: u32,
}

/// The layer that runs.
#[derive(Debug, Default)]
struct Running {
    layer: usize,
    /// Slots and keys of what the kernel computes.
    slots: Vec<u32>,
    keys: Vec<Key>,
    /// The last copy that it needs.
    needed: u64,
    /// The task of the host's cores; 0: none.
    task: u32,
    /// Slots of the transient buffer that it has taken.
    transient: u32,
}

/// The loop of one run.
pub(crate) struct LiveEngine<'m> {
    model: &'m LiveModel,
    slots: DeviceMemory,
    map: SlotMap,
    compute: Stream,
    copies: Copies<'m>,
    workers: Option<Workers>,
    begin: Event,
    end: Event,
    planted: Option<Planted>,
    running: Running,
    checks: Checks,
    pub digest: DecisionDigest,
    pub log: Option<Log>,
    step: LiveStep,
    started: Instant,
    /// When the loop was left for the cache to decide.
    left: Instant,
    pub steps: Vec<LiveStep>,
    failed: Option<LiveError>,
    /// Copies that end each of the two buffers of streamed layers.
    buffers: [u64; 2],
}

impl<'m> LiveEngine<'m> {
    pub fn new(
        model: &'m LiveModel,
        map: SlotMap,
        host_threads: u32,
        planted: Option<Planted>,
    ) -> Result<Self, LiveError> {
        let gpu = &model.gpu;
        gpu.make_current()?;
        let bytes = (map.total + map.transient) as usize;
        let slots = DeviceMemory::new(gpu, bytes.saturating_mul(model.layout.stride))?;
        let workers = match &model.pool {
            _ if host_threads == 0 => None,
            Pool::Host(pool) => Some(Workers::new(host_threads, pool, &model.inputs)),
            Pool::Device(_) => return Err(LiveError::HostLacksExperts),
        };
        let now = Instant::now();
        Ok(Self {
            slots,
            compute: Stream::new(gpu)?,
            copies: Copies::new(model, (map.total + map.transient) as usize)?,
            workers,
            begin: Event::new(gpu, true)?,
            end: Event::new(gpu, true)?,
            planted,
            running: Running::default(),
            checks: Checks::new(gpu, &model.references, &model.layout)?,
            digest: DecisionDigest::default(),
            log: None,
            step: LiveStep::default(),
            started: now,
            left: now,
            steps: Vec::new(),
            failed: None,
            buffers: [0; 2],
            model,
            map,
        })
    }

    /// What went wrong, else what was checked: experts computed by the accelerator and the host.
    pub fn finish(
        mut self,
    ) -> Result<(Vec<LiveStep>, u64, DecisionDigest, Option<Log>), LiveError> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        self.collect()?;
        let checked = self.checks.finish()?;
        Ok((self.steps, checked, self.digest, self.log))
    }

    fn carry_out(&mut self, work: impl FnOnce(&mut Self) -> Result<(), LiveError>) {
        if self.failed.is_none()
            && let Err(error) = work(self)
        {
            self.failed = Some(error);
        }
    }

    /// Since the loop was left, the host walked the trace and the cache decided.
    fn decided(&mut self) {
        self.step.decide_ns += self.left.elapsed().as_nanos() as u64;
    }

    /// A layer's dense kernel: what runs before its routing is known.
    fn dense(&mut self, layer: usize) -> Result<(), LiveError> {
        let dense = &self.model.dense;
        let kernel = ExpertKernel {
            slots: &dense.memory,
            stride: dense.stride,
            rows: dense.rows,
            inputs: (&self.model.device_inputs, layer),
            sums: self.checks.unchecked(),
            places: &[layer as u32],
        };
        self.model.kernels.experts(&self.compute, &kernel)
    }

    /// Copies from now on wait until the routing is known: all kernels before it have run by then.
    fn route(&mut self) -> Result<(), LiveError> {
        let waits = self.planted != Some(Planted::EarlyReuse);
        self.copies.route(&self.compute, waits)
    }

    /// Queues the copy of an expert into a slot of all pools.
    fn copy(&mut self, key: Key, slot: u32) -> Result<u64, LiveError> {
        self.route()?;
        let from = match self.planted {
            Some(Planted::WrongExpert) => (key + 1) % self.model.layout.experts(),
            _ => key,
        };
        self.copies.copy(&self.slots, slot, from)
    }

    fn slot(&self, layer: usize, slot: u32) -> u32 {
        self.map.bases[layer] + slot
    }

    /// The kernel computes the expert in this slot, once it is there.
    fn use_slot(&mut self, key: Key, slot: u32) {
        self.running.slots.push(slot);
        self.running.keys.push(key);
        self.running.needed = self.running.needed.max(self.copies.arrival(slot));
    }

    /// Copies an expert that no slot keeps, and computes it.
    fn pass_through(&mut self, key: Key) -> Result<(), LiveError> {
        let slot = self.map.total + self.running.transient;
        self.running.transient += 1;
        self.copy(key, slot)?;
        self.step.copies += 1;
        self.use_slot(key, slot);
        Ok(())
    }

    fn serve(&mut self, event: &DeviceEvent<'_>) -> Result<(), LiveError> {
        let layer = event.layer;
        self.begin_layer(layer);
        if !event.on_host.is_empty()
            && let Some(workers) = &mut self.workers
        {
            let keys: Vec<Key> =
                event.on_host.iter().map(|&expert| self.model.layout.key(layer, expert)).collect();
            self.step.host += keys.len() as u32;
            self.running.task = workers.queue(layer, keys);
            if let Pool::Host(pool) = &self.model.pool {
                self.compute.tell(pool.flags(), Flags::ROUTED, self.running.task)?;
            }
        }
        for placement in event.placements {
            let key = self.model.layout.key(layer, placement.expert);
            match placement.action {
                Action::Hit | Action::PrefetchHit | Action::Pending => {
                    self.use_slot(key, self.slot(layer, placement.slot));
                }
                Action::Fetch => {
                    let slot = self.slot(layer, placement.slot);
                    self.copy(key, slot)?;
                    self.step.copies += 1;
                    self.use_slot(key, slot);
                }
                Action::Unplaced => self.pass_through(key)?,
            }
        }
        Ok(())
    }

    fn begin_layer(&mut self, layer: usize) {
        self.running.layer = layer;
        self.running.slots.clear();
        self.running.keys.clear();
        self.running.needed = 0;
        self.running.task = 0;
        self.running.transient = 0;
        self.copies.new_layer();
    }

    /// Queues all experts of a layer into the buffer that is its own.
    fn queue_layer(&mut self, layer: usize) -> Result<(), LiveError> {
        let layout = &self.model.layout;
        let (base, end) = (layout.bases[layer], layout.bases[layer + 1]);
        let first = (layer % 2) as u32 * layout.widest;
        for key in base..end {
            self.buffers[layer % 2] = self.copy(key, first + (key - base))?;
            self.step.copies += 1;
        }
        Ok(())
    }

    fn stream_layer(&mut self, layer: usize, experts: &[u16]) -> Result<(), LiveError> {
        self.begin_layer(layer);
        if layer == 0 {
            self.queue_layer(0)?;
        }
        if layer + 1 < self.model.layout.expert_bytes.len() {
            self.queue_layer(layer + 1)?;
        }
        let first = (layer % 2) as u32 * self.model.layout.widest;
        for &expert in experts {
            let key = self.model.layout.key(layer, u32::from(expert));
            self.running.slots.push(first + u32::from(expert));
            self.running.keys.push(key);
        }
        self.running.needed = self.buffers[layer % 2];
        Ok(())
    }

    fn compute_layer(&mut self) -> Result<(), LiveError> {
        let layer = self.running.layer;
        if self.planted != Some(Planted::NoWait) {
            self.copies.wait(&self.compute, self.running.needed)?;
        }
        if self.running.task > 0
            && let Pool::Host(pool) = &self.model.pool
        {
            self.compute.wait_for(pool.flags(), Flags::DONE, self.running.task)?;
        }
        let keys = self.running.keys.chunks(MOST_PLACES);
        for (places, keys) in self.running.slots.chunks(MOST_PLACES).zip(keys) {
            let kernel = ExpertKernel {
                slots: &self.slots,
                stride: self.model.layout.stride,
                rows: self.model.layout.rows(layer),
                inputs: (&self.model.device_inputs, layer),
                sums: self.checks.expect(keys),
                places,
            };
            self.model.kernels.experts(&self.compute, &kernel)?;
        }
        let next = layer + 1;
        if next < self.model.layout.expert_bytes.len() { self.dense(next) } else { Ok(()) }
    }

    fn start_step(&mut self) -> Result<(), LiveError> {
        self.compute.record(&self.begin)?;
        self.dense(0)
    }

    fn complete_step(&mut self) -> Result<(), LiveError> {
        self.compute.record(&self.end)?;
        self.compute.synchronize()?;
        self.step.wall_ns = self.started.elapsed().as_nanos() as u64;
        self.step.gpu_ms = self.begin.ms_until(&self.end)?;
        self.steps.push(self.step);
        if self.checks.is_full() { self.collect() } else { Ok(()) }
    }

    /// Compares what was computed since the last time.
    fn collect(&mut self) -> Result<(), LiveError> {
        self.copies.drain()?;
        self.checks.compare()?;
        if let Some(workers) = &self.workers {
            for (key, sums) in workers.take_results() {
                self.checks.compare_one(key, sums, "host cores");
            }
        }
        Ok(())
    }
}

impl Device for LiveEngine<'_> {
    fn place(&mut self, key: Key, layer: usize, expert: u32, slot: u32) {
        self.digest.place(key, layer, expert, slot);
        let slot = self.slot(layer, slot);
        self.carry_out(|engine| {
            engine.copies.new_layer();
            engine.copy(key, slot)?;
            engine.copies.drain()
        });
    }

    fn begin_step(&mut self, phase: Phase, tokens: u32) {
        self.step = LiveStep { phase, tokens, ..LiveStep::default() };
        self.digest.begin_step(phase, tokens);
        self.started = Instant::now();
        self.carry_out(Self::start_step);
        self.left = Instant::now();
    }

    fn resized(&mut self, resized: &Resized) {
        self.digest.resized(resized);
        let moves = resized.moved.clone();
        self.carry_out(|engine| {
            engine.copies.new_layer();
            engine.route()?;
            for moved in &moves {
                let layer = engine.model.layout.layer_of(moved.key);
                let (from, to) = (engine.slot(layer, moved.from), engine.slot(layer, moved.to));
                engine.copies.move_slot(&engine.slots, from, to)?;
            }
            Ok(())
        });
    }

    fn demand(&mut self, event: &DeviceEvent<'_>) {
        self.decided();
        self.step.events += 1;
        self.digest.demand(event);
        if let Some(log) = &mut self.log {
            log.event(self.steps.len(), event);
        }
        self.carry_out(|engine| engine.serve(event));
        self.left = Instant::now();
    }

    fn pass_by(&mut self, layer: usize, experts: &[PassedExpert]) {
        self.decided();
        self.digest.pass_by(layer, experts);
        self.carry_out(|engine| {
            engine.begin_layer(layer);
            for passed in experts {
                let key = engine.model.layout.key(layer, passed.expert);
                match passed.slot {
                    Some(slot) => engine.use_slot(key, engine.slot(layer, slot)),
                    None => engine.pass_through(key)?,
                }
            }
            Ok(())
        });
        self.left = Instant::now();
    }

    fn stream(&mut self, layer: usize, experts: &[u16]) {
        self.decided();
        self.digest.stream(layer, experts);
        self.carry_out(|engine| engine.stream_layer(layer, experts));
        self.left = Instant::now();
    }

    fn prefetch(&mut self, layer: usize, plan: &Plan<'_>) {
        self.decided();
        self.digest.prefetch(layer, plan);
        self.carry_out(|engine| {
            for placement in plan.placements.iter().filter(|p| p.action == Action::Fetch) {
                let slot = engine.slot(layer, placement.slot);
                engine.copy(engine.model.layout.key(layer, placement.expert), slot)?;
                engine.step.prefetches += 1;
            }
            Ok(())
        });
        self.left = Instant::now();
    }

    fn finish_layer(&mut self) {
        self.decided();
        self.carry_out(Self::compute_layer);
        self.left = Instant::now();
    }

    fn end_step(&mut self) {
        self.carry_out(Self::complete_step);
        self.digest.end_step();
    }
}
