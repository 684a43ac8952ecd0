//! Columns: typed arrays that are either owned or lie in place in a file's bytes.
//!
//! Owned forms ([`Ids`], [`Weights`]) go into a builder; borrowed forms ([`IdColumn`],
//! [`WeightColumn`]) are what a trace hands out.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::error::Result;
use crate::map::MappedFile;
use crate::spooled::Spooled;

/// The bytes of an opened `.hst` file.
pub(crate) enum Backing {
    Map(MappedFile),
    Static(&'static [u8]),
    Owned(Vec<u8>),
    Spool(Spooled),
    Lent(LentBytes),
}

impl Backing {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Map(file) => file.bytes(),
            Self::Static(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Spool(spooled) => spooled.bytes(),
            Self::Lent(bytes) => (**bytes).as_ref(),
        }
    }
}

/// A typed array, owned or in place.
#[derive(Clone)]
pub(crate) enum Column<T> {
    Owned(Vec<T>),
    InPlace { backing: Arc<Backing>, range: Range<usize> },
}

impl<T: Pod> Column<T> {
    /// The bytes `range` of `backing` as a column: in place where they are aligned for `T` (they
    /// are in a memory map), else copied. The range's length must be a multiple of `T`'s size.
    pub(crate) fn in_place(backing: &Arc<Backing>, range: Range<usize>) -> Self {
        let bytes = &backing.bytes()[range.clone()];
        match bytemuck::try_cast_slice::<u8, T>(bytes) {
            Ok(_) => Self::InPlace { backing: Arc::clone(backing), range },
            Err(_) => Self::Owned(bytemuck::pod_collect_to_vec(bytes)),
        }
    }

    pub(crate) fn get(&self) -> &[T] {
        match self {
            Self::Owned(values) => values,
            Self::InPlace { backing, range } => {
                bytemuck::cast_slice(&backing.bytes()[range.clone()])
            }
        }
    }
}

/// Bytes of a spooled column that one window reads.
const WINDOW: usize = 4 << 20;

impl<T: Pod> Column<T> {
    /// Passes over all values in order, `visit`ing stretches with the index of their first value;
    /// all but the last are whole multiples of `row` values. What lies in memory or in a mapped
    /// file is one stretch; what was spooled is read piece by piece.
    pub(crate) fn windows(
        &self,
        row: usize,
        mut visit: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let Self::InPlace { backing, range } = self else { return visit(0, self.get()) };
        let Backing::Spool(spooled) = &**backing else { return visit(0, self.get()) };
        let size = size_of::<T>();
        let values = range.len() / size;
        let each = (WINDOW / size / row.max(1)).max(1).saturating_mul(row.max(1));
        let mut buffer = vec![T::zeroed(); each.min(values)];
        for first in (0..values).step_by(each) {
            let window = &mut buffer[..each.min(values - first)];
            let offset = (range.start + first * size) as u64;
            spooled.read_at(offset, bytemuck::cast_slice_mut(window))?;
            visit(first, window)?;
        }
        Ok(())
    }
}

impl<T: Pod> Column<T> {
    /// Copies the values from `first` on into `out`; what was spooled is read from its file.
    pub(crate) fn copy_to(&self, first: usize, out: &mut [T]) -> Result<()> {
        if let Self::InPlace { backing, range } = self
            && let Backing::Spool(spooled) = &**backing
        {
            let offset = (range.start + first * size_of::<T>()) as u64;
            return spooled.read_at(offset, bytemuck::cast_slice_mut(out));
        }
        out.copy_from_slice(&self.get()[first..first + out.len()]);
        Ok(())
    }
}

/// Any column as plain bytes, for writers.
pub(crate) trait ByteColumn {
    /// Its length in bytes.
    fn byte_len(&self) -> u64;

