//! What an importer reads from: a file, or bytes in memory (tests and fuzzing).
//!
//! Every byte read is reported to whoever shows progress, and may be hashed on the way, so that
//! provenance costs no second pass.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Bytes of a line, at most: those of a device never end.
const LINE: u64 = 256 << 20;

/// Told of the bytes that an import has read.
pub trait Progress: Sync {
    /// So many bytes more were read.
    fn advance(&self, bytes: u64);

    /// Whether to stop.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody is told.
impl Progress for () {
    fn advance(&self, _: u64) {}
}

/// One input.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    path: &'a Path,
    bytes: Option<&'a [u8]>,
    progress: &'a dyn Progress,
}

impl<'a> Input<'a> {
    pub(crate) fn file(path: &'a Path, progress: &'a dyn Progress) -> Self {
        Self { path, bytes: None, progress }
    }

    /// Bytes in memory, under a name.
    pub(crate) fn bytes(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes: Some(bytes), progress: &() }
    }

    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    /// Bytes of the file; 0 where it cannot be asked.
    pub(super) fn size(&self) -> u64 {
        match self.bytes {
            Some(bytes) => bytes.len() as u64,
            None => std::fs::metadata(self.path).map_or(0, |metadata| metadata.len()),
        }
    }

    pub(super) fn error(&self, place: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::import(self.path, place, problem)
    }

    pub(super) fn io(&self, e: io::Error) -> Error {
        Error::io("read", self.path, e)
    }

    /// A file of that name in the same folder, if there is one.
    pub(super) fn beside(&self, name: &str) -> Option<PathBuf> {
        let path = self.path.with_file_name(name);
        (self.bytes.is_none() && path != self.path && path.is_file()).then_some(path)
    }

    /// The same kind of input from another file.
    pub(super) fn other(&self, path: &'a Path) -> Self {
        Self { path, bytes: None, progress: self.progress }
    }

    /// Tells of bytes that a reader of its own has read.
    #[cfg(feature = "parquet")]
    pub(super) fn advance(&self, bytes: u64) -> Result<()> {
        if self.progress.cancelled() {
            return Err(self.io(io::Error::other("interrupted")));
        }
        self.progress.advance(bytes);
        Ok(())
    }

    /// A file of its contents, for readers that need one.
    #[cfg(feature = "parquet")]
    pub(super) fn as_file(&self) -> Result<File> {
        let Some(bytes) = self.bytes else {
            return File::open(self.path).map_err(|e| Error::io("open", self.path, e));
        };
        let mut file = tempfile::tempfile().map_err(|e| self.io(e))?;
        io::Write::write_all(&mut file, bytes).map_err(|e| self.io(e))?;
        Ok(file)
    }

    /// Opens it for reading anywhere in it.
    pub(super) fn open(&self) -> Result<Reader<'a>> {
        let kind = match self.bytes {
            Some(bytes) => Kind::Bytes(Cursor::new(bytes)),
            None => {
                let file = File::open(self.path).map_err(|e| Error::io("open", self.path, e))?;
                let metadata = file.metadata().map_err(|e| self.io(e))?;
                if metadata.is_dir() {
                    return Err(self.error("file", "is a folder; name the files in it"));
                }
                Kind::File { len: metadata.len(), file: BufReader::with_capacity(1 << 18, file) }
            }
        };
        Ok(Reader { kind, progress: self.progress })
    }

    /// Opens it for reading once, from the start on, hashing what passes.
    pub(super) fn stream(&self) -> Result<Stream<'a>> {
        let reader = self.open()?;
        let len = reader.len();
        let hasher = blake3::Hasher::new();
        let buffer = vec![0; len.clamp(64, 1 << 18) as usize];
        Ok(Stream { reader, len, hasher, buffer, at: 0, end: 0, input: *self })
    }

    /// What provenance says of it, where it is not read as a stream.
    pub(super) fn source(&self) -> Result<Value> {
        let quiet = Self { progress: &(), ..*self };
        quiet.stream()?.source()
    }
}

enum Kind<'a> {
    File { file: BufReader<File>, len: u64 },
    Bytes(Cursor<&'a [u8]>),
}

/// An opened input.
pub(super) struct Reader<'a> {
    kind: Kind<'a>,
    progress: &'a dyn Progress,
}

impl Reader<'_> {
    /// Bytes in all.
    pub(super) fn len(&self) -> u64 {
        match &self.kind {
            Kind::File { len, .. } => *len,
            Kind::Bytes(cursor) => cursor.get_ref().len() as u64,
        }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        let read = match &mut self.kind {
            Kind::File { file, .. } => file.read(buffer),
            Kind::Bytes(cursor) => cursor.read(buffer),
        }?;
        self.progress.advance(read as u64);
        Ok(read)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.kind {
            Kind::File { file, .. } => file.seek(to),
            Kind::Bytes(cursor) => cursor.seek(to),
        }
    }
}

/// An input read once, in order.
pub(super) struct Stream<'a> {
    reader: Reader<'a>,
    len: u64,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    input: Input<'a>,
}

impl Stream<'_> {
    /// Bytes in all.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads on to the end, and says what provenance says of the input: its length and BLAKE3,
    /// which find it again under any name.
    pub(super) fn source(mut self) -> Result<Value> {
        loop {
            let input = self.input;
            let read = self.fill_buf().map_err(|e| input.io(e))?.len();
            if read == 0 {
                break;
            }
            self.consume(read);
        }
        let bytes = self.hasher.count();
        Ok(json!({ "bytes": bytes, "blake3": self.hasher.finalize().to_hex().as_str() }))
    }

    /// The next line without its end, and nothing at the end of the input. `line` is reused.
    pub(super) fn line<'b>(&mut self, line: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>> {
        line.clear();
        let input = self.input;
        let read = self.by_ref().take(LINE).read_until(b'\n', line).map_err(|e| input.io(e))?;
        if read as u64 == LINE {
            return Err(input.error("lines", format!("one is longer than {} MiB", LINE >> 20)));
        }
        Ok((read > 0).then(|| line.trim_ascii_end()))
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.end && buffer.len() >= self.buffer.len() {
            let read = self.reader.read(buffer)?;
            self.hasher.update(&buffer[..read]);
            return Ok(read);
        }
        let there = self.fill_buf()?;
        let now = there.len().min(buffer.len());
        buffer[..now].copy_from_slice(&there[..now]);
        self.consume(now);
        Ok(now)
    }
}

impl BufRead for Stream<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.end {
            (self.at, self.end) = (0, self.reader.read(&mut self.buffer)?);
            self.hasher.update(&self.buffer[..self.end]);
        }
        Ok(&self.buffer[self.at..self.end])
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }
}
