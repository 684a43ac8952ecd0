//! Reading `.hst` files: nothing in them is believed before it is checked.
//!
//! Order of checks: preamble, header, section table against the file's size and the shape,
//! padding, checksums, decompression under a hard limit, and last every check of the values.

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::VERSION;
use super::layout::{Element, Header, Kind, MAGIC, MAX_HEADER, PREAMBLE, Section, Stored, align};
use crate::check;
use crate::column::{Backing, Column};
use crate::error::{Error, Result};
use crate::map::{OpenedFile, READ_WHOLE, open_file};
use crate::parts::{EmbeddingData, IdData, Parts, PredictionData, WeightData};
use crate::sequence::Sequence;
use crate::shape::Shape;
use crate::trace::{MappedSections, Trace};

impl Trace {
    /// Opens an `.hst` file: raw columns are used where they lie, compressed ones are decompressed.
    /// Checks every checksum and value, and the digests of files up to 64 MiB (for larger ones
    /// see [`Trace::check_digests`]). Files of more than 1 GiB are mapped and must not be changed in
    /// place while the trace lives ([`Trace::check_unchanged`]); others are read.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::NotHst`], [`Error::Newer`], [`Error::Truncated`] or
    /// [`Error::Corrupt`] naming the section; the errors of [`crate::TraceBuilder::build`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        open_mapped_above(path, READ_WHOLE)
    }

    /// Reads an `.hst` file that is part of the program; columns are read in place where aligned.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn from_static_bytes(bytes: &'static [u8]) -> Result<Self> {
        open(Backing::Static(bytes), "bytes in memory")
    }

    /// Reads an `.hst` file from memory, which the trace keeps.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        open(Backing::Owned(bytes), "bytes in memory")
    }
}

/// Opens a file, which is mapped if it has more than `read_whole` bytes.
pub(super) fn open_mapped_above(path: &Path, read_whole: u64) -> Result<Trace> {
    let backing = match open_file(path, read_whole)? {
        OpenedFile::Read(bytes) => Backing::Owned(bytes),
        OpenedFile::Mapped(file) => Backing::Map(file),
    };
    open(backing, &path.display().to_string())
}

/// Digests of files up to this many bytes are computed when they are opened: some hundredths of a
/// second. Whoever goes by the digest of a larger one asks [`Trace::check_digests`].
const DIGESTS_AT_OPENING: usize = 64 << 20;

/// Beyond this many bytes a section may not decompress to more than [`MAX_RATIO`] times its size.
const FREE_RAW: u64 = 64 << 20;
const MAX_RATIO: u64 = 1024;

/// Whether `stored` compressed bytes may become `raw` bytes; zstd and deflate share the limit.
pub(crate) fn ratio_accepted(stored: u64, raw: u64) -> bool {
    raw <= FREE_RAW || raw / MAX_RATIO <= stored
}

/// A file under examination, for its errors.
struct Reader<'a> {
    bytes: &'a [u8],
    file: &'a str,
}

