//! Raw flags to validated settings, a file a subject.

mod capacities;
mod machines;
mod numbers;
mod pictures;
mod policies;
mod profiles;
mod shares;
mod sizes;

pub use capacities::{capacities, schedule};
pub use machines::{
    Profile, disk, engine, hardware, link, links, machine, profile, profile_and_name,
};
pub use numbers::{copies, measured_step, milliseconds, rate, span, threads};
pub use pictures::plot;
pub use policies::{
    Listed, admissions, admitted, misses, policies, prefetch_suggestion, prefetches,
    several_misses, several_prefetches,
};
#[cfg(feature = "cuda")]
pub use shares::error_share;
pub use shares::{sample_share, share, training_share};
pub use sizes::{
    ExpertFormat, bytes_a_second, checkpoint, expert_format, expert_size, host, host_layers, mix,
    size, weight_format,
};
