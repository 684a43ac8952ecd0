//! Streams and events: what is queued, and what waits for what.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::{Gpu, failed};
use super::memory::{DeviceMemory, PinnedMemory};
use crate::LiveError;

/// A queue of the accelerator.
#[derive(Debug)]
pub struct Stream {
    gpu: Arc<Gpu>,
    pub(super) raw: sys::CUstream,
}

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    gpu: Arc<Gpu>,
    raw: sys::CUevent,
}

impl Event {
    /// A mark; one that is `timed` can be asked when it was passed.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn new(gpu: &Arc<Gpu>, timed: bool) -> Result<Self, LiveError> {
        use sys::CUevent_flags::{CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
        let flags = if timed { CU_EVENT_DEFAULT } else { CU_EVENT_DISABLE_TIMING };
        let raw = result::event::create(flags).map_err(failed("making an event"))?;
        Ok(Self { gpu: Arc::clone(gpu), raw })
    }

    /// Milliseconds from this mark to a later one, both passed.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn ms_until(&self, later: &Self) -> Result<f64, LiveError> {
        // SAFETY: both events live.
        let ms = unsafe { result::event::elapsed(self.raw, later.raw) };
        ms.map(f64::from).map_err(failed("reading a time"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.gpu.make_current();
        // SAFETY: it was made once; the driver keeps what still waits for it.
        let _ = unsafe { result::event::destroy(self.raw) };
    }
}

impl Stream {
    /// A queue beside all others.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, LiveError> {
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(failed("making a stream"))?;
        Ok(Self { gpu: Arc::clone(gpu), raw })
    }

    /// Waits for everything in it.
    ///
    /// # Errors
    /// [`LiveError::Driver`]: something in it went wrong.
    pub fn synchronize(&self) -> Result<(), LiveError> {
        // SAFETY: the stream lives.
        unsafe { result::stream::synchronize(self.raw) }.map_err(failed("waiting for a stream"))
    }

    /// Sets a mark behind what is queued.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn record(&self, event: &Event) -> Result<(), LiveError> {
        // SAFETY: both live.
        unsafe { result::event::record(event.raw, self.raw) }.map_err(failed("recording an event"))
    }

    /// What is queued from now on runs after the mark as it is now.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn wait(&self, event: &Event) -> Result<(), LiveError> {
        use sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both live.
        unsafe { result::stream::wait_event(self.raw, event.raw, CU_EVENT_WAIT_DEFAULT) }
            .map_err(failed("waiting for an event"))
    }

    /// Queues a copy of `len` bytes from pinned host memory.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where the bytes do not lie inside.
    pub fn copy_from_host(
        &self,
        (to, to_offset): (&DeviceMemory, usize),
        (from, from_offset): (&PinnedMemory, usize),
        len: usize,
    ) -> Result<(), LiveError> {
        let (to, from) = (to.at(to_offset, len), from.pointer(from_offset, len));
        // SAFETY: both ranges were checked, and both allocations wait for what is queued before
        // they are freed or written to.
        unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, len, self.raw) }
            .result()
            .map_err(failed("queueing a copy"))
    }

    /// The same from an accelerator's memory, this one's or a peer's.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where the bytes do not lie inside.
    pub fn copy_from_device(
        &self,
        (to, to_offset): (&DeviceMemory, usize),
        (from, from_offset): (&DeviceMemory, usize),
        len: usize,
    ) -> Result<(), LiveError> {
        let (to, from) = (to.at(to_offset, len), from.at(from_offset, len));
        // SAFETY: as above; addresses of peers are unified.
        unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, len, self.raw) }
            .result()
            .map_err(failed("queueing a copy"))
    }

    /// Writes a number of pinned memory once everything before it has run.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where the number does not lie inside.
    pub fn tell(&self, flags: &PinnedMemory, index: usize, value: u32) -> Result<(), LiveError> {
        let address = flags.device_address(index * 4, 4);
        // SAFETY: the number lies inside, and the host reads it as an atomic only.
        unsafe { sys::cuStreamWriteValue32_v2(self.raw, address, value, 0) }
            .result()
            .map_err(failed("queueing a number"))
    }

    /// What is queued from now on runs once a number of pinned memory, which only grows, is at least
    /// `value`.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where the number does not lie inside.
    pub fn wait_for(
        &self,
        flags: &PinnedMemory,
        index: usize,
        value: u32,
    ) -> Result<(), LiveError> {
        const AT_LEAST: u32 = 0;
        let address = flags.device_address(index * 4, 4);
        // SAFETY: the number lies inside, and the host writes it as an atomic only.
        unsafe { sys::cuStreamWaitValue32_v2(self.raw, address, value, AT_LEAST) }
            .result()
            .map_err(failed("waiting for a number"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.gpu.make_current();
        // SAFETY: it was made once; the driver finishes what is queued.
        let _ = unsafe { result::stream::destroy(self.raw) };
    }
}