fn open(backing: Backing, file: &str) -> Result<Trace> {
    let backing = Arc::new(backing);
    let reader = Reader { bytes: backing.bytes(), file };
    let header = reader.header()?;
    let shape =
        Shape::new(header.layers.clone()).map_err(|e| reader.corrupt("header", e.to_string()))?;
    let sequences = reader.sequences(&header)?;
    let tokens = sequences.last().map_or(0, |sequence| sequence.rows.end as u64);
    reader.section_table(&header, &shape, tokens)?;
    reader.checksums(&header)?;
    let columns = Columns { reader: &reader, backing: &backing, sections: &header.sections };
    let parts = Parts {
        name: header.name,
        ids: columns.ids(Kind::Ids)?.ok_or_else(|| reader.missing(Kind::Ids))?,
        positions: columns
            .column(Kind::Positions)?
            .ok_or_else(|| reader.missing(Kind::Positions))?,
        phases: columns.column(Kind::Phases)?.ok_or_else(|| reader.missing(Kind::Phases))?,
        steps: columns.column(Kind::Steps)?,
        token_ids: columns.column(Kind::TokenIds)?,
        weights: columns.weights()?,
        predictions: columns.ids(Kind::Predictions)?.map(|ids| PredictionData {
            lookaheads: header.lookaheads as usize,
            width: header.prediction_width as usize,
            ids,
        }),
        embeddings: match (
            columns.column(Kind::EmbeddingsIn)?,
            columns.column(Kind::EmbeddingsOut)?,
        ) {
            (Some(prompt_in), Some(prompt_out)) => {
                Some(EmbeddingData { dim: header.embedding_dim as usize, prompt_in, prompt_out })
            }
            (None, None) => None,
            (None, _) => return Err(reader.missing(Kind::EmbeddingsIn)),
            (_, None) => return Err(reader.missing(Kind::EmbeddingsOut)),
        },
        provenance: header.provenance,
        shape,
        sequences,
    };
    check::all(&parts, |_| {})?;
    let mapped = matches!(&*backing, Backing::Map(_)).then(|| MappedSections {
        backing: Arc::clone(&backing),
        sections: header.sections.iter().map(|s| (stored_range(s), s.checksum)).collect(),
    });
    let trace = Trace::from_checked(parts, header.digest, header.content_digest, mapped);
    if reader.bytes.len() <= DIGESTS_AT_OPENING {
        trace.check_digests()?;
    }
    Ok(trace)
}

