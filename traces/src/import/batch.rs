//! Cells of one forward pass, in whatever order an engine wrote them, turned into rows.
//!
//! Engines that log from inside a layer write layer 0 of all tokens, then layer 1 of all tokens.
//! llama.cpp computes the last layer only for tokens whose output it needs, so prompt tokens lack
//! it: a token without all layers cannot be a row, and is left out and counted.

use super::input::Input;
use super::layers::Numbering;
use super::lines::Rows;
use crate::error::{Error, Result};
use crate::sequence::Phase;

/// Cells that one pass may have: 40,000 prompt tokens of 48 layers.
const MAX_CELLS: usize = 1 << 21;
/// Ids that one pass may have.
const MAX_IDS: usize = 1 << 24;

/// What a token is, besides its ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) position: u32,
    pub(super) phase: Phase,
}

/// The cells of a pass.
#[derive(Default)]
pub(super) struct Batch {
    tokens: Vec<i32>,
    layers: Vec<u32>,
    ids: Vec<u16>,
    weights: Vec<f32>,
    top_k: usize,
    /// Tokens that were left out, over all passes.
    incomplete: u64,
    row: Vec<u16>,
    row_weights: Vec<f32>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether a cell of this layer begins another pass: layers only rise within one.
    pub(super) fn ends_before(&self, layer: u32) -> bool {
        self.layers.last().is_some_and(|&last| layer < last)
    }

    /// The layer of the last cell.
    pub(super) fn last_layer(&self) -> Option<u32> {
        self.layers.last().copied()
    }

    /// The least and largest token.
    pub(super) fn tokens(&self) -> Option<(i32, i32)> {
        Some((*self.tokens.iter().min()?, *self.tokens.iter().max()?))
    }

    /// Adds the ids of a token in a layer; `weights` is empty where there are none.
    pub(super) fn add(
        &mut self,
        fault: impl Fn(String) -> Error,
        token: i64,
        layer: u32,
        ids: &[u16],
        weights: &[f32],
    ) -> Result<()> {
        if self.top_k == 0 {
            self.top_k = ids.len();
        }
        if ids.len() != self.top_k || ids.is_empty() {
            let (found, before) = (ids.len(), self.top_k);
            return Err(fault(format!("{found} experts in layer {layer}, {before} before it")));
        }
        if !weights.is_empty() && weights.len() != ids.len() {
            let (found, all) = (weights.len(), ids.len());
            return Err(fault(format!("{found} weights for {all} experts in layer {layer}")));
        }
        if self.tokens.len() >= MAX_CELLS || self.ids.len() + ids.len() > MAX_IDS {
            return Err(fault(format!(
                "over {MAX_CELLS} cells without a new pass over the layers: the order of this \
                 file cannot be followed"
            )));
        }
        let token = i32::try_from(token).map_err(|_| fault(format!("token {token}")))?;
        self.tokens.push(token);
        self.layers.push(layer);
        self.ids.extend_from_slice(ids);
        self.weights.extend_from_slice(weights);
        Ok(())
    }

    /// Turns the cells into rows, in the order of their tokens, and empties the batch. `token`
    /// says what each is.
    pub(super) fn emit(
        &mut self,
        input: &Input<'_>,
        rows: &mut Rows<'_, '_, '_>,
        mut token: impl FnMut(i32, &mut Rows<'_, '_, '_>) -> Result<Token>,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut order: Vec<u32> = (0..self.tokens.len() as u32).collect();
        let key = |&cell: &u32| (self.tokens[cell as usize], self.layers[cell as usize]);
        order.sort_by_key(key);
        if let Some(pair) = order.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            let (token, layer) = key(&pair[0]);
            return Err(input.error(format!("token {token}"), format!("has layer {layer} twice")));
        }
        let (file, kept) = self.layers(input, rows)?;
        let weighted = self.weights.len() == self.ids.len();
        if !weighted && !self.weights.is_empty() {
            rows.collector().no_weights("not all experts have them");
        }
        let k = self.top_k;
        for cells in order.chunk_by(|a, b| self.tokens[*a as usize] == self.tokens[*b as usize]) {
            let index = self.tokens[cells[0] as usize];
            self.row.clear();
            self.row.resize(file.len() * k, 0);
            self.row_weights.clear();
            self.row_weights.resize(file.len() * k, 0.0);
            let mut there = 0;
            for &cell in cells {
                let layer = self.layers[cell as usize];
                let Ok(place) = file.binary_search(&layer) else {
                    let problem = format!("has layer {layer}, which the passes before it lack");
                    return Err(input.error(format!("token {index}"), problem));
                };
                let span = cell as usize * k..(cell as usize + 1) * k;
                self.row[place * k..(place + 1) * k].copy_from_slice(&self.ids[span.clone()]);
                if weighted {
                    self.row_weights[place * k..(place + 1) * k]
                        .copy_from_slice(&self.weights[span]);
                }
                there += usize::from(kept[place]);
            }
            let Token { position, phase } = token(index, rows)?;
            if there < kept.iter().filter(|&&kept| kept).count() {
                self.incomplete += 1;
                continue;
            }
            rows.push(&self.row, position, phase)?;
            if weighted {
                rows.weights(&self.row_weights);
            }
        }
        self.tokens.clear();
        self.layers.clear();
        self.ids.clear();
        self.weights.clear();
        Ok(())
    }

    /// The file's layers, as the first pass has them, and which of them the trace keeps.
    fn layers(
        &self,
        input: &Input<'_>,
        rows: &mut Rows<'_, '_, '_>,
    ) -> Result<(Vec<u32>, Vec<bool>)> {
        let k = self.top_k as u32;
        let numbers = match rows.collector().known_layers() {
            Some(layers) => layers.file.iter().map(|layer| layer.0).collect(),
            None => {
                let mut numbers = self.layers.clone();
                numbers.sort_unstable();
                numbers.dedup();
                numbers
            }
        };
        let count = numbers.len();
        let layers =
            rows.collector().layers(input, Numbering::Numbered(&numbers), &vec![k; count])?;
        let kept = numbers.iter().map(|&number| layers.keeps(number)).collect();
        Ok((numbers, kept))
    }

    /// Says what was left out, once all passes were emitted.
    pub(super) fn note(&self, rows: &mut Rows<'_, '_, '_>) {
        if self.incomplete > 0 {
            rows.collector().note(format!(
                "{} tokens are left out: the engine did not compute all layers for them (the last \
                 layer of a prompt, for example); `ImportOptions::skip_layers` keeps them without that layer",
                self.incomplete
            ));
        }
    }
}
