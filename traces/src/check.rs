//! Every check that a trace must pass, run at building, at opening and by `validate`.
//!
//! Lengths first, then values, in parallel over chunks of rows; the fault with the lowest row is
//! the one reported, whatever the number of threads.

use rayon::prelude::*;

use crate::column::{Column, IdColumn, WeightColumn};
use crate::error::{Error, Result};
use crate::parts::Parts;
use crate::rows;
use crate::sequence::Sequence;
use crate::shape::Shape;

/// Values that one task checks: a few hundred KiB, so that a chunk stays in the cache.
const CHUNK: usize = 1 << 18;

/// Whether ids take one byte.
pub(crate) fn ids_are_narrow(max_experts: u32) -> bool {
    max_experts <= 256
}

/// Whether predicted ids take one byte: 255 stands for "none" among them, so 256 experts do not.
pub(crate) fn predictions_are_narrow(max_experts: u32) -> bool {
    max_experts < 256
}

/// All checks. `seen` is given the ids as they pass, so that who hashes them too need not read
/// them again.
pub(crate) fn all(parts: &Parts, mut seen: impl FnMut(IdColumn<'_>)) -> Result<()> {
    let tokens = sequences(&parts.sequences)?;
    lengths(parts, tokens)?;
    rise("positions", &parts.positions, &parts.sequences)?;
    parts.phases.windows(1, phases)?;
    if let Some(steps) = &parts.steps {
        rise("steps", steps, &parts.sequences)?;
    }
    let row_len = parts.shape.row_len();
    parts.ids.windows(row_len, |first, ids| {
        rows::check(&parts.shape, ids, first / row_len, CHUNK)?;
        seen(ids);
        Ok(())
    })?;
    if let Some(data) = &parts.weights {
        data.windows(|first, window| weights(&parts.shape, first, window))?;
    }
    if let Some(data) = &parts.predictions {
        data.ids.windows(data.width, |first, ids| {
            rows::check_predicted(&parts.shape, data, tokens, ids, first / data.width)
        })?;
    }
    if let Some(embeddings) = &parts.embeddings {
        for column in [embeddings.prompt_in.get(), embeddings.prompt_out.get()] {
            if let Some(at) = column.iter().position(|&bits| bits & F16_SPECIAL == F16_SPECIAL) {
                let problem = format!("sequence {}: not finite", at / embeddings.dim);
                return Err(Error::column("embeddings", problem));
            }
        }
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&parts.provenance)
        .map_err(|e| Error::column("provenance", format!("not JSON: {e}")))?;
    Ok(())
}

/// Sequences must be there, not empty, and follow each other from row 0; answers the tokens.
fn sequences(sequences: &[Sequence]) -> Result<usize> {
    let problem = |text: String| Err(Error::column("sequences", text));
    if sequences.is_empty() {
        return problem("no sequences; a trace needs at least one token".to_owned());
    }
    if u32::try_from(sequences.len()).is_err() {
        return problem(format!("{} sequences; they are numbered by 32 bits", sequences.len()));
    }
    let mut next = 0;
    for (index, Sequence { rows, .. }) in sequences.iter().enumerate() {
        if rows.start != next {
            let start = rows.start;
            return problem(format!("sequence {index} begins at row {start}, expected {next}"));
        }
        if rows.end <= rows.start {
            return problem(format!("sequence {index} has no tokens"));
        }
        next = rows.end;
    }
    Ok(next)
}

fn lengths(parts: &Parts, tokens: usize) -> Result<()> {
    let expect = |column, found: usize, factors: &[usize]| {
        let expected = factors.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
        if expected == Some(found) {
            return Ok(());
        }
        let expected = expected.map_or("more than memory can hold".to_owned(), |n| n.to_string());
        let factors = factors.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" x ");
        Err(Error::column(column, format!("has {found} values, expected {expected} ({factors})")))
    };
    let max_experts = parts.shape.max_experts();
    let width = |column, ids: IdColumn<'_>, narrow| match (ids, narrow) {
        (IdColumn::U8(_), true) | (IdColumn::U16(_), false) => Ok(()),
        (IdColumn::U8(_), false) => Err(Error::column(column, "1 byte an id, needs 2")),
        (IdColumn::U16(_), true) => Err(Error::column(column, "2 bytes an id, needs 1")),
    };
    let row = parts.shape.row_len();
    width("ids", parts.ids.view(), ids_are_narrow(max_experts))?;
    expect("ids", parts.ids.view().len(), &[tokens, row])?;
    expect("positions", parts.positions.get().len(), &[tokens])?;
    expect("phases", parts.phases.get().len(), &[tokens])?;
    if let Some(steps) = &parts.steps {
        expect("steps", steps.get().len(), &[tokens])?;
    }
    if let Some(token_ids) = &parts.token_ids {
        expect("token_ids", token_ids.get().len(), &[tokens])?;
    }
    if let Some(weights) = &parts.weights {
        expect("weights", weights.view().len(), &[tokens, row])?;
    }
    if let Some(data) = &parts.predictions {
        let layers = parts.shape.layers().len();
        if data.lookaheads == 0 || data.width == 0 {
            return Err(Error::column("predictions", "no lookahead or a width of 0"));
        }
        width("predictions", data.ids.view(), predictions_are_narrow(max_experts))?;
        let extent = [data.lookaheads, tokens, layers, data.width];
        expect("predictions", data.ids.view().len(), &extent)?;
    }
    if let Some(data) = &parts.embeddings {
        if data.dim == 0 {
            return Err(Error::column("embeddings", "dimension 0"));
        }
        let extent = [parts.sequences.len(), data.dim];
        expect("embeddings", data.prompt_in.get().len(), &extent)?;
        expect("embeddings", data.prompt_out.get().len(), &extent)?;
    }
    Ok(())
}

