//! Cells of documents, in whatever order they were written, as rows of the trace.

use super::walk::{Cell, UNSAID, Walk};
use crate::error::Result;
use crate::import::batch::{Batch, Token};
use crate::import::collect::Collector;
use crate::import::input::Input;
use crate::import::lines::Rows;
use crate::sequence::Phase;

/// Cells that are turned into rows at a time: all layers are among them.
const BLOCK: usize = 1 << 16;

/// Cells on their way into rows.
pub(super) struct Cells<'a, 'b, 'c> {
    input: Input<'a>,
    rows: Rows<'a, 'b, 'c>,
    batch: Batch,
    /// What was read and is not written yet: documents of one token each make a sequence together.
    held: Walk,
    copies: u64,
    step: u32,
    documents: u64,
    any: bool,
}

impl<'a, 'b, 'c> Cells<'a, 'b, 'c> {
    pub(super) fn new(input: &Input<'a>, into: &'b mut Collector<'c>) -> Self {
        Self {
            input: *input,
            rows: Rows::new(input, into),
            batch: Batch::default(),
            held: Walk::default(),
            copies: 0,
            step: 0,
            documents: 0,
            any: false,
        }
    }

    /// Takes in one document: a sequence, several, or one token of many.
    pub(super) fn document(&mut self, walk: Walk) -> Result<()> {
        let into = self.rows.collector();
        into.stated.experts = into.stated.experts.max(walk.experts);
        into.stated.name = into.stated.name.take().or_else(|| walk.model.clone());
        let Some(first) = walk.cells.first() else { return Ok(()) };
        self.documents += 1;
        let token = first.token;
        let one = walk.cells.iter().all(|cell| cell.token == token);
        let several = !one || (token.is_none() && !no_tokens(&walk.cells));
        if several {
            self.write()?;
        }
        let shift = self.held.numbers.len() as u32;
        if self.held.numbers.len() + walk.numbers.len() > u32::MAX as usize {
            return Err(self.input.error("documents", "over 4 billion numbers"));
        }
        self.held.numbers.extend_from_slice(&walk.numbers);
        self.held.cells.extend(walk.cells.iter().map(|cell| Cell {
            ids: (cell.ids.0 + shift, cell.ids.1),
            weights: if cell.weights == UNSAID { UNSAID } else { cell.weights + shift },
            ..*cell
        }));
        if several {
            self.write()?;
        }
        Ok(())
    }

    /// Writes what is held, sequence by sequence.
    fn write(&mut self) -> Result<()> {
        let mut held = std::mem::take(&mut self.held);
        if held.cells.is_empty() {
            return Ok(());
        }
        count_tokens(&mut held.cells);
        // In the order of numbers: keys may be sorted as text.
        held.cells.sort_by_key(|cell| (cell.sequence, cell.step, cell.token, cell.layer));
        if let Some(cell) = held.cells.iter().find(|cell| cell.layer == UNSAID) {
            let token = cell.token.unwrap_or_default();
            let problem = "experts without a layer: name it layer, layer_idx or layer_<n>";
            return Err(self.input.error(format!("token {token}"), problem));
        }
        for sequence in held.cells.chunk_by(|a, b| a.sequence == b.sequence) {
            self.any = true;
            self.rows.sequence(None)?;
            let tokens = |a: &Cell, b: &Cell| (a.step, a.token) == (b.step, b.token);
            let mut block: Vec<(u32, Cell)> = Vec::new();
            for (index, token) in sequence.chunk_by(tokens).enumerate() {
                self.token(index as i64, token, &held.numbers)?;
                block.push((index as u32, token[0]));
                if block.len() * token.len() >= BLOCK {
                    self.emit(&mut block)?;
                }
            }
            self.emit(&mut block)?;
            self.step = self.step.saturating_add(1);
        }
        Ok(())
    }

