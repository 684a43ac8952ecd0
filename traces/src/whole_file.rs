//! Files that appear whole or not at all: written beside the target, then renamed.
//!
//! A link is followed, so that it stays one. What is no regular file (a pipe, a device) cannot be
//! replaced: the whole result is made first and then written into it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::import::ReadProgress;

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
            let made = tempfile::Builder::new().prefix(".hotset-").make_in(folder, fresh);
            let file: NamedTempFile = made.map_err(&refuse)?;
            let mut watched = Watched { file: file.as_file(), progress };
            let written = write(&mut watched)?;
            watched.go_on().map_err(&refuse)?;
            // What is replaced stays as open to others as it was.
            if let Ok(before) = path.metadata() {
                file.as_file().set_permissions(before.permissions()).ok();
            }
            file.as_file().sync_all().map_err(&refuse)?;
            file.persist(&path).map_err(|e| refuse(e.error))?;
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
