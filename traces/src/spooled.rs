//! A finished spool's file: mapped for random access, read in windows past the map.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::error::{Error, Result};
use crate::map::map_open_file;

/// A finished spool's file.
pub(crate) struct Spooled {
    file: File,
    map: Mmap,
    folder: PathBuf,
}

impl Spooled {
    /// The file, which has no name and lies in `folder`.
    ///
    /// # Errors
    /// [`Error::Io`] where it cannot be mapped.
    pub(crate) fn new(file: File, folder: &Path) -> Result<Self> {
        let map = map_open_file(&file, folder)?;
        Ok(Self { file, map, folder: folder.to_path_buf() })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Fills `buffer` from the file at `offset`, past the map.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset);
        #[cfg(not(unix))]
        let read = {
            buffer.copy_from_slice(&self.map[offset as usize..][..buffer.len()]);
            let _ = &self.file;
            Ok::<(), std::io::Error>(())
        };
        read.map_err(|e| Error::io("read a temporary file in", self.folder.clone(), e))
    }
}
