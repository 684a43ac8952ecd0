//! Files that appear whole or not at all: written beside the target, then renamed.
//!
//! A link is followed, so that it stays one. What is no regular file (a pipe, a device) cannot be
//! replaced: the whole result is made first and then written into it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::import::ReadProgress;
use crate::unfinished::Unfinished;

/// Where a result goes.
enum Target {
    /// To this path, by a rename.
    File(PathBuf),
    /// Into what is there already.
    Into(PathBuf),
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let link = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder; name a file"))
            }
            Ok(there) if !there.is_file() => Ok(Self::Into(path.to_owned())),
            Ok(_) if link => path.canonicalize().map(Self::File),
            Err(e) if link => {
                let problem = format!("it is a link to what cannot be reached ({e})");
                Err(io::Error::new(e.kind(), problem))
            }
            _ => Ok(Self::File(path.to_owned())),
        }
    }
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The folder for temporary files of a result that goes to `path`: where there must be room for
/// it anyway, or the system's where `path` is a pipe or a device.
pub fn temporary_folder(path: &Path) -> PathBuf {
    match Target::of(path) {
        Ok(Target::File(path)) => folder_of(&path).to_owned(),
        Ok(Target::Into(_)) => std::env::temp_dir(),
        Err(_) => folder_of(path).to_owned(),
    }
}

/// How the names of temporary files begin and end.
const PREFIX: &str = ".hotset-";
const SUFFIX: &str = ".tmp";
/// A file younger than this may not have its lock yet.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// Removes what killed runs left in a folder: temporary files that nobody holds a lock on any more.
///
/// A lock ends with its process, whichever way that ends, and is seen by other hosts that share the
/// folder, where a process number would say nothing. A file without a name would need no removal, but
/// to give it one at the end (`O_TMPFILE`, `linkat`) is Linux's alone and cannot replace a file.
fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
        let regular = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if ours && regular() && is_stale(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_stale(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else { return false };
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let old = modified.is_ok_and(|then| then.elapsed().is_ok_and(|age| age > STALE_AFTER));
    old && file.try_lock().is_ok()
}

/// A file that is being written; each write fails once the work is to stop.
pub struct Watched<'a> {
    file: &'a File,
    progress: &'a dyn ReadProgress,
}

