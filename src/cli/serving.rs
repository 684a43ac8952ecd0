//! Flags of what an engine does beside evicting, and of the time that it takes.

use clap::{Args, ValueEnum};
use hotset::policies::miss::MissHandler;
use hotset::sim::{CopyOrder, Prefetch, Prefill, Schedule, Wait};

use crate::parse;

/// What the engine does beside evicting.
#[derive(Debug, Args)]
pub struct ServingArgs {
    /// Who says what to fetch before it is asked for: none, ahead (recorded predictions),
    /// cross-layer, ... (see 'hotset policies'); control follows as in
    /// ahead:lookahead=1,width=4,threshold=0.5,budget=16,cancel=true [default: none]
    #[arg(long, help_heading = "Serving", value_name = "NAME", value_parser = parse::prefetches)]
    pub prefetch: Option<parse::Listed<Prefetch>>,
    /// What becomes of misses: fetch, host, balanced, freetoken, upload-cap:n=2, cpu-layers:n=26, ...
    /// (see 'hotset policies'; a comparison takes several); given, splits between link and host are
    /// held against the best [default: fetch]
    #[arg(long, help_heading = "Serving", value_name = "NAME", value_parser = parse::misses)]
    pub miss: Option<parse::Listed<MissHandler>>,
    /// How prefill uses the cache: on-demand, bypass, streamed
    #[arg(long, help_heading = "Serving", value_name = "MODE", default_value = "on-demand")]
    pub prefill: Prefill,
    /// Capacities from given tokens on, as in 1000:25%,5000:20%
    #[arg(
        long,
        help_heading = "Serving",
        value_name = "TOKENS:SIZE,...",
        value_parser = parse::schedule
    )]
    pub schedule: Option<Schedule>,
    /// Run so many sequences at once, composing steps [default: the recorded steps, else one by one]
    #[arg(long, help_heading = "Serving", value_name = "N")]
    pub concurrency: Option<u32>,
    /// Order in which sequences begin (shuffled: by --seed)
    #[arg(long, help_heading = "Serving", value_enum, default_value_t = ArrivalName::Recorded, requires = "concurrency")]
    pub arrival: ArrivalName,
    /// Tokens that a sequence's verify step checks
    #[arg(long, help_heading = "Serving", value_name = "N", default_value_t = 1, requires = "concurrency", value_parser = clap::value_parser!(u32).range(1..))]
    pub verify_tokens: u32,
}

/// What takes how long.
#[derive(Debug, Args)]
pub struct TimeArgs {
    /// Compute a token in ms [default: none, but an H200's kernels in experiments]
    #[arg(long, help_heading = "Time", value_name = "MS", allow_negative_numbers = true, value_parser = parse::milliseconds)]
    pub compute_ms: Option<f64>,
    /// Kernels priced by the memory of this machine (see 'hotset link'), or of a profile (.toml)
    #[arg(
        long,
        help_heading = "Time",
        value_name = "NAME",
        requires = "dense_bytes",
        conflicts_with = "compute_ms"
    )]
    pub machine: Option<String>,
    /// Bytes (or MiB) that a step reads for each layer beside the experts
    #[arg(long, help_heading = "Time", value_name = "SIZE", requires = "machine", value_parser = parse::size)]
    pub dense_bytes: Option<u64>,
    /// Order of the copies
    #[arg(long, help_heading = "Time", value_enum, default_value_t = CopiesName::InOrder)]
    pub copies: CopiesName,
    /// What an expert kernel waits for
    #[arg(long, help_heading = "Time", value_enum, default_value_t = WaitName::All)]
    pub wait: WaitName,
    /// What runs beside each other does not slow each other down
    #[arg(long, help_heading = "Time")]
    pub no_contention: bool,
    /// Host threads that serve experts [default: the most that the link was measured with]
    #[arg(long, help_heading = "Time", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub host_threads: Option<u32>,
}

/// Names of the orders of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalName {
    /// As they lie in the trace
    Recorded,
    /// Shuffled with the seed
    Shuffled,
}

/// Names of the orders of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopiesName {
    /// One engine, as they were asked for
    InOrder,
    /// One engine, demands before prefetches that have not started
    DemandFirst,
    /// One engine for demands, one for prefetches
    TwoEngines,
}

impl From<CopiesName> for CopyOrder {
    fn from(name: CopiesName) -> Self {
        match name {
            CopiesName::InOrder => Self::InOrder,
            CopiesName::DemandFirst => Self::DemandFirst,
            CopiesName::TwoEngines => Self::TwoEngines,
        }
    }
}

/// Names of what a kernel waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitName {
    /// All of the layer's experts, then one kernel
    All,
    /// A kernel over what is there, another over the rest
    HitsFirst,
}

impl From<WaitName> for Wait {
    fn from(name: WaitName) -> Self {
        match name {
            WaitName::All => Self::All,
            WaitName::HitsFirst => Self::HitsFirst,
        }
    }
}
