//! The flags and their help.

mod advise;
mod diff;
mod experiment;
mod install;
#[cfg(feature = "cuda")]
mod live;
mod machines;
mod names;
mod plan;
mod serving;
mod tiers;
mod timing;
mod traces;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use hotset::sim::PREFILL_CHUNK;

use crate::output::OutputArgs;
use crate::parse;

pub use advise::AdviseArgs;
pub use diff::DiffArgs;
pub use experiment::{AblationArgs, ExperimentArgs, ExperimentCommand, PrefetchArgs, SemanticArgs};
pub use install::{CompletionsArgs, ManArgs};
#[cfg(feature = "cuda")]
pub use live::{
    CalibrateArgs, LiveArgs, LiveCheckArgs, LiveCommand, LiveModelArgs, LiveRecordArgs,
    LiveSettingArgs,
};
pub use machines::{DetectArgs, MachinesArgs, MachinesCommand};
pub use names::{PhaseName, ScopeName, SemanticsName, ShuffleName, SplitScopeName};
pub use plan::{KvName, PlanArgs, PreflightArgs, SettingArgs};
pub use serving::{ArrivalName, ServingArgs, TimeArgs};
pub use tiers::{PrefetchToName, TierArgs};
pub use timing::{
    FitArgs, InFullArgs, LinkArgs, LinkCommand, MeasurementName, PriceArgs, VerifyLiveArgs,
    VerifyPlanArgs,
};
pub use traces::{ComposeArgs, ExportArgs, ImportArgs, InfoArgs, LayerList, ReadArgs, SliceArgs};

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
    /// Compare policies over many capacities: curves, knees, LRU at every size
    Sweep(SweepArgs),
    /// Replay one setting in full: layers, percentiles of times, what ran when
    Replay(InFullArgs),
    /// Rank settings on this trace and machine: which to run, how sure, what binds
    Advise(Box<AdviseArgs>),
    /// Run an experiment: many ways to run the cache, intervals, a verdict
    #[command(subcommand)]
    Experiment(ExperimentCommand),
    /// Plan a model on a machine: does it fit, how to split its memory, how fast
    Plan(Box<PlanArgs>),
    /// Check what each rank of a cluster must have free; exit code 1 where it does not fit
    Preflight(Box<PreflightArgs>),
    /// Run the cache live on a GPU, and hold it against its replay
    #[cfg(feature = "cuda")]
    #[command(subcommand)]
    Live(Box<LiveCommand>),
    /// Check predicted times against live runs; exit code 1 where they are off
    VerifyLive(VerifyLiveArgs),
    /// Hold plans against what people measured: predictions, ranges and errors of every report
    VerifyPlan(VerifyPlanArgs),
    /// Tell what changed between two results; exit code 1 where they differ
    Diff(DiffArgs),
    /// Compare an engine's decision log with a policy; exit code 1 where they differ
    Conform(ConformArgs),
    /// Import, export, cut, describe or check router traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Fit, list or show links and machines
    Link(LinkArgs),
    /// List machines to plan for, show one, or find out about this one
    #[command(visible_alias = "machine")]
    Machines(MachinesArgs),
    /// List policies and prefetchers, or define one
    Policies(PoliciesArgs),
    /// Print what completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Write a man page a command into a folder
    Man(ManArgs),
}

/// Commands on traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Read other programs' files and write them as one .hst
    Import(ImportArgs),
    /// Write a trace in a format that other tools read
    Export(ExportArgs),
    /// Keep some sequences, tokens or one phase
    Slice(SliceArgs),
    /// Compose the steps of an engine that serves several requests at once
    Compose(ComposeArgs),
    /// Describe a trace: shape, tokens, digests, locality
    Info(InfoArgs),
    /// Check every value and both digests; exit code 1 if the trace is not sound
    Validate(TraceArgs),
    /// Permute the order of tokens: the control for temporal locality
    Shuffle(ShuffleArgs),
}

/// Flags of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset compare
  hotset compare --policy lru,lfu --capacity 25%,384 --link zgx-pcie,zgx-c2c
  hotset compare x.hst --phase decode --scope layer --format json -o result.json
  hotset compare --scope layer,adaptive --train 50%
  hotset compare --machine h200 --dense-bytes 20MiB --prefetch ahead --phase decode
  hotset compare large.hst --sample 10%
  hotset compare --capacity 12.5% --host-slots 50% --host-policy page-cache --disk nvme-gen4")]
pub struct CompareArgs {
    #[command(flatten)]
    pub replay: ReplayArgs,
    /// Slots (384), shares of all experts (25%), sizes (40GiB), or ranges of them (10%..50%:5%)
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "12.5%,25%,50%")]
    pub capacity: Vec<String>,
    /// Also draw the curves into this file, .svg or .png, and write their rows beside it, as FILE.csv
    #[arg(long, value_name = "FILE", value_parser = parse::plot)]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset sweep
  hotset sweep x.hst --policy lru,s3-fifo,belady --capacity 10%..100%:2% --phase decode
  hotset sweep --plot curve.svg --format html -o sweep.html
  hotset sweep x.hst --resume x.journal --format json -o sweep.json