impl Watched<'_> {
    fn go_on(&self) -> io::Result<()> {
        if self.progress.cancelled() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.go_on()?;
        let written = self.file.write(bytes)?;
        self.progress.advance(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Writes `path` through a temporary file in the same folder, which takes the name once
/// everything is on the disk; where `write` fails or the work is to stop, nothing is left. A link
/// is followed; into a pipe or a device the whole result is copied. `refuse` makes an error of
/// the system's reason, which never names the temporary file.
///
/// # Errors
/// What `refuse` makes where the file or its folder cannot be written; what `write` refuses.
pub fn write_file<T, E>(
    path: &Path,
    progress: &dyn ReadProgress,
    refuse: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut Watched<'_>) -> Result<T, E>,
) -> Result<T, E> {
    match Target::of(path).map_err(&refuse)? {
        Target::File(path) => {
            let folder = folder_of(&path);
            let fresh = |temporary: &Path| {
                // As any other program's output: the user's umask decides who may read it.
                OpenOptions::new().read(true).write(true).create_new(true).open(temporary)
            };
            remove_stale(folder);
            let mut named = tempfile::Builder::new();
            let made = named.prefix(PREFIX).suffix(SUFFIX).make_in(folder, fresh);
            let file: NamedTempFile = made.map_err(&refuse)?;
            let unfinished = Unfinished::new(file.path());
            // Tells other runs that this one lives. Where a folder knows no locks, nothing is removed.
            let _ = file.as_file().try_lock();
            let mut watched = Watched { file: file.as_file(), progress };
            let written = write(&mut watched)?;
            watched.go_on().map_err(&refuse)?;
            // What is replaced stays as open to others as it was.
            if let Ok(before) = path.metadata() {
                file.as_file().set_permissions(before.permissions()).ok();
            }
            file.as_file().sync_all().map_err(&refuse)?;
            unfinished.finish(|| file.persist(&path)).map_err(|e| refuse(e.error))?;
            // The rename itself must reach the disk too. Not every system lets a folder be opened.
            if let Ok(folder) = File::open(folder) {
                folder.sync_all().ok();
            }
            Ok(written)
        }
        Target::Into(path) => {
            let mut whole = tempfile::tempfile().map_err(&refuse)?;
            let written = write(&mut Watched { file: &whole, progress })?;
            copy(&mut whole, &path, progress).map_err(refuse)?;
            Ok(written)
        }
    }
}

fn copy(whole: &mut File, path: &Path, progress: &dyn ReadProgress) -> io::Result<()> {
    whole.seek(SeekFrom::Start(0))?;
    let target = OpenOptions::new().write(true).open(path)?;
    let mut target = Watched { file: &target, progress };
    let mut block = vec![0; 1 << 18];
    loop {
        match whole.read(&mut block)? {
            0 => return target.flush(),
            read => target.write_all(&block[..read])?,
        }
    }
}

/// [`write_file`] through a buffer, for this crate's formats.
pub(crate) fn write_whole(
    path: &Path,
    progress: &dyn ReadProgress,
    write: impl FnOnce(&mut BufWriter<Watched<'_>>) -> Result<()>,
) -> Result<()> {
    let io = |e| Error::io("write", path, e);
    write_file(path, progress, io, |file| {
        let watched = Watched { file: file.file, progress };
        let mut buffered = BufWriter::with_capacity(1 << 18, watched);
        let written = write(&mut buffered).and_then(|()| buffered.flush().map_err(io));
        // What is left after a fault need not be written when the buffer is dropped.
        let _ = buffered.into_parts();
        written
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stop;

    impl ReadProgress for Stop {
        fn advance(&self, _: u64) {}

        fn cancelled(&self) -> bool {
            true
        }
    }

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write_file(path, &(), |e| e, |file| file.write_all(text.as_bytes()))
    }

    #[cfg(unix)]
    #[test]
    fn what_is_replaced_stays_as_private_as_it_was() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        put(&path, "one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        put(&path, "two").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn whole_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        put(&path, "one").unwrap();
        put(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        let stopped = write_file(&path, &Stop, |e| e, |file| file.write_all(b"three"));
        assert_eq!(stopped.unwrap_err().to_string(), "interrupted");
        let late = write_file(&path, &Stop, |e| e, |_| Ok(()));
        assert_eq!(late.unwrap_err().to_string(), "interrupted");
        let buffered = write_whole(&path, &Stop, |file| {
            file.write_all(b"short").map_err(|e| Error::io("write", "x", e))
        });
        assert!(buffered.unwrap_err().to_string().ends_with("interrupted"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left");
    }

    #[test]
    fn what_killed_runs_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, age: u64| {
            let file = File::create(folder.path().join(name)).unwrap();
            let then = std::time::SystemTime::now() - Duration::from_secs(age);
            file.set_modified(then).unwrap();
            file
        };
        drop(make(".hotset-dead00.tmp", 3600));
        drop(make(".hotset-young0.tmp", 1));
        drop(make("hotset-users.tmp", 3600));
        drop(make(".hotset-other", 3600));
        let living = make(".hotset-living.tmp", 3600);
        living.try_lock().unwrap();
        put(&folder.path().join("x"), "one").unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let expected =
            [".hotset-living.tmp", ".hotset-other", ".hotset-young0.tmp", "hotset-users.tmp", "x"];
        assert_eq!(left, expected);
    }

    #[test]
    fn reasons_name_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let reason = put(&folder.path().join("absent/x"), "").unwrap_err().to_string();
        assert!(!reason.contains("hotset-") && !reason.contains("absent"), "{reason}");
        let reason = put(folder.path(), "").unwrap_err().to_string();
        assert!(reason.contains("is a folder"), "{reason}");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_devices_devices() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, broken] = ["file", "link", "broken"].map(|name| folder.path().join(name));
        put(&file, "one").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        put(&link, "two").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(temporary_folder(&link), folder.path().canonicalize().unwrap());
        std::os::unix::fs::symlink("nothing", &broken).unwrap();
        let reason = put(&broken, "").unwrap_err().to_string();
        assert!(reason.contains("a link to what cannot be reached"), "{reason}");
        let null = Path::new("/dev/null");
        put(null, "gone").unwrap();
        assert!(!null.metadata().unwrap().is_file());
        assert_eq!(temporary_folder(null), std::env::temp_dir());
    }
}
