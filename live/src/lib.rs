//! A live engine loop around hotset's expert cache, on CUDA.
//!
//! A recorded trace drives the same cache, by the same calls, as a replay does; here its decisions
//! are carried out. All experts lie in pinned host memory (or a GPU's), the slots in GPU memory. On
//! the compute stream a layer's dense kernel runs, then its routing is known: what is missing is
//! copied on the copy stream, with an event each; host cores compute what they serve; the experts'
//! kernel waits for what it needs and computes gated MLPs in bf16 out of the slots. Each expert's
//! weights are made from its number, and what every kernel gives is compared with what its expert
//! must give: a wrong slot, a copy that came too late or a stale expert is found.
//!
//! The crate builds anywhere; the driver is loaded when a [`LiveModel`] is made.

mod calibrate;
mod checks;
mod copies;
mod engine;
mod error;
mod gpu;
mod host;
mod model;
mod pool;
mod record;
mod run;
mod weights;

pub use calibrate::{Calibration, Timing, calibrate};
pub use engine::Planted;
pub use error::LiveError;
pub use gpu::attached;
pub use model::LiveModel;
pub use pool::Source;
pub use record::Log;
pub use run::{LiveRun, LiveSetting, LiveStep, Replayed};
