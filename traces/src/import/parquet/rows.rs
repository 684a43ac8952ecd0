//! Rows of a token and layer each, out of a table's columns.

use super::table::{Holds, Table, Wanted};
use crate::error::Result;
use crate::import::collect::Collector;
use crate::import::input::Input;
use crate::import::jsonl;
use crate::import::layers::Numbering;
use crate::import::lines::Rows;
use crate::sequence::Phase;

const COLUMNS: &[Wanted] = &[
    ("seq_id", Holds::Number, true),
    ("position", Holds::Number, true),
    ("layer", Holds::Number, true),
    ("experts", Holds::Ids, true),
    ("weights", Holds::Weights, false),
    ("token_id", Holds::Number, false),
    ("step", Holds::Number, false),
    ("phase", Holds::Number, false),
    ("is_decode", Holds::Number, false),
];

/// The rows of one token.
#[derive(Default)]
struct Token {
    sequence: u32,
    position: u32,
    phase: Option<Phase>,
    token_id: Option<u32>,
    step: Option<u32>,
    layers: Vec<(u32, u32)>,
    ids: Vec<u16>,
    weights: Vec<f32>,
}

pub(super) fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut table = Table::open(input, COLUMNS, 1)?;
    if let Some(header) = table.noted(crate::export::parquet::NOTE) {
        let stated = jsonl::stated(header.as_bytes(), into);
        stated.map_err(|problem| input.error("its note of hotset", problem))?;
    }
    let mut rows = Rows::new(input, into);
    let mut token = Token::default();
    let mut layout: Vec<(u32, u32)> = Vec::new();
    let mut sequence = None;
    let mut row = 0u64;
    while table.next()? {
        let number = |column| table.number(column).map(Option::unwrap_or_default);
        let (of, position, layer) = (number(0)?, number(1)?, number(2)?);
        if !token.layers.is_empty() && (token.sequence, token.position) != (of, position) {
            end(input, &mut rows, &mut token, &mut layout, &mut sequence)?;
        }
        if token.layers.last().is_some_and(|last| last.0 >= layer) {
            let problem = format!("layer {layer} does not rise");
            return Err(input.error(format!("row {row}"), problem));
        }
        let decode = table.number(8)?.map(|decode| u32::from(decode != 0));
        let phase = table.number(7)?.or(decode);
        (token.sequence, token.position) = (of, position);
        token.phase = phase.map(|number| phase_of(input, row, number)).transpose()?;
        (token.token_id, token.step) = (table.number(5)?, table.number(6)?);
        let count = table.ids(3, &mut token.ids)?;
        table.weights(4, count, &mut token.weights)?;
        token.layers.push((layer, count));
        if token.ids.len() > 1 << 20 {
            return Err(input.error("rows", "over a million experts of one token"));
        }
        row += 1;
    }
    if !token.layers.is_empty() {
        end(input, &mut rows, &mut token, &mut layout, &mut sequence)?;
    }
    rows.flush()
}

fn phase_of(input: &Input<'_>, row: u64, number: u32) -> Result<Phase> {
    u8::try_from(number).ok().and_then(Phase::from_u8).ok_or_else(|| {
        let problem = format!("phase {number}: 0 is prefill, 1 is decode");
        input.error(format!("row {row}"), problem)
    })
}

fn end(
    input: &Input<'_>,
    rows: &mut Rows<'_, '_, '_>,
    token: &mut Token,
    layout: &mut Vec<(u32, u32)>,
    sequence: &mut Option<u32>,
) -> Result<()> {
    let place = || format!("sequence {}, position {}", token.sequence, token.position);
    if layout.is_empty() {
        layout.clone_from(&token.layers);
        let numbers: Vec<u32> = layout.iter().map(|layer| layer.0).collect();
        let top_ks: Vec<u32> = layout.iter().map(|layer| layer.1).collect();
        rows.collector().layers(input, Numbering::Numbered(&numbers), &top_ks)?;
    }
    if *layout != token.layers {
        let (found, before) = (token.layers.len(), layout.len());
        let problem = format!("has {found} layers, others than the {before} of the first token");
        return Err(input.error(place(), problem));
    }
    if *sequence != Some(token.sequence) {
        *sequence = Some(token.sequence);
        rows.sequence(*sequence)?;
    }
    rows.push(&token.ids, token.position, token.phase.unwrap_or(Phase::Decode))?;
    if let Some(id) = token.token_id {
        rows.token_id(id);
    }
    if let Some(step) = token.step {
        rows.step(step);
    }
    rows.weights(&token.weights);
    *token = Token::default();
    Ok(())
}