impl Reader<'_> {
    fn corrupt(&self, section: &str, problem: impl Into<String>) -> Error {
        let (file, section) = (self.file.to_owned(), section.to_owned());
        Error::Corrupt { file, section, problem: problem.into() }
    }

    fn missing(&self, kind: Kind) -> Error {
        self.corrupt("section table", format!("section {} is missing", kind.name()))
    }

    fn truncated(&self, section: &str, needs: u64) -> Error {
        let (file, section) = (self.file.to_owned(), section.to_owned());
        Error::Truncated { file, section, needs, has: self.bytes.len() as u64 }
    }

    fn not_hst(&self, problem: impl Into<String>) -> Error {
        Error::NotHst { file: self.file.to_owned(), problem: problem.into() }
    }

    fn u64_at(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.bytes[offset..offset + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Checks the preamble and decodes the header.
    fn header(&self) -> Result<Header> {
        let has = self.bytes.len() as u64;
        let shared = self.bytes.len().min(MAGIC.len());
        if has == 0 {
            return Err(self.not_hst("it is empty"));
        }
        if self.bytes[..shared] != MAGIC[..shared] {
            return Err(self.not_hst("its first bytes are others"));
        }
        if self.bytes.len() < PREAMBLE {
            return Err(self.truncated("preamble", PREAMBLE as u64));
        }
        let sound = xxh3_64(&self.bytes[..56]) == self.u64_at(56);
        let version = (self.u64_at(8) & 0xffff_ffff) as u32;
        if version > VERSION {
            let note = if sound { "" } else { ", or damaged: the preamble's checksum is wrong" };
            let file = self.file.to_owned();
            return Err(Error::Newer { file, version, supported: VERSION, note });
        }
        if !sound {
            return Err(self.corrupt("preamble", "its checksum is wrong; copy the file again"));
        }
        if version == 0 || self.bytes[12..16] != [0; 4] || self.bytes[40..56] != [0; 16] {
            return Err(self.corrupt("preamble", "version 0, or reserved bytes that are not zero"));
        }
        let (header_len, file_len) = (self.u64_at(16), self.u64_at(32));
        let header_end = (PREAMBLE as u64).checked_add(header_len);
        let header_end = header_end.filter(|&end| end <= has && header_len <= MAX_HEADER as u64);
        let Some(header_end) = header_end else {
            return Err(self.truncated("header", header_len.saturating_add(PREAMBLE as u64)));
        };
        let bytes = &self.bytes[PREAMBLE..header_end as usize];
        if xxh3_64(bytes) != self.u64_at(24) {
            return Err(self.corrupt("header", "its checksum is wrong; copy the file again"));
        }
        let config = bincode::config::standard().with_limit::<MAX_HEADER>();
        let (header, read) = bincode::serde::decode_from_slice::<Header, _>(bytes, config)
            .map_err(|e| self.corrupt("header", format!("cannot be decoded: {e}")))?;
        if read != bytes.len() {
            return Err(self.corrupt("header", "bytes after its end"));
        }
        if file_len > has {
            let section = header.sections.iter().find(|s| s.offset.saturating_add(s.stored) > has);
            let name = section.map_or("file".to_owned(), |s| format!("section {}", s.kind.name()));
            return Err(self.truncated(&name, file_len));
        }
        if file_len < has {
            let problem = format!("{} bytes after the file's end", has - file_len);
            return Err(self.corrupt("file", problem));
        }
        Ok(header)
    }

    fn sequences(&self, header: &Header) -> Result<Vec<Sequence>> {
        let mut next = 0usize;
        let sequences = header.sequences.iter().map(|stored| {
            let start = next;
            next = usize::try_from(stored.tokens).ok().and_then(|n| next.checked_add(n))?;
            Some(Sequence {
                id: stored.id,
                label: stored.label.clone(),
                document: stored.document,
                prompt_tokens: stored.prompt_tokens,
                has_repetition: stored.has_repetition,
                rows: start..next,
            })
        });
        let sequences = sequences.collect::<Option<Vec<_>>>();
        sequences.ok_or_else(|| self.corrupt("header", "the sequences' tokens overflow"))
    }

    /// Checks order, places, types and lengths of the sections, and the padding between them.
    fn section_table(&self, header: &Header, shape: &Shape, tokens: u64) -> Result<()> {
        let mut at = PREAMBLE as u64 + self.u64_at(16);
        let mut before = None;
        for section in &header.sections {
            let name = format!("section {}", section.kind.name());
            if before >= Some(section.kind) {
                return Err(self.corrupt(&name, "twice, or out of order"));
            }
            before = Some(section.kind);
            let row_len = shape.row_len() as u64;
            let expected = header.expected_bytes(section.kind, section.element, tokens, row_len);
            if expected != Some(section.raw) {
                let expected = expected.map_or("over 2^64".to_owned(), |n| n.to_string());
                let raw = section.raw;
                let problem =
                    format!("states {raw} bytes, the shape and {tokens} tokens need {expected}");
                return Err(self.corrupt(&name, problem));
            }
            if !ratio_accepted(section.stored, section.raw) {
                let problem = format!("states {} bytes from {}", section.raw, section.stored);
                return Err(self.corrupt(&name, problem));
            }
            if section.codec == Stored::Raw && section.stored != section.raw {
                return Err(self.corrupt(&name, "stored raw in another length than it has"));
            }
            let begin = align(at).filter(|&begin| begin == section.offset);
            let end = begin.and_then(|begin| begin.checked_add(section.stored));
            let (Some(begin), Some(end)) = (begin, end) else {
                let problem = format!("begins at {}, not right after byte {at}", section.offset);
                return Err(self.corrupt(&name, problem));
            };
            if end > self.bytes.len() as u64 {
                return Err(self.truncated(&name, end));
            }
            if self.bytes[at as usize..begin as usize].iter().any(|&byte| byte != 0) {
                return Err(self.corrupt(&name, "the padding before it is not zero"));
            }
            at = end;
        }
        if at != self.bytes.len() as u64 {
            let problem = format!("{} bytes after the last section", self.bytes.len() as u64 - at);
            return Err(self.corrupt("file", problem));
        }
        Ok(())
    }

    fn checksums(&self, header: &Header) -> Result<()> {
        let wrong = header
            .sections
            .par_iter()
            .find_first(|section| xxh3_64(&self.bytes[stored_range(section)]) != section.checksum);
        wrong.map_or(Ok(()), |section| {
            let name = format!("section {}", section.kind.name());
            Err(self.corrupt(&name, "its checksum is wrong; copy the file again"))
        })
    }
}

/// Where a section lies; the table was checked against the file's length.
fn stored_range(section: &Section) -> Range<usize> {
    section.offset as usize..(section.offset + section.stored) as usize
}

/// Sections as typed columns.
struct Columns<'a> {
    reader: &'a Reader<'a>,
    backing: &'a Arc<Backing>,
    sections: &'a [Section],
}

