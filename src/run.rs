//! From parsed arguments to the command that they name.

use crate::cli::{Cli, Command, TraceCommand};
use crate::commands;
use crate::fault::{Ending, Fault};
use crate::typed::Typed;

/// Runs the command, typed so.
pub fn run(cli: Cli, typed: &[Typed]) -> Result<Ending, Fault> {
    match cli.command {
        Command::Compare(args) => commands::compare::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Advise(args) => commands::advise::run(&args, typed),
        Command::Experiment(command) => commands::experiment::run(&command),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Preflight(args) => commands::plan::preflight(&args),
        #[cfg(feature = "cuda")]
        Command::Live(command) => commands::live::run(&command),
        Command::VerifyLive(args) => commands::verify_live::run(&args),
        Command::VerifyPlan(args) => commands::verify_plan::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Conform(args) => commands::conform::run(&args),
        Command::Trace(TraceCommand::Import(args)) => commands::trace::import(&args),
        Command::Trace(TraceCommand::Export(args)) => commands::trace::export(&args),
        Command::Trace(TraceCommand::Slice(args)) => commands::trace::slice(&args),
        Command::Trace(TraceCommand::Compose(args)) => commands::trace::compose(&args),
        Command::Trace(TraceCommand::Info(args)) => commands::trace::info(&args),
        Command::Trace(TraceCommand::Validate(args)) => commands::trace::validate(&args),
        Command::Trace(TraceCommand::Shuffle(args)) => commands::trace::shuffle(&args),
        Command::Link(args) => commands::link::run(&args),
        Command::Machines(args) => commands::machines::run(&args),
        Command::Policies(args) => commands::policies::run(&args),
        Command::Completions(args) => commands::install::completions(&args),
        Command::Man(args) => commands::install::man(&args),
    }
}
