//! Cells into rows: which cells are one token, and where a forward pass ends.
//!
//! Writers go token by token, or layer by layer through a pass, or layer by layer through the whole
//! file; some number tokens in the sequence, some in the pass, some not at all. A pass ends where a
//! cell comes that the pass has already, where the layer falls back for another token, and where
//! the recorded step is another.

use super::grid::{Cell, Fault, Grid, NONE, Open, fault};
use super::met::{Met, Sequences};
use super::record::Place;
use super::store::{Head, NO_PHASE, NO_TOKEN, Slot, Store};
use crate::shape::MAX_LAYERS;

/// Rows of one layer after which no other layer is waited for.
const ONE_LAYER: usize = 1 << 19;
/// The pass that is being read.
pub(super) struct Passes {
    grid: Grid,
    step: Option<i64>,
    pass: u32,
    /// One layer alone has come for so long that rows are given on as they come.
    one_layer: bool,
    /// Whether cells have no number, so that the n-th cell of a layer is token n.
    unnumbered: bool,
    /// The file is one pass, whose cells come in any order and are sorted by their numbers.
    any_order: bool,
    sequences: Sequences,
    pub(super) met: Met,
    row: RowBuffer,
}

/// A row on its way to the store.
#[derive(Default)]
struct RowBuffer {
    has: Vec<u16>,
    ids: Vec<u16>,
    weights: Vec<f32>,
}

impl Passes {
    /// For a file whose first sequence has this number in the store.
    pub(super) fn new(next_sequence: u32, pass: u32) -> Self {
        Self {
            grid: Grid::default(),
            step: None,
            pass,
            one_layer: false,
            unnumbered: false,
            any_order: false,
            sequences: Sequences::new(next_sequence),
            met: Met::default(),
            row: RowBuffer::default(),
        }
    }

    /// Takes the file as one pass whose cells come in any order.
    pub(super) fn in_any_order(self) -> Self {
        Self { any_order: true, ..self }
    }

    /// The number that the next sequence has in the store.
    pub(super) fn next_sequence(&self) -> u32 {
        self.sequences.next
    }

    /// Passes so far.
    pub(super) fn pass(&self) -> u32 {
        self.pass
    }

    /// The slot of a layer, new where it was never seen.
    fn slot(&mut self, store: &mut Store, layer: u32, top_k: usize) -> Result<u16, Fault> {
        let guess = self.grid.last.map_or(0, |(slot, _)| usize::from(slot));
        for at in [guess, guess + 1, 0] {
            if store.slots.get(at).is_some_and(|slot| slot.layer == layer) {
                return self.fits(store, at, top_k);
            }
        }
        if let Some(at) = store.slots.iter().position(|slot| slot.layer == layer) {
            return self.fits(store, at, top_k);
        }
        if store.slots.len() >= MAX_LAYERS {
            return fault(format!("over {MAX_LAYERS} layers"));
        }
        store.slots.push(Slot { layer, top_k: top_k as u32 });
        self.fits(store, store.slots.len() - 1, top_k)
    }

    fn fits(&mut self, store: &Store, at: usize, top_k: usize) -> Result<u16, Fault> {
        let Slot { layer, top_k: before } = store.slots[at];
        if before as usize != top_k {
            return fault(format!("{top_k} experts in layer {layer}, {before} before it"));
        }
        self.grid.with_slot(at);
        Ok(at as u16)
    }

    /// Takes in one cell.
    pub(super) fn add(&mut self, store: &mut Store, cell: Cell<'_>) -> Result<(), Fault> {
        let slot = self.slot(store, cell.layer, cell.ids.len())?;
        let sequence = cell.place.sequence.unwrap_or(NONE);
        let other_step = self.step.is_some() && cell.place.step != self.step;
        if other_step && !self.grid.rows.is_empty() {
            self.end(store)?;
        }
        if other_step {
            self.pass = self.pass.saturating_add(1);
        }
        self.step = cell.place.step;
        self.met.steps |= cell.place.step.is_some();
        self.met.no_phase |= cell.place.phase.is_none();
        let token = match cell.place.token {
            Some(token) => {
                self.met.numbered = true;
                self.met.positions |= cell.place.is_position;
                token
            }
            None if self.any_order => return fault("a token without a number".to_owned()),
            None => self.unnumbered(store, slot, sequence)?,
        };
        let mut row = self.grid.find(sequence, token);
        if self.any_order {
            let there = row.map_or(NONE, |row| self.grid.cell(slot, row));
            if there != NONE {
                return self.copy(cell, there);
            }
            let row = match row {
                Some(row) => row,
                None => self.open(store, cell.place, sequence, token)?,
            };
            return self.grid.put(slot, row, cell);
        }
        if cell.place.token.is_some()
            && let Some((last_slot, last_row)) = self.grid.last
        {
            let falls = store.slots[usize::from(last_slot)].layer > cell.layer;
            match row.map(|row| (row, self.grid.cell(slot, row))) {
                Some((at, there)) if there != NONE => {
                    let again = slot == self.grid.first.0
                        && (falls
                            || at < last_row
                            || (self.grid.rows.len() == 1 && !cell.place.is_position));
                    if !again || (cell.place.step.is_some() && !falls) {
                        return self.copy(cell, there);
                    }
                    self.end(store)?;
                    row = None;
                }
                None if falls => self.end(store)?,
                _ => {}
            }
        }
        let row = match row {
            Some(row) => row,
            None => self.open(store, cell.place, sequence, token)?,
        };
        self.grid.put(slot, row, cell)
    }

