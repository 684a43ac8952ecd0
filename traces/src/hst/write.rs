//! Writing `.hst` files: deterministic, and all or nothing.
//!
//! The same trace and codec give the same bytes. They go to a temporary file beside the target,
//! which takes its name once everything is on the disk.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::VERSION;
use super::layout::{
    Element, Header, Kind, PREAMBLE, Section, Stored, StoredSequence, align, preamble,
};
use crate::column::{IdColumn, WeightColumn};
use crate::error::{Error, Result};
use crate::trace::Trace;

/// How the columns of a written file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As they are: larger, read in place without a copy.
    Raw,
    /// Compressed by zstd at this level (1 to 22; 3 is quick, 19 is small).
    Zstd(i32),
}

struct Draft<'a> {
    kind: Kind,
    element: Element,
    raw: &'a [u8],
    stored: Cow<'a, [u8]>,
    codec: Stored,
}

/// Writes a trace; `path` appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] where the file or its folder cannot be written; [`Error::Column`] for a zstd
/// level outside 1 to 22.
pub fn write_hst(trace: &Trace, path: impl AsRef<Path>, codec: Codec) -> Result<()> {
    let path = path.as_ref();
    let io = |e| Error::io("write", path, e);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let drafts = drafts(trace, codec)?;
    let (header, head) = head(trace, &drafts)?;
    let mut file = tempfile::Builder::new().prefix(".hotset-").tempfile_in(folder).map_err(io)?;
    let mut at = head.len() as u64;
    file.write_all(&head).map_err(io)?;
    for (section, draft) in header.sections.iter().zip(&drafts) {
        let padding = [0u8; 64];
        file.write_all(&padding[..(section.offset - at) as usize]).map_err(io)?;
        file.write_all(&draft.stored).map_err(io)?;
        at = section.offset + section.stored;
    }
    readable_by_others(file.as_file()).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    // The rename itself must reach the disk too. Not every system lets a folder be opened.
    if let Ok(folder) = std::fs::File::open(folder) {
        folder.sync_all().ok();
    }
    Ok(())
}

/// Temporary files are private; a trace is as readable as any new file usually is.
#[cfg(unix)]
fn readable_by_others(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_: &std::fs::File) -> std::io::Result<()> {
    Ok(())
}

fn drafts(trace: &Trace, codec: Codec) -> Result<Vec<Draft<'_>>> {
    let raw = |kind, element, raw| Draft {
        kind,
        element,
        raw,
        stored: Cow::Borrowed(raw),
        codec: Stored::Raw,
    };
    let mut drafts = vec![
        id_draft(Kind::Ids, trace.ids()),
        raw(Kind::Positions, Element::U32, bytemuck::cast_slice(trace.positions())),
        raw(Kind::Phases, Element::U8, trace.phases()),
    ];
    if let Some(steps) = trace.steps() {
        drafts.push(raw(Kind::Steps, Element::U32, bytemuck::cast_slice(steps)));
    }
    if let Some(token_ids) = trace.token_ids() {
        drafts.push(raw(Kind::TokenIds, Element::U32, bytemuck::cast_slice(token_ids)));
    }
    if let Some(weights) = trace.weights() {
        let (element, bytes) = match weights {
            WeightColumn::U8(w) => (Element::U8, w),
            WeightColumn::F16(w) => (Element::F16, bytemuck::cast_slice(w)),
            WeightColumn::Bf16(w) => (Element::Bf16, bytemuck::cast_slice(w)),
            WeightColumn::F32(w) => (Element::F32, bytemuck::cast_slice(w)),
        };
        drafts.push(raw(Kind::Weights, element, bytes));
    }
    if let Some(predictions) = trace.predictions() {
        drafts.push(id_draft(Kind::Predictions, predictions.ids));
    }
    if let Some(embeddings) = &trace.parts().embeddings {
        for (kind, column) in [
            (Kind::EmbeddingsIn, &embeddings.prompt_in),
            (Kind::EmbeddingsOut, &embeddings.prompt_out),
        ] {
            drafts.push(raw(kind, Element::F16, bytemuck::cast_slice(column.get())));
        }
    }
    if let Codec::Zstd(level) = codec {
        if !(1..=22).contains(&level) {
            return Err(Error::column(
                "codec",
                format!("zstd level {level}; 1 to 22 are possible"),
            ));
        }
        drafts.par_iter_mut().try_for_each(|draft| {
            let packed = zstd::bulk::compress(draft.raw, level)
                .map_err(|e| Error::column(draft.kind.name(), format!("zstd: {e}")))?;
            // What does not shrink stays as it is, to be read in place; nor may a section shrink
            // beyond what a reader accepts.
            if packed.len() < draft.raw.len()
                && super::read::ratio_accepted(packed.len() as u64, draft.raw.len() as u64)
            {
                (draft.stored, draft.codec) = (Cow::Owned(packed), Stored::Zstd);
            }
            Ok(())
        })?;
    }
    Ok(drafts)
}

fn id_draft(kind: Kind, ids: IdColumn<'_>) -> Draft<'_> {
    let (element, raw) = match ids {
        IdColumn::U8(ids) => (Element::U8, ids),
        IdColumn::U16(ids) => (Element::U16, bytemuck::cast_slice(ids)),
    };
    Draft { kind, element, raw, stored: Cow::Borrowed(raw), codec: Stored::Raw }
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
                codec: draft.codec,
                element: draft.element,
                offset: 0,
                stored: draft.stored.len() as u64,
                raw: draft.raw.len() as u64,
                checksum: xxh3_64(&draft.stored),
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
