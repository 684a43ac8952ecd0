//! Cells into rows: which cells are one token, and where a forward pass ends.
//!
//! Writers go token by token, or layer by layer through a pass, or layer by layer through the whole
//! file; some number tokens in the sequence, some in the pass, some not at all. A pass ends where a
//! cell comes that the pass has already, where the layer falls back for another token, and where
//! the recorded step is another.

use std::collections::HashMap;

use super::record::Place;
use super::store::{Head, NO_PHASE, NO_TOKEN, Slot, Store};
use crate::error::Error;
use crate::shape::MAX_LAYERS;

/// Cells of a pass, at most: 40,000 prompt tokens of 48 layers.
const MAX_CELLS: usize = 1 << 21;
/// Ids of a pass, at most.
const MAX_IDS: usize = 1 << 24;
/// Rows of one layer after which no other layer is waited for.
const ONE_LAYER: usize = 1 << 19;
/// A cell that is not there.
const NONE: u32 = u32::MAX;

/// Why cells are no rows.
pub(super) enum Fault {
    /// What is wrong with the cell.
    Cell(String),
    /// The store cannot be written.
    Store(Error),
}

impl From<Error> for Fault {
    fn from(e: Error) -> Self {
        Self::Store(e)
    }
}

fn fault<T>(problem: String) -> Result<T, Fault> {
    Err(Fault::Cell(problem))
}

/// A row of the pass.
#[derive(Debug, Clone, Copy)]
struct Open {
    place: Place,
    sequence: u32,
    token: i64,
}

/// What was met on the way, for notes and for what the numbers of tokens mean.
#[derive(Debug, Default, Clone)]
pub(super) struct Met {
    /// Cells that came twice, alike.
    pub(super) copies: u64,
    /// Numbers of tokens begin again with every pass, by sequence.
    pub(super) restarts: bool,
    /// A pass had several tokens.
    pub(super) batches: bool,
    /// Steps were recorded.
    pub(super) steps: bool,
    /// Tokens had numbers.
    pub(super) numbered: bool,
    /// Numbers were positions.
    pub(super) positions: bool,
    pub(super) no_phase: bool,
    /// Ids behind the k of a row that were -1.
    pub(super) padded: bool,
    /// A number was not above the one before it of the same sequence.
    pub(super) falls: bool,
    /// A sequence has more rows than numbers from its lowest to its highest.
    pub(super) crowded: bool,
    /// A word for a phase that is not known.
    pub(super) other_phase: Option<String>,
}

/// Numbers of the tokens of a sequence, over all passes.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    last: i64,
    least: i64,
    most: i64,
    rows: u64,
}

impl Numbers {
    fn of(token: i64) -> Self {
        Self { last: token, least: token, most: token, rows: 1 }
    }

    /// Takes in the next number; true where it is not above the last.
    fn next(&mut self, token: i64) -> bool {
        let falls = token <= self.last;
        self.last = token;
        self.least = self.least.min(token);
        self.most = self.most.max(token);
        self.rows += 1;
        falls
    }

    /// More rows than there are numbers: some came again.
    fn crowded(&self) -> bool {
        u128::from(self.rows) > (i128::from(self.most) - i128::from(self.least)) as u128 + 1
    }
}

/// The pass that is being read.
pub(super) struct Passes {
    rows: Vec<Open>,
    by_token: HashMap<(u32, i64), u32>,
    /// For each slot the first id of each row, or [`NONE`].
    cells: Vec<Vec<u32>>,
    ids: Vec<u16>,
    weights: Vec<f32>,
    count: usize,
    /// Slot and row of the first and the last cell.
    first: (u16, u32),
    last: Option<(u16, u32)>,
    step: Option<i64>,
    pass: u32,
    /// One layer alone has come for so long that rows are given on as they come.
    one_layer: bool,
    /// Whether cells have no number, so that the n-th cell of a layer is token n.
    unnumbered: bool,
    numbers: HashMap<u32, Numbers>,
    /// The file is one pass, whose cells come in any order and are sorted by their numbers.
    any_order: bool,
    /// The number that a sequence has in the store: another where positions begin again.
    stored: HashMap<u32, u32>,
    pub(super) next_sequence: u32,
    pub(super) met: Met,
    /// Buffers of one row.
    has: Vec<u16>,
    row_ids: Vec<u16>,
    row_weights: Vec<f32>,
}

/// The experts of a token in a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    pub(super) place: Place,
    pub(super) layer: u32,
    pub(super) ids: &'a [u16],
    pub(super) weights: &'a [f32],
}