With --resume every finished replay is kept in the journal. Killed and started again with the same \
flags, the sweep goes on where it was and ends with the same bytes.")]
pub struct SweepArgs {
    #[command(flatten)]
    pub replay: ReplayArgs,
    /// Slots (384), shares of all experts (25%), sizes (40GiB), or ranges of them (10%..50%:5%)
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "4%..100%:4%")]
    pub capacity: Vec<String>,
    /// Keep finished replays in this file, and go on with those that it has
    #[arg(long, value_name = "JOURNAL")]
    pub resume: Option<PathBuf>,
    /// Do these replays alone, by their numbers, into the journal, and give no result: parts of a
    /// sweep for several machines. The journals' lines together, behind one first line, are the
    /// journal of the whole
    #[arg(long, value_name = "FROM..TO", requires = "resume", value_parser = parse::span)]
    pub replays: Option<std::ops::Range<usize>>,
    /// Also find the size from which no larger one saves MS a token for each GiB more
    #[arg(long, value_name = "MS", value_parser = parse::milliseconds)]
    pub knee: Option<f64>,
    /// Also draw the curves into this file, .svg or .png, and write their rows beside it, as FILE.csv
    #[arg(long, value_name = "FILE", value_parser = parse::plot)]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `compare`, `sweep` and `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Policies; parameters follow as name:key=value,key=value
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "lru,clock,lfu,s3-fifo,class-lru,td-pairs,belady"
    )]
    pub policy: Vec<String>,
    /// Who gets a slot: always, upload-cap:n=2, tinylfu, bypass (see 'hotset policies NAME')
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "always")]
    pub admit: Vec<String>,
    /// One pool over all layers, the same number of slots for each layer, or a split that is
    /// learnt from the training part
    #[arg(long, value_enum, value_delimiter = ',', default_value = "global")]
    pub scope: Vec<SplitScopeName>,
    /// Links by name (see 'hotset link'), or profiles (.toml; all links of a machine's)
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
    /// Memory that the policies of one replay may take; a policy that would take more is left out
    /// with a warning [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub policy_memory: Option<u64>,
    /// Leave the timelines out: faster, and only the prices that need none
    #[arg(long)]
    pub no_timeline: bool,
    /// Train on the first share of the sequences and test on the rest alone [default: 50% where
    /// something is trained, else nothing]
    #[arg(long, value_name = "SHARE", value_parser = parse::training_share)]
    pub train: Option<f64>,
    /// Place by an engine's counts (imatrix, SGLang's stat, ...) instead of by a training part: for
    /// the policy 'static'
    #[arg(long, value_name = "FILE")]
    pub histogram: Option<PathBuf>,
    /// Permute the order of tokens within each sequence and phase before anything else: what is
    /// then lost was temporal locality
    #[arg(long, value_enum, value_name = "WHAT")]
    pub shuffle: Option<ShuffleName>,
    /// Replay this share of the sequences for the whole trace, chosen by --seed: each figure then has
    /// the interval that 95% of resamples of these sequences give, and it is said how many more
    /// sequences would halve it
    #[arg(long, value_name = "SHARE", value_parser = parse::sample_share)]
    pub sample: Option<f64>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub serving: ServingArgs,
    #[command(flatten)]
    pub time: TimeArgs,
    #[command(flatten)]
    pub tiers: TierArgs,
}

/// Flags of `conform`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset conform bundled engine.jsonl --policy slru-50 --capacity 384 --phase decode
  hotset conform x.hst - --policy lru --capacity 25% --scope layer < engine.jsonl
  hotset conform bundled --policy lru --capacity 25% --record lru.jsonl

The log has one event a line, in the order of the trace's steps (docs/conform.md):
  {\"step\":0,\"layer\":0,\"hits\":[3],\"fetches\":[{\"expert\":7,\"slot\":2,\"evicted\":null}]}

Exit codes: 0 conforms, 1 differs (the first event is shown), 2 the log is malformed or of \
another trace.")]
pub struct ConformArgs {
    /// Trace (.hst) that the engine ran; 'bundled': the one that comes with the program
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The engine's log, one event a line (.jsonl); '-': standard input
    #[arg(value_name = "DECISIONS")]
    pub decisions: Option<PathBuf>,
    /// Policy; parameters follow as name:key=value,key=value
    #[arg(long, value_name = "NAME")]
    pub policy: String,
    /// Who gets a slot: always, upload-cap:n=2, tinylfu, bypass
    #[arg(long, value_name = "NAME", default_value = "always")]
    pub admit: String,
    /// One pool over all layers, or the same number of slots for each layer
    #[arg(long, value_enum, default_value_t = ScopeName::Global)]
    pub scope: ScopeName,
    /// Slots (384), share of all experts (25%) or size (40GiB)
    #[arg(long, value_name = "SIZE")]
    pub capacity: String,
    /// Steps that the engine's cache served
    #[arg(long, value_enum, default_value_t = PhaseName::All)]
    pub phase: PhaseName,
    /// Prompt tokens a step, where the trace does not record steps
    #[arg(long, value_name = "N", default_value_t = PREFILL_CHUNK, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: u32,
    /// An expert's size, for a capacity in GiB: bytes, MiB, or 2048x512x3:nvfp4
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: Option<u64>,
    /// Write the policy's own log to FILE instead of comparing one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["decisions", "format", "output"])]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `trace shuffle`.
#[derive(Debug, Args)]
pub struct ShuffleArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// The trace to write
    #[arg(short, long, value_name = "OUT.hst")]
    pub output: PathBuf,
    /// Seed of the order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Compress columns with zstd at this level, 1 to 19 [default: not compressed, read in place]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub zstd: Option<i32>,
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

/// Flags of `policies`.
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// A policy, prefetcher or admission to define
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}
