//! Flags of `diff`.

use std::path::PathBuf;

use clap::Args;

use crate::output::OutputArgs;
use crate::parse;

/// Flags of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hotset diff main.json branch.json
  hotset diff main.json branch.json --tolerance 0.5% --format markdown >> $GITHUB_STEP_SUMMARY

Both files are results of one command with '--format json'. Rows are matched by what they are of \
(policy, size, phase, link, ...). Exit code 1 if a number differs by more than the tolerance, if any \
other value differs, or if a row is there in one alone; the version that made a result is passed over.")]
pub struct DiffArgs {
    /// The result that the other is held against
    #[arg(value_name = "BEFORE.json")]
    pub before: PathBuf,
    /// The other result
    #[arg(value_name = "AFTER.json")]
    pub after: PathBuf,
    /// Numbers may differ by this share of the one before
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse::share)]
    pub tolerance: f64,
    #[command(flatten)]
    pub output: OutputArgs,
}
