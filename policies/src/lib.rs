//! Expert-cache policies, and [`ExpertCache`], the cache that an engine links.
//!
//! This crate decides; it copies nothing. It does no I/O, starts no thread, reads no clock and
//! allocates nothing after construction, so that what hotset simulates is what an engine runs.
//! Policies are written against [`Policy`] on dense keys, one file each.

mod belady;
mod cache;
mod clock;
mod fifo;
mod lfu;
pub mod list;
mod lru;
mod params;
mod policy;
pub mod position_set;
mod registry;
pub mod ring;
#[cfg(test)]
mod testing;

mod belady_bypass;
mod class_lru;
mod dali;
mod finemoe;
mod heat_lru;
mod least_stale;
mod lfru;
mod moe_infinity;
mod mrs;
pub mod resident_set;
mod static_top;
mod td_logistic;
mod td_table;
pub mod transitions;
mod weight;

pub use belady::{Belady, Future};
pub use cache::*;
pub use clock::Clock;
pub use fifo::Fifo;
pub use lfu::Lfu;
pub use lru::Lru;
pub use params::parse as parse_parameters;
pub use policy::{Anyone, Event, Key, Policy, PoolShape, Room};
pub use registry::{
    Bound, Config, Need, NoConfig, POLICIES, Parameter, PolicyError, PolicyInfo, PolicySpec,
    Visitor,
};

pub use belady_bypass::{BypassBound, BypassedEvent};
pub use class_lru::{ClassLru, ClassLruConfig};
pub use dali::{Dali, DaliConfig};
pub use finemoe::{FineMoe, FineMoeConfig};
pub use heat_lru::{HeatLru, HeatLruConfig};
pub use least_stale::LeastStale;
pub use lfru::{Lfru, LfruClock, LfruConfig};
pub use moe_infinity::MoeInfinity;
pub use mrs::{Mrs, MrsConfig};
pub use static_top::Static;
pub use td_logistic::{TdLogistic, TdLogisticConfig};
pub use td_table::{TdTable, TdTableConfig};
