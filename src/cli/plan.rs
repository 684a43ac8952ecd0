//! Flags of `plan` and `preflight`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hotset::cost_models::{Mix, WeightFormat};
use hotset::planning::{Bank, Load, MeasuredStep, MissPricing};

use crate::output::OutputArgs;
use crate::parse::{self, ExpertFormat};

/// Flags of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset plan --model OLMoE-1B-7B --machine rtx-4090 --trace bundled
  hotset plan --model DeepSeek-V3 --machine rtx-pro-6000 --expert-format nvfp4 --context 32768
  hotset plan --model Qwen3-30B-A3B --machine rtx-4090 --quant Q4_K_M --engine llama.cpp
  hotset plan --model ./config.json --machine rtx-4090 --link mine.toml --trace x.hst
  hotset plan --model gpt-oss-120b --machine rtx-4090 --vary gpu-memory=16,24,32,48
  hotset plan --model GLM-5.2 --machine h200 --trace bundled --stand-in --vary users=1..32
  hotset plan --model ./config.json --machine rtx-4090 --histogram imatrix.gguf
  hotset plan --model gpt-oss-120b --machine rtx-4090 --host ddr5-6000x2:96GB --cpu-moe auto
  hotset plan --model DeepSeek-V3 --machine 8xh200 --accept 80% --vary speculate=0..4

What can be varied: gpu-memory and host-memory (GiB), link, format (of the experts), kv, context,
users, speculate, tp, ep, machine, model. Several --vary make every combination.

Speeds are ranges: nothing overlaps, the timeline of an engine that waits for a layer's copies,
everything overlaps. What an engine itself costs is not known here: --fixed-ms adds it.")]
pub struct PlanArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    /// Recorded routing (.hst) of this model; 'bundled': the trace that comes with the program
    /// [default: what recorded traces of other models have in common]
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// An engine's counts of this model's experts in place of a trace: imatrix GGUF, SGLang's stat
    /// or per_pass, TensorRT-LLM's statistics; the most used experts are then pinned
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub histogram: Option<PathBuf>,
    /// Let another model's trace stand in, by the slots in units of one step's experts
    #[arg(long, requires = "trace")]
    pub stand_in: bool,
    /// Without a trace: every expert alike, which misses more than any model
    #[arg(long, conflicts_with_all = ["trace", "histogram"])]
    pub uniform: bool,
    /// Plan at many values: users=1..32, gpu-memory=24,32,48; may be given again
    #[arg(long, value_name = "NAME=VALUES")]
    pub vary: Vec<String>,
    /// Threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = parse::threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `preflight`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset preflight --model DeepSeek-V3 --machine 8xh200 && start-the-engine
  hotset preflight --model Kimi-K3 --machine 4xdgx-spark --expert-format mxfp4 \\
    --weights 307.49GiB --free 90GiB --format json

Exit codes: 0 every rank and host holds what it must, 1 it does not, 2 bad usage.")]
pub struct PreflightArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    /// A model of which only some experts are resident passes too
    #[arg(long)]
    pub cached: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is planned, and for what.
#[derive(Debug, Args)]
pub struct SettingArgs {
    /// A built-in name, a folder or config.json from Hugging Face, or a .gguf file
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// Plan a configuration of an unknown architecture although some of its keys are not understood
    #[arg(long)]
    pub allow_unknown: bool,
    /// A built-in name (see 'hotset machines'), several of one (4xdgx-spark), cards of several kinds
    /// (rtx-5090+rtx-3090, with --cpu-moe), or a file of one's own (.toml, as in docs/metrics.md)
    #[arg(long, value_name = "MACHINE")]
    pub machine: String,
    /// Other host memory beside it: ddr5-6000x2:96GB, epyc-genoa:768GB
    #[arg(long, value_name = "HOST", value_parser = parse::host)]
    pub host: Option<hotset::cost_models::HostSpec>,
    /// Storage of another rate: 7GB/s
    #[arg(long, value_name = "RATE", value_parser = parse::bytes_a_second)]
    pub disk: Option<u64>,
    /// Tokens that each sequence may hold
    #[arg(long, value_name = "N", default_value_t = 8192)]
    pub context: u64,
    /// Sequences that run at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub users: u32,
    #[command(flatten)]
    pub formats: FormatArgs,
    #[command(flatten)]
    pub spread: SpreadArgs,
    #[command(flatten)]
    pub room: RoomArgs,
    #[command(flatten)]
    pub pace: PaceArgs,
}

