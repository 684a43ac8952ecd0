//! The driver, its memory, streams and kernels: all unsafe code of the crate is in this folder.
//!
//! What makes it sound, in one place: work is queued and runs later, so memory must outlive it. Every
//! allocation waits for the whole accelerator before it is freed, and before its bytes are handed
//! out for writing; offsets are checked against its length before anything is queued.
#![allow(unsafe_code)]

mod driver;
mod kernels;
mod memory;
mod stream;

pub use driver::{Gpu, attached};
pub use kernels::{ExpertKernel, Kernels, MOST_PLACES};
pub use memory::{DeviceMemory, PinnedMemory};
pub use stream::{Event, Stream};
