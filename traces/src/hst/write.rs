//! Writing `.hst` files: deterministic, and all or nothing.
//!
//! The same trace and codec give the same bytes. They go to a temporary file beside the target,
//! which takes its name once everything is on the disk.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use super::VERSION;
use super::layout::{
    Element, Header, Kind, PREAMBLE, Section, Stored, StoredSequence, align, preamble,
};
use crate::column::{ByteColumn, Column};
use crate::error::{Error, Result};
use crate::import::ReadProgress;
use crate::parts::{IdData, Parts, WeightData};
use crate::spool::Spool;
use crate::trace::Trace;
use crate::whole_file::{temporary_folder, write_whole};

/// How the columns of a written file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As they are: larger, read in place without a copy.
    Raw,
    /// Compressed by zstd at this level (1 to 22; 3 is quick, 19 is small).
    Zstd(i32),
}

/// Columns up to this many bytes are compressed in one piece.
const AT_ONCE: u64 = 32 << 20;

/// A section to be written.
struct Draft<'a> {
    kind: Kind,
    element: Element,
    raw: &'a (dyn ByteColumn + Sync),
    /// The compressed bytes, where that made them fewer.
    packed: Option<Column<u8>>,
    checksum: u64,
}

impl<'a> Draft<'a> {
    fn stored(&self) -> &(dyn ByteColumn + Sync + 'a) {
        match &self.packed {
            Some(packed) => packed,
            None => self.raw,
        }
    }
}

/// Writes a trace; `path` appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] where the file or its folder cannot be written; [`Error::Column`] for a zstd
/// level outside 1 to 22.
pub fn write_hst(trace: &Trace, path: impl AsRef<Path>, codec: Codec) -> Result<()> {
    write_hst_watched(trace, path, codec, &())
}

/// [`write_hst`] that tells of the bytes written and stops, leaving nothing, when asked to.
///
/// # Errors
/// As [`write_hst`]; [`Error::Io`] where it was stopped.
pub fn write_hst_watched(
    trace: &Trace,
    path: impl AsRef<Path>,
    codec: Codec,
    progress: &dyn ReadProgress,
) -> Result<()> {
    let path = path.as_ref();
    let io = |e| Error::io("write", path, e);
    let drafts = drafts(trace, codec, &temporary_folder(path), progress)?;
    let (header, head) = head(trace, &drafts)?;
    write_whole(path, progress, |file| {
        let mut at = head.len() as u64;
        file.write_all(&head).map_err(io)?;
        for (section, draft) in header.sections.iter().zip(&drafts) {
            let padding = [0u8; 64];
            file.write_all(&padding[..(section.offset - at) as usize]).map_err(io)?;
            draft.stored().byte_windows(&mut |bytes| file.write_all(bytes).map_err(io))?;
            at = section.offset + section.stored;
        }
        Ok(())
    })
}

fn drafts<'a>(
    trace: &'a Trace,
    codec: Codec,
    folder: &Path,
    progress: &dyn ReadProgress,
) -> Result<Vec<Draft<'a>>> {
    if let Codec::Zstd(level) = codec
        && !(1..=22).contains(&level)
    {
        return Err(Error::column("codec", format!("zstd level {level}; 1 to 22 are possible")));
    }
    let folder: Arc<Path> = Arc::from(folder);
    let mut drafts = columns(trace.parts());
    let go_on = || {
        let stop =
            || Error::io("write", folder.to_path_buf(), std::io::Error::other("interrupted"));
        if progress.cancelled() { Err(stop()) } else { Ok(()) }
    };
    drafts.par_iter_mut().try_for_each(|draft| {
        go_on()?;
        if let Codec::Zstd(level) = codec {
            draft.packed = pack(draft, level, &folder)?;
        }
        let mut hasher = Xxh3::new();
        draft.stored().byte_windows(&mut |bytes| {
            hasher.update(bytes);
            go_on()
        })?;
        draft.checksum = hasher.digest();
        Ok::<(), Error>(())
    })?;
    Ok(drafts)
}