/// How things are stored.
#[derive(Debug, Args)]
#[command(next_help_heading = "Formats")]
pub struct FormatArgs {
    /// Format of the experts: nvfp4, mxfp4, fp8, q4_k, ..., or a GGUF mix, as --quant [default: as
    /// published]
    #[arg(long, value_name = "FORMAT", value_parser = parse::expert_format)]
    pub expert_format: Option<ExpertFormat>,
    /// A GGUF file's mix: Q4_K_M, IQ4_XS, UD-Q4_K_XL, mxfp4+f16, or the table of types that its load
    /// log prints ('f32:361 q8_0:612 iq3_k_r4:116'): every tensor by the quantiser's rules
    #[arg(long, value_name = "MIX", value_parser = parse::mix,
          conflicts_with_all = ["expert_format", "rest_format"])]
    pub quant: Option<Mix>,
    /// Format of everything else [default: as published, else bf16]
    #[arg(long, value_name = "FORMAT", value_parser = parse::weight_format)]
    pub rest_format: Option<WeightFormat>,
    /// Format of keys and values
    #[arg(long, value_enum, default_value_t = KvName::Bf16)]
    pub kv_format: KvName,
    /// The engine that runs it: llama.cpp, ik_llama.cpp, vllm, sglang, ktransformers, tensorrt-llm,
    /// mlx, ..., or a file of one's own (.toml): its pages, its buffers, what it reserves
    /// [default: none, the bytes alone and general rules]
    #[arg(long, value_name = "NAME", default_value = "algorithm", hide_default_value = true)]
    pub engine: String,
    /// Tokens of a micro-batch, of engines that run chunks in such [default: theirs, 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub ubatch: Option<u64>,
    /// A slot over an expert as stored: what padding and repacking take
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub slot_multiplier: f64,
    /// The checkpoint's size, and of it the experts', in place of formulas: 433GB:419GB
    #[arg(long, value_name = "SIZE[:SIZE]", value_parser = parse::checkpoint)]
    pub weights: Option<hotset::planning::Checkpoint>,
}

/// Over what the model is spread, and where its parts are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Placement")]
pub struct SpreadArgs {
    /// Accelerators that slice every matrix [default: all of the machine, or 1 with --ep]
    #[arg(long, value_name = "N")]
    pub tp: Option<u32>,
    /// Accelerators over which whole experts are spread
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub ep: u32,
    /// A link by name in place of the machine's (see 'hotset link'), or out of a profile that 'link
    /// fit' wrote (mine.toml, or mine.toml:NAME where it has several)
    #[arg(long, value_name = "NAME")]
    pub link: Option<String>,
    /// Experts in host memory while the engine runs [default: all, where not all are resident; on
    /// a unified machine none]
    #[arg(long, value_enum)]
    pub bank: Option<BankName>,
    /// How weights are loaded
    #[arg(long, value_enum, default_value_t = LoadName::Mapped)]
    pub load: LoadName,
    /// Experts of so many layers are computed by the host (llama.cpp's -ncmoe): a number, all, or
    /// auto, the fewest that fit; several cards take layers in turn
    #[arg(long, value_name = "N|all|auto", value_parser = parse::host_layers)]
    pub cpu_moe: Option<hotset::planning::placement::HostLayers>,
    /// Experts that host memory does not hold may not stay on disk
    #[arg(long)]
    pub no_disk: bool,
    /// What becomes of misses
    #[arg(long, value_enum, default_value_t = PlanMissName::Fetch)]
    pub miss: PlanMissName,
}

