//! Flags of `experiment`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ScopeName, TimeArgs};
use crate::output::OutputArgs;
use crate::parse;

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Does a cache keyed on what the conversation is about beat recency?
    #[command(after_help = "\
Examples:
  hotset experiment semantic
  hotset experiment semantic --repeat 0%,25%,50%,75%
  hotset experiment semantic x.hst --arm semantic:k=4 --arm lru/cross-layer:width=8

An arm is POLICY or POLICY/PREFETCH; 'hotset policies semantic' lists parameters. LRU is always
there, and every arm is compared with it on the same sequences. Where neither --compute-ms nor
--machine is given, kernels are an H200's that read 20 MiB a layer beside the experts.")]
    Semantic(SemanticArgs),
    /// What does each predictor know, what does it move, and where does that pay?
    #[command(after_help = "\
Examples:
  hotset experiment prefetch
  hotset experiment prefetch --link zgx-pcie,zgx-c2c --compute-ms 3.4
  hotset experiment prefetch x.hst --arm lru/ahead:threshold=0.5 --arm lru/ahead:budget=16

Control of any prefetcher, behind its name: lookahead, reach (layers), width (guesses a token and
layer), threshold (confidence), budget (MiB a step), priority=token|confidence,
protect=guesses|nothing, cancel=true (one link), learn=both|online|trained; 'hotset policies ahead'
says what each means. Where neither --compute-ms nor --machine is given, kernels are an H200's that
read 20 MiB a layer beside the experts.")]
    Prefetch(PrefetchArgs),
    /// What is each part of a learning policy worth, and is it the order of tokens that it learns?
    #[command(after_help = "\
Examples:
  hotset experiment ablation
  hotset experiment ablation x.hst --train 50% --capacity 50% --link h200-pcie,h200-nvlink
  hotset experiment ablation x.hst --arm td-table --arm td-table:gamma=0.7 --arm lru-k

The first arm is compared with each of the others; without --arm it is td-pairs, and the others are
td-pairs with one part left out, the older learners and what engines ship. LRU and Belady's bound
are always there. The control runs all of it again with the tokens of each sequence in a random
order. Where neither --compute-ms nor --machine is given, kernels are an H200's that read 20 MiB a
layer beside the experts.")]
    Ablation(AblationArgs),
}

/// Flags of `experiment ablation`.
#[derive(Debug, Args)]
pub struct AblationArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

/// Flags of `experiment semantic`.
#[derive(Debug, Args)]
pub struct SemanticArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Shares of tested sequences that repeat a document seen before; each is a table of its own
    /// [default: the sequences as they lie]
    #[arg(long, value_delimiter = ',', value_name = "SHARE", value_parser = parse::share)]
    pub repeat: Vec<f64>,
}

/// Flags of `experiment prefetch`.
#[derive(Debug, Args)]
pub struct PrefetchArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Layers between the one that runs and the one that is predicted, for every predictor of the
    /// experiment's own choice
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=65535), conflicts_with = "arm")]
    pub lookahead: Vec<u32>,
    /// Share of tested sequences that repeat a document [default: the sequences as they lie]
    #[arg(long, value_name = "SHARE", value_parser = parse::share)]
    pub repeat: Option<f64>,
    /// Also time the predictors, one after another on one thread; the figures are this machine's
    /// of the moment, and go to standard error
    #[arg(long)]
    pub time_predictors: bool,
}

/// Flags of all experiments.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Compare this arm, POLICY or POLICY/PREFETCH; may be given again [default: the experiment's
    /// own choice]
    #[arg(long, value_name = "ARM")]
    pub arm: Vec<String>,
    /// Also compare all arms with this one, not with LRU alone; may be given again. Answers hold at
    /// 5% after Holm's correction for the number of arms
    #[arg(long, value_name = "ARM")]
    pub against: Vec<String>,
    /// Slots (384), share of all experts (25%) or size (40GiB)
    #[arg(long, value_name = "SIZE", default_value = "25%")]
    pub capacity: String,
    /// One pool over all layers, or the same number of slots for each layer
    #[arg(long, value_enum, default_value_t = ScopeName::Global)]
    pub scope: ScopeName,
    /// Links by name (see 'hotset link'), or profiles (.toml; all links of a machine's)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "h200-pcie,h200-nvlink"
    )]
    pub link: Vec<String>,
    /// Blocks of sequences; each is tested after training on the others
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..))]
    pub folds: u16,
    /// Train on the first share of the sequences and test on the rest, instead of folds
    #[arg(long, value_name = "SHARE", conflicts_with = "folds", value_parser = parse::training_share)]
    pub train: Option<f64>,
    /// How closely conversations keep to the topic of the moment, which moves on: 0% a mixture
    /// throughout, 100% one topic after another
    #[arg(long, value_name = "SHARE", value_parser = parse::share)]
    pub drift: Option<f64>,
    /// Users whose conversations take turns, each with documents of their own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub users: Option<u32>,
    /// An expert's size: bytes, MiB, or 2048x512x3:nvfp4 [default: as recorded]
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: Option<u64>,
    /// Draws of the bootstrap over sequences, 100 to 100000; intervals hold 95% of them
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub resamples: usize,
    /// Seed of workloads and of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub time: TimeArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}
