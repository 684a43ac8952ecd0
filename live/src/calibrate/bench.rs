//! Kernels, copies and rounds between two events.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::LiveError;
use crate::gpu::{DeviceMemory, Event, ExpertKernel, Gpu, MOST_PLACES, PinnedMemory, Stream};
use crate::model::LiveModel;
use crate::weights;

use super::ROUND_KERNEL;

/// Kernels read this much memory in turn: many times what caches hold.
pub(super) const READ_POOL: usize = 2 << 30;
/// Copies go to this much memory, or as much as the experts are.
const SLOT_POOL: usize = 8 << 30;

/// What is measured with.
pub(super) struct Bench<'m> {
    pub model: &'m LiveModel,
    pub compute: Stream,
    pub copies: Stream,
    begin: Event,
    end: Event,
    routed: Event,
    arrived: Vec<Event>,
    memory: DeviceMemory,
    slots: DeviceMemory,
    sums: DeviceMemory,
    go: PinnedMemory,
    /// Bytes of the pool that copies come from.
    pool: usize,
    read_at: Cell<usize>,
    random: Cell<u64>,
}

impl<'m> Bench<'m> {
    pub fn new(model: &'m LiveModel) -> Result<Self, LiveError> {
        let gpu: &Arc<Gpu> = &model.gpu;
        gpu.make_current()?;
        let pool = model.layout.stride * model.layout.experts() as usize;
        let memory = DeviceMemory::new(gpu, READ_POOL)?;
        let copies = Stream::new(gpu)?;
        // Weights, not zeros: what lies there costs energy too.
        let mut at = 0;
        while at < READ_POOL {
            let part = pool.min(READ_POOL - at);
            model.pool.copy(&copies, (&memory, at), 0, part)?;
            at += part;
        }
        copies.synchronize()?;
        Ok(Self {
            compute: Stream::new(gpu)?,
            copies,
            begin: Event::new(gpu, true)?,
            end: Event::new(gpu, true)?,
            routed: Event::new(gpu, false)?,
            arrived: (0..16).map(|_| Event::new(gpu, false)).collect::<Result<_, _>>()?,
            memory,
            slots: DeviceMemory::new(gpu, pool.min(SLOT_POOL))?,
            sums: DeviceMemory::new(gpu, MOST_PLACES * 8)?,
            go: PinnedMemory::new(gpu, 64)?,
            pool,
            read_at: Cell::new(0),
            random: Cell::new(7),
            model,
        })
    }

    /// The largest copy that the pools allow.
    pub fn largest(&self) -> u64 {
        self.pool.min(self.slots.len()) as u64 / 2
    }

    /// Half a second of kernels, for the clocks to rise.
    pub fn warm_up(&self) -> Result<(), LiveError> {
        for _ in 0..50 {
            self.timed_kernels(1000, ROUND_KERNEL, 1)?;
        }
        Ok(())
    }

    /// xorshift64*: any places will do.
    fn any(&self, below: usize) -> usize {
        let mut x = self.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below.max(1)
    }

    pub fn kernel(&self, bytes: u64, pieces: u32) -> Result<(), LiveError> {
        let stride = (bytes as usize).next_multiple_of(256);
        let fit = READ_POOL / stride;
        let first = self.read_at.get();
        let places: Vec<u32> = (0..pieces).map(|i| ((first + i as usize) % fit) as u32).collect();
        self.read_at.set((first + pieces as usize) % fit);
        let kernel = ExpertKernel {
            slots: &self.memory,
            stride,
            rows: weights::rows(bytes),
            inputs: (&self.model.device_inputs, 0),
            sums: (&self.sums, 0),
            places: &places,
        };
        self.model.kernels.experts(&self.compute, &kernel)
    }

    pub fn copy(&self, bytes: u64) -> Result<(), LiveError> {
        let len = bytes as usize;
        let from = self.any((self.pool - len) / 256) * 256;
        let to = self.any((self.slots.len() - len) / 256) * 256;
        self.model.pool.copy(&self.copies, (&self.slots, to), from, len)
    }

    /// Milliseconds between two events around `work` on a stream.
    pub fn timed(
        &self,
        stream: &Stream,
        work: impl FnOnce() -> Result<(), LiveError>,
    ) -> Result<f64, LiveError> {
        self.model.gpu.synchronize()?;
        stream.record(&self.begin)?;
        work()?;
        stream.record(&self.end)?;
        self.model.gpu.synchronize()?;
        self.begin.ms_until(&self.end)
    }

    pub fn timed_kernels(&self, kernels: u32, bytes: u64, pieces: u32) -> Result<f64, LiveError> {
        self.read_at.set(0);
        self.timed(&self.compute, || (0..kernels).try_for_each(|_| self.kernel(bytes, pieces)))
    }

