//! The timeline: what a replay takes when copies and kernels run beside each other.
//!
//! An engine over the plans of the real cache, in whole picoseconds. One compute stream runs, for
//! each layer of a step, a *dense* kernel (attention and router, after which the layer's experts
//! are known) and an *expert* kernel that waits for the slots it reads. Copies run on one or two
//! copy engines beside it, experts that the host serves on its cores. `docs/metrics.md` defines
//! every figure; `docs/link-model.md` has where kernels and copies get their prices from.

mod ahead;
mod cancel;
mod clock;
mod copies;
mod costs;
mod demand;
mod disk;
mod engine;
mod model;
mod overlap;
mod rates;
mod record;
mod shared_link;
mod spent;
mod split;

pub use demand::{LayerDemand, TierDemand};
pub use engine::Timeline;
pub use model::{Compute, CopyOrder, TimeModel, Wait};
pub use record::{Lane, Recorder, Span};
pub use spent::{Spent, Splits, StepTime, Times, percentile};
