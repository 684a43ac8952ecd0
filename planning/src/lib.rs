//! Planning: does a mixture of experts fit a machine, how is its memory best divided, how fast
//! will it be.
//!
//! Models and machines come from `hotset-cost-models`, and how misses depend on slots from a router
//! trace's own curve. A crate of its own beside the replay core: that compiles every policy and
//! takes minutes to build, and nothing of it depends on plans.

mod advice;
mod axis;
mod check;
mod coefficient;
pub mod engine;
mod error;
mod fit;
mod kernels;
mod memory;
pub mod placement;
mod plan;
mod preflight;
mod pricing;
mod request;
mod reserve;
mod right_sized;
mod routing;
mod sources;
mod speed;
mod split;
mod summary;
mod vary;
mod verdict;
pub mod verify;
mod weights;

pub use axis::{Axis, Knob, MOST_POINTS};
pub use coefficient::Coefficient;
pub use error::PlanError;
pub use fit::fit;
pub use memory::MemoryLine;
pub use plan::{Longest, PlanReport, plan};
pub use preflight::{Preflight, preflight};
pub use request::{
    Bank, Checkpoint, Load, MeasuredStep, MemoryReserve, MissPricing, Offload, Pace, Request,
    Speculation, Storage,
};
pub use right_sized::Alternative;
pub use routing::{
    LeftOut, RecordedTrace, Recordings, Routing, RoutingNeed, RoutingSummary, Spread, StepKind,
    Unions,
};
pub use speed::{Rate, Speed, StepParts};
pub use split::{MemorySplit, SplitFront};
pub use summary::{MachineSummary, ModelSummary, RequestSummary};
pub use vary::{Point, WhatIf, what_if};
pub use verdict::{Binding, Fit, FitVerdict};