/// Positions must rise in each sequence, steps must not fall.
fn rise(name: &'static str, column: &Column<u32>, sequences: &[Sequence]) -> Result<()> {
    let strict = name == "positions";
    let mut sequences = sequences.iter().map(|sequence| sequence.rows.end);
    // The sequence's first row to come, and the value before the next.
    let (mut end, mut before) = (0, 0u32);
    column.windows(1, |first, window| {
        let mut at = first;
        while at < first + window.len() {
            if at == end {
                end = sequences.next().unwrap_or(usize::MAX);
                before = window[at - first];
                at += 1;
            }
            let rows = &window[at - first..end.min(first + window.len()) - first];
            for (offset, &value) in rows.iter().enumerate() {
                if value < before || (strict && value == before) {
                    return Err(Error::Token {
                        column: name,
                        token: at + offset,
                        layer: None,
                        problem: format!(
                            "{} {value} follows {before} in its sequence",
                            name.trim_end_matches('s')
                        ),
                    });
                }
                before = value;
            }
            at += rows.len();
        }
        Ok(())
    })
}

fn phases(first: usize, column: &[u8]) -> Result<()> {
    // The maximum first: it takes whole vectors at a time.
    if column.iter().fold(0, |max, &phase| max.max(phase)) <= 2 {
        return Ok(());
    }
    let token = column.iter().position(|&phase| phase > 2).unwrap_or(0);
    Err(Error::Token {
        column: "phases",
        token: first + token,
        layer: None,
        problem: format!("phase {}; 0 prefill, 1 decode, 2 verify are possible", column[token]),
    })
}

/// Exponent bits of half precision: all set in infinities and NaNs.
const F16_SPECIAL: u16 = 0x7c00;
/// The same of bfloat16.
const BF16_SPECIAL: u16 = 0x7f80;

/// Weights must be finite and not negative (-0 passes).
fn weights(shape: &Shape, start: usize, column: WeightColumn<'_>) -> Result<()> {
    let bad_bits = |bits: u16, special: u16| bits & special == special || bits > 0x8000;
    let at = match column {
        WeightColumn::U8(_) => None,
        WeightColumn::F16(w) => first(w, move |&bits| bad_bits(bits, F16_SPECIAL)),
        WeightColumn::Bf16(w) => first(w, move |&bits| bad_bits(bits, BF16_SPECIAL)),
        WeightColumn::F32(w) => first(w, |&weight| !(0.0..f32::INFINITY).contains(&weight)),
    };
    let Some(at) = at else { return Ok(()) };
    let (token, rank) = ((start + at) / shape.row_len(), (start + at) % shape.row_len());
    Err(Error::Token {
        column: "weights",
        token,
        layer: Some(rows::layer_of(shape, rank)),
        problem: format!("weight {} is not a finite number of 0 or more", column.get(at)),
    })
}

/// The lowest index whose value is bad. Chunks are counted without a branch, then searched.
fn first<T: Sync>(values: &[T], bad: impl Fn(&T) -> bool + Sync) -> Option<usize> {
    values.par_chunks(CHUNK).enumerate().find_map_first(|(chunk, values)| {
        let any = values.iter().fold(false, |any, value| any | bad(value));
        any.then(|| values.iter().position(&bad).map(|at| chunk * CHUNK + at)).flatten()
    })
}
