//! The cache in two halves: one thread plans, any thread reads who is resident and reports copies.
//!
//! [`SharedCache`] is the planner's half: an [`ExpertCache`](super::ExpertCache) and what it has told the
//! others. [`Residency`] is everybody's: one word an expert, in which a fetch is numbered. A
//! [`Ticket`] names an expert and that number, so that a completion which comes late finds another
//! number and changes nothing. Nothing is locked: the planner stores, a copy thread exchanges one
//! word once, a reader loads.

mod board;
#[cfg(all(test, hotset_loom))]
mod loom_tests;
mod plan;
mod shared_cache;

pub use board::{FetchState, Residency, Ticket};
pub use plan::SharedPlan;
pub use shared_cache::SharedCache;