    /// The number of a token that has none: its place among the cells of the layer in this pass.
    fn unnumbered(&mut self, store: &mut Store, slot: u16, sequence: u32) -> Result<i64, Fault> {
        self.unnumbered = true;
        if let Some((last_slot, _)) = self.grid.last
            && store.slots[usize::from(last_slot)].layer > store.slots[usize::from(slot)].layer
        {
            self.end(store)?;
        }
        Ok(self.grid.next_token(slot, sequence))
    }

    /// A cell that is there already: a copy where it is alike.
    fn copy(&mut self, cell: Cell<'_>, there: u32) -> Result<(), Fault> {
        let (before, _) = self.grid.at(there, cell.ids.len());
        if before != cell.ids {
            let token = cell.place.token.unwrap_or(0);
            return fault(format!(
                "token {token} has layer {} twice, with experts {before:?} and {:?}: they \
                 contradict each other. If several runs or requests stand in this file, a column \
                 for the request or the step tells them apart (`ImportOptions::columns`)",
                cell.layer, cell.ids
            ));
        }
        self.met.copies += 1;
        Ok(())
    }

    fn open(
        &mut self,
        store: &mut Store,
        place: Place,
        sequence: u32,
        token: i64,
    ) -> Result<u32, Fault> {
        let one = store.slots.len() == 1;
        if self.grid.rows.len() >= ONE_LAYER && one && !self.any_order {
            self.one_layer = true;
            self.end(store)?;
        }
        Ok(self.grid.open(place, sequence, token))
    }

    /// Whether a line of several tokens of a layer is one that came before, alike.
    pub(super) fn has_list(
        &self,
        store: &Store,
        sequence: Option<u32>,
        layer: u32,
        ids: &[u16],
        top_k: usize,
    ) -> bool {
        let sequence = sequence.unwrap_or(NONE);
        let slot = store.slots.iter().position(|slot| slot.layer == layer);
        slot.is_some_and(|slot| self.grid.has_list(slot, sequence, ids, top_k))
    }

    /// Counts a line that came twice.
    pub(super) fn copied(&mut self, cells: u64) {
        self.met.copies += cells;
    }

    /// Ends the pass: its rows go to the store, in the order of sequences and tokens.
    pub(super) fn end(&mut self, store: &mut Store) -> Result<(), Fault> {
        if self.grid.rows.is_empty() {
            return Ok(());
        }
        self.met.batches |= self.grid.rows.len() > 1 && !self.any_order;
        let order = match self.unnumbered {
            true => (0..self.grid.rows.len() as u32).collect(),
            false => self.grid.by_sequence(),
        };
        for row in order {
            self.give(store, row)?;
        }
        self.grid.clear();
        // Rows of one layer that are given on early are of one pass still.
        let goes_on = std::mem::take(&mut self.one_layer) || self.step.is_some();
        // What steps are is told by their column where there is one.
        if !goes_on {
            self.pass = self.pass.saturating_add(1);
        }
        Ok(())
    }

    fn give(&mut self, store: &mut Store, row: u32) -> Result<(), Fault> {
        let Open { place, sequence, token } = self.grid.rows[row as usize];
        let numbered = place.token.is_some();
        let falls = numbered && self.sequences.falls(sequence, token, &mut self.met);
        self.met.restarts |= (falls && !place.is_position) || token < 0;
        // Positions that begin again are another conversation.
        let stored = self.sequences.stored(sequence, falls && place.is_position);
        let RowBuffer { has, ids, weights } = &mut self.row;
        has.clear();
        ids.clear();
        weights.clear();
        for slot in 0..self.grid.slots() {
            let at = self.grid.cell(slot as u16, row);
            if at == NONE {
                continue;
            }
            let (cell_ids, cell_weights) = self.grid.at(at, store.slots[slot].top_k as usize);
            has.push(slot as u16);
            ids.extend_from_slice(cell_ids);
            weights.extend_from_slice(cell_weights);
        }
        if weights.contains(&f32::INFINITY) {
            weights.clear();
        }
        let head = Head {
            sequence: stored,
            step: self.pass,
            position: u32::try_from(token).unwrap_or(u32::MAX),
            token_id: place.token_id.and_then(|id| u32::try_from(id).ok()).unwrap_or(NO_TOKEN),
            phase: place.phase.map_or(NO_PHASE, |phase| phase as u32),
        };
        if !store.push(head, has, ids, weights)? {
            return fault("rows have ever other layers: this order cannot be followed".to_owned());
        }
        Ok(())
    }
}