    /// As [`Column::windows`], without a row.
    fn byte_windows(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

impl<T: Pod + Sync> ByteColumn for Column<T> {
    fn byte_len(&self) -> u64 {
        match self {
            Self::Owned(values) => size_of_val(values.as_slice()) as u64,
            Self::InPlace { range, .. } => range.len() as u64,
        }
    }

    fn byte_windows(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.windows(1, |_, window| visit(bytemuck::cast_slice(window)))
    }
}

/// Bytes that somebody else holds, little-endian; always the same ones at the same place. A trace
/// over them reads them in place where they are aligned for its values, and copies them else.
pub type LentBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Expert ids to build a trace from that are not copied.
#[derive(Clone)]
pub enum LentIds {
    /// One byte an id.
    U8(LentBytes),
    /// Two bytes an id.
    U16(LentBytes),
}

/// Router weights to build a trace from that are not copied; see [`Weights`].
#[derive(Clone)]
pub enum LentWeights {
    /// `round(255 * weight)`.
    U8(LentBytes),
    /// IEEE half precision.
    F16(LentBytes),
    /// bfloat16.
    Bf16(LentBytes),
    /// Single precision.
    F32(LentBytes),
}

/// Lent bytes as a column; `None` where they are no whole number of values.
pub(crate) fn lent<T: Pod>(bytes: LentBytes) -> Option<Column<T>> {
    let length = (*bytes).as_ref().len();
    let backing = Arc::new(Backing::Lent(bytes));
    length.is_multiple_of(size_of::<T>()).then(|| Column::in_place(&backing, 0..length))
}

/// Expert ids to build a trace from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids {
    /// One byte an id.
    U8(Vec<u8>),
    /// Two bytes an id.
    U16(Vec<u16>),
}

impl Ids {
    /// The ids, borrowed.
    pub fn view(&self) -> IdColumn<'_> {
        match self {
            Self::U8(ids) => IdColumn::U8(ids),
            Self::U16(ids) => IdColumn::U16(ids),
        }
    }
}

/// Expert ids, token-major: `[token][row_len]`, each layer's best expert first.
#[derive(Debug, Clone, Copy)]
pub enum IdColumn<'a> {
    /// One byte an id: every layer has at most 256 experts.
    U8(&'a [u8]),
    /// Two bytes an id.
    U16(&'a [u16]),
}

impl<'a> IdColumn<'a> {
    /// How many ids there are.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(ids) => ids.len(),
            Self::U16(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `index`, widened.
    pub fn get(&self, index: usize) -> u32 {
        match self {
            Self::U8(ids) => u32::from(ids[index]),
            Self::U16(ids) => u32::from(ids[index]),
        }
    }

    /// The ids of `range`, of the same width.
    pub fn slice(&self, range: Range<usize>) -> IdColumn<'a> {
        match self {
            Self::U8(ids) => IdColumn::U8(&ids[range]),
            Self::U16(ids) => IdColumn::U16(&ids[range]),
        }
    }

    /// The ids in order, widened.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let column = *self;
        (0..column.len()).map(move |index| column.get(index))
    }

    /// The value that stands for "no prediction" in a column of this width: 255 or 65,535.
    pub fn none_marker(&self) -> u32 {
        match self {
            Self::U8(_) => 0xff,
            Self::U16(_) => 0xffff,
        }
    }

    /// Copies the ids of `range` to owned ids of the same width.
    pub fn to_ids(&self, range: Range<usize>) -> Ids {
        match self {
            Self::U8(ids) => Ids::U8(ids[range].to_vec()),
            Self::U16(ids) => Ids::U16(ids[range].to_vec()),
        }
    }
}

impl PartialEq for IdColumn<'_> {
    /// Equal values; the widths may differ.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::U8(a), Self::U8(b)) => a == b,
            (Self::U16(a), Self::U16(b)) => a == b,
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

/// Router weights to build a trace from, in the precision in which they were recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// `round(255 * weight)`.
    U8(Vec<u8>),
    /// Bit patterns of IEEE half precision.
    F16(Vec<u16>),
    /// Bit patterns of bfloat16.
    Bf16(Vec<u16>),
    /// Single precision.
    F32(Vec<f32>),
}

