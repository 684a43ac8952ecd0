//! Flags of `replay`, `link`, `verify-live` and `verify-plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::CompareArgs;
use crate::output::{FormatName, OutputArgs};
use crate::parse;

/// Flags of `replay`.
#[derive(Debug, Args)]
#[command(
    mut_arg("policy", |arg| arg.default_value("lru")),
    mut_arg("capacity", |arg| arg.default_value("25%")),
    mut_arg("plot", |arg| arg.hide(true)),
    after_help = "\
Examples:
  hotset replay --phase decode --capacity 384 --prefetch ahead
  hotset replay x.hst --policy s3-fifo --machine h200 --dense-bytes 20MiB --link h200-pcie
  hotset replay --link h200-pcie --trace-events run.json    # open in https://ui.perfetto.dev"
)]
pub struct InFullArgs {
    #[command(flatten)]
    pub compare: CompareArgs,
    /// Write what ran when over the first link, as Chrome trace events (.json), for Perfetto
    #[arg(long, value_name = "FILE", help_heading = "Trace events")]
    pub trace_events: Option<PathBuf>,
    /// Steps before the first that is written
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Trace events")]
    pub skip_steps: u64,
    /// Events at most
    #[arg(long, value_name = "N", default_value_t = 200_000, help_heading = "Trace events")]
    pub most_events: usize,
}

/// Flags of `link`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LinkArgs {
    #[command(subcommand)]
    pub command: Option<LinkCommand>,
    /// A link or a machine to show in full
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Commands on links.
#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Fit a machine's profile to measurements of its links
    Fit(FitArgs),
    /// List the built-in links and machines
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Price a token over links at a given hit rate, without a trace
    Price(PriceArgs),
    /// Show a link, a machine or a profile (.toml) in full
    Show {
        /// Its name, or a file
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Flags of `link price`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset link price zgx-pcie,zgx-c2c --layers 40 --top-k 8 --expert-size 1.6875MiB --hit-rate 76.4%
  hotset link price 57GB/s,21.5GiB/s --layers 24 --top-k 4 --expert-size 12.61MiB

Serial adds compute and every copy up, hidden lets predicted copies run beside compute, perfect \
lets everything overlap. Compute is what the link's profile says unless --compute-ms is given.")]
pub struct PriceArgs {
    /// Links by name, profiles (.toml), or nominal rates (57GB/s, 21.5GiB/s)
    #[arg(value_name = "LINK", value_delimiter = ',', required = true)]
    pub links: Vec<String>,
    /// An expert's size: bytes, MiB, or 2048x512x3:nvfp4
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: u64,
    /// Layers with experts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub layers: u32,
    /// Experts that a token needs in each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub top_k: u32,
    /// Share of the needed experts that are resident
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse::share)]
    pub hit_rate: f64,
    /// Experts copied for each one needed, predicted ones with them [default: the misses]
    #[arg(long, value_name = "EXPERTS", value_parser = parse::copies)]
    pub copied: Option<f64>,
    /// A token's compute with every expert resident [default: the link's profile's]
    #[arg(long, value_name = "MS", value_parser = parse::milliseconds)]
    pub compute_ms: Option<f64>,
    /// Rate of experts on the host's cores, as 170.1GB/s [default: the link's profile's]
    #[arg(long, value_name = "RATE", value_parser = parse::rate)]
    pub host_rate: Option<f64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `link fit`.
#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  csv      raw timings, columns device,link,mode,bytes,transfers,ms (docs/link-model.md)
  benchbw  FreeToken's calibration, benchbw.json version 4
  disk     timings of a disk, columns request_bytes,queue_depth,seconds: a batch of so many
           requests as are in flight, or of 'requests' where that is a column

Example:
  hotset link fit links.csv -o mine.toml --name mine --source 'my host' --date 2026-11-29
  hotset compare --machine mine.toml --dense-bytes 20MiB --link mine.toml
  hotset link fit reads.csv -o nvme.toml --name nvme
  hotset compare --host-slots 50% --disk nvme.toml")]
pub struct FitArgs {
    /// The measurements
    #[arg(value_name = "LINKS")]
    pub input: PathBuf,
    /// Format of the measurements [default: benchbw if the file ends in .json, disk if it has a
    /// column queue_depth, else csv]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub from: Option<MeasurementName>,
    /// The profile to write
    #[arg(short, long, value_name = "PROFILE.toml")]
    pub output: Option<PathBuf>,
    /// The machine's name [default: as the measurements say]
    #[arg(long)]
    pub name: Option<String>,
    /// Who measured, where and how [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// When [default: as the measurements say, else 'undated']
    #[arg(long)]
    pub date: Option<String>,
    /// Output format of the residuals
    #[arg(long, value_enum, default_value_t = FormatName::Table)]
    pub format: FormatName,
}

/// Names of the formats of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeasurementName {
    /// Raw timings
    Csv,
    /// FreeToken's calibration
    Benchbw,
    /// Timings of a disk
    Disk,
}

/// Flags of `verify-plan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset verify-plan mine.csv
  hotset verify-plan memory.csv speeds.csv --format json -o verified.json
  hotset verify-plan mine.csv --model my-model/config.json --engine my-engine.toml

A line is one report. Of memory: id, engine, model, kind, value, unit, and where known format,
context, ubatch, parallel, kv_type, tp_ep_pp, gpu, gpu_mem_gib, settings, notes. Of speed: id,
engine, model, mode, tg_tokens_s, and the columns in docs/planning.md. Further columns are passed
over; lines whose column 'faulty' is 1 are left out.")]
pub struct VerifyPlanArgs {
    /// Reports of memory or of speed
    #[arg(value_name = "REPORTED.csv", required = true)]
    pub reported: Vec<PathBuf>,
    /// Models that reports name and that are not built in: folders, config.json or .gguf files
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Engines of one's own, before the built-in ones (.toml)
    #[arg(long, value_name = "FILE")]
    pub engine: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `verify-live`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hotset verify-live live/points.csv --links links.csv --traces live

Nothing of the live runs but their settings and routes is used for the prediction. The check fails \
if a point is off by more than 3%, their median by more than 1%, or a count of misses or \
prefetches differs.")]
pub struct VerifyLiveArgs {
    /// Settings that ran, with their times
    #[arg(value_name = "POINTS.csv")]
    pub points: PathBuf,
    /// Measurements of the machine's links, as for 'link fit'
    #[arg(long, value_name = "LINKS.csv")]
    pub links: PathBuf,
    /// Folder of the routes, with the recorded tokens in 'points'
    #[arg(long, value_name = "DIR")]
    pub traces: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}
