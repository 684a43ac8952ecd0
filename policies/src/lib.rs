//! Expert-cache policies, and [`ExpertCache`], the cache that an engine links.
//!
//! This crate decides; it copies nothing. It does no I/O, starts no thread, reads no clock and
//! allocates nothing after construction, so that what hotset simulates is what an engine runs.
//! Policies are written against [`Policy`] on dense keys, one file each.

mod admission;
mod any_policy;
mod arc;
mod belady;
mod cache;
mod car;
mod clock;
pub mod conform;
mod fifo;
pub mod lazy_heap;
mod lfu;
mod lfu_decay;
mod lirs;
pub mod list;
mod lru;
mod lru_k;
mod mru;
mod params;
mod policy;
pub mod position_set;
pub mod queues;
mod random;
mod registry;
pub mod ring;
mod s3_fifo;
mod sieve;
mod slru;
mod slru_50;
#[cfg(test)]
mod testing;
mod two_q;

pub use admission::{
    ADMISSIONS, Admission, AdmissionInfo, AdmissionSpec, Admitted, AnyAdmission, Bypass,
    BypassConfig, TinyLfu, TinyLfuConfig, UploadCap, UploadCapConfig,
};
pub use any_policy::AnyPolicy;

/// The README's example is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

pub use arc::Arc;
pub use belady::{Belady, Future};
pub use cache::*;
pub use car::Car;
pub use clock::Clock;
pub use fifo::Fifo;
pub use lfu::Lfu;
pub use lfu_decay::{LfuDecay, LfuDecayConfig};
pub use lirs::{Lirs, LirsConfig};
pub use lru::Lru;
pub use lru_k::{History, LruK, LruKConfig};
pub use mru::Mru;
pub use params::parse as parse_parameters;
pub use policy::{Anyone, Event, Key, Policy, PoolShape, Room};
pub use random::{Random, RandomConfig};
pub use registry::{
    Bound, Config, Need, NoConfig, POLICIES, Parameter, PolicyError, PolicyInfo, PolicySpec,
    Visitor,
};
pub use s3_fifo::{S3Fifo, S3FifoConfig};
pub use sieve::Sieve;
pub use slru::{Slru, SlruConfig};
pub use slru_50::Slru50;
pub use two_q::{TwoQ, TwoQConfig};