impl Passes {
    /// For a file whose first sequence has this number in the store.
    pub(super) fn new(next_sequence: u32, pass: u32) -> Self {
        Self {
            rows: Vec::new(),
            by_token: HashMap::new(),
            cells: Vec::new(),
            ids: Vec::new(),
            weights: Vec::new(),
            count: 0,
            first: (0, 0),
            last: None,
            step: None,
            pass,
            one_layer: false,
            unnumbered: false,
            numbers: HashMap::new(),
            any_order: false,
            stored: HashMap::new(),
            next_sequence,
            met: Met::default(),
            has: Vec::new(),
            row_ids: Vec::new(),
            row_weights: Vec::new(),
        }
    }

    /// Takes the file as one pass whose cells come in any order.
    pub(super) fn in_any_order(self) -> Self {
        Self { any_order: true, ..self }
    }

    /// Passes so far.
    pub(super) fn pass(&self) -> u32 {
        self.pass
    }

    /// The slot of a layer, new where it was never seen.
    fn slot(&mut self, store: &mut Store, layer: u32, top_k: usize) -> Result<u16, Fault> {
        let guess = self.last.map_or(0, |(slot, _)| usize::from(slot));
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
        if self.cells.len() <= at {
            self.cells.resize_with(at + 1, Vec::new);
        }
        Ok(at as u16)
    }

