//! `hotset live`: the cache in an engine's loop on a GPU.

mod calibrate;
mod check;
mod point;
mod record;
mod report;
mod settings;

use crate::cli::LiveCommand;
use crate::fault::{Ending, Fault};

/// Runs one of the commands.
pub fn run(command: &LiveCommand) -> Result<Ending, Fault> {
    match command {
        LiveCommand::Calibrate(args) => calibrate::run(args),
        LiveCommand::Run(args) => check::run(args),
        LiveCommand::Check(args) => check::check(args),
        LiveCommand::Record(args) => record::run(args),
    }
}
