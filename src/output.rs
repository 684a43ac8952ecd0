//! Prints a command's output, or writes it to a file: whole or not at all.

mod colour;
mod guard;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hotset::reports::{Format, Output, visible};
use hotset::traces::{ReadProgress, Watched, write_file};

use crate::fault::Fault;
use crate::flags::with_flags;
use crate::typed::quoted;
use crate::{interrupt, session};

pub use guard::{beside, refuse_outputs_that_are_inputs};

/// How and where to give results.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatName::Table, global = false)]
    pub format: FormatName,
    /// Write to FILE instead of the terminal (whole or not at all)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Names of the formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Aligned columns, 80 characters wide
    Table,
    /// One JSON document, schema hotset/1
    Json,
    /// Comma-separated values, all digits
    Csv,
    /// Markdown tables
    Markdown,
    /// One self-contained page with charts
    Html,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Table => Self::Table,
            FormatName::Json => Self::Json,
            FormatName::Csv => Self::Csv,
            FormatName::Markdown => Self::Markdown,
            FormatName::Html => Self::Html,
        }
    }
}

/// Renders `output` as the flags ask; warnings go to standard error.
pub fn give(output: &Output, args: &OutputArgs) -> Result<(), Fault> {
    if interrupt::requested() {
        return Err(Fault::Interrupted);
    }
    let mut output = output.clone();
    // Before lines are broken: a flag is shorter than the field that it sets.
    for sheet in output.sheets.iter_mut().chain(output.wide.iter_mut().flatten()) {
        sheet.note = with_flags(&sheet.note);
    }
    output.command = session::current().is_none().then(typed);
    output.colour = args.output.is_none() && session::current().is_none() && colour::is_wanted();
    output.verdict = output.verdict.map(|answer| with_flags(&answer));
    let text = with_flags(&output.render(args.format.into())?);
    for warning in &output.warnings {
        session::note(format!("warning: {}", visible(&with_flags(warning))));
    }
    match &args.output {
        Some(path) => write_whole(path, text.as_bytes()),
        None => print(&text),
    }
}

/// The command as it was typed, to be typed again.
fn typed() -> String {
    let arguments = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("hotset".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Gives a text that is in one format only.
pub fn give_text(text: &str, path: Option<&Path>) -> Result<(), Fault> {
    match path {
        Some(path) => write_whole(path, text.as_bytes()),
        None => print(text),
    }
}

/// Lets Ctrl-C stop what is being written, so that nothing is left of it.
pub struct Stoppable;

impl Stoppable {
    /// From here on the work asks; a second Ctrl-C ends the process at once.
    pub fn begin() -> Self {
        interrupt::cooperate();
        Self
    }

    /// Stops here if Ctrl-C was pressed, before a file at `path` is begun.
    pub fn go_on(&self, path: &Path) -> Result<(), Fault> {
        match self.cancelled() {
            true => Err(Fault::Write {
                path: path.display().to_string(),
                reason: std::io::Error::other("interrupted"),
            }),
            false => Ok(()),
        }
    }
}

impl ReadProgress for Stoppable {
    fn advance(&self, _: u64) {}

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}

/// Writes a file through a temporary one beside it, so that it is never seen half written; links
/// are followed, pipes and devices written into.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    write_through(path, |file| {
        file.write_all(bytes)
            .map_err(|reason| Fault::Write { path: path.display().to_string(), reason })
    })
}

/// The same for what is too long to hold: `write` gets the temporary file.
pub fn write_through<T>(
    path: &Path,
    write: impl FnOnce(&mut Watched<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let fault = |reason| Fault::Write { path: path.display().to_string(), reason };
    write_file(path, &Stoppable::begin(), fault, write)
}

/// Prints what the arguments asked for or lack: help, the version, or what is wrong with them.
pub fn print_help_or_usage(told: &clap::Error) -> ExitCode {
    let printed = told.print().and_then(|()| std::io::stdout().flush());
    match printed.map_err(without_closed_reader) {
        Err(Some(reason)) => Fault::Write { path: "standard output".to_owned(), reason }.report(),
        _ => ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2)),
    }
}

/// A reader that has seen enough (`| head`) is no fault.
fn without_closed_reader(error: std::io::Error) -> Option<std::io::Error> {
    (error.kind() != std::io::ErrorKind::BrokenPipe).then_some(error)
}

/// Prints to standard output.
/// Prints a text to standard output; a reader that has closed it is no fault.
pub fn print(text: &str) -> Result<(), Fault> {
    if let Some(session) = session::current() {
        session.shown().output.push_str(text);
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed.map_err(without_closed_reader) {
        Err(Some(reason)) => Err(Fault::Write { path: "standard output".to_owned(), reason }),
        _ => Ok(()),
    }
}
