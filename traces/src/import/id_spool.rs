//! Expert ids of any integer type, appended as one byte each until one needs two.
//!
//! Whole blocks at a time: their least and largest value are found first, so that what is usual
//! (all small) is a plain copy.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use crate::column::Column;
use crate::error::Result;
use crate::parts::IdData;
use crate::spool::Spool;

/// An integer type in which engines write ids.
pub(super) trait RawId: Pod + Ord {
    const ZERO: Self;
    fn as_u8(self) -> u8;
    fn as_u16(self) -> u16;
    fn as_i64(self) -> i64;
}

macro_rules! raw_id {
    ($($type:ty),*) => { $(
        impl RawId for $type {
            const ZERO: Self = 0;
            fn as_u8(self) -> u8 { self as u8 }
            fn as_u16(self) -> u16 { self as u16 }
            fn as_i64(self) -> i64 { self as i64 }
        }
    )* };
}
raw_id!(u8, u16, u32, i16, i32, i64);

/// A value that no expert has.
pub(super) struct NotAnId {
    /// Its place in the block.
    pub(super) index: usize,
    pub(super) value: i64,
}

/// The ids.
pub(super) struct IdSpool {
    spool: Spool,
    wide: bool,
    highest: u16,
    lowest: Option<u16>,
}

impl IdSpool {
    pub(super) fn new(folder: &Arc<Path>) -> Self {
        Self { spool: Spool::new(folder), wide: false, highest: 0, lowest: None }
    }

    /// The largest so far.
    pub(super) fn highest(&self) -> u16 {
        self.highest
    }

    /// The smallest so far.
    pub(super) fn lowest(&self) -> Option<u16> {
        self.lowest
    }

    /// Appends rows of `row_len` values, of each only the `spans`.
    pub(super) fn extend<T: RawId>(
        &mut self,
        rows: &[T],
        row_len: usize,
        spans: &[Range<usize>],
    ) -> Result<Option<NotAnId>> {
        let whole = matches!(spans, [span] if span.start == 0 && span.end == row_len);
        if whole {
            return self.block(rows);
        }
        let mut kept = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(row_len.max(1)) {
            spans.iter().for_each(|span| kept.extend_from_slice(&row[span.clone()]));
        }
        self.block(&kept)
    }

    fn block<T: RawId>(&mut self, values: &[T]) -> Result<Option<NotAnId>> {
        let least = values.iter().fold(T::ZERO, |least, &value| least.min(value)).as_i64();
        let most = values.iter().fold(T::ZERO, |most, &value| most.max(value)).as_i64();
        if least < 0 || most > i64::from(u16::MAX) {
            let range = 0..=i64::from(u16::MAX);
            let index = values.iter().position(|value| !range.contains(&value.as_i64()));
            let index = index.unwrap_or(0);
            return Ok(Some(NotAnId { index, value: values[index].as_i64() }));
        }
        self.highest = self.highest.max(most as u16);
        if self.lowest != Some(0)
            && let Some(lowest) = values.iter().min()
        {
            let lowest = lowest.as_u16();
            self.lowest = Some(self.lowest.map_or(lowest, |before| before.min(lowest)));
        }
        if most > 255 && !self.wide {
            self.widen()?;
        }
        if size_of::<T>() == 1 && !self.wide {
            self.spool.extend(values)?;
        } else if self.wide {
            let wide: Vec<u16> = values.iter().map(|id| id.as_u16()).collect();
            self.spool.extend(&wide)?;
        } else {
            let narrow: Vec<u8> = values.iter().map(|id| id.as_u8()).collect();
            self.spool.extend(&narrow)?;
        }
        Ok(None)
    }

    fn widen(&mut self) -> Result<()> {
        let mut wide = self.spool.another();
        let narrow = std::mem::replace(&mut self.spool, wide.another());
        let column: Column<u8> = narrow.into_column()?;
        column.windows(1, |_, ids| {
            let block: Vec<u16> = ids.iter().map(|&id| id.into()).collect();
            wide.extend(&block)
        })?;
        (self.spool, self.wide) = (wide, true);
        Ok(())
    }

    /// The column, at one byte an id if `narrow`; there must be no id over 255 then.
    pub(super) fn into_column(mut self, narrow: bool) -> Result<IdData> {
        if !narrow && !self.wide {
            self.widen()?;
        }
        Ok(match self.wide {
            true => IdData::U16(self.spool.into_column()?),
            false => IdData::U8(self.spool.into_column()?),
        })
    }
}
