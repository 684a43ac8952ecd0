//! The binary stream of llama.cpp forks (`MOE_TRACE_OUT`): little-endian i32 layer, tokens, top-k,
//! then the ids of each token; a record for each layer of each chunk, and no magic number.

use std::io::Read;

use super::batch::{Batch, Token};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::Rows;
use super::sniff::{Contents, Sniff};
use super::tables::twice;
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "llama-moe-stream",
    description: "a llama.cpp fork's binary stream: i32 layer, tokens, top-k, then ids, a record a \
                  layer of each chunk",
    columns: &["ids", "positions", "steps"],
    extensions: &["bin"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Binary,
    importer: Importer::Each(import),
};

/// A record's head.
#[derive(Clone, Copy)]
struct Head {
    layer: u32,
    tokens: usize,
    top_k: usize,
}

impl Head {
    const BYTES: usize = 12;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes.get(4 * at..4 * at + 4)?;
            u32::try_from(i32::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        let (layer, tokens, top_k) = (number(0)?, number(1)?, number(2)?);
        let sane =
            layer < 1 << 12 && (1..=1 << 20).contains(&tokens) && (1..=1 << 8).contains(&top_k);
        sane.then_some(Self { layer, tokens: tokens as usize, top_k: top_k as usize })
    }
}

/// Whether these are ids of one token.
fn plausible(ids: &[u8]) -> bool {
    let ids: Vec<f64> = ids
        .chunks_exact(4)
        .map(|id| f64::from(i32::from_le_bytes([id[0], id[1], id[2], id[3]])))
        .collect();
    ids.iter().all(|id| (0.0..=65_535.0).contains(id)) && twice(&ids).is_none()
}

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    if !matches!(sniff.contents, Contents::Binary) {
        return Ok(Claim::No);
    }
    let (mut rest, mut top_k, mut cells) = (&sniff.start[..], None, 0);
    while let Some(head) = Head::parse(rest) {
        if top_k.is_some_and(|before| before != head.top_k) {
            return Ok(Claim::No);
        }
        top_k = Some(head.top_k);
        let ids = &rest[Head::BYTES..];
        let all = head.tokens * head.top_k * 4;
        let there = &ids[..all.min(ids.len())];
        if !there.chunks_exact(head.top_k * 4).all(plausible) {
            return Ok(Claim::No);
        }
        cells += there.len() / (head.top_k * 4);
        rest = &ids[there.len()..];
    }
    // What is left is the end of what was looked at, or of the file.
    Claim::Sure.when(cells > 0 && rest.len() < Head::BYTES)
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut stream = input.stream()?;
    let mut rows = Rows::new(input, into);
    rows.sequence(None)?;
    let mut batch = Batch::default();
    let (mut step, mut position, mut record) = (0u32, 0u32, 0u64);
    let mut emit = |batch: &mut Batch, rows: &mut Rows<'_, '_, '_>| {
        batch.emit(input, rows, |_, rows| {
            rows.step(step);
            position += 1;
            Ok(Token { position: position - 1, phase: Phase::Decode })
        })?;
        step += 1;
        Ok(())
    };
    let (mut bytes, mut ids) = (Vec::new(), Vec::new());
    let mut cut = false;
    loop {
        bytes.clear();
        let mut take = |wanted: usize, bytes: &mut Vec<u8>| {
            bytes.clear();
            stream.by_ref().take(wanted as u64).read_to_end(bytes).map_err(|e| input.io(e))
        };
        let found = take(Head::BYTES, &mut bytes)?;
        if found == 0 {
            break;
        }
        let refuse = |problem: String| input.error(format!("record {record}"), problem);
        if found < Head::BYTES {
            cut = true;
            break;
        }
        let Some(head) = Head::parse(&bytes) else {
            return Err(refuse("does not begin with a layer, tokens and top-k".to_owned()));
        };
        // A record is a layer of a chunk: the same layer again is another chunk.
        if batch.last_layer().is_some_and(|last| head.layer <= last) {
            emit(&mut batch, &mut rows)?;
        }
        let size = head.top_k * 4;
        for token in 0..head.tokens {
            if take(size, &mut bytes)? < size {
                cut = true;
                break;
            }
            ids.clear();
            for id in bytes.chunks_exact(4) {
                let id = i32::from_le_bytes([id[0], id[1], id[2], id[3]]);
                let small = u16::try_from(id);
                ids.push(small.map_err(|_| refuse(format!("id {id}; ids are 0 to 65535")))?);
            }
            batch.add(refuse, token as i64, head.layer, &ids, &[])?;
        }
        if cut {
            break;
        }
        record += 1;
    }
    emit(&mut batch, &mut rows)?;
    batch.note(&mut rows);
    rows.flush()?;
    if cut {
        rows.collector().note(format!("record {record}, the last, is cut: its end is left out"));
    }
    rows.collector().read(stream.source()?);
    Ok(())
}
