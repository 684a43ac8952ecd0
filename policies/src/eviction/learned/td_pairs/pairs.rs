//! td-pairs' weights of pairs: what the experts of a set add to the logits of a layer's experts.
//!
//! A row is what one expert adds to each expert of the layer, in 2048ths. A layer of more than 128
//! experts has 2^15 / experts rows, which its experts share by their id modulo that number, so that
//! no layer takes more than 64 KiB (beside the padding of its rows to eight).

use crate::structures::memory::array;

/// Experts that are worked on together.
pub(super) const LANES: usize = 8;
/// Numbers of a layer's rows together, where they are shared.
const NUMBERS: usize = 1 << 15;
/// Rows that count, of a set.
pub(super) const ROWS: usize = 32;

/// Eight numbers of a row.
pub(super) type Row = [i16; LANES];

/// The pairs of one layer with whatever sets they are learned for.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    rows: Vec<Row>,
    /// Blocks of eight in a row.
    width: usize,
    count: usize,
}

/// The numbers of a set's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSet {
    rows: [u16; ROWS],
    len: u16,
}

impl RowSet {
    pub(super) const EMPTY: Self = Self { rows: [0; ROWS], len: 0 };

    pub(super) fn of(ids: impl Iterator<Item = u32>) -> Self {
        let mut set = Self::EMPTY;
        for (row, id) in set.rows.iter_mut().zip(ids) {
            *row = id as u16;
            set.len += 1;
        }
        set
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline(always)]
    fn rows(&self) -> &[u16] {
        &self.rows[..self.len()]
    }
}

impl Pairs {
    fn rows_of(experts: usize) -> usize {
        experts.min((NUMBERS / experts.max(1)).max(1))
    }

    pub(super) fn new(experts: usize) -> Self {
        let (count, width) = (Self::rows_of(experts), experts.div_ceil(LANES));
        Self { rows: vec![[0; LANES]; count * width], width, count }
    }

    /// Bytes that the pairs of a layer allocate.
    pub(super) fn memory(experts: u32) -> u64 {
        let experts = experts as usize;
        array::<Row>((Self::rows_of(experts) * experts.div_ceil(LANES)) as u64)
    }

    /// Adds the set's rows to `sums`, four of them in one pass.
    #[inline(always)]
    pub(super) fn add_to(&self, sums: &mut [Row], set: &RowSet) {
        let row = |row: u16| {
            self.rows[usize::from(row) % self.count * self.width..][..self.width].as_flattened()
        };
        let sums = sums.as_flattened_mut();
        let (fours, rest) = set.rows().as_chunks::<4>();
        for &[a, b, c, d] in fours {
            let rows = row(a).iter().zip(row(b)).zip(row(c)).zip(row(d));
            for (sum, (((&a, &b), &c), &d)) in sums.iter_mut().zip(rows) {
                let sum_of_ab = sum.saturating_add(a).saturating_add(b);
                *sum = sum_of_ab.saturating_add(c).saturating_add(d);
            }
        }
        for &one in rest {
            for (sum, &number) in sums.iter_mut().zip(row(one)) {
                *sum = sum.saturating_add(number);
            }
        }
    }

    /// Adds `steps` to each of the set's rows.
    #[inline(always)]
    pub(super) fn learn(&mut self, steps: &[Row], set: &RowSet) {
        let steps = steps.as_flattened();
        for &row in set.rows() {
            let row = usize::from(row) % self.count * self.width;
            let row = self.rows[row..][..self.width].as_flattened_mut();
            for (number, &step) in row.iter_mut().zip(steps) {
                *number = number.saturating_add(step);
            }
        }
    }
}
