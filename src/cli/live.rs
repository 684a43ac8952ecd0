//! Flags of `live`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hotset::live::Source;
use hotset::sim::PREFILL_CHUNK;

use super::{PhaseName, ServingArgs, SplitScopeName};
use crate::output::OutputArgs;
use crate::parse;

/// Commands that run on a GPU.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A live run drives the real cache by a recorded trace on a CUDA device: experts in pinned host memory (or \
a GPU's), slots in GPU memory, copies and kernels on two streams. Every expert's sum is checked \
(docs/live.md). It needs an NVIDIA GPU and its driver, and nothing else.")]
pub enum LiveCommand {
    /// Time this machine's link, kernels and host cores, as 'hotset link fit' reads them
    Calibrate(CalibrateArgs),
    /// Run settings and print what they took
    Run(LiveArgs),
    /// Run settings, predict them from measurements alone, compare; exit code 1 where they are off
    Check(LiveCheckArgs),
    /// Run one setting and write its decisions, as 'hotset conform' reads them
    Record(LiveRecordArgs),
}

/// Flags of `live calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset live calibrate -o links.csv && hotset link fit links.csv -o mine.toml
  hotset live calibrate x.hst --expert-size 3MiB --dense-bytes 12MiB --host-threads 8 -o links.csv")]
pub struct CalibrateArgs {
    #[command(flatten)]
    pub model: LiveModelArgs,
    /// Sizes of copies and kernels beside the model's own [default: 13 from 64 KiB to 32 MiB]
    #[arg(long, value_delimiter = ',', value_name = "SIZE", value_parser = parse::size)]
    pub sizes: Vec<u64>,
    /// Repeats of each timing; the fit takes the median
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Write to FILE instead of the terminal (whole or not at all)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The model that is put on the GPU.
#[derive(Debug, Args)]
pub struct LiveModelArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Where all experts lie
    #[arg(long, value_enum, default_value_t = SourceName::Host)]
    pub from: SourceName,
    /// An expert's size: bytes, MiB, or 2048x512x3:nvfp4 [default: as recorded]
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: Option<u64>,
    /// Bytes (or MiB) that a step reads for each layer beside the experts
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = parse::size)]
    pub dense_bytes: u64,
    /// Host threads that compute experts [default: 8, or what the machine has less two]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub host_threads: Option<u32>,
}

/// Names of the places where experts lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SourceName {
    /// Pinned host memory
    Host,
    /// A second GPU's memory
    Peer,
    /// The GPU's own memory, outside the slots
    Device,
}

impl From<SourceName> for Source {
    fn from(name: SourceName) -> Self {
        match name {
            SourceName::Host => Self::Host,
            SourceName::Peer => Self::Peer,
            SourceName::Device => Self::Device,
        }
    }
}

/// What is run.
#[derive(Debug, Args)]
pub struct LiveSettingArgs {
    #[command(flatten)]
    pub model: LiveModelArgs,
    /// Policies; parameters follow as name:key=value,key=value
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "lru")]
    pub policy: Vec<String>,
    /// Who gets a slot: always, upload-cap:n=2, tinylfu, bypass (see 'hotset policies NAME')
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "always")]
    pub admit: Vec<String>,
    /// One pool over all layers, the same number of slots for each layer, or a learnt split
    #[arg(long, value_enum, value_delimiter = ',', default_value = "global")]
    pub scope: Vec<SplitScopeName>,
    /// Slots (384), shares of all experts (25%), sizes (40GiB), or ranges of them (10%..50%:5%)
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "25%")]
    pub capacity: Vec<String>,
    /// Steps to run
    #[arg(long, value_enum, default_value_t = PhaseName::Decode)]
    pub phase: PhaseName,
    /// Prompt tokens a step, where the trace does not record steps
    #[arg(long, value_name = "N", default_value_t = PREFILL_CHUNK, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: u32,
    /// Run the first N tokens of the trace alone [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub tokens: Option<u64>,
    /// Leave the first N tokens out of all means [default: a fifth]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u64>,
    /// Train on the first share of the sequences and run the rest alone [default: 50% where
    /// something is trained, else nothing]
    #[arg(long, value_name = "SHARE", value_parser = parse::training_share)]
    pub train: Option<f64>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub serving: ServingArgs,
    /// Timings of this machine ('hotset live calibrate'): what link and host take, for rules that go
    /// by it, and for predictions
    #[arg(long, value_name = "LINKS.csv")]
    pub links: Option<PathBuf>,
}

/// Flags of `live run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset live run --policy lru,td-pairs --capacity 25%,50% --format csv -o points.csv
  hotset live run x.hst --expert-size 1.7MiB --prefetch none,ahead --tokens-to tokens.csv")]
pub struct LiveArgs {
    #[command(flatten)]
    pub setting: LiveSettingArgs,
    /// Also write every step of every run into this file (.csv)
    #[arg(long, value_name = "FILE")]
    pub tokens_to: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `live check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset live check
  hotset live check x.hst --links links.csv --policy lru,class-lru,s3-fifo --capacity 10%..60%:10% \\
    --prefetch none,ahead,cross-layer
  hotset live check --miss host,balanced --host-threads 8

Without --links the machine is timed first. Exit codes: 0 fine, 1 a time or a decision is off, or a \
sum is wrong.")]
pub struct LiveCheckArgs {
    #[command(flatten)]
    pub setting: LiveSettingArgs,
    /// The most that a point's time may be off
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = parse::error_share)]
    pub most_error: f64,
    /// The most that the median of the errors may be
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse::error_share)]
    pub most_median: f64,
    /// Also write every step of every run into this file (.csv)
    #[arg(long, value_name = "FILE")]
    pub tokens_to: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `live record`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset live record --policy slru --capacity 25% -o slru.jsonl
  hotset conform bundled slru.jsonl --policy slru --capacity 25% --phase decode")]
pub struct LiveRecordArgs {
    #[command(flatten)]
    pub setting: LiveSettingArgs,
    /// The log to write
    #[arg(short, long, value_name = "OUT.jsonl")]
    pub output: PathBuf,
}
