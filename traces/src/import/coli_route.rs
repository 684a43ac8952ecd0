//! colibri's `ROUTE_TRACE`: `call row layer id:gate id:gate ...`, gates best first.
//!
//! `call` grows with every layer and is no token: `row` is the token within a call, and a pass over
//! the layers ends where the layer falls back. The head that predicts further tokens writes a layer
//! of its own now and then, which is left out.

use std::collections::BTreeMap;

use super::batch::{Batch, Token};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line, utf8};
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "coli-route",
    description: "colibri's ROUTE_TRACE: call row layer id:gate id:gate ...",
    columns: &["ids", "positions", "steps", "weights"],
    extensions: &["txt", "log", "trace"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(Cell::parse(sniff.first_line(), &mut Vec::new(), &mut Vec::new()).is_some())
}

/// A line, but for its experts.
#[derive(Clone, Copy)]
struct Cell {
    call: u64,
    row: u32,
    layer: u32,
}

impl Cell {
    /// Reads a line; its experts and their weights are appended.
    fn parse(line: &str, ids: &mut Vec<u16>, weights: &mut Vec<f32>) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let call = fields.next()?.parse().ok()?;
        let row = fields.next()?.parse().ok()?;
        let layer = fields.next()?.parse().ok()?;
        for field in fields {
            let (id, weight) = field.split_once(':')?;
            ids.push(id.parse().ok()?);
            weights.push(weight.parse().ok()?);
        }
        (!ids.is_empty()).then_some(Self { call, row, layer })
    }
}

/// Visits every line that is no comment. The last one may be cut, where the engine was stopped.
fn cells(
    input: &Input<'_>,
    mut visit: impl FnMut(u64, Cell, &[u16], &[f32]) -> Result<()>,
) -> Result<(serde_json::Value, bool)> {
    let (mut ids, mut weights, mut faulty) = (Vec::new(), Vec::new(), None);
    let source = each_line(input, |number, text| {
        if let Some(fault) = faulty.take() {
            return Err(fault);
        }
        if text.trim_ascii_start().starts_with(b"#") {
            return Ok(());
        }
        ids.clear();
        weights.clear();
        let cell = utf8(input, number, text).ok();
        let Some(cell) = cell.and_then(|text| Cell::parse(text, &mut ids, &mut weights)) else {
            let start = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
            let problem = format!("{start:?} is not call row layer id:gate id:gate ...");
            faulty = Some(at_line(input, number, problem));
            return Ok(());
        };
        visit(number, cell, &ids, &weights)
    })?;
    Ok((source, faulty.is_some()))
}

/// The layer of the head that predicts further tokens: the last, if it ran for fewer tokens than
/// the others.
fn head(input: &Input<'_>) -> Result<Option<(u32, u64)>> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    cells(input, |number, cell, _, _| {
        *counts.entry(cell.layer).or_default() += 1;
        if counts.len() > 1 << 12 {
            return Err(at_line(input, number, "over 4096 layers"));
        }
        Ok(())
    })?;
    let Some((&last, &count)) = counts.last_key_value() else { return Ok(None) };
    let usual = counts.values().copied().max().unwrap_or(0);
    // A run that was stopped lacks a cell or two of its last pass.
    Ok((counts.len() > 1 && count < usual - usual / 8).then_some((last, count)))
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let head = head(input)?;
    let mut rows = Rows::new(input, into);
    rows.sequence(None)?;
    let mut batch = Batch::default();
    let (mut step, mut position) = (0u32, 0u32);
    // Calls of one layer that follow each other have different tokens.
    let (mut call, mut base, mut next) = (0u64, 0i64, 0i64);
    let mut emit = |batch: &mut Batch, rows: &mut Rows<'_, '_, '_>| {
        batch.emit(input, rows, |_, rows| {
            rows.step(step);
            position += 1;
            Ok(Token { position: position - 1, phase: Phase::Decode })
        })?;
        step += 1;
        Ok(())
    };
    let (source, cut) = cells(input, |number, cell, ids, weights| {
        if head.is_some_and(|(layer, _)| layer == cell.layer) {
            return Ok(());
        }
        if batch.ends_before(cell.layer) {
            emit(&mut batch, &mut rows)?;
        }
        if batch.last_layer() != Some(cell.layer) {
            (base, next) = (0, 0);
        } else if cell.call != call {
            base = next;
        }
        call = cell.call;
        let token = base + i64::from(cell.row);
        next = next.max(token + 1);
        batch.add(|problem| at_line(input, number, problem), token, cell.layer, ids, weights)
    })?;
    emit(&mut batch, &mut rows)?;
    batch.note(&mut rows);
    rows.flush()?;
    if let Some((layer, count)) = head {
        rows.collector().note(format!(
            "layer {layer} is left out: with {count} rows it ran for fewer tokens than the others \
             (a head that predicts further tokens)"
        ));
    }
    if cut {
        rows.collector().note("the last line is left out: it is cut");
    }
    rows.collector().read(source);
    Ok(())
}