    /// Adds the layers of one token.
    fn token(&mut self, index: i64, cells: &[Cell], numbers: &[f32]) -> Result<()> {
        let (mut ids, mut weights) = (Vec::new(), Vec::new());
        for same in cells.chunk_by(|a, b| a.layer == b.layer) {
            let layer = same[0].layer;
            let token = same[0].token.unwrap_or(index);
            let fault = |problem: String| {
                self.input.error(format!("token {token}, layer {layer}"), problem)
            };
            let list = |cell: &Cell| &numbers[cell.ids.0 as usize..][..cell.ids.1 as usize];
            // Entries of one expert each are a list together, others are copies.
            let parts = if same[0].single { same } else { &same[..1] };
            if let Some(other) =
                same[parts.len()..].iter().find(|cell| list(cell) != list(&same[0]))
            {
                let (before, now) = (list(&same[0]), list(other));
                return Err(fault(format!("comes twice, with experts {before:?} and {now:?}")));
            }
            self.copies += (same.len() - parts.len()) as u64;
            ids.clear();
            weights.clear();
            for cell in parts {
                for &id in list(cell) {
                    let whole = id.fract() == 0.0 && (0.0..=65_535.0).contains(&id);
                    if !whole {
                        return Err(fault(format!("{id} is no id of an expert (0 to 65535)")));
                    }
                    ids.push(id as u16);
                }
                if cell.weights != UNSAID {
                    weights.extend_from_slice(
                        &numbers[cell.weights as usize..][..cell.ids.1 as usize],
                    );
                }
            }
            if weights.len() != ids.len() {
                weights.clear();
            }
            self.batch.add(fault, index, layer, &ids, &weights)?;
        }
        Ok(())
    }

    /// Turns what was added into rows; `block` has each token's number and one of its cells.
    fn emit(&mut self, block: &mut Vec<(u32, Cell)>) -> Result<()> {
        let (input, step) = (self.input, self.step);
        let first = block.first().map_or(0, |token| token.0);
        self.batch.emit(&input, &mut self.rows, |index, rows| {
            let cell = block[(index as u32 - first) as usize].1;
            if cell.step != UNSAID {
                rows.step(step.saturating_add(cell.step));
            }
            let position = cell.token.unwrap_or(index.into());
            let position = u32::try_from(position).map_err(|_| {
                input.error(format!("token {position}"), "its number is no position")
            })?;
            let phase = if cell.phase == 0 { Phase::Prefill } else { Phase::Decode };
            Ok(Token { position, phase })
        })?;
        block.clear();
        Ok(())
    }

    /// Writes the rest and says what was left out.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.documents == 1 && no_tokens(&self.held.cells) {
            return Err(self.input.error("document", super::NO_TOKENS));
        }
        self.write()?;
        if self.any {
            self.batch.note(&mut self.rows);
            self.rows.flush()?;
        }
        if self.copies > 0 {
            let copies = self.copies;
            self.rows
                .collector()
                .note(format!("{copies} entries are left out: copies of the same token and layer"));
        }
        Ok(())
    }
}

/// Whether there is one list of experts for each layer, and nothing that says of which token.
pub(super) fn no_tokens(cells: &[Cell]) -> bool {
    let mut layers: Vec<u32> = cells.iter().map(|cell| cell.layer).collect();
    layers.sort_unstable();
    let once = layers.windows(2).all(|pair| pair[0] < pair[1]);
    let lists = cells.iter().all(|cell| cell.token.is_none() && !cell.single);
    !cells.is_empty() && once && lists && cells.iter().all(|cell| cell.layer != UNSAID)
}

/// Numbers tokens that have no number: one ends where the layer does not rise.
fn count_tokens(cells: &mut [Cell]) {
    let (mut token, mut before): (i64, Option<Cell>) = (0, None);
    for cell in cells.iter_mut().filter(|cell| cell.token.is_none()) {
        let next = before.is_some_and(|before| {
            (before.sequence, before.step) != (cell.sequence, cell.step)
                || cell.layer < before.layer
                || (cell.layer == before.layer && !cell.single)
        });
        token += i64::from(next);
        before = Some(*cell);
        cell.token = Some(token);
    }
}
