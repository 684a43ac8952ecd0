//! What an importer reads from: a file, or bytes in memory (tests and fuzzing).
//!
//! Every byte read is reported to whoever shows progress, and may be hashed on the way, so that
//! provenance costs no second pass.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::decode::{Packing, Transcoder, Unpacked, byte_order_mark, most_unpacked};
use crate::error::{Error, Result};

/// Bytes of a line, at most: those of a device never end.
const LINE: u64 = 256 << 20;

/// Told of the bytes that an import has read.
pub trait ReadProgress: Sync {
    /// So many bytes more were read.
    fn advance(&self, bytes: u64);

    /// Whether to stop.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody is told.
impl ReadProgress for () {
    fn advance(&self, _: u64) {}
}

/// One input.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    path: &'a Path,
    bytes: Option<&'a [u8]>,
    progress: &'a dyn ReadProgress,
}

impl<'a> Input<'a> {
    pub(crate) fn file(path: &'a Path, progress: &'a dyn ReadProgress) -> Self {
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

    /// Whether reading it leaves it there, as a pipe does not.
    pub(super) fn can_be_read_again(&self) -> bool {
        self.bytes.is_some() || self.path.is_file()
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
        match self.open()?.kind {
            Kind::File { file, .. } => Ok(file.into_inner()),
            Kind::Bytes(cursor) => {
                let mut file = tempfile::tempfile().map_err(|e| self.io(e))?;
                io::Write::write_all(&mut file, cursor.get_ref()).map_err(|e| self.io(e))?;
                Ok(file)
            }
        }
    }

    /// Opens it for reading anywhere in it, unpacked where it is packed.
    pub(super) fn open(&self) -> Result<Reader<'a>> {
        let mut reader = self.open_raw()?;
        let Some(packing) = self.packing(&mut reader)? else { return Ok(reader) };
        let size = reader.len();
        let mut unpacked =
            Unpacked::new(packing, reader, most_unpacked(size)).map_err(|e| self.io(e))?;
        let mut file = tempfile::tempfile().map_err(|e| self.io(e))?;
        let len = io::copy(&mut unpacked, &mut file).map_err(|e| self.io(e))?;
        file.rewind().map_err(|e| self.io(e))?;
        let file = BufReader::with_capacity(1 << 18, file);
        // What is packed was reported as it was unpacked.
        Ok(Reader { kind: Kind::File { file, len }, progress: &() })
    }

    /// Opens it as it lies there.
    fn open_raw(&self) -> Result<Reader<'a>> {
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

    /// How it is packed, by its first bytes, which stay to be read.
    fn packing(&self, reader: &mut Reader<'_>) -> Result<Option<Packing>> {
        Ok(Packing::of(reader.kind.peek().map_err(|e| self.io(e))?))
    }

    /// Opens it for reading once, from the start on, hashing what passes. What comes out is
    /// unpacked where the file is packed, without a byte order mark, and UTF-8 where it is UTF-16.
    pub(super) fn stream(&self) -> Result<Stream<'a>> {
        let mut reader = self.open_raw()?;
        let len = reader.len();
        let packing = self.packing(&mut reader)?;
        let raw = Box::new(Hashed { reader, hasher: blake3::Hasher::new() });
        let source = match packing {
            None => Source::Plain(raw),
            Some(packing) => Source::Packed(Box::new(
                Unpacked::new(packing, raw, most_unpacked(len)).map_err(|e| self.io(e))?,
            )),
        };
        let room = if packing.is_some() { 1 << 18 } else { len.clamp(64, 1 << 18) };
        let line = if packing.is_some() { LINE.min((16 << 20) + 64 * len) } else { LINE };
        let mut stream = Stream::new(*self, source, room as usize, line);
        stream.begin().map_err(|e| self.io(e))?;
        Ok(stream)
    }

    /// [`Input::stream`] with the number of bytes in it, which takes a file beside where it is
    /// packed.
    pub(super) fn sized(&self) -> Result<(Stream<'a>, u64)> {
        let mut stream = self.stream()?;
        if let Source::Plain(raw) = &stream.source {
            let len = raw.reader.len();
            return Ok((stream, len));
        }
        let mut file = tempfile::tempfile().map_err(|e| self.io(e))?;
        let len = io::copy(&mut stream, &mut file).map_err(|e| self.io(e))?;
        file.rewind().map_err(|e| self.io(e))?;
        let kept = Source::Kept(BufReader::new(file), stream.source()?);
        Ok((Stream::new(*self, kept, 1 << 18, LINE), len))
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

impl Kind<'_> {
    /// The first bytes, which stay to be read.
    fn peek(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::File { file, .. } => file.fill_buf(),
            Self::Bytes(cursor) => cursor.fill_buf(),
        }
    }
}

