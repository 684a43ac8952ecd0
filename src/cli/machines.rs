//! Flags of `machines`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::OutputArgs;

/// Flags of `machines`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  hotset machines
  hotset machines rtx-4090
  hotset machines detect -o mine.toml && hotset plan --model gpt-oss-20b --machine mine.toml
  hotset plan --model gpt-oss-120b --machine rtx-4090 --host ddr5-6000x2:96GB --disk 7GB/s

A machine of one's own is a file of three lines: base = \"rtx-4090\", host = \"ddr5-6000x2:96GB\",
disk = \"14GB/s\"."
)]
pub struct MachinesArgs {
    #[command(subcommand)]
    pub command: Option<MachinesCommand>,
    /// A machine to show in full
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Commands on machines.
#[derive(Debug, Subcommand)]
pub enum MachinesCommand {
    /// Write this machine's file, from what lspci, nvidia-smi, /proc and dmidecode say
    Detect(DetectArgs),
}

/// Flags of `machines detect`.
#[derive(Debug, Args)]
pub struct DetectArgs {
    /// Measure how fast memory and disk are read (seconds; 64 MiB a thread, a file of 512 MiB)
    #[arg(long)]
    pub measure: bool,
    /// The folder whose disk is measured
    #[arg(long, value_name = "FOLDER", default_value = ".", requires = "measure")]
    pub scratch: PathBuf,
    /// Write to FILE instead of the terminal (whole or not at all)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
