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

/// The README's example is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

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