/// An opened input.
pub(super) struct Reader<'a> {
    kind: Kind<'a>,
    progress: &'a dyn ReadProgress,
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

/// Bytes as they lie in the file, hashed as they pass.
struct Hashed<'a> {
    reader: Reader<'a>,
    hasher: blake3::Hasher,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

enum Source<'a> {
    Plain(Box<Hashed<'a>>),
    Packed(Box<Unpacked<Box<Hashed<'a>>>>),
    /// Unpacked into a file already, with what provenance says of the packed one.
    Kept(BufReader<File>, Value),
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(raw) => raw.read(buffer),
            Self::Packed(unpacked) => unpacked.read(buffer),
            Self::Kept(file, _) => file.read(buffer),
        }
    }
}

/// UTF-16 that is read as UTF-8.
struct Wide {
    transcoder: Transcoder,
    /// Bytes of the file on their way into the stream's buffer.
    raw: Vec<u8>,
}

/// An input read once, in order.
pub(super) struct Stream<'a> {
    source: Source<'a>,
    /// Bytes of a line, at most.
    line: u64,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    wide: Option<Wide>,
    input: Input<'a>,
}

impl<'a> Stream<'a> {
    fn new(input: Input<'a>, source: Source<'a>, room: usize, line: u64) -> Self {
        Self { source, line, buffer: vec![0; room], at: 0, end: 0, wide: None, input }
    }

    /// Passes over a byte order mark and begins to turn UTF-16 into UTF-8.
    fn begin(&mut self) -> io::Result<()> {
        while self.end < 3 {
            match self.source.read(&mut self.buffer[self.end..])? {
                0 => break,
                read => self.end += read,
            }
        }
        let (mark, encoding) = byte_order_mark(&self.buffer[..self.end]);
        self.at = mark;
        if let Some(encoding) = encoding {
            let mut transcoder = Transcoder::new(encoding);
            let raw = std::mem::take(&mut self.buffer);
            transcoder.push(&raw[self.at..self.end], &mut self.buffer);
            (self.at, self.end) = (0, self.buffer.len());
            self.wide = Some(Wide { transcoder, raw });
        }
        Ok(())
    }

    /// Reads on to the end, and says what provenance says of the input: the file's length and
    /// BLAKE3, which find it again under any name.
    pub(super) fn source(self) -> Result<Value> {
        let input = self.input;
        let mut raw = match self.source {
            Source::Plain(raw) => raw,
            Source::Packed(unpacked) => unpacked.into_inner(),
            Source::Kept(_, source) => return Ok(source),
        };
        let mut buffer = vec![0; 1 << 16];
        while raw.read(&mut buffer).map_err(|e| input.io(e))? > 0 {}
        let bytes = raw.hasher.count();
        Ok(json!({ "bytes": bytes, "blake3": raw.hasher.finalize().to_hex().as_str() }))
    }

    /// The next line without its end, and nothing at the end of the input. `line` is reused.
    pub(super) fn line<'b>(&mut self, line: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>> {
        line.clear();
        let (input, most) = (self.input, self.line);
        let read = self.by_ref().take(most).read_until(b'\n', line).map_err(|e| input.io(e))?;
        if read as u64 == most {
            return Err(input.error("lines", format!("one is longer than {} MiB", most >> 20)));
        }
        Ok((read > 0).then(|| line.trim_ascii_end()))
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.end && self.wide.is_none() && buffer.len() >= self.buffer.len() {
            return self.source.read(buffer);
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
        if self.at < self.end {
            return Ok(&self.buffer[self.at..self.end]);
        }
        self.at = 0;
        let Some(wide) = &mut self.wide else {
            self.end = self.source.read(&mut self.buffer)?;
            return Ok(&self.buffer[..self.end]);
        };
        self.buffer.clear();
        // A piece of one byte may give no character yet.
        while self.buffer.is_empty() {
            let read = self.source.read(&mut wide.raw)?;
            if read == 0 {
                break;
            }
            wide.transcoder.push(&wide.raw[..read], &mut self.buffer);
        }
        self.end = self.buffer.len();
        Ok(&self.buffer)
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }
}
