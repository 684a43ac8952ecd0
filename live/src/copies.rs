//! The copy stream: copies in order, an event each, and who waits for which.

use crate::LiveError;
use crate::gpu::{DeviceMemory, Event, Stream};
use crate::model::LiveModel;

/// Events that are reused in turn: more than copies are queued in a step, or whoever waits for an
/// older copy waits for one behind it.
const EVENTS: usize = 4096;

/// Copies are numbered from 1 in the order in which they are queued.
pub(crate) struct Copies<'m> {
    model: &'m LiveModel,
    stream: Stream,
    routed: Event,
    events: Vec<Event>,
    queued: u64,
    /// The last copy that the compute stream has been told to wait for.
    waited: u64,
    /// The copy that brings what each slot holds.
    arrivals: Vec<u64>,
    /// Whether the copy stream waits for the running layer's routing already.
    is_routed: bool,
}

impl<'m> Copies<'m> {
    pub fn new(model: &'m LiveModel, slots: usize) -> Result<Self, LiveError> {
        let gpu = &model.gpu;
        Ok(Self {
            model,
            stream: Stream::new(gpu)?,
            routed: Event::new(gpu, false)?,
            events: (0..EVENTS).map(|_| Event::new(gpu, false)).collect::<Result<_, _>>()?,
            queued: 0,
            waited: 0,
            arrivals: vec![0; slots],
            is_routed: false,
        })
    }

    /// A layer begins: its routing is not known yet.
    pub fn new_layer(&mut self) {
        self.is_routed = false;
    }

    /// Copies from now on wait for what `compute` has queued, once a layer.
    pub fn route(&mut self, compute: &Stream, waits: bool) -> Result<(), LiveError> {
        if !self.is_routed && waits {
            compute.record(&self.routed)?;
            self.stream.wait(&self.routed)?;
        }
        self.is_routed = true;
        Ok(())
    }

    /// Queues the copy of an expert, by its dense key, into a slot; its number.
    pub fn copy(&mut self, slots: &DeviceMemory, slot: u32, key: u32) -> Result<u64, LiveError> {
        let layout = &self.model.layout;
        let bytes = layout.expert_bytes[layout.layer_of(key)];
        let to = (slots, slot as usize * layout.stride);
        self.model.pool.copy(&self.stream, to, key as usize * layout.stride, bytes)?;
        self.mark(slot)
    }

    /// Queues the copy of a slot into another.
    pub fn move_slot(
        &mut self,
        slots: &DeviceMemory,
        from: u32,
        to: u32,
    ) -> Result<u64, LiveError> {
        let stride = self.model.layout.stride;
        let place = |slot: u32| (slots, slot as usize * stride);
        self.stream.copy_from_device(place(to), place(from), stride)?;
        self.mark(to)
    }

    fn mark(&mut self, slot: u32) -> Result<u64, LiveError> {
        self.queued += 1;
        self.stream.record(&self.events[self.queued as usize % EVENTS])?;
        self.arrivals[slot as usize] = self.queued;
        Ok(self.queued)
    }

    /// The copy that brings what a slot holds; 0: none does.
    pub fn arrival(&self, slot: u32) -> u64 {
        self.arrivals[slot as usize]
    }

    /// `compute` waits for a copy and, as they are in order, all before it.
    pub fn wait(&mut self, compute: &Stream, copy: u64) -> Result<(), LiveError> {
        if copy <= self.waited {
            return Ok(());
        }
        compute.wait(&self.events[copy as usize % EVENTS])?;
        self.waited = copy;
        Ok(())
    }

    /// Waits for all copies.
    pub fn drain(&mut self) -> Result<(), LiveError> {
        self.stream.synchronize()?;
        self.waited = self.queued;
        Ok(())
    }
}
