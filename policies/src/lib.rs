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
mod lecar;
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
mod w_tinylfu;

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
pub use car::Car;
pub use clock::Clock;
pub use fifo::Fifo;
pub use lecar::{LeCar, LeCarConfig};
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
pub use w_tinylfu::{Counts, WTinyLfu, WTinyLfuConfig};

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