    /// Bytes of the model's largest experts, and how many of a layer a token uses.
    pub fn own_experts(&self) -> (u64, u32) {
        (self.model.expert_bytes(), self.model.layout.top_k)
    }

    /// A step as the loop has it when every expert is resident: begun, its layers queued, waited for, by the host's clock.
    pub fn timed_step(&self, layers: u32) -> Result<f64, LiveError> {
        let (bytes, top_k) = self.own_experts();
        let stride = (bytes as usize).next_multiple_of(256);
        let slots = READ_POOL / stride;
        // Wherever they are: known before the step, as hits are.
        let places: Vec<u32> = (0..layers * top_k).map(|_| self.any(slots) as u32).collect();
        let dense = &self.model.dense;
        let inputs =
            |layer: u32| (&self.model.device_inputs, layer as usize % self.model.inputs.len());
        let started = Instant::now();
        self.compute.record(&self.begin)?;
        for (layer, places) in (0..layers).zip(places.chunks(top_k as usize)) {
            let of_model = layer % self.model.layout.expert_bytes.len() as u32;
            let kernel = ExpertKernel {
                slots: &dense.memory,
                stride: dense.stride,
                rows: dense.rows,
                inputs: inputs(layer),
                sums: (&self.sums, 0),
                places: &[of_model],
            };
            self.model.kernels.experts(&self.compute, &kernel)?;
            let rows = weights::rows(bytes);
            let kernel = ExpertKernel { slots: &self.memory, stride, rows, places, ..kernel };
            self.model.kernels.experts(&self.compute, &kernel)?;
        }
        self.compute.record(&self.end)?;
        self.compute.synchronize()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    }

    pub fn timed_copies(&self, bytes: u64, copies: u32) -> Result<f64, LiveError> {
        self.timed(&self.copies, || (0..copies).try_for_each(|_| self.copy(bytes)))
    }

    /// A kernel, an event, the copies with an event each, the wait for the last, a kernel.
    pub fn timed_rounds(&self, rounds: u32, bytes: u64, copies: u32) -> Result<f64, LiveError> {
        self.read_at.set(0);
        let round = || {
            self.kernel(ROUND_KERNEL, 1)?;
            self.compute.record(&self.routed)?;
            self.copies.wait(&self.routed)?;
            for event in self.arrived.iter().take(copies as usize) {
                self.copy(bytes)?;
                self.copies.record(event)?;
            }
            if let Some(last) = copies.checked_sub(1) {
                self.compute.wait(&self.arrived[last as usize])?;
            }
            self.kernel(ROUND_KERNEL, 1)
        };
        self.timed(&self.compute, || (0..rounds).try_for_each(|_| round()))
    }

    /// One of kernels back to back while copies run: both queues are full before either begins.
    pub fn kernels_beside_copies(
        &self,
        bytes: u64,
        pieces: u32,
        copy: u64,
    ) -> Result<f64, LiveError> {
        const KERNELS: u32 = 40;
        self.held(|| {
            (0..400).try_for_each(|_| self.copy(copy))?;
            self.compute.record(&self.begin)?;
            (0..KERNELS).try_for_each(|_| self.kernel(bytes, pieces))?;
            self.compute.record(&self.end)
        })
        .map(|ms| ms / f64::from(KERNELS))
    }

    /// A burst of copies while kernels read all the while.
    pub fn copies_beside_kernels(&self, bytes: u64, copies: u32) -> Result<f64, LiveError> {
        // Kernels of 256 MiB, for longer than the copies take at 50 GiB/s; a queue holds a thousand.
        let mib = (u64::from(copies) * bytes) >> 20;
        let kernels = 20 + mib.min(800);
        self.held(|| {
            (0..kernels).try_for_each(|_| self.kernel(ROUND_KERNEL, 32))?;
            self.copies.record(&self.begin)?;
            (0..copies).try_for_each(|_| self.copy(bytes))?;
            self.copies.record(&self.end)
        })
    }

    fn held(&self, queue: impl FnOnce() -> Result<(), LiveError>) -> Result<f64, LiveError> {
        self.model.gpu.synchronize()?;
        self.go.atomic(0).store(0, Ordering::Release);
        self.model.kernels.hold(&self.compute, &self.go, 0)?;
        self.model.kernels.hold(&self.copies, &self.go, 0)?;
        let queued = queue();
        self.go.atomic(0).store(1, Ordering::Release);
        queued?;
        self.model.gpu.synchronize()?;
        self.begin.ms_until(&self.end)
    }
}
