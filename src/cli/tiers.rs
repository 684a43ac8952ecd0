//! Flags of the tiers under the accelerator's memory.

use clap::{Args, ValueEnum};
use hotset::policies::TierMode;

/// Host memory that holds some of the experts, over disk.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tiers")]
pub struct TierArgs {
    /// A cache in host memory of so many slots (2000), a share of all experts (60%) or a size
    /// (64GiB); what it does not hold is read from disk [default: host memory holds everything]
    #[arg(long, value_name = "SIZE")]
    pub host_slots: Option<String>,
    /// Its policy, any that learns as it runs: lru, slru, ..., page-cache (the operating system's)
    #[arg(long, value_name = "NAME", default_value = "lru", requires = "host_slots")]
    pub host_policy: String,
    /// Whether an expert that goes up to the accelerator keeps its place in host memory
    #[arg(long, value_enum, default_value_t = TierModeName::Inclusive, requires = "host_slots")]
    pub host_mode: TierModeName,
    /// Read so many experts of a layer along behind each one that is read
    #[arg(long, value_name = "N", default_value_t = 0, requires = "host_slots", value_parser = clap::value_parser!(u32).range(..=4096))]
    pub read_ahead: u32,
    /// Where --prefetch brings what it predicts
    #[arg(long, value_enum, default_value_t = PrefetchToName::Gpu, requires = "host_slots")]
    pub prefetch_to: PrefetchToName,
    /// Price reads: a disk by name (nvme-gen3, nvme-gen4, nvme-gen5, sata-ssd, ufs-4, hard-disk), a
    /// rate with latency and requests in flight (7GB/s:80us:32), or a profile (.toml)
    #[arg(long, value_name = "DISK", requires = "host_slots")]
    pub disk: Option<String>,
}

/// Names of the modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TierModeName {
    /// It keeps it until the host's own policy gives the slot away
    Inclusive,
    /// It leaves; what the accelerator evicts is offered to host memory
    Exclusive,
}

impl From<TierModeName> for TierMode {
    fn from(name: TierModeName) -> Self {
        match name {
            TierModeName::Inclusive => Self::Inclusive,
            TierModeName::Exclusive => Self::Exclusive,
        }
    }
}

/// Names of the places that predictions are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrefetchToName {
    /// The accelerator's slots, through host memory
    Gpu,
    /// Host memory alone: copies follow when the experts are asked for
    Host,
}
