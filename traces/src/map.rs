//! The one unsafe act of the crate: mapping a file into memory.
//!
//! Everything above sees a plain byte slice whose every length and checksum is verified.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, Result};

/// Maps a temporary file of this process, without a name, that lies in `folder`.
///
/// # Errors
/// [`Error::Io`] where it cannot be mapped.
pub(crate) fn map_open_file(file: &File, folder: &Path) -> Result<Mmap> {
    // SAFETY: as below; and as the file has no name, no other process can even open it.
    unsafe { Mmap::map(file) }
        .map_err(|e| Error::io("map a temporary file in", folder.to_path_buf(), e))
}

/// Maps a file for reading; an empty file is an error of its own in the reader above.
///
/// # Errors
/// [`Error::Io`] where the file cannot be opened or mapped.
pub(crate) fn map_file(path: &Path) -> Result<Mmap> {
    let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let kind = file.metadata().map_err(|e| Error::io("read", path, e))?.file_type();
    if !kind.is_file() {
        let problem = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
        return Err(Error::io("map", path, problem));
    }
    // SAFETY: the map is read-only and private to this process, and it is only ever read as plain
    // integers and floats, for which every bit pattern is a valid value. What remains is the
    // contract of every memory map: another process must not truncate or rewrite the file while it
    // is open. hotset itself never does (it writes a temporary file and renames it over the old
    // name, which leaves the mapped one intact), and the values are validated at opening, so a file
    // rewritten in place afterwards gives wrong numbers or a bounds panic, or, truncated, a SIGBUS.
    unsafe { Mmap::map(&file) }.map_err(|e| Error::io("map", path, e))
}
