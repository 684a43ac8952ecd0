//! The one unsafe module of the crate: mapping a file into memory, and what happens when a mapped
//! file loses its pages.
//!
//! Everything above sees a plain byte slice whose every length and checksum is verified. Files up to
//! [`READ_WHOLE`] are not mapped but read: what others do to them afterwards changes nothing. Beyond
//! that a second copy in memory costs too much, and a map's pages are the file's. Then two things
//! can happen. The file is rewritten in place: [`MappedFile::check_unchanged`] tells, and is asked
//! before a result is kept. It is truncated: the system answers the next read with SIGBUS, which no
//! check beforehand can rule out, so [`end_on_lost_pages`] ends the process with a sentence. To read
//! column by column instead would bound neither time nor memory of a replay that goes by tokens.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use memmap2::Mmap;

use crate::error::{Error, Result};

/// Files up to so many bytes are read into memory.
pub(crate) const READ_WHOLE: u64 = 1 << 30;

/// Maps a temporary file of this process, without a name, that lies in `folder`.
///
/// # Errors
/// [`Error::Io`] where it cannot be mapped.
pub(crate) fn map_open_file(file: &File, folder: &Path) -> Result<Mmap> {
    // SAFETY: as below; and as the file has no name, no other process can even open it.
    unsafe { Mmap::map(file) }
        .map_err(|e| Error::io("map a temporary file in", folder.to_path_buf(), e))
}

/// A file for reading: in memory, or mapped where it is long.
pub(crate) enum OpenedFile {
    Read(Vec<u8>),
    Mapped(MappedFile),
}

/// A mapped file, and how it was when it was mapped.
pub(crate) struct MappedFile {
    map: Mmap,
    file: File,
    name: String,
    length: u64,
    modified: Option<SystemTime>,
}

impl MappedFile {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Refuses a file that has another length or was written since; which file it is cannot have
    /// changed, as it is still open. Reading pages that a truncated file lost ends the process, so
    /// ask this before reading.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|e| Error::io("read", &self.name, e))?;
        if now.len() == self.length && now.modified().ok() == self.modified {
            return Ok(());
        }
        Err(self.changed())
    }

    pub(crate) fn changed(&self) -> Error {
        Error::Changed { file: self.name.clone() }
    }
}

/// Opens a file for reading; an empty file is an error of its own in the reader above.
///
/// # Errors
/// [`Error::Io`] where the file cannot be opened, read or mapped.
pub(crate) fn open_file(path: &Path, read_whole: u64) -> Result<OpenedFile> {
    let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let metadata = file.metadata().map_err(|e| Error::io("read", path, e))?;
    if !metadata.is_file() {
        let problem = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
        return Err(Error::io("map", path, problem));
    }
    let length = metadata.len();
    if length <= read_whole {
        let mut bytes = Vec::with_capacity(length as usize);
        // A file that grows meanwhile has bytes after its end, which the reader above refuses.
        let read = (&file).take(length + 1).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("read", path, e))?;
        return Ok(OpenedFile::Read(bytes));
    }
    // SAFETY: the map is read-only and private to this process, and it is only ever read as plain
    // integers and floats, for which every bit pattern is a valid value. What remains is the
    // contract of every memory map: another process must not truncate or rewrite the file while it
    // is open. hotset itself never does (it writes a temporary file and renames it over the old
    // name, which leaves the mapped one intact), and the values are validated at opening, so a file
    // rewritten in place afterwards gives wrong numbers, which are not kept, or a bounds panic, or,
    // truncated, a SIGBUS.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io("map", path, e))?;
    let (name, modified) = (path.display().to_string(), metadata.modified().ok());
    Ok(OpenedFile::Mapped(MappedFile { map, file, name, length, modified }))
}

/// What is said where a mapped file has lost its pages.
#[cfg(unix)]
const LOST_PAGES: &[u8] = b"error: a trace became shorter, or its disk failed, while it was being \
read; leave inputs alone while they are used\n";

/// From here on the process ends with a sentence and exit code 2 where a mapped file was
/// truncated by somebody else, instead of by a bare signal. For a program's `main`; a library must
/// leave its user's signals alone.
pub fn end_on_lost_pages() {
    #[cfg(unix)]
    {
        extern "C" fn end(_: libc::c_int) {
            // SAFETY: both calls may be made in a signal handler, and the text is static.
            unsafe {
                libc::write(2, LOST_PAGES.as_ptr().cast(), LOST_PAGES.len());
                libc::_exit(2);
            }
        }
        // SAFETY: the handler calls only what handlers may call and never returns to the read that
        // failed; an all-zero `sigaction` is a valid value, its mask then being empty.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = end as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Run again by the test below, in a process of its own.
    const ALONE: &str = "HOTSET_TEST_LOST_PAGES";

    #[test]
    fn a_truncated_map_ends_with_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        if let Some(path) = std::env::var_os(ALONE) {
            end_on_lost_pages();
            let OpenedFile::Mapped(mapped) = open_file(Path::new(&path), 0).unwrap() else {
                panic!("not mapped");
            };
            File::options().write(true).open(&path).unwrap().set_len(1).unwrap();
            assert!(matches!(mapped.check_unchanged(), Err(Error::Changed { .. })));
            panic!("read {} where nothing is any more", mapped.bytes()[100_000]);
        }
        let path = folder.path().join("x");
        std::fs::write(&path, vec![7; 200_000]).unwrap();
        let told = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["map::tests::a_truncated_map_ends_with_a_sentence", "--exact", "--nocapture"])
            .env(ALONE, &path)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(2), "{error}");
        assert!(error.contains("a trace became shorter"), "{error}");
    }

    #[test]
    fn what_was_read_is_not_changed_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"before").unwrap();
        let OpenedFile::Read(bytes) = open_file(&path, READ_WHOLE).unwrap() else {
            panic!("mapped");
        };
        std::fs::write(&path, b"after!").unwrap();
        assert_eq!(bytes, b"before");
    }
}
