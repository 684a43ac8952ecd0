//! The command line for programs: the same commands, with traces and policies that are in memory.
//!
//! What a terminal is shown comes back as text, so that what a program gets is what the command line
//! gives, byte for byte.
//!
//! ```
//! use hotset::host::{Host, run};
//! use hotset::traces::bundled;
//!
//! let host = Host::new().with_trace("mine", bundled()?);
//! let given = ["compare", "mine", "--policy", "lru", "--capacity", "25%", "--format", "json"];
//! let answer = run(given, host)?;
//! assert!(answer.passed && answer.output.starts_with("{"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use thiserror::Error;

use hotset::policies::GivenPolicy;
use hotset::traces::{Trace, end_on_lost_pages};

use crate::cli::{Cli, Command as Parsed, TraceCommand};
use crate::fault::{Ending, Fault};
use crate::session::{self, Session, Shown};
use crate::typed::typed;
use crate::{commands, interrupt, output, run as runs};

pub use crate::session::{AroundThread, Follower};

/// What a program gives a command beside its arguments.
pub struct Host {
    session: Session,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Nothing in memory, nobody who follows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            session: Session {
                traces: Vec::new(),
                policies: Vec::new(),
                follower: Arc::new(()),
                around: None,
                shown: Mutex::new(Shown::default()),
            },
        }
    }

    /// A trace that `name` stands for wherever the command takes the path of one.
    #[must_use]
    pub fn with_trace(mut self, name: impl Into<String>, trace: Trace) -> Self {
        self.session.traces.push((name.into(), trace));
        self
    }

    /// A policy that its name stands for in `--policy`.
    #[must_use]
    pub fn with_policy(mut self, policy: GivenPolicy) -> Self {
        self.session.policies.push(policy);
        self
    }

    /// Who follows the work, and may stop it.
    #[must_use]
    pub fn followed_by(mut self, follower: Arc<dyn Follower>) -> Self {
        self.session.follower = follower;
        self
    }

    /// What each thread that replays is run within.
    #[must_use]
    pub fn with_threads_in(mut self, around: AroundThread) -> Self {
        self.session.around = Some(around);
        self
    }
}

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it printed to standard output.
    pub output: String,
    /// Its warnings and notes, a line each.
    pub notes: Vec<String>,
    /// Whether the check that it made passed; `true` where it makes none.
    pub passed: bool,
}

/// Why a command gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Whoever follows it stopped it.
    #[error("interrupted")]
    Interrupted,
    /// What was given cannot be done; says what, where and what to do.
    #[error("{0}")]
    Usage(String),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Usage(fault.text())
    }
}

/// Runs a command: its words as on the command line, without the program's name.
///
/// # Errors
/// [`Refusal`]; nothing was written then.
pub fn run<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
    host: Host,
) -> Result<Answer, Refusal> {
    within(host, || {
        let (cli, command, matches) = parsed(words)?;
        output::refuse_outputs_that_are_inputs(&command, &matches)?;
        Ok(runs::run(cli, &typed(&command, &matches))? == Ending::Passed)
    })
    .map(|(passed, shown)| Answer { output: shown.output, notes: shown.notes, passed })
}

/// Makes a trace: the words of `hotset trace import`, `slice`, `compose` or `shuffle` behind `trace`,
/// without their `--output`. Gives the notes beside.
///
/// # Errors
/// [`Refusal`].
pub fn trace<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
    host: Host,
) -> Result<(Trace, Vec<String>), Refusal> {
    let mut words = words.into_iter().map(Into::into);
    let begin = [Some("trace".into()), words.next()].into_iter().flatten();
    let unwritten = ["--output", "unwritten.hst"].map(OsString::from);
    let words: Vec<OsString> = begin.chain(unwritten).chain(words).collect();
    within(host, || match parsed(words)?.0.command {
        Parsed::Trace(TraceCommand::Import(args)) => Ok(commands::trace::read(&args)?),
        Parsed::Trace(TraceCommand::Slice(args)) => Ok(commands::trace::sliced(&args)?),
        Parsed::Trace(TraceCommand::Compose(args)) => Ok(commands::trace::composed(&args)?),
        Parsed::Trace(TraceCommand::Shuffle(args)) => Ok(commands::trace::shuffled(&args)?),
        _ => Err(Refusal::Usage("import, slice, compose and shuffle make traces".to_owned())),
    })
    .map(|(trace, shown)| (trace, shown.notes))
}

/// The command line's own description: every command with its arguments, their defaults and help.
#[must_use]
pub fn command() -> Command {
    Cli::command()
}

fn within<T>(host: Host, work: impl FnOnce() -> Result<T, Refusal>) -> Result<(T, Shown), Refusal> {
    let session = Arc::new(host.session);
    let done = session::on_this_thread(Some(Arc::clone(&session)), work);
    if session.follower.cancelled() {
        return Err(Refusal::Interrupted);
    }
    let shown = std::mem::take(&mut *session.shown());
    done.map(|done| (done, shown))
}

fn parsed<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
) -> Result<(Cli, Command, ArgMatches), Refusal> {
    let refused = |told: clap::Error| {
        let text = told.to_string();
        let said = ["\n\nUsage:", "\n\nFor more"].iter().fold(text.as_str(), |said, end| {
            said.split_once(end).map_or(said, |(before, _)| before)
        });
        Refusal::Usage(said.trim().trim_start_matches("error: ").to_owned())
    };
    let command = Cli::command();
    let words = std::iter::once("hotset".into()).chain(words.into_iter().map(Into::into));
    let matches = command.clone().try_get_matches_from(words).map_err(refused)?;
    let cli = Cli::from_arg_matches(&matches).map_err(refused)?;
    Ok((cli, command, matches))
}

/// The program `hotset`: the process's own arguments, its terminal, its exit codes.
#[must_use]
pub fn main() -> ExitCode {
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
    match kept.and_then(|()| runs::run(cli, &typed(&command, &matches))) {
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
