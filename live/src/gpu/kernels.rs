//! The kernels: compiled at run time for the accelerator at hand, else those that are shipped.

use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{result, sys};
use cudarc::nvrtc::{self, CompileOptions};

use super::driver::{Gpu, failed};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::Stream;
use crate::LiveError;

const SOURCE: &str = include_str!("kernels.cu");
/// The same, compiled for compute capability 7.5, which every later accelerator's driver compiles on.
const SHIPPED: &str = include_str!("kernels.ptx");

/// The most experts that one kernel takes.
pub const MOST_PLACES: usize = 256;
/// Rows that a block takes at a time.
const ROWS_A_BLOCK: u32 = 16;
const THREADS: u32 = 256;

/// A kernel's experts: where they lie, how large they are, and where its sums go.
#[derive(Debug, Clone, Copy)]
pub struct ExpertKernel<'a> {
    /// Slots of `stride` bytes.
    pub slots: &'a DeviceMemory,
    /// Bytes from slot to slot.
    pub stride: usize,
    /// Rows of an expert.
    pub rows: u32,
    /// Inputs of 512 floats, and which of them it takes.
    pub inputs: (&'a DeviceMemory, usize),
    /// Pairs of sums, and the first that it adds to.
    pub sums: (&'a DeviceMemory, usize),
    /// The experts' slots, [`MOST_PLACES`] at most.
    pub places: &'a [u32],
}

/// The module, loaded into a context.
#[derive(Debug)]
pub struct Kernels {
    gpu: Arc<Gpu>,
    module: sys::CUmodule,
    /// For up to 16, 64 and 256 experts: what is passed grows with that.
    experts: [(usize, sys::CUfunction); 3],
    hold: sys::CUfunction,
    /// Whether they were compiled here.
    pub compiled: bool,
}

/// The kernels compiled for this accelerator, where the compiler is there.
fn compile(gpu: &Gpu) -> Option<CString> {
    // SAFETY: it only asks whether the library can be loaded.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        return None;
    }
    let (major, minor) = gpu.capability;
    let options = vec![format!("--gpu-architecture=compute_{major}{minor}"), "--std=c++17".into()];
    let options = CompileOptions { options, ..CompileOptions::default() };
    // The binding panics where a library lacks a function that it names.
    let compiled =
        catch_unwind(AssertUnwindSafe(|| nvrtc::compile_ptx_with_opts(SOURCE, options).ok()));
    CString::new(compiled.ok()??.to_src()).ok()
}

fn load(ptx: &CString) -> Result<sys::CUmodule, LiveError> {
    // SAFETY: the text ends with a zero.
    unsafe { result::module::load_data(ptx.as_ptr().cast()) }.map_err(failed("loading the kernels"))
}

impl Kernels {
    /// # Errors
    /// [`LiveError::Driver`]: the shipped kernels do not run here.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, LiveError> {
        gpu.make_current()?;
        let here = compile(gpu).and_then(|ptx| load(&ptx).ok());
        let compiled = here.is_some();
        let module = match here {
            Some(module) => module,
            None => load(&CString::new(SHIPPED).unwrap_or_default())?,
        };
        let function = |name: &str| {
            let name = CString::new(name).unwrap_or_default();
            // SAFETY: the module is loaded.
            unsafe { result::module::get_function(module, name) }
                .map_err(failed("finding a kernel"))
        };
        let experts = [
            (16, function("experts_16")?),
            (64, function("experts_64")?),
            (MOST_PLACES, function("experts_256")?),
        ];
        Ok(Self { gpu: Arc::clone(gpu), module, experts, hold: function("hold")?, compiled })
    }

    /// Queues the gated MLPs of up to [`MOST_PLACES`] experts.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    ///
    /// # Panics
    /// Where an expert, an input or a sum does not lie inside its memory, or there are too many.
    pub fn experts(&self, stream: &Stream, kernel: &ExpertKernel<'_>) -> Result<(), LiveError> {
        let ExpertKernel { slots, stride, rows, inputs, sums, places } = *kernel;
        let number = places.len();
        if number == 0 || rows == 0 {
            return Ok(());
        }
        assert!(number <= MOST_PLACES, "{number} experts of {MOST_PLACES}");
        let mut slot = [0u32; MOST_PLACES];
        slot[..number].copy_from_slice(places);
        let bytes = rows as usize * crate::weights::ROW_BYTES;
        for &place in places {
            let _ = slots.at(place as usize * stride, bytes);
        }
        let mut slots = slots.at(0, 0);
        let mut stride = stride as u64;
        let mut rows = rows;
        let mut input = inputs.0.at(inputs.1 * 512 * 4, 512 * 4);
        let mut sum = sums.0.at(sums.1 * 8, number * 8);
        let found = self.experts.iter().find(|(most, _)| number <= *most);
        let (_, function) = found.unwrap_or(&self.experts[2]);
        let blocks = self.blocks(rows, number as u32);
        let mut parameters = [
            (&raw mut slots).cast::<c_void>(),
            (&raw mut stride).cast(),
            (&raw mut rows).cast(),
            (&raw mut input).cast(),
            (&raw mut sum).cast(),
            slot.as_mut_ptr().cast(),
        ];
        // SAFETY: the parameters are the kernel's, in order, and are copied before the call returns;
        // every expert, the input and the sums were checked to lie inside memory that waits for what
        // is queued before it is freed.
        unsafe {
            result::launch_kernel(
                *function,
                (blocks, number as u32, 1),
                (THREADS, 1, 1),
                0,
                stream.raw,
                &mut parameters,
            )
        }
        .map_err(failed("queueing a kernel"))
    }

    /// Blocks an expert: enough to fill the accelerator, and a row a warp at least.
    fn blocks(&self, rows: u32, experts: u32) -> u32 {
        let whole = rows.div_ceil(ROWS_A_BLOCK);
        let most = (self.gpu.processors * 8).div_ceil(experts);
        whole.min(most).max(1)
    }

    /// Queues a kernel that runs until the number of pinned memory is no longer 0.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn hold(&self, stream: &Stream, go: &PinnedMemory, index: usize) -> Result<(), LiveError> {
        let mut go = go.device_address(index * 4, 4);
        let mut parameters = [(&raw mut go).cast::<c_void>()];
        // SAFETY: the one parameter is the kernel's; the number lies inside memory that waits for
        // what is queued.
        unsafe {
            result::launch_kernel(self.hold, (1, 1, 1), (1, 1, 1), 0, stream.raw, &mut parameters)
        }
        .map_err(failed("queueing a kernel"))
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        let _ = self.gpu.make_current();
        let _ = self.gpu.synchronize();
        // SAFETY: it was loaded once, and no kernel of it runs.
        let _ = unsafe { result::module::unload(self.module) };
    }
}
