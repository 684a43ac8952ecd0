//! Finding the driver and an accelerator.

use std::ffi::c_int;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;
use cudarc::driver::{DriverError, result, sys};

use crate::LiveError;

/// An accelerator and its primary context, which is the calling thread's from then on.
#[derive(Debug)]
pub struct Gpu {
    device: sys::CUdevice,
    pub(super) context: sys::CUcontext,
    /// Its name, without blanks.
    pub name: String,
    /// Multiprocessors.
    pub processors: u32,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
}

// SAFETY: the driver's handles may be used from any thread; which context is a thread's own is asked
// for by `make_current`.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

/// What the driver said, with what was tried.
pub(super) fn failed(what: &'static str) -> impl Fn(DriverError) -> LiveError {
    move |error| {
        let said = error.error_string().ok().and_then(|text| text.to_str().ok());
        LiveError::Driver { what, said: said.unwrap_or("an unknown error").to_owned() }
    }
}

/// How many accelerators there are.
///
/// # Errors
/// [`LiveError::NoDriver`], [`LiveError::Driver`].
pub fn attached() -> Result<usize, LiveError> {
    // SAFETY: it only asks whether the library can be loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err(LiveError::NoDriver);
    }
    result::init().map_err(failed("starting the driver"))?;
    let count = result::device::get_count().map_err(failed("counting accelerators"))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

impl Gpu {
    /// Opens accelerator `ordinal` and makes its context this thread's.
    ///
    /// # Errors
    /// [`LiveError::NoDriver`]; [`LiveError::NoGpu`]; [`LiveError::Driver`].
    pub fn open(ordinal: usize) -> Result<Arc<Self>, LiveError> {
        let attached = attached()?;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < attached);
        let Some(number) = number else { return Err(LiveError::NoGpu { ordinal, attached }) };
        let device = result::device::get(number).map_err(failed("opening the accelerator"))?;
        let name = result::device::get_name(device).map_err(failed("asking for its name"))?;
        let attribute = |attribute| {
            // SAFETY: the device is one that the driver gave.
            unsafe { result::device::get_attribute(device, attribute) }
                .map_err(failed("asking what the accelerator can do"))
        };
        let processors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // The host spins for the end of each step: it hears of it a few microseconds sooner.
        let spins = sys::CUctx_flags_enum::CU_CTX_SCHED_SPIN as u32;
        // SAFETY: as above. A context that is in use already keeps its flags.
        let _ = unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(device, spins) };
        // SAFETY: as above; the context is released when this is dropped.
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(failed("making the accelerator's context"))?;
        let gpu = Self {
            device,
            context,
            name: name.trim().replace(' ', "-"),
            processors: u32::try_from(processors).unwrap_or(1).max(1),
            capability: (major, minor),
        };
        gpu.make_current()?;
        Ok(Arc::new(gpu))
    }

    /// Makes its context the calling thread's.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn make_current(&self) -> Result<(), LiveError> {
        // SAFETY: the context lives as long as this.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("entering the context"))
    }

    /// Waits for everything that is queued.
    ///
    /// # Errors
    /// [`LiveError::Driver`]: something that was queued went wrong.
    pub fn synchronize(&self) -> Result<(), LiveError> {
        result::ctx::synchronize().map_err(failed("waiting for the accelerator"))
    }

    /// Lets this accelerator read the memory of `peer`.
    ///
    /// # Errors
    /// [`LiveError::NoPeer`] where it cannot; [`LiveError::Driver`].
    pub fn reach(&self, peer: &Self) -> Result<(), LiveError> {
        let mut reachable = 0;
        // SAFETY: the place for the answer is there, and both devices are the driver's.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut reachable, self.device, peer.device) }
            .result()
            .map_err(failed("asking about the peer"))?;
        if reachable == 0 {
            return Err(LiveError::NoPeer);
        }
        self.make_current()?;
        // SAFETY: the peer's context lives as long as it; this thread's is this one's.
        match unsafe { sys::cuCtxEnablePeerAccess(peer.context, 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            other => other.result().map_err(failed("reaching the peer's memory")),
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and everything made in it holds a reference to this.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}
