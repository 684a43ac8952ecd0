//! The `hotset` command line: parse, run, print or export.

mod cli;
mod commands;
mod fault;
mod flags;
mod input;
mod interrupt;
mod names;
mod output;
mod parse;
mod progress;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use hotset::traces::end_on_lost_pages;

use cli::{Cli, Command, TraceCommand};
use fault::{Ending, Fault};

fn main() -> ExitCode {
    interrupt::install();
    end_on_lost_pages();
    let command = Cli::command();
    let parsed = command.clone().try_get_matches();
    let both = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match both {
        Ok(both) => both,
        Err(told) => return output::print_help_or_usage(&told),
    };
    interrupt::name(named(&matches));
    let kept = output::refuse_outputs_that_are_inputs(&command, &matches);
    match kept.and_then(|()| run(cli)) {
        Ok(Ending::Passed) => ExitCode::SUCCESS,
        Ok(Ending::Failed) => ExitCode::from(1),
        Err(fault) => fault.report(),
    }
}

/// The command as it was typed, without its arguments.
fn named(matches: &ArgMatches) -> String {
    let mut words = vec!["hotset"];
    let mut at = matches;
    while let Some((word, below)) = at.subcommand() {
        words.push(word);
        at = below;
    }
    words.join(" ")
}

fn run(cli: Cli) -> Result<Ending, Fault> {
    match cli.command {
        Command::Compare(args) => commands::compare::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Experiment(command) => commands::experiment::run(&command),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Preflight(args) => commands::plan::preflight(&args),
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
