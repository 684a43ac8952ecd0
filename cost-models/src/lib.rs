//! What moving an expert costs.
//!
//! A [`Link`] turns bytes into integer picoseconds, a [`MachineProfile`] adds what the accelerator's own memory and
//! contention cost, [`ExpertShape`] turns a model's dimensions into bytes, and [`price`] puts them together. A [`Model`]
//! says what all of a model weighs and what a sequence keeps, a [`Hardware`] what there is to hold it.
//! Nothing here knows about caches or traces. Floating point appears when a profile is loaded or fitted and in
//! expectations; every cost that a simulator asks for is integer arithmetic, so that any machine prints the same digits.

mod bounded;
pub mod builtin;
mod byte_size;
mod compute;
pub mod contention;
pub mod curve;
mod disk;
pub mod error;
pub mod fit;
pub mod format;
pub mod hardware;
pub mod link;
pub mod machine;
pub mod model;
pub mod picos;
pub mod price;
mod profile;
mod profile_file;
mod quality;

pub use builtin::{builtin_links, builtin_machines, find_link, find_machine};
pub use byte_size::{ByteSize, ByteSizeError};
pub use compute::{ComputeSource, TokenCompute};
pub use contention::{Contention, HostContention};
pub use curve::BurstCurve;
pub use disk::{Disk, DiskError, RequestTime, builtin_disks};
pub use error::{ProfileError, UnknownLink, UnknownMachine};
pub use fit::benchbw::import_benchbw;
pub use fit::{FitError, FitLabel, FittedDisk, FittedProfile, Residual, fit_disk, fit_links};
pub use format::{ExpertShape, GgmlType, Mix, SlotLayout, WeightFormat};
pub use hardware::{
    Hardware, Host, HostSpec, builtin_hardware, builtin_hosts, find_hardware, hardware_of_device,
    host_of_processor,
};
pub use link::{HostKernel, Link, LinkKind, Submission, TransferCost};
pub use machine::{HbmModel, MachineProfile, StepOverhead};
pub use model::{Model, ModelError};
pub use picos::{MIB, Picos};
pub use price::{TokenShape, TokenTimes};
pub use profile_file::read_profile;
pub use quality::{QualityLoss, quality_lost};
