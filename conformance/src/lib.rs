//! Does an engine decide as a policy does? Its decisions, event by event, against the reference.
//!
//! An engine's test hands over what it was asked for and what it did; [`assert_conforms`] fails
//! with the first event in which the engine differs, who was resident before it, and the rule that
//! decides. [`Conformance`] is the same one event at a time, [`Replayed`] for a log of any length
//! over a recorded trace, and [`scenario`] has unit tests for caches as data.
//!
//! ```
//! use hotset_conformance::{Decision, Evicted, LayerDemand, ModelShape, assert_conforms};
//! use hotset_policies::Slots;
//!
//! // One layer of four experts, two slots. The engine's test ran these two steps:
//! let model = ModelShape { experts: &[4], top_k: &[2] };
//! let demands = [LayerDemand::new(0, 0, &[2, 0]), LayerDemand::new(1, 0, &[0, 3])];
//! // and its cache did this:
//! let decisions = [
//!     Decision::of(0).fetch(0, Evicted::Nobody).fetch(2, Evicted::Nobody),
//!     Decision::of(0).hit(0).fetch(3, Evicted::expert(0, 2)),
//! ];
//! assert_conforms("lru", &model, &Slots::Global(2), &demands, &decisions);
//! ```

mod assertion;
mod check;
mod compare;
mod compared;
mod decision;
mod divergence;
mod error;
mod log;
pub mod scenario;
mod shape;
mod slot_book;

pub use assertion::{LayerDemand, assert_conforms};
pub use check::Conformance;
pub use compared::Compared;
pub use decision::{Decision, Evicted, Expert, Fetched, Held};
pub use divergence::{Divergence, EVENT_RULE};
pub use error::ConformError;
pub use log::{LogError, LoggedDivergence, Outcome, Replayed};
pub use shape::ModelShape;