    fn cell(&self, slot: u16, row: u32) -> u32 {
        let cells = &self.cells[usize::from(slot)];
        cells.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The row of a token in this pass.
    fn find(&self, sequence: u32, token: i64) -> Option<u32> {
        if let Some((_, row)) = self.last {
            for near in [row, row + 1] {
                let open = self.rows.get(near as usize);
                if open.is_some_and(|open| open.sequence == sequence && open.token == token) {
                    return Some(near);
                }
            }
        }
        self.by_token.get(&(sequence, token)).copied()
    }

    /// Takes in one cell.
    pub(super) fn add(&mut self, store: &mut Store, cell: Cell<'_>) -> Result<(), Fault> {
        let slot = self.slot(store, cell.layer, cell.ids.len())?;
        let sequence = cell.place.sequence.unwrap_or(NONE);
        let other_step = self.step.is_some() && cell.place.step != self.step;
        if other_step && !self.rows.is_empty() {
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
        let mut row = self.find(sequence, token);
        if self.any_order {
            let there = row.map_or(NONE, |row| self.cell(slot, row));
            if there != NONE {
                return self.copy(cell, there);
            }
            let row = match row {
                Some(row) => row,
                None => self.open(store, cell.place, sequence, token)?,
            };
            return self.put(slot, row, cell);
        }
        if cell.place.token.is_some()
            && let Some((last_slot, last_row)) = self.last
        {
            let falls = store.slots[usize::from(last_slot)].layer > cell.layer;
            match row.map(|row| (row, self.cell(slot, row))) {
                Some((at, there)) if there != NONE => {
                    let again = slot == self.first.0
                        && (falls
                            || at < last_row
                            || (self.rows.len() == 1 && !cell.place.is_position));
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
        self.put(slot, row, cell)
    }

    /// The number of a token that has none: its place among the cells of the layer in this pass.
    fn unnumbered(&mut self, store: &mut Store, slot: u16, sequence: u32) -> Result<i64, Fault> {
        self.unnumbered = true;
        if let Some((last_slot, _)) = self.last
            && store.slots[usize::from(last_slot)].layer > store.slots[usize::from(slot)].layer
        {
            self.end(store)?;
        }
        let cells = &self.cells[usize::from(slot)];
        let taken = (0..cells.len())
            .rev()
            .find(|&row| cells[row] != NONE && self.rows[row].sequence == sequence);
        Ok(taken.map_or(0, |row| self.rows[row].token + 1))
    }

    /// A cell that is there already: a copy where it is alike.
    fn copy(&mut self, cell: Cell<'_>, there: u32) -> Result<(), Fault> {
        let before = &self.ids[there as usize..][..cell.ids.len()];
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
        if self.rows.len() >= ONE_LAYER && one && !self.any_order {
            self.one_layer = true;
            self.end(store)?;
        }
        let row = self.rows.len() as u32;
        self.rows.push(Open { place, sequence, token });
        self.by_token.insert((sequence, token), row);
        Ok(row)
    }

    fn put(&mut self, slot: u16, row: u32, cell: Cell<'_>) -> Result<(), Fault> {
        self.count += 1;
        if self.count > MAX_CELLS || self.ids.len() + cell.ids.len() > MAX_IDS {
            return fault(format!(
                "over {MAX_CELLS} cells without a new pass over the layers: the order of this \
                 file cannot be followed; sort it by token, or name a column of steps or requests"
            ));
        }
        if self.last.is_none() {
            self.first = (slot, row);
        }
        self.last = Some((slot, row));
        let cells = &mut self.cells[usize::from(slot)];
        if cells.len() <= row as usize {
            cells.resize(row as usize + 1, NONE);
        }
        cells[row as usize] = self.ids.len() as u32;
        self.ids.extend_from_slice(cell.ids);
        if cell.weights.len() == cell.ids.len() {
            self.weights.extend_from_slice(cell.weights);
        } else {
            // A row with such a cell is stored without weights.
            self.weights.extend(std::iter::repeat_n(f32::INFINITY, cell.ids.len()));
        }
        Ok(())
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
        let Some(cells) = slot.and_then(|slot| self.cells.get(slot)) else { return false };
        let mut there = cells
            .iter()
            .enumerate()
            .filter(|&(row, &at)| at != NONE && self.rows[row].sequence == sequence);
        let alike = ids.chunks_exact(top_k.max(1)).all(|ids| {
            there
                .next()
                .is_some_and(|(_, &at)| self.ids.get(at as usize..at as usize + top_k) == Some(ids))
        });
        alike && there.next().is_none()
    }

    /// Counts a line that came twice.
    pub(super) fn copied(&mut self, cells: u64) {
        self.met.copies += cells;
    }

    /// Ends the pass: its rows go to the store, in the order of sequences and tokens.
    pub(super) fn end(&mut self, store: &mut Store) -> Result<(), Fault> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.met.batches |= self.rows.len() > 1 && !self.any_order;
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        let in_order =
            self.rows.is_sorted_by_key(|open| (open.sequence, open.token)) || self.unnumbered;
        if !in_order {
            let mut appeared: HashMap<u32, u32> = HashMap::new();
            for open in &self.rows {
                let next = appeared.len() as u32;
                appeared.entry(open.sequence).or_insert(next);
            }
            order.sort_by_key(|&row| {
                let open = &self.rows[row as usize];
                (appeared[&open.sequence], open.token)
            });
        }
        for row in order {
            self.give(store, row)?;
        }
        self.rows.clear();
        self.by_token.clear();
        self.cells.iter_mut().for_each(Vec::clear);
        self.ids.clear();
        self.weights.clear();
        (self.count, self.last) = (0, None);
        // Rows of one layer that are given on early are of one pass still.
        let goes_on = std::mem::take(&mut self.one_layer) || self.step.is_some();
        // What steps are is told by their column where there is one.
        if !goes_on {
            self.pass = self.pass.saturating_add(1);
        }
        Ok(())
    }

    /// Whether a sequence has had this number, or a higher one, as its last.
    fn falls(&mut self, sequence: u32, token: i64) -> bool {
        let Some(numbers) = self.numbers.get_mut(&sequence) else {
            self.numbers.insert(sequence, Numbers::of(token));
            return false;
        };
        let falls = numbers.next(token);
        self.met.falls |= falls;
        self.met.crowded |= numbers.crowded();
        falls
    }

    fn give(&mut self, store: &mut Store, row: u32) -> Result<(), Fault> {
        let Open { place, sequence, token } = self.rows[row as usize];
        let numbered = place.token.is_some();
        let falls = numbered && self.falls(sequence, token);
        self.met.restarts |= (falls && !place.is_position) || token < 0;
        if !self.stored.contains_key(&sequence) || (falls && place.is_position) {
            // Positions that begin again are another conversation.
            self.stored.insert(sequence, self.next_sequence);
            self.next_sequence += 1;
        }
        self.has.clear();
        self.row_ids.clear();
        self.row_weights.clear();
        for slot in 0..self.cells.len() {
            let at = self.cell(slot as u16, row);
            if at == NONE {
                continue;
            }
            let span = at as usize..at as usize + store.slots[slot].top_k as usize;
            self.has.push(slot as u16);
            self.row_ids.extend_from_slice(&self.ids[span.clone()]);
            self.row_weights.extend_from_slice(&self.weights[span]);
        }
        if self.row_weights.contains(&f32::INFINITY) {
            self.row_weights.clear();
        }
        let head = Head {
            sequence: self.stored[&sequence],
            step: self.pass,
            position: u32::try_from(token).unwrap_or(u32::MAX),
            token_id: place.token_id.and_then(|id| u32::try_from(id).ok()).unwrap_or(NO_TOKEN),
            phase: place.phase.map_or(NO_PHASE, |phase| phase as u32),
        };
        if !store.push(head, &self.has, &self.row_ids, &self.row_weights)? {
            return fault("rows have ever other layers: this order cannot be followed".to_owned());
        }
        Ok(())
    }
}
