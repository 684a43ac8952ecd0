//! Expert-cache policies, and [`ExpertCache`], the cache that an engine links.
//!
//! This crate decides; it copies nothing. It does no I/O, starts no thread, reads no clock and
//! allocates nothing after construction, so that what hotset simulates is what an engine runs.
//! Policies are written against [`Policy`] on dense keys, one file each.

mod admission;
mod cache;
mod eviction;
pub mod miss;
mod occupancy;
mod placement;
mod policy;
pub mod predict;
mod registry;
pub mod semantic;
mod structures;
#[cfg(test)]
mod testing;

pub use admission::{
    ADMISSIONS, Admission, AdmissionInfo, AdmissionSpec, Admitted, AnyAdmission, Bypass,
    BypassConfig, TinyLfu, TinyLfuConfig, UploadCap, UploadCapConfig,
};
pub use cache::*;
pub use eviction::*;
pub use occupancy::Occupancy;
pub use placement::{PLACEMENTS, Pinned, PlacementInfo, PlacementSpec};
pub use policy::{Anyone, Event, Key, Policy, PoolShape, Room};
pub use registry::{
    AnyPolicy, Bound, Config, GivenPolicy, Info, Listed, Need, Needs, NoConfig, NoNeeds, Parameter,
    PolicyError, PolicyInfo, Trained, Visitor, nearest, parse_parameters, read_config, suggestion,
};
pub use structures::ranked::{Ranked, Ranking};

/// The README's example is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
