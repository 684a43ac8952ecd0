//! Rows in the order in which they ran, kept outside of memory until all are known.
//!
//! Which layers a trace has, which sequences there are and whether they interleave is only known
//! at the end, so rows are written as they come, with the layers that they have, and read again.

use crate::column::Column;
use crate::error::Result;
use crate::spool::Spool;

/// A layer as it was first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) layer: u32,
    pub(super) top_k: u32,
}

/// What a row says beside its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub(super) sequence: u32,
    /// The pass in which it ran.
    pub(super) step: u32,
    pub(super) position: u32,
    /// [`NO_TOKEN`] where it is not recorded.
    pub(super) token_id: u32,
    /// The phase, or [`NO_PHASE`].
    pub(super) phase: u32,
}

/// 32-bit words of a head as it is written.
const HEAD: usize = 5;

impl Head {
    fn words(self) -> [u32; HEAD] {
        [self.sequence, self.step, self.position, self.token_id, self.phase]
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = [0; HEAD];
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(bytes);
        let [sequence, step, position, token_id, phase] = words;
        Self { sequence, step, position, token_id, phase }
    }
}

pub(super) const NO_TOKEN: u32 = u32::MAX;
pub(super) const NO_PHASE: u32 = u32::MAX;

/// Rows one after another that have the same layers.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    offset: u64,
    /// Which of the sets of slots they have.
    set: u32,
}

/// The rows.
pub(super) struct Store {
    spool: Spool,
    pub(super) slots: Vec<Slot>,
    /// Sets of slots that rows have, each with whether they have weights.
    sets: Vec<(Vec<u16>, bool)>,
    segments: Vec<Segment>,
    rows: u64,
}

/// Stretches of rows with other layers than those before, at most: each takes memory.
const MAX_SEGMENTS: usize = 1 << 21;

impl Store {
    pub(super) fn new(spool: Spool) -> Self {
        Self { spool, slots: Vec::new(), sets: Vec::new(), segments: Vec::new(), rows: 0 }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row: the slots that it has, and their ids and weights one after another.
    pub(super) fn push(
        &mut self,
        head: Head,
        has: &[u16],
        ids: &[u16],
        weights: &[f32],
    ) -> Result<bool> {
        let weighted = !weights.is_empty();
        let same = self.segments.last().is_some_and(|last| {
            let (slots, with) = &self.sets[last.set as usize];
            slots == has && *with == weighted
        });
        if !same {
            let known =
                self.sets.iter().rposition(|(slots, with)| slots == has && *with == weighted);
            let set = known.unwrap_or_else(|| {
                self.sets.push((has.to_vec(), weighted));
                self.sets.len() - 1
            });
            let segment = Segment { first: self.rows, offset: self.spool.len(), set: set as u32 };
            self.segments.push(segment);
        }
        self.spool.extend(&head.words())?;
        self.spool.extend(ids)?;
        self.spool.extend(weights)?;
        self.rows += 1;
        Ok(self.segments.len() <= MAX_SEGMENTS && self.sets.len() <= 1 << 12)
    }

    /// Ends writing.
    pub(super) fn finish(self) -> Result<Rows> {
        let column = self.spool.into_column()?;
        Ok(Rows {
            column,
            slots: self.slots,
            sets: self.sets,
            segments: self.segments,
            rows: self.rows,
            block: Vec::new(),
            block_start: 0,
            at: 0,
        })
    }
}

/// Bytes that are read of the store at a time.
const BLOCK: usize = 1 << 16;

/// Written rows, to be read in any order; neighbours are cheap.
pub(super) struct Rows {
    column: Column<u8>,
    pub(super) slots: Vec<Slot>,
    sets: Vec<(Vec<u16>, bool)>,
    segments: Vec<Segment>,
    rows: u64,
    block: Vec<u8>,
    block_start: u64,
    /// The segment of the last row.
    at: usize,
}

/// One row as it was written.
#[derive(Default)]
pub(super) struct Row {
    pub(super) head: Head,
    pub(super) has: Vec<u16>,
    pub(super) ids: Vec<u16>,
    pub(super) weights: Vec<f32>,
}

impl Rows {
    pub(super) fn len(&self) -> u64 {
        self.rows
    }

