//! lattice-inference's routing trace: `{"layer_idx", "token_idx", "selected_ids", "gate_weights"}`
//! a line, one for each token and layer. Tokens are taken as decode tokens: the phase is not
//! recorded.

use serde::Deserialize;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line};
use super::llama_csv::Grid;
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "lattice",
    description: "lattice-inference: a line {\"layer_idx\",\"token_idx\",\"selected_ids\",\
                  \"gate_weights\"} for each token and layer",
    columns: &["ids", "positions", "phases", "weights"],
    extensions: &["jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Likely.when(sniff.has_keys(&["layer_idx", "selected_ids"]))
}

#[derive(Deserialize)]
struct Cell {
    layer_idx: u32,
    token_idx: i64,
    selected_ids: Vec<u16>,
    #[serde(default)]
    gate_weights: Vec<f32>,
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut grid = Grid::default();
    let source = each_line(input, |line, text| {
        let cell: Cell =
            serde_json::from_slice(text).map_err(|e| at_line(input, line, e.to_string()))?;
        let (token, layer) = (cell.token_idx, cell.layer_idx);
        let (ids, weights) = (&cell.selected_ids, &cell.gate_weights);
        grid.add(input, line, &mut rows, Phase::Decode, token, layer, ids, weights)
    })?;
    grid.finish(input, &mut rows)?;
    into.read(source);
    into.note("the phase is not recorded: all tokens are taken as decode tokens");
    Ok(())
}
