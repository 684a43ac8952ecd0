//! Miss handling: which of an event's missing experts are copied into the cache, which the host's
//! cores serve where they lie, and which are gone without.
//!
//! [`MissHandler`] is the rule, [`MissDispatcher`] the state that applies it event by event: it
//! looks at an [`ExpertCache`](crate::ExpertCache), which it does not change, and says what to
//! demand of it. [`Rates`] are what link and host do an expert in; rules that go by them are told
//! them once ([`MissHandler::with_rates`]).

mod absent;
mod coselection;
mod dispatcher;
mod event;
mod handler;
mod info;
mod lossy;
mod rates;
mod read;
mod schedule;
mod split;

pub use dispatcher::MissDispatcher;
pub use event::{Asked, Dispatched};
pub use handler::MissHandler;
pub use info::{MISS_HANDLERS, MissHandlerInfo};
pub use rates::Rates;
pub use read::MissError;
pub use split::{FetchOrder, Split, balanced_fetch};