    /// How many rows have each slot, and how many have weights.
    pub(super) fn coverage(&self, rows: std::ops::Range<u64>) -> Vec<u64> {
        let mut counts = vec![0; self.slots.len()];
        for (index, segment) in self.segments.iter().enumerate() {
            let end = self.segments.get(index + 1).map_or(self.rows, |next| next.first);
            let (first, end) = (segment.first.max(rows.start), end.min(rows.end));
            for &slot in &self.sets[segment.set as usize].0 {
                counts[usize::from(slot)] += end.saturating_sub(first);
            }
        }
        counts
    }

    /// How many rows have all of these slots.
    pub(super) fn having(&self, slots: &[usize]) -> u64 {
        let all = |set: &[u16]| slots.iter().all(|&slot| set.contains(&(slot as u16)));
        let having: Vec<bool> = self.sets.iter().map(|(set, _)| all(set)).collect();
        let ends = self.segments.iter().skip(1).map(|next| next.first).chain([self.rows]);
        let with = self.segments.iter().zip(ends).filter(|(one, _)| having[one.set as usize]);
        with.map(|(one, end)| end - one.first).sum()
    }

    /// Whether every row has weights.
    pub(super) fn all_weighted(&self) -> bool {
        self.segments.iter().all(|segment| self.sets[segment.set as usize].1)
    }

    /// Whether any row has weights.
    pub(super) fn any_weighted(&self) -> bool {
        self.segments.iter().any(|segment| self.sets[segment.set as usize].1)
    }

    fn segment(&mut self, row: u64) -> Segment {
        let fits = |at: usize| {
            self.segments[at].first <= row
                && self.segments.get(at + 1).is_none_or(|next| row < next.first)
        };
        if !fits(self.at) {
            let after = self.segments.partition_point(|segment| segment.first <= row);
            self.at = after.saturating_sub(1);
        }
        self.segments[self.at]
    }

    fn ids_of(&self, set: u32) -> usize {
        let slots = &self.sets[set as usize].0;
        slots.iter().map(|&slot| self.slots[usize::from(slot)].top_k as usize).sum()
    }

    /// Only the head of a row.
    pub(super) fn head(&mut self, row: u64) -> Result<Head> {
        let segment = self.segment(row);
        let (ids, weighted) = (self.ids_of(segment.set), self.sets[segment.set as usize].1);
        let size = row_size(ids, weighted);
        let bytes = self.bytes(segment.offset + (row - segment.first) * size as u64, size)?;
        Ok(Head::from_bytes(&bytes[..4 * HEAD]))
    }

    /// A row, into buffers that are used again.
    pub(super) fn read(&mut self, row: u64, into: &mut Row) -> Result<()> {
        let segment = self.segment(row);
        let (ids, weighted) = (self.ids_of(segment.set), self.sets[segment.set as usize].1);
        into.has.clone_from(&self.sets[segment.set as usize].0);
        let size = row_size(ids, weighted);
        let bytes = self.bytes(segment.offset + (row - segment.first) * size as u64, size)?;
        let (head, rest) = bytes.split_at(4 * HEAD);
        into.head = Head::from_bytes(head);
        let (raw_ids, raw_weights) = rest.split_at(2 * ids);
        into.ids.clear();
        into.ids.extend(raw_ids.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])));
        into.weights.clear();
        let four = raw_weights.chunks_exact(4);
        into.weights.extend(four.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        Ok(())
    }

    fn bytes(&mut self, offset: u64, size: usize) -> Result<&[u8]> {
        let all = match &self.column {
            Column::Owned(values) => values.len(),
            Column::InPlace { range, .. } => range.len(),
        } as u64;
        let there = self.block_start..self.block_start + self.block.len() as u64;
        if offset < there.start || offset + size as u64 > there.end {
            self.block_start = offset;
            let len = (BLOCK.max(size) as u64).min(all - offset);
            self.block.resize(len as usize, 0);
            self.column.copy_to(offset as usize, &mut self.block)?;
        }
        let start = (offset - self.block_start) as usize;
        Ok(&self.block[start..start + size])
    }
}

fn row_size(ids: usize, weighted: bool) -> usize {
    4 * HEAD + ids * if weighted { 6 } else { 2 }
}
