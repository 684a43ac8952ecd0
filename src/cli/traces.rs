//! Flags of the commands that make traces: import, export, slice, compose.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hotset::sim::PREFILL_CHUNK;
use hotset::traces::{Phase, export_formats, formats};

use super::ArrivalName;
use crate::flags::with_flags;
use crate::output::OutputArgs;
use crate::parse;

/// The formats of a registry, a line each.
fn listed<'a>(title: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("{title}:\n");
    for (name, description) in entries {
        text.push_str(&format!("  {name:<20} {}\n", with_flags(description)));
    }
    text
}

fn import_help() -> String {
    let all = formats().iter().map(|info| (info.name, info.description));
    listed("Formats", all)
        + "\nExamples:
  hotset trace import routes.npz -o routes.hst
  hotset trace import --from vllm req*.npy --prompt-tokens 512 --config config.json -o vllm.hst
  hotset trace import --from sglang expert_distribution_recorder_*.pt -o sglang.hst
  hotset trace import --from sglang-json --layers 48 --top-k 8 replies.jsonl -o replies.hst"
}

fn export_help() -> String {
    listed("Formats", export_formats().iter().map(|info| (info.name, info.description)))
}

/// Flags of `trace import`.
#[derive(Debug, Args)]
#[command(after_help = import_help())]
pub struct ImportArgs {
    /// The inputs, files or folders, which become one trace in this order
    #[arg(value_name = "IN", required = true)]
    pub input: Vec<PathBuf>,
    /// The trace to write
    #[arg(short, long, value_name = "OUT.hst")]
    pub output: PathBuf,
    /// Compress columns with zstd at this level, 1 to 19 [default: not compressed, read in place]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub zstd: Option<i32>,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// What a file does not say of itself.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Format of the input [default: told by its contents]
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
    /// The model's config.json: its layers, dense layers, experts and top-k
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Layers without a router for which the file has zeros, as 0,1,2; 'none': zeros are expert 0
    #[arg(long, value_name = "LIST", value_parser = layers)]
    pub dense_layers: Option<LayerList>,
    /// Layers to leave out, as 3 or 0,1
    #[arg(long, value_name = "LIST", value_parser = layers)]
    pub skip_layers: Option<LayerList>,
    /// Layers that the file has a slot for; must agree with the file where it says so
    #[arg(long, value_name = "N")]
    pub layers: Option<u32>,
    /// Experts in each layer [default: as the file says, else the highest id plus one]
    #[arg(long, value_name = "N")]
    pub experts: Option<u32>,
    /// Experts a token uses in each layer; must agree with the file where it says so. Of router
    /// scores so many are taken, the highest first
    #[arg(long, value_name = "N")]
    pub top_k: Option<u32>,
    /// Prompt tokens of each request in the order of the inputs; one number stands for all
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub prompt_tokens: Vec<u32>,
    /// The phase of all tokens [default: as recorded, else decode]
    #[arg(long, value_enum)]
    pub phase: Option<OnePhase>,
    /// Names of columns, as token=tok,layer=il,experts=ids [default: by a table of names]
    #[arg(long, value_name = "MEANING=NAME", value_delimiter = ',', value_parser = column)]
    pub columns: Vec<ColumnName>,
    /// An expert's size: bytes, MiB, or 2048x512x3:nvfp4
    #[arg(long, value_name = "SIZE", value_parser = parse::expert_size)]
    pub expert_size: Option<u64>,
    /// The trace's name [default: the model that the file names, else the file's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Flags of `trace info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset trace info x.hst
  hotset trace info routes.jsonl --columns token=tok,layer=il,experts=ids
  hotset trace info router_logits.npy --top-k 8")]
pub struct InfoArgs {
    /// Trace: .hst, or a file or folder of any format that is imported [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Numbers of layers.
#[derive(Debug, Clone)]
pub struct LayerList(pub Vec<u32>);

fn layers(text: &str) -> Result<LayerList, String> {
    if text == "none" {
        return Ok(LayerList(Vec::new()));
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
    numbers.map(LayerList).map_err(|_| "give numbers of layers, as 0,1,2, or 'none'".to_owned())
}

/// What a column means, and what it is called.
#[derive(Debug, Clone)]
pub struct ColumnName {
    /// `token`, `layer`, `experts`, ...
    pub meaning: String,
    /// Its name in the file.
    pub name: String,
}

fn column(text: &str) -> Result<ColumnName, String> {
    match text.split_once('=') {
        Some((meaning, name)) if !name.is_empty() => {
            Ok(ColumnName { meaning: meaning.trim().to_owned(), name: name.to_owned() })
        }
        _ => Err("give pairs as token=tok,layer=il,experts=ids".to_owned()),
    }
}

/// Flags of `trace export`.
#[derive(Debug, Args)]
#[command(after_help = export_help())]
pub struct ExportArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Format to write
    #[arg(long, value_name = "FORMAT")]
    pub to: String,
    /// The file to write (whole or not at all)
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
}

/// Flags of `trace slice`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset trace slice x.hst --sequences 0..10 -o ten.hst
  hotset trace slice x.hst --phase decode --tokens 0..100000 -o decode.hst")]
pub struct SliceArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Sequences to keep, by their places: 0,3 or 0..10 (10 is left out), or both
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse::span)]
    pub sequences: Vec<std::ops::Range<usize>>,
    /// Tokens to keep, by their rows: 0..1000
    #[arg(long, value_name = "FROM..TO", value_parser = parse::span)]
    pub tokens: Option<std::ops::Range<usize>>,
    /// Tokens of one phase
    #[arg(long, value_enum)]
    pub phase: Option<OnePhase>,
    /// The trace to write
    #[arg(short, long, value_name = "OUT.hst")]
    pub output: PathBuf,
    /// Compress columns with zstd at this level, 1 to 19 [default: not compressed, read in place]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub zstd: Option<i32>,
}

/// Flags of `trace compose`.
#[derive(Debug, Args)]
#[command(after_help = "\
Steps are those of a continuous batch: so many requests run at a time, and when one ends the next \
begins. They are written into the trace, which then replays as if the engine had recorded them.")]
pub struct ComposeArgs {
    /// Trace (.hst) [default: the bundled one]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Requests that run at once
    #[arg(long, value_name = "N")]
    pub concurrency: u32,
    /// Prompt tokens a step
    #[arg(long, value_name = "N", default_value_t = PREFILL_CHUNK, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: u32,
    /// Tokens of a request that a verify step checks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub verify_tokens: u32,
    /// Order in which requests arrive
    #[arg(long, value_enum, default_value_t = ArrivalName::Recorded)]
    pub arrival: ArrivalName,
    /// Seed of a shuffled order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// The trace to write
    #[arg(short, long, value_name = "OUT.hst")]
    pub output: PathBuf,
    /// Compress columns with zstd at this level, 1 to 19 [default: not compressed, read in place]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub zstd: Option<i32>,
}

/// One phase of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnePhase {
    /// Tokens of prompts
    Prefill,
    /// Generated tokens
    Decode,
    /// Drafted tokens that were checked
    Verify,
}

impl From<OnePhase> for Phase {
    fn from(name: OnePhase) -> Self {
        match name {
            OnePhase::Prefill => Self::Prefill,
            OnePhase::Decode => Self::Decode,
            OnePhase::Verify => Self::Verify,
        }
    }
}
