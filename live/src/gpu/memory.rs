//! Memory of the accelerator, and of the host where the accelerator can reach it.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use cudarc::driver::{result, sys};

use super::driver::{Gpu, failed};
use crate::LiveError;

/// Bytes in an accelerator's memory, zero at first.
#[derive(Debug)]
pub struct DeviceMemory {
    gpu: Arc<Gpu>,
    address: sys::CUdeviceptr,
    len: usize,
}

impl DeviceMemory {
    /// # Errors
    /// [`LiveError::Memory`] where there is not so much.
    pub fn new(gpu: &Arc<Gpu>, len: usize) -> Result<Self, LiveError> {
        gpu.make_current()?;
        let len = len.max(16);
        // SAFETY: the memory is freed once, when this is dropped.
        let address = unsafe { result::malloc_sync(len) }
            .map_err(|_| LiveError::Memory { whose: "the accelerator's", bytes: len as u64 })?;
        let memory = Self { gpu: Arc::clone(gpu), address, len };
        memory.clear()?;
        Ok(memory)
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of a byte of which `len` follow.
    pub(super) fn at(&self, offset: usize, len: usize) -> sys::CUdeviceptr {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "bytes {offset} + {len} of {}", self.len);
        self.address + offset as u64
    }

    /// Fills it with zeros, once everything that is queued has run.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn clear(&self) -> Result<(), LiveError> {
        self.gpu.synchronize()?;
        // SAFETY: that many bytes are this allocation's, and nothing that is queued uses them.
        unsafe { result::memset_d8_sync(self.address, 0, self.len) }
            .map_err(failed("clearing memory"))?;
        self.gpu.synchronize()
    }

    /// Writes bytes, once everything that is queued has run.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where they do not lie inside.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), LiveError> {
        let to = self.at(offset, bytes.len());
        self.gpu.synchronize()?;
        // SAFETY: the range was checked; nothing that is queued uses it; the copy is done on return.
        unsafe { result::memcpy_htod_sync(to, bytes) }.map_err(failed("writing memory"))?;
        self.gpu.synchronize()
    }

    /// Reads floats from the beginning, once everything that is queued has run.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where they do not lie inside.
    pub fn read_floats(&self, floats: &mut [f32]) -> Result<(), LiveError> {
        let from = self.at(0, size_of_val(floats));
        self.gpu.synchronize()?;
        // SAFETY: the range was checked; any bits are a float; the copy is done on return.
        unsafe { result::memcpy_dtoh_sync(floats, from) }.map_err(failed("reading memory"))
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let _ = self.gpu.make_current();
        let _ = self.gpu.synchronize();
        // SAFETY: it was allocated once, and nothing that is queued uses it any more.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// Bytes in the host's memory that stay where they are, so that copies need no host.
#[derive(Debug)]
pub struct PinnedMemory {
    gpu: Arc<Gpu>,
    bytes: *mut u8,
    len: usize,
}

// SAFETY: its bytes are written through `&mut` alone, or as atomics; the driver's calls in it may
// come from any thread.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Bytes whose contents are whatever the driver gives, which are pages of zeros at first.
    ///
    /// # Errors
    /// [`LiveError::Memory`] where there is not so much.
    pub fn new(gpu: &Arc<Gpu>, len: usize) -> Result<Self, LiveError> {
        gpu.make_current()?;
        let len = len.max(64);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the memory is freed once, when this is dropped.
        let bytes = unsafe { result::malloc_host(len, flags) }
            .map_err(|_| LiveError::Memory { whose: "pinned host", bytes: len as u64 })?
            .cast::<u8>();
        Ok(Self { gpu: Arc::clone(gpu), bytes, len })
    }

    /// Its bytes, to be written, once everything that is queued has run.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn bytes_mut(&mut self) -> Result<&mut [u8], LiveError> {
        self.gpu.synchronize()?;
        // SAFETY: initialised bytes of this allocation, and nothing that is queued uses them. What
        // is queued later reads them only after this borrow has ended.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.bytes, self.len) })
    }

    /// Its bytes. Only kernels and copies of this crate write to such memory, and none does while
    /// they are borrowed: what they write is read through [`atomic`](Self::atomic).
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialised bytes of this allocation; see above.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }

    /// The 32-bit number at this place, which the accelerator may write too.
    ///
    /// # Panics
    /// Where it does not lie inside.
    #[must_use]
    pub fn atomic(&self, index: usize) -> &AtomicU32 {
        assert!(index < self.len / 4, "number {index} of {}", self.len / 4);
        // SAFETY: inside the allocation, which is aligned to pages, for as long as this is borrowed.
        unsafe { AtomicU32::from_ptr(self.bytes.cast::<u32>().add(index)) }
    }

    pub(super) fn pointer(&self, offset: usize, len: usize) -> *const c_void {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "bytes {offset} + {len} of {}", self.len);
        // SAFETY: inside the allocation.
        unsafe { self.bytes.add(offset) }.cast()
    }

    /// The address by which the accelerator knows a byte of which `len` follow.
    pub(super) fn device_address(&self, offset: usize, len: usize) -> sys::CUdeviceptr {
        // Addresses are the same on both sides wherever a 64-bit driver runs.
        self.pointer(offset, len) as sys::CUdeviceptr
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        let _ = self.gpu.make_current();
        let _ = self.gpu.synchronize();
        // SAFETY: it was allocated once, and nothing that is queued uses it any more.
        let _ = unsafe { result::free_host(self.bytes.cast()) };
    }
}
