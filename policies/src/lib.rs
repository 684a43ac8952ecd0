//! Expert-cache policies, and [`ExpertCache`], the cache that an engine links.
//!
//! This crate decides; it copies nothing. It does no I/O, starts no thread, reads no clock and
//! allocates nothing after construction, so that what hotset simulates is what an engine runs.
//! Policies are written against [`Policy`] on dense keys, one file each.

mod adaptive_lists;
mod admission;
mod any_policy;
mod arc;
mod belady;
mod belady_bypass;
mod cache;
mod car;
mod class_lru;
mod clock;
pub mod conform;
mod dali;
mod fifo;
mod finemoe;
mod heat_lru;
pub mod lazy_heap;
mod least_stale;
mod lecar;
mod lfru;
mod lfu;
mod lfu_decay;
mod lirs;
pub mod list;
mod lru;
mod lru_k;
pub mod miss;
mod moe_infinity;
mod mrs;
mod mru;
mod params;
mod policy;
pub mod position_set;
pub mod predict;
pub mod queues;
mod random;
mod registry;
pub mod resident_set;
pub mod ring;
mod s3_fifo;
pub mod semantic;
mod semantic_age;
mod sieve;
mod slru;
mod slru_50;
mod static_top;
mod td_logistic;
mod td_table;
#[cfg(test)]
mod testing;
pub mod transitions;
mod two_q;
mod w_tinylfu;
mod weight;

pub use admission::{
    ADMISSIONS, Admission, AdmissionInfo, AdmissionSpec, Admitted, AnyAdmission, Bypass,
    BypassConfig, TinyLfu, TinyLfuConfig, UploadCap, UploadCapConfig,
};
pub use any_policy::AnyPolicy;
pub use arc::Arc;
pub use belady::{Belady, Future};
pub use belady_bypass::{BypassBound, BypassedEvent};
pub use cache::*;
pub use car::Car;
pub use class_lru::{ClassLru, ClassLruConfig};
pub use clock::Clock;
pub use dali::{Dali, DaliConfig};
pub use fifo::Fifo;
pub use finemoe::{FineMoe, FineMoeConfig};
pub use heat_lru::{HeatLru, HeatLruConfig};
pub use least_stale::LeastStale;
pub use lecar::{LeCar, LeCarConfig};
pub use lfru::{Lfru, LfruClock, LfruConfig};
pub use lfu::Lfu;
pub use lfu_decay::{LfuDecay, LfuDecayConfig};
pub use lirs::{Lirs, LirsConfig};
pub use lru::Lru;
pub use lru_k::{History, LruK, LruKConfig};
pub use moe_infinity::MoeInfinity;
pub use mrs::{Mrs, MrsConfig};
pub use mru::Mru;
pub use params::parse as parse_parameters;
pub use policy::{Anyone, Event, Key, Policy, PoolShape, Room};
pub use random::{Random, RandomConfig};
pub use registry::{
    Bound, Config, Need, NoConfig, POLICIES, Parameter, PolicyError, PolicyInfo, PolicySpec,
    Visitor,
};
pub use s3_fifo::{S3Fifo, S3FifoConfig};
pub use semantic_age::{SemanticAge, SemanticAgeConfig};
pub use sieve::Sieve;
pub use slru::{Slru, SlruConfig};
pub use slru_50::Slru50;
pub use static_top::Static;
pub use td_logistic::{TdLogistic, TdLogisticConfig};
pub use td_table::{TdTable, TdTableConfig};
pub use two_q::{TwoQ, TwoQConfig};
pub use w_tinylfu::{Counts, WTinyLfu, WTinyLfuConfig};

/// The README's example is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
