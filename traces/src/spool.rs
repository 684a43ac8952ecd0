//! Columns that outgrow memory: a spool begins in memory and goes on in a file without a name.
//!
//! Importers append to spools, so that an input of any size takes a few MiB. What was spooled is
//! then a column like any other: mapped for random access, read in windows by passes over all of
//! it (a pass through the map would count as resident memory).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use crate::column::{Backing, Column};
use crate::error::{Error, Result};
use crate::spooled::Spooled;

/// Bytes that a spool keeps in memory.
const IN_MEMORY: usize = 8 << 20;
/// Bytes written to the file at a time.
const WRITE: usize = 1 << 20;

/// Bytes appended one after another.
pub(crate) struct Spool {
    folder: Arc<Path>,
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    len: u64,
}

impl Spool {
    /// An empty spool whose file, if it needs one, lies in `folder`.
    pub(crate) fn new(folder: &Arc<Path>) -> Self {
        Self { folder: Arc::clone(folder), memory: Vec::new(), file: None, len: 0 }
    }

    /// An empty spool in the same folder.
    pub(crate) fn another(&self) -> Self {
        Self::new(&self.folder)
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn refused(&self, e: std::io::Error) -> Error {
        Error::io("write a temporary file in", self.folder.to_path_buf(), e)
    }

    /// Appends values as they lie in memory.
    pub(crate) fn extend<T: Pod>(&mut self, values: &[T]) -> Result<()> {
        self.append(bytemuck::cast_slice(values))
    }

    /// Appends `count` times the same value.
    pub(crate) fn repeat<T: Pod>(&mut self, value: T, mut count: usize) -> Result<()> {
        let block = vec![value; count.min(1 << 12)];
        while count > 0 {
            let now = count.min(block.len());
            self.extend(&block[..now])?;
            count -= now;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|e| self.refused(e))
    }

    /// What was appended, as a column. Its length must be a multiple of `T`'s size.
    pub(crate) fn into_column<T: Pod>(mut self) -> Result<Column<T>> {
        let Some(file) = self.file.take() else {
            return Ok(Column::Owned(bytemuck::pod_collect_to_vec(&self.memory)));
        };
        let file = file.into_inner().map_err(|e| self.refused(e.into_error()))?;
        let spooled = Spooled::new(file, &self.folder)?;
        let range = 0..spooled.bytes().len();
        Ok(Column::InPlace { backing: Arc::new(Backing::Spool(spooled)), range })
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.file.is_none() && self.memory.len() + bytes.len() > IN_MEMORY {
            let file = tempfile::tempfile_in(&self.folder)?;
            let mut file = BufWriter::with_capacity(WRITE, file);
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_spools_are_the_same_column() {
        let folder: Arc<Path> = Arc::from(std::env::temp_dir());
        for count in [0usize, 5, IN_MEMORY / 4 + 1, IN_MEMORY] {
            let values: Vec<u32> = (0..count as u32).collect();
            let mut spool = Spool::new(&folder);
            for part in values.chunks(100_001) {
                spool.extend(part).unwrap();
            }
            assert_eq!(spool.len(), 4 * count as u64);
            let column: Column<u32> = spool.into_column().unwrap();
            assert_eq!(matches!(column, Column::Owned(_)), 4 * count <= IN_MEMORY);
            assert!(column.get() == values);
            let mut seen = Vec::new();
            let collect = |first: usize, window: &[u32]| {
                assert_eq!((first, first % 3), (seen.len(), 0));
                seen.extend_from_slice(window);
                Ok(())
            };
            column.windows(3, collect).unwrap();
            assert!(seen == values);
        }
        let mut spool = Spool::new(&folder);
        spool.repeat(7u16, 10_000).unwrap();
        assert_eq!(spool.into_column::<u16>().unwrap().get(), [7; 10_000]);
    }
}
