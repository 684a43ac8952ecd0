//! Prints a command's output, or writes it to a file: whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hotset::reports::{Format, Output};

use crate::fault::Fault;

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
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Table => Self::Table,
            FormatName::Json => Self::Json,
            FormatName::Csv => Self::Csv,
            FormatName::Markdown => Self::Markdown,
        }
    }
}

/// Renders `output` as the flags ask; warnings go to standard error.
pub fn give(output: &Output, args: &OutputArgs) -> Result<(), Fault> {
    let text = output.render(args.format.into())?;
    for warning in &output.warnings {
        eprintln!("warning: {warning}");
    }
    match &args.output {
        Some(path) => write_whole(path, text.as_bytes()),
        None => print(&text),
    }
}

/// Writes a file through a temporary one beside it, so that it is never seen half written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    write_through(path, |file| {
        file.write_all(bytes)
            .map_err(|reason| Fault::Write { path: path.display().to_string(), reason })
    })
}

/// The same for what is too long to hold: `write` gets the temporary file.
pub fn write_through<T>(
    path: &Path,
    write: impl FnOnce(&mut std::fs::File) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let fault = |reason| Fault::Write { path: path.display().to_string(), reason };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    // As any other program's output: the user's umask decides who may read it.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(fault)?;
    let written = write(file.as_file_mut())?;
    file.as_file().sync_all().map_err(fault)?;
    file.persist(path).map_err(|error| fault(error.error))?;
    Ok(written)
}

/// Prints to standard output; a reader that has seen enough (`| head`) is no fault.
fn print(text: &str) -> Result<(), Fault> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Fault::Write { path: "standard output".to_owned(), reason: error })
        }
        _ => Ok(()),
    }
}
