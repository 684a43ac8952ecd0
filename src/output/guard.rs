//! Refuses outputs that are inputs, before anything is opened: a file that is read and written in
//! one run is lost.
//!
//! Paths come in through arguments alone, so every argument of every command is looked at, whatever it
//! is for: each part of its value that may name a file is compared with each file that is written.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};

use crate::fault::Fault;
use crate::parse::profile_and_name;

/// Flags that name what is written; a journal is read too.
const OUTPUTS: [&str; 5] = ["output", "record", "trace_events", "resume", PLOT];
/// The one with a file beside it.
const PLOT: &str = "plot";
/// Arguments that may name folders of which every file is read, those that come later too.
const FOLDERS: [&str; 1] = ["input"];
/// Endings of what is read out of other folders: a model's, an engine's statistics.
const DATA: [&str; 6] = ["safetensors", "gguf", "npz", "npy", "pt", "hst"];
/// Files that are read because they lie beside an input.
const BESIDE: [&str; 3] = ["weights.npy", "weights_bf16.npy", "sequences.csv"];

/// Refuses outputs that are named as an input too, whichever flags and names they go by, or lie in
/// a folder that is read whole; and two outputs that go to one file.
pub fn refuse_outputs_that_are_inputs(
    command: &Command,
    matches: &ArgMatches,
) -> Result<(), Fault> {
    if let Some((name, below)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return refuse_outputs_that_are_inputs(command, below);
    }
    let ids = || command.get_arguments().map(|argument| argument.get_id().as_str());
    let values = |id: &str| {
        let raw = matches.try_get_raw(id).ok().flatten();
        raw.into_iter().flatten().collect::<Vec<_>>()
    };
    let named = ids().filter(|id| OUTPUTS.contains(id)).flat_map(values).map(PathBuf::from);
    let outputs: Vec<PathBuf> = named.chain(values(PLOT).into_iter().map(beside)).collect();
    for (index, output) in outputs.iter().enumerate() {
        for id in ids().filter(|id| !OUTPUTS.contains(id)) {
            for value in values(id) {
                for input in paths_in(value) {
                    refuse_same(output, input, FOLDERS.contains(&id))?;
                }
            }
        }
        for other in &outputs[..index] {
            refuse_same(output, other, false)?;
            if place(output).is_some_and(|here| place(other) == Some(here)) && !is_device(output) {
                let name = output.display();
                let problem = format!("{name}: two results go to one file; name another for one");
                return Err(Fault::Usage(problem));
            }
        }
    }
    Ok(())
}

/// The rows of a picture: its file's name, and `.csv`.
pub fn beside(plot: &OsStr) -> PathBuf {
    let mut name = plot.to_owned();
    name.push(".csv");
    name.into()
}

/// Every part of an argument's value that may name a file: all of it, a profile before the name of
/// its link (`mine.toml:NAME`), the values of a setting that is varied (`model=a.json,b.json`).
fn paths_in(value: &OsStr) -> Vec<&Path> {
    let mut paths = vec![Path::new(value)];
    let Some(text) = value.to_str() else { return paths };
    let varied = text.split_once('=').map(|(_, values)| values.split(',')).into_iter().flatten();
    paths.extend(varied.clone().map(|path| Path::new(path.trim())));
    let profiles = std::iter::once(text).chain(varied).filter_map(profile_and_name);
    paths.extend(profiles.map(|(path, _)| Path::new(path.trim())));
    paths
}

/// Where a file is, whichever name it goes by; one that is not there yet has no name of its own,
/// but its folder has.
fn place(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// Into a pipe or a device, and out of one, is no loss.
fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether two files are one, though their names differ: hard links.
#[cfg(unix)]
fn is_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Elsewhere the canonical names alone tell.
#[cfg(not(unix))]
fn is_one_file(_: &Path, _: &Path) -> bool {
    false
}

fn refuse_same(output: &Path, input: &Path, folder_is_read: bool) -> Result<(), Fault> {
    // Where nothing can be written or read, that says why.
    let (Some(real), Ok(read)) = (place(output), input.canonicalize()) else { return Ok(()) };
    let name = output.display();
    // Into a pipe or a device, and out of one, is no loss.
    if read.is_file() && (real == read || is_one_file(&real, &read)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_value_names() {
        let names = |value: &'static str| {
            let paths = paths_in(OsStr::new(value)).into_iter();
            paths.map(|path| path.to_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names("x.hst"), ["x.hst"]);
        assert_eq!(names("mine.toml:a"), ["mine.toml:a", "mine.toml"]);
        assert_eq!(names("model=a, b.json"), ["model=a, b.json", "a", "b.json"]);
        let all = ["link=m.toml:x", "m.toml:x", "link=m.toml", "m.toml"];
        assert_eq!(names("link=m.toml:x"), all);
    }

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
            std::fs::hard_link(path("in/a"), path("hard")).unwrap();
            assert!(refused("hard", "in/a").is_some());
            assert!(refuse_same(Path::new("/dev/null"), Path::new("/dev/null"), true).is_ok());
        }
    }
}
