//! Prints a command's output, or writes it to a file: whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, ValueEnum};
use hotset::reports::{Format, Output};
use hotset::traces::{ReadProgress, Watched, write_file};

use crate::fault::Fault;
use crate::interrupt;

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

/// Flags that name what is written.
const OUTPUTS: [&str; 3] = ["output", "record", "trace_events"];
/// Arguments that may name folders of which every file is read, those that come later too.
const FOLDERS: [&str; 1] = ["input"];
/// Endings of what is read out of other folders: a model's, an engine's statistics.
const DATA: [&str; 6] = ["safetensors", "gguf", "npz", "npy", "pt", "hst"];
/// Files that are read because they lie beside an input.
const BESIDE: [&str; 3] = ["weights.npy", "weights_bf16.npy", "sequences.csv"];

/// Refuses outputs that are named as an input too, whichever flags and names they go by, or lie in
/// a folder that is read whole.
pub fn apart(command: &Command, matches: &ArgMatches) -> Result<(), Fault> {
    if let Some((name, below)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return apart(command, below);
    }
    let ids = || command.get_arguments().map(|argument| argument.get_id().as_str());
    let values = |id: &str| {
        let raw = matches.try_get_raw(id).ok().flatten();
        raw.into_iter().flatten().map(Path::new).collect::<Vec<_>>()
    };
    let outputs: Vec<&Path> = ids().filter(|id| OUTPUTS.contains(id)).flat_map(values).collect();
    for (index, output) in outputs.iter().enumerate() {
        for id in ids().filter(|id| !OUTPUTS.contains(id)) {
            for input in values(id) {
                refuse_same(output, input, FOLDERS.contains(&id))?;
            }
        }
        for other in &outputs[..index] {
            refuse_same(output, other, false)?;
        }
    }
    Ok(())
}

fn refuse_same(output: &Path, input: &Path, folder_is_read: bool) -> Result<(), Fault> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    // A file that is not there yet has no name of its own, but its folder has.
    let real = output.canonicalize().ok().or_else(|| {
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(output.file_name()?))
    });
    // Where nothing can be written or read, that says why.
    let (Some(real), Ok(read)) = (real, input.canonicalize()) else { return Ok(()) };
    let name = output.display();
    // Into a pipe or a device, and out of one, is no loss.
    if real == read && read.is_file() {
        let problem = format!("{name}: the output is the input; name another file");
        return Err(Fault::Usage(problem));
    }
    let data = || {
        let extension = real.extension().and_then(|text| text.to_str()).unwrap_or_default();
        real.exists() && (DATA.contains(&extension) || real.ends_with("config.json"))
    };
    if read.is_dir() && real.starts_with(&read) && (folder_is_read || data()) {
        let folder = read.display();
        let problem = format!("{name}: the output lies in the input folder {folder}");
        return Err(Fault::Usage(problem + "; name a file outside of it"));
    }
    let beside = folder_is_read && real.exists() && real.parent() == read.parent();
    if beside && BESIDE.iter().any(|name| real.ends_with(name)) {
        let problem = format!("{name}: is read with the input beside it; name another file");
        return Err(Fault::Usage(problem));
    }
    Ok(())
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

/// Prints to standard output; a reader that has seen enough (`| head`) is no fault.
fn print(text: &str) -> Result<(), Fault> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Fault::Write { path: "standard output".to_owned(), reason: error })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_stay_apart_from_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("in/sub")).unwrap();
        std::fs::write(path("in/a"), "").unwrap();
        let refused = |output: &str, input: &str| {
            refuse_same(&path(output), &path(input), true).err().map(|fault| fault.to_string())
        };
        let same = refused("in/sub/../a", "in/a").unwrap();
        assert!(same.contains("the output is the input"), "{same}");
        let inside = refused("in/sub/new", "in").unwrap();
        assert!(inside.contains("lies in the input folder"), "{inside}");
        assert!(refuse_same(&path("in/sub/new"), &path("in"), false).is_ok());
        assert!(refuse_same(&path("in/a"), &path("in"), false).is_ok());
        std::fs::write(path("in/config.json"), "").unwrap();
        assert!(refuse_same(&path("in/config.json"), &path("in"), false).is_err());
        std::fs::write(path("in/weights.npy"), "").unwrap();
        let beside = refused("in/weights.npy", "in/a").unwrap();
        assert!(beside.contains("read with the input beside it"), "{beside}");
        assert_eq!(refused("in/b", "in/a"), None);
        assert_eq!(refused("inn", "in"), None);
        assert_eq!(refused("in/b", "in/absent"), None);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("in/a"), path("link")).unwrap();
            assert!(refused("link", "in/a").is_some());
            assert!(refused("in/a", "link").is_some());
            assert!(refuse_same(Path::new("/dev/null"), Path::new("/dev/null"), true).is_ok());
        }
    }
}
