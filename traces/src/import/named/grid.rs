//! The cells of one forward pass: rows of tokens by slots of layers.

use std::collections::HashMap;

use super::record::Place;
use crate::error::Error;

/// Cells of a pass, at most: 40,000 prompt tokens of 48 layers.
const MAX_CELLS: usize = 1 << 21;
/// Ids of a pass, at most.
const MAX_IDS: usize = 1 << 24;
/// A cell that is not there, and the sequence of tokens that name none.
pub(super) const NONE: u32 = u32::MAX;

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

pub(super) fn fault<T>(problem: String) -> Result<T, Fault> {
    Err(Fault::Cell(problem))
}

/// The experts of a token in a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    pub(super) place: Place,
    pub(super) layer: u32,
    pub(super) ids: &'a [u16],
    pub(super) weights: &'a [f32],
}

/// A row of the pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) place: Place,
    pub(super) sequence: u32,
    pub(super) token: i64,
}

/// The cells so far.
#[derive(Default)]
pub(super) struct Grid {
    pub(super) rows: Vec<Open>,
    by_token: HashMap<(u32, i64), u32>,
    /// For each slot the first id of each row, or [`NONE`].
    cells: Vec<Vec<u32>>,
    ids: Vec<u16>,
    weights: Vec<f32>,
    count: usize,
    /// Slot and row of the first and the last cell.
    pub(super) first: (u16, u32),
    pub(super) last: Option<(u16, u32)>,
}

impl Grid {
    /// Slots that have had a cell in any pass.
    pub(super) fn slots(&self) -> usize {
        self.cells.len()
    }

    /// Makes room for a slot.
    pub(super) fn with_slot(&mut self, slot: usize) {
        if self.cells.len() <= slot {
            self.cells.resize_with(slot + 1, Vec::new);
        }
    }

    /// Where the ids of a cell begin, or [`NONE`].
    pub(super) fn cell(&self, slot: u16, row: u32) -> u32 {
        let cells = &self.cells[usize::from(slot)];
        cells.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The ids and weights of the cell that begins there.
    pub(super) fn at(&self, there: u32, top_k: usize) -> (&[u16], &[f32]) {
        let span = there as usize..there as usize + top_k;
        (&self.ids[span.clone()], &self.weights[span])
    }

    /// The row of a token in this pass.
    pub(super) fn find(&self, sequence: u32, token: i64) -> Option<u32> {
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

    /// The token behind the last one of a sequence that has a cell in this slot.
    pub(super) fn next_token(&self, slot: u16, sequence: u32) -> i64 {
        let cells = &self.cells[usize::from(slot)];
        let taken = (0..cells.len())
            .rev()
            .find(|&row| cells[row] != NONE && self.rows[row].sequence == sequence);
        taken.map_or(0, |row| self.rows[row].token + 1)
    }

    /// Begins the row of a token.
    pub(super) fn open(&mut self, place: Place, sequence: u32, token: i64) -> u32 {
        let row = self.rows.len() as u32;
        self.rows.push(Open { place, sequence, token });
        self.by_token.insert((sequence, token), row);
        row
    }

    /// Takes in a cell that is not there yet.
    pub(super) fn put(&mut self, slot: u16, row: u32, cell: Cell<'_>) -> Result<(), Fault> {
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

    /// Whether the cells of a sequence in a slot are these, `top_k` ids each.
    pub(super) fn has_list(&self, slot: usize, sequence: u32, ids: &[u16], top_k: usize) -> bool {
        let Some(cells) = self.cells.get(slot) else { return false };
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

    /// Rows by sequence, in the order in which sequences appeared, and by token.
    pub(super) fn by_sequence(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        if self.rows.is_sorted_by_key(|open| (open.sequence, open.token)) {
            return order;
        }
        let mut appeared: HashMap<u32, u32> = HashMap::new();
        for open in &self.rows {
            let next = appeared.len() as u32;
            appeared.entry(open.sequence).or_insert(next);
        }
        order.sort_by_key(|&row| {
            let open = &self.rows[row as usize];
            (appeared[&open.sequence], open.token)
        });
        order
    }

    /// Begins anew; slots stay.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.by_token.clear();
        self.cells.iter_mut().for_each(Vec::clear);
        self.ids.clear();
        self.weights.clear();
        (self.count, self.last) = (0, None);
    }
}
