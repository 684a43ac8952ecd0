//! Miss handling: which of an event's missing experts are copied into the cache, and which the
//! host's cores serve where they lie.
//!
//! [`MissHandler`] is the rule, [`MissDispatcher`] the state that applies it event by event: it
//! looks at an [`ExpertCache`](crate::ExpertCache), which it does not change, and says what to
//! demand of it.

mod dispatcher;
mod handler;

pub use dispatcher::{Dispatched, MissDispatcher};
pub use handler::{MISS_HANDLERS, MissError, MissHandler, MissHandlerInfo};
