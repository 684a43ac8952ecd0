//! Flags of `completions` and `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Flags of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset completions bash > /etc/bash_completion.d/hotset
  hotset completions zsh > ~/.zfunc/_hotset
  hotset completions fish > ~/.config/fish/completions/hotset.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
    /// Write to FILE instead of the terminal (whole or not at all)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Flags of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  hotset man /usr/local/share/man/man1 && man hotset-compare")]
pub struct ManArgs {
    /// The folder, which is there already
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