impl Columns<'_> {
    fn find(&self, kind: Kind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    fn wrong_type(&self, section: &Section) -> Error {
        let name = format!("section {}", section.kind.name());
        self.reader.corrupt(&name, format!("has elements of type {:?}", section.element))
    }

    /// A column of the one type that its kind can have.
    fn column<T: Pod>(&self, kind: Kind) -> Result<Option<Column<T>>> {
        let Some(section) = self.find(kind) else { return Ok(None) };
        let element = match kind {
            Kind::Phases => Element::U8,
            Kind::EmbeddingsIn | Kind::EmbeddingsOut => Element::F16,
            _ => Element::U32,
        };
        if section.element != element {
            return Err(self.wrong_type(section));
        }
        self.load(section).map(Some)
    }

    fn ids(&self, kind: Kind) -> Result<Option<IdData>> {
        let Some(section) = self.find(kind) else { return Ok(None) };
        match section.element {
            Element::U8 => Ok(Some(IdData::U8(self.load(section)?))),
            Element::U16 => Ok(Some(IdData::U16(self.load(section)?))),
            _ => Err(self.wrong_type(section)),
        }
    }

    fn weights(&self) -> Result<Option<WeightData>> {
        let Some(section) = self.find(Kind::Weights) else { return Ok(None) };
        Ok(Some(match section.element {
            Element::U8 => WeightData::U8(self.load(section)?),
            Element::F16 => WeightData::F16(self.load(section)?),
            Element::Bf16 => WeightData::Bf16(self.load(section)?),
            Element::F32 => WeightData::F32(self.load(section)?),
            Element::U16 | Element::U32 => return Err(self.wrong_type(section)),
        }))
    }

    fn load<T: Pod>(&self, section: &Section) -> Result<Column<T>> {
        let range = stored_range(section);
        match section.codec {
            Stored::Raw => Ok(Column::in_place(self.backing, range)),
            Stored::Zstd => {
                let bytes = self.reader.decompress(section, &self.backing.bytes()[range])?;
                Ok(Column::Owned(match bytemuck::try_cast_vec(bytes) {
                    Ok(values) => values,
                    Err((_, bytes)) => bytemuck::pod_collect_to_vec(&bytes),
                }))
            }
        }
    }
}

impl Reader<'_> {
    /// Decompresses to exactly the stated length; memory grows only as data arrive.
    fn decompress(&self, section: &Section, stored: &[u8]) -> Result<Vec<u8>> {
        let name = format!("section {}", section.kind.name());
        let zstd = |e: std::io::Error| self.corrupt(&name, format!("zstd: {e}"));
        let decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(zstd)?;
        let mut decoder = decoder.single_frame();
        let mut raw = Vec::new();
        decoder.by_ref().take(section.raw.saturating_add(1)).read_to_end(&mut raw).map_err(zstd)?;
        if raw.len() as u64 != section.raw || !decoder.finish().is_empty() {
            let problem = format!("does not decompress to its {} bytes exactly", section.raw);
            return Err(self.corrupt(&name, problem));
        }
        Ok(raw)
    }
}