/// Every column that the trace has, in the order of the file.
fn columns(parts: &Parts) -> Vec<Draft<'_>> {
    fn draft<'a>(kind: Kind, element: Element, raw: &'a (dyn ByteColumn + Sync)) -> Draft<'a> {
        Draft { kind, element, raw, packed: None, checksum: 0 }
    }
    let id_element = |ids: &IdData| match ids {
        IdData::U8(_) => Element::U8,
        IdData::U16(_) => Element::U16,
    };
    let mut drafts = vec![
        draft(Kind::Ids, id_element(&parts.ids), parts.ids.bytes()),
        draft(Kind::Positions, Element::U32, &parts.positions),
        draft(Kind::Phases, Element::U8, &parts.phases),
    ];
    if let Some(steps) = &parts.steps {
        drafts.push(draft(Kind::Steps, Element::U32, steps));
    }
    if let Some(token_ids) = &parts.token_ids {
        drafts.push(draft(Kind::TokenIds, Element::U32, token_ids));
    }
    if let Some(weights) = &parts.weights {
        let element = match weights {
            WeightData::U8(_) => Element::U8,
            WeightData::F16(_) => Element::F16,
            WeightData::Bf16(_) => Element::Bf16,
            WeightData::F32(_) => Element::F32,
        };
        drafts.push(draft(Kind::Weights, element, weights.bytes()));
    }
    if let Some(data) = &parts.predictions {
        drafts.push(draft(Kind::Predictions, id_element(&data.ids), data.ids.bytes()));
    }
    if let Some(data) = &parts.embeddings {
        drafts.push(draft(Kind::EmbeddingsIn, Element::F16, &data.prompt_in));
        drafts.push(draft(Kind::EmbeddingsOut, Element::F16, &data.prompt_out));
    }
    drafts
}

/// The section compressed; what does not shrink stays as it is, to be read in place, nor may one
/// shrink beyond what a reader accepts.
fn pack(draft: &Draft<'_>, level: i32, folder: &Arc<Path>) -> Result<Option<Column<u8>>> {
    let zstd = |e: std::io::Error| Error::column(draft.kind.name(), format!("zstd: {e}"));
    let raw = draft.raw.byte_len();
    let mut packed = Spool::new(folder);
    // The two ways give different bytes, so the length alone decides, not where the column lies.
    if raw <= AT_ONCE {
        let mut whole = Vec::with_capacity(raw as usize);
        draft.raw.byte_windows(&mut |bytes| {
            whole.extend_from_slice(bytes);
            Ok(())
        })?;
        packed.extend(&zstd::bulk::compress(&whole, level).map_err(zstd)?)?;
    } else {
        let mut encoder = zstd::stream::Encoder::new(packed, level).map_err(zstd)?;
        encoder.set_pledged_src_size(Some(raw)).map_err(zstd)?;
        draft.raw.byte_windows(&mut |bytes| encoder.write_all(bytes).map_err(zstd))?;
        packed = encoder.finish().map_err(zstd)?;
    }
    if packed.len() >= raw || !super::read::ratio_accepted(packed.len(), raw) {
        return Ok(None);
    }
    packed.into_column().map(Some)
}

/// The header and the file's first bytes (preamble and header).
fn head(trace: &Trace, drafts: &[Draft<'_>]) -> Result<(Header, Vec<u8>)> {
    let sequences = trace
        .sequences()
        .iter()
        .map(|sequence| StoredSequence {
            id: sequence.id,
            label: sequence.label.clone(),
            document: sequence.document,
            prompt_tokens: sequence.prompt_tokens,
            has_repetition: sequence.has_repetition,
            tokens: sequence.rows.len() as u64,
        })
        .collect();
    let predictions = trace.predictions();
    let mut header = Header {
        name: trace.name().to_owned(),
        layers: trace.shape().layers().to_vec(),
        sequences,
        digest: trace.digest().to_owned(),
        content_digest: trace.content_digest().to_owned(),
        provenance: trace.provenance().to_owned(),
        lookaheads: predictions.map_or(0, |p| p.lookaheads as u64),
        prediction_width: predictions.map_or(0, |p| p.width as u64),
        embedding_dim: trace.embeddings().map_or(0, |e| e.dim as u64),
        sections: drafts
            .iter()
            .map(|draft| Section {
                kind: draft.kind,
                codec: if draft.packed.is_some() { Stored::Zstd } else { Stored::Raw },
                element: draft.element,
                offset: 0,
                stored: draft.stored().byte_len(),
                raw: draft.raw.byte_len(),
                checksum: draft.checksum,
            })
            .collect(),
    };
    // Offsets are variable-length integers, so the header's length depends on them: lay the
    // sections out for a length, and again while the header does not come out at that length.
    let mut length = 0;
    loop {
        let mut at = (PREAMBLE + length) as u64;
        for section in &mut header.sections {
            section.offset = align(at).ok_or_else(too_long)?;
            at = section.offset.checked_add(section.stored).ok_or_else(too_long)?;
        }
        let bytes = bincode::serde::encode_to_vec(&header, bincode::config::standard())
            .map_err(|e| Error::column("header", e.to_string()))?;
        if bytes.len() > super::layout::MAX_HEADER {
            return Err(Error::column("header", "labels and provenance take over 1 GiB"));
        }
        if bytes.len() == length {
            let head = [&preamble(VERSION, &bytes, at)[..], &bytes].concat();
            return Ok((header, head));
        }
        length = bytes.len().max(length);
    }
}

fn too_long() -> Error {
    Error::column("file", "longer than 64-bit offsets can say")
}