/// Room for what is neither weight nor cache.
#[derive(Debug, Args)]
#[command(next_help_heading = "Room")]
pub struct RoomArgs {
    /// Share of an accelerator's memory to plan with [default: the machine's]
    #[arg(long, value_name = "SHARE", value_parser = parse::share)]
    pub usable_share: Option<f64>,
    /// What is free of an accelerator's memory, in place of a share
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub free: Option<u64>,
    /// What the system keeps of host memory [default: the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub host_reserved: Option<u64>,
    /// Tokens of a prefill chunk [default: 2048, or the engine's]
    #[arg(long, value_name = "N")]
    pub chunk: Option<u64>,
    /// Layers of experts that prefill buffers apart from the slots
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=64))]
    pub prefill_buffers: u32,
    /// Prefill loads the next layer while one runs: slots hold two layers at least
    #[arg(long)]
    pub prefill_overlap: bool,
    /// Activations [default: by rule, from the chunk]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub activations: Option<u64>,
    /// Captured graphs [default: by rule, from the tokens of a step]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub graphs: Option<u64>,
    /// What a process takes before it holds a weight [default: the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub process: Option<u64>,
    /// Anything else that an accelerator must hold
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse::size)]
    pub other: u64,
    /// What the allocator cannot use
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse::size)]
    pub slack: u64,
}

/// What takes how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speed")]
pub struct PaceArgs {
    /// Tokens drafted a step, then checked together with the one before them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub speculate: u32,
    /// Chance that each drafted token is accepted once those before it are; the last goes on
    #[arg(long, value_delimiter = ',', value_name = "SHARE", value_parser = parse::share)]
    pub accept: Vec<f64>,
    /// A draft model's bytes, where the model has no draft layers of its own
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub draft_model: Option<u64>,
    /// Milliseconds that every step takes on top of what is calculated: the engine's own
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = parse::milliseconds)]
    pub fixed_ms: f64,
    /// Measured milliseconds of a step of one token, and of each further one, every expert in its
    /// slot: 28.67:5.95. Misses are added to it
    #[arg(long, value_name = "MS:MS", value_parser = parse::measured_step)]
    pub measured_step: Option<MeasuredStep>,
    /// Share of its memory's rate that the accelerator reaches [default: measured, else 80%]
    #[arg(long, value_name = "SHARE", value_parser = parse::share)]
    pub efficiency: Option<f64>,
}

/// Names of the formats of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KvName {
    /// 2 bytes an element
    Bf16,
    /// 1 byte
    Fp8,
    /// 8.5 bits
    #[value(name = "q8_0")]
    Q8_0,
    /// 4.5 bits
    #[value(name = "q4_0")]
    Q4_0,
}

/// Names of what stays in host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BankName {
    /// Every expert
    Inclusive,
    /// Experts without a slot
    Exclusive,
}

impl From<BankName> for Bank {
    fn from(name: BankName) -> Self {
        match name {
            BankName::Inclusive => Self::Inclusive,
            BankName::Exclusive => Self::Exclusive,
        }
    }
}

/// Names of the ways to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadName {
    /// From mapped files, through the page cache
    Mapped,
    /// Into host memory first: for a while everything is there twice
    Copied,
    /// Past the page cache
    Direct,
}

impl From<LoadName> for Load {
    fn from(name: LoadName) -> Self {
        match name {
            LoadName::Mapped => Self::Mapped,
            LoadName::Copied => Self::Copied,
            LoadName::Direct => Self::Direct,
        }
    }
}

/// Names of what becomes of misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanMissName {
    /// All are fetched
    Fetch,
    /// Host cores serve some, so that both finish together
    Balanced,
    /// Host cores serve all
    Host,
}

impl From<PlanMissName> for MissPricing {
    fn from(name: PlanMissName) -> Self {
        match name {
            PlanMissName::Fetch => Self::Fetch,
            PlanMissName::Balanced => Self::Balanced,
            PlanMissName::Host => Self::Host,
        }
    }
}
