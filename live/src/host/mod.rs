//! Host cores that compute experts where they lie.
//!
//! The threads spin: a layer's experts take tens of microseconds, and waking a thread takes as long.

mod simd;
mod workers;

pub use workers::{Flags, Workers};
