//! The flags and their help.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use hotset::sim::{PREFILL_CHUNK, PhaseChoice, Scope, Semantics};

use crate::output::OutputArgs;
use crate::parse;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

/// Which expert-cache policy, at which size, over which link, gives how many milliseconds a token?
#[derive(Debug, Parser)]
#[command(name = "hotset", version, styles = STYLES, max_term_width = 100, long_about = "\
Replays router traces of mixture-of-experts models, recorded from live engines, through a real \
expert cache, and prices every miss with measured links.\n\n\
Every command works on the bundled trace unless you name another. Exit codes: 0 fine, 1 a check \
failed, 2 bad usage or input, 3 interrupted.")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare policies over capacities and links (the main job)
    Compare(CompareArgs),
    /// Import, describe or check router traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List the built-in links, or show one
    Link(LinkArgs),
    /// List the policies, or define one
    Policies(PoliciesArgs),
}

/// Commands on traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Read another program's file and write it as .hst
    Import(ImportArgs),
    /// Describe a trace: shape, tokens, digests, locality
    Info(TraceArgs),
    /// Check every value and both digests; exit code 1 if the trace is not sound
    Validate(TraceArgs),
}

/// Flags of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset compare
  hotset compare --policy lru,lfu --capacity 25%,384 --link zgx-pcie,zgx-c2c
  hotset compare x.hst --phase decode --scope layer --format json -o result.json")]
pub struct CompareArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Policies; parameters follow as name:key=value,key=value
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "lru,fifo,clock,lfu,belady"
    )]
    pub policy: Vec<String>,
    /// One pool over all layers, or the same number of slots for each layer
    #[arg(long, value_enum, value_delimiter = ',', default_value = "global")]
    pub scope: Vec<ScopeName>,
    /// Slots (384), shares of all experts (25%) or sizes (40GiB)
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "12.5%,25%,50%")]
    pub capacity: Vec<String>,
    /// Links by name (see 'hotset link'), or profiles (.toml)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "h200-pcie,h200-nvlink"
    )]
    pub link: Vec<String>,
    /// Steps to replay; 'all' replays everything in order and reports each phase by itself
    #[arg(long, value_enum, default_value_t = PhaseName::All)]
    pub phase: PhaseName,
    /// Events (a layer's experts arrive together) or one access at a time
    #[arg(long, value_enum, default_value_t = SemanticsName::Event)]
    pub semantics: SemanticsName,
    /// Count the first N tokens as cold [default: until the cache has first been full]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u64>,
    /// Prompt tokens a step, where the trace does not record steps
    #[arg(long, value_name = "N", default_value_t = PREFILL_CHUNK, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: u32,
    /// An expert's size: bytes, MiB, or 2048x512x3:nvfp4 [default: as recorded]
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: Option<u64>,
    /// Compute a token in ms, added to every price [default: prices are of transfers alone]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = parse::milliseconds)]
    pub compute_ms: Option<f64>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `trace import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  npz  hotset-npz/1: token-major NumPy arrays in one zip (what hotset's recorder writes)
  npy  one NumPy array of ids [tokens, layers, top-k]; weights and sequences.csv beside it
  ids  one integer a line: a plain cache trace of one layer")]
pub struct ImportArgs {
    /// Format of the input
    #[arg(long, value_name = "FORMAT")]
    pub from: String,
    /// The input
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The trace to write
    #[arg(short, long, value_name = "OUT.hst")]
    pub output: PathBuf,
    /// Compress columns with zstd at this level, 1 to 19 [default: not compressed, read in place]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub zstd: Option<i32>,
    /// Experts in each layer [default: as the file says, else the highest id plus one]
    #[arg(long, value_name = "N")]
    pub experts: Option<u32>,
    /// Experts a token uses in each layer; must agree with the file
    #[arg(long, value_name = "N")]
    pub top_k: Option<u32>,
    /// An expert's size: bytes, MiB, or 2048x512x3:nvfp4
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: Option<u64>,
    /// The trace's name [default: the model that the file names, else the file's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Flags of commands that read one trace.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `link`.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// A link to show in full
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `policies`.
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// A policy to define
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Names of the scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// One pool over all layers
    Global,
    /// The same number of slots for each layer
    Layer,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Global => Self::Global,
            ScopeName::Layer => Self::Layer,
        }
    }
}

/// Names of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Decode steps alone, as if another cache served prefill
    Decode,
    /// Prefill steps alone
    Prefill,
    /// Verify steps of speculative decoding alone
    Verify,
    /// Everything in order
    All,
}

impl From<PhaseName> for PhaseChoice {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Decode => Self::Decode,
            PhaseName::Prefill => Self::Prefill,
            PhaseName::Verify => Self::Verify,
            PhaseName::All => Self::All,
        }
    }
}

/// Names of the semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SemanticsName {
    /// A layer's distinct experts arrive together; none may evict another
    Event,
    /// One access at a time, as cache simulators count
    Sequential,
}

impl From<SemanticsName> for Semantics {
    fn from(name: SemanticsName) -> Self {
        match name {
            SemanticsName::Event => Self::Event,
            SemanticsName::Sequential => Self::Sequential,
        }
    }
}
