//! The deterministic replay core: a trace's steps in, decisions and prices out.
//!
//! The simulator is an engine that copies nothing: it drives the real
//! [`ExpertCache`](hotset_policies::ExpertCache) with a recorded trace, counts its plans and
//! prices every byte that they move. The same input, flags and seed give the same result on any
//! machine, with any number of threads.

mod capacity;
mod compare;
mod counts;
mod curve;
mod drive;
mod error;
mod future;
mod replay;
mod report;
mod steps;

pub use capacity::{Capacity, Scope, even_split};
pub use compare::{Compare, Progress, compare};
pub use counts::{Bucket, Counts, Window};
pub use curve::{CurveSetting, LruCurve};
pub use drive::{EventSink, drive};
pub use error::SimError;
pub use future::Futures;
pub use replay::{Semantics, Setting, replay};
pub use report::{LinkPrice, PhaseChoice, Report, Row, SCHEMA, Settings, TraceSummary};
pub use steps::{PREFILL_CHUNK, Steps};