impl Weights {
    /// The weights, borrowed.
    pub fn view(&self) -> WeightColumn<'_> {
        match self {
            Self::U8(w) => WeightColumn::U8(w),
            Self::F16(w) => WeightColumn::F16(w),
            Self::Bf16(w) => WeightColumn::Bf16(w),
            Self::F32(w) => WeightColumn::F32(w),
        }
    }
}

/// Router weights, one for each id and in the same order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightColumn<'a> {
    /// `round(255 * weight)`.
    U8(&'a [u8]),
    /// Bit patterns of IEEE half precision.
    F16(&'a [u16]),
    /// Bit patterns of bfloat16.
    Bf16(&'a [u16]),
    /// Single precision.
    F32(&'a [f32]),
}

impl<'a> WeightColumn<'a> {
    /// How many weights there are.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(w) => w.len(),
            Self::F16(w) | Self::Bf16(w) => w.len(),
            Self::F32(w) => w.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weight at `index` as a number (`U8`: 255 is 1.0).
    pub fn get(&self, index: usize) -> f32 {
        match self {
            Self::U8(w) => f32::from(w[index]) / 255.0,
            Self::F16(w) => f16::from_bits(w[index]).to_f32(),
            Self::Bf16(w) => bf16::from_bits(w[index]).to_f32(),
            Self::F32(w) => w[index],
        }
    }

    /// The weights of `range`, in the same precision.
    pub fn slice(&self, range: Range<usize>) -> WeightColumn<'a> {
        match self {
            Self::U8(w) => WeightColumn::U8(&w[range]),
            Self::F16(w) => WeightColumn::F16(&w[range]),
            Self::Bf16(w) => WeightColumn::Bf16(&w[range]),
            Self::F32(w) => WeightColumn::F32(&w[range]),
        }
    }

    /// Copies the weights to owned ones of the same precision.
    pub fn to_weights(&self) -> Weights {
        match self {
            Self::U8(w) => Weights::U8(w.to_vec()),
            Self::F16(w) => Weights::F16(w.to_vec()),
            Self::Bf16(w) => Weights::Bf16(w.to_vec()),
            Self::F32(w) => Weights::F32(w.to_vec()),
        }
    }

    /// The precision's name: `u8`, `f16`, `bf16` or `f32`.
    pub fn precision(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::F16(_) => "f16",
            Self::Bf16(_) => "bf16",
            Self::F32(_) => "f32",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misaligned_range_is_copied_and_an_aligned_one_is_not() {
        let backing = Arc::new(Backing::Owned((0..64u8).collect()));
        let start = backing.bytes().as_ptr().align_offset(4);
        let aligned = Column::<u32>::in_place(&backing, start..start + 8);
        assert!(matches!(aligned, Column::InPlace { .. }));
        let shifted = Column::<u32>::in_place(&backing, start + 1..start + 9);
        assert!(matches!(shifted, Column::Owned(_)));
        let first = start as u32 + 1;
        let expected = first | (first + 1) << 8 | (first + 2) << 16 | (first + 3) << 24;
        assert_eq!(shifted.get()[0], expected);
    }

    #[test]
    fn weights_read_as_numbers() {
        assert_eq!(WeightColumn::U8(&[255, 51]).get(1), 0.2);
        assert_eq!(WeightColumn::F16(&[0x3c00]).get(0), 1.0);
        assert_eq!(WeightColumn::Bf16(&[0x3f80, 0x3f00]).get(1), 0.5);
        assert_eq!(WeightColumn::F32(&[0.25]).get(0), 0.25);
    }

    #[test]
    fn ids_compare_by_value() {
        assert_eq!(IdColumn::U8(&[1, 2]), IdColumn::U16(&[1, 2]));
        assert_ne!(IdColumn::U8(&[1, 2]), IdColumn::U16(&[1, 258]));
    }
}
