//! Parquet, one row for each token and layer, tokens in order: `seq_id`, `position`, `layer`,
//! `experts` (a list, best first), and where recorded `is_decode` or `phase`, `token_id`, `step`,
//! `weights`. Reading it needs the cargo feature `parquet`.

use super::collect::Collector;
use super::input::Input;
use super::{Format, FormatInfo, Importer};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "parquet",
    description: "Parquet, one row a token and layer: seq_id, position, token_id, is_decode, \
                  layer, experts, weights (builds with the feature parquet)",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    extensions: &["parquet"],
    format: Format::Parquet,
    importer: Importer::Each(import),
};

#[cfg(not(feature = "parquet"))]
fn import(input: &Input<'_>, _: &mut Collector<'_>) -> Result<()> {
    Err(input.error("file", super::NO_PARQUET))
}

#[cfg(feature = "parquet")]
fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    rows::import(input, into)?;
    into.read(input.source()?);
    Ok(())
}

#[cfg(feature = "parquet")]
mod rows {
    use super::{Collector, Input, Result};
    use crate::import::layers::Numbering;
    use crate::import::lines::Rows;
    use crate::import::parquet_rows::{Table, ids, number, weights};
    use crate::trace::Phase;

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
        let mut table = Table::open(input, &["seq_id", "position", "layer", "experts"])?;
        let mut rows = Rows::new(input, into);
        let mut token = Token::default();
        let mut layout: Vec<(u32, u32)> = Vec::new();
        let mut sequence = None;
        let mut row = 0u64;
        while let Some(fields) = table.next()? {
            let place = format!("row {row}");
            row += 1;
            let mut found = Token::default();
            let (mut layer, mut count) = (0, 0);
            for (name, field) in fields.get_column_iter() {
                let int = || number(input, &place, name, field);
                match name.as_str() {
                    "seq_id" => found.sequence = int()?,
                    "position" => found.position = int()?,
                    "layer" => layer = int()?,
                    "token_id" => found.token_id = Some(int()?),
                    "step" => found.step = Some(int()?),
                    "phase" => found.phase = Phase::from_u8(int()?.min(255) as u8),
                    "is_decode" => {
                        let phase = if int()? == 0 { Phase::Prefill } else { Phase::Decode };
                        found.phase.get_or_insert(phase);
                    }
                    "experts" => count = ids(input, &place, field, &mut found.ids)?,
                    "weights" => weights(input, &place, field, &mut found.weights)?,
                    _ => {}
                }
            }
            let same = (token.sequence, token.position) == (found.sequence, found.position);
            if !token.layers.is_empty() && !same {
                end(input, &mut rows, &mut token, &mut layout, &mut sequence)?;
            }
            if token.layers.last().is_some_and(|last| last.0 >= layer) {
                return Err(input.error(place, format!("layer {layer} does not rise")));
            }
            token.layers.push((layer, count));
            token.ids.append(&mut found.ids);
            token.weights.append(&mut found.weights);
            token = Token {
                layers: std::mem::take(&mut token.layers),
                ids: std::mem::take(&mut token.ids),
                weights: std::mem::take(&mut token.weights),
                ..found
            };
            if token.ids.len() > 1 << 20 {
                return Err(input.error("rows", "over a million experts of one token"));
            }
        }
        if !token.layers.is_empty() {
            end(input, &mut rows, &mut token, &mut layout, &mut sequence)?;
        }
        rows.flush()
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
            let problem =
                format!("has {found} layers, others than the {before} of the first token");
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
}
