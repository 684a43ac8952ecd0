//! The expert cache that an engine links: events in, plans out.
//!
//! A pure state machine. The engine tells it which experts a layer needs, it answers with a
//! [`Plan`] (where each expert is, what to copy where, who makes room), the engine does the
//! copies and says what completed. The simulator is just another engine.

mod demand;
mod entry;
mod error;
mod expert_cache;
mod maintain;
mod place;
mod plan;
mod pool;
mod prefetch;
mod room;
mod serve;
mod shared;
mod slots;
mod tiered;

pub use entry::ExpertId;
pub use error::CacheError;
pub use expert_cache::ExpertCache;
pub use maintain::{MovedExpert, Resized};
pub use plan::{Action, Placement, Plan};
pub use shared::{FetchState, Residency, SharedCache, SharedPlan, Ticket};
pub use slots::Slots;
pub use tiered::{HostTier, TierMode, TierPlan};
