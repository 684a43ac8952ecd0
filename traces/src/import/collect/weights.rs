//! The weights of a trace while its rows come in.

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use crate::error::Result;
use crate::import::layers::Layers;
use crate::parts::WeightData;
use crate::spool::Spool;

/// In which precision weights come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Precision {
    U8,
    F16,
    Bf16,
    F32,
}

/// Weights so far, in the precision of the first, or why there are none.
#[derive(Default)]
pub(super) struct Weights {
    all: Option<(Precision, Spool)>,
    none_because: Option<String>,
}

impl Weights {
    /// Leaves them out, for this reason.
    pub(super) fn leave_out(&mut self, reason: impl Into<String>) {
        self.none_because.get_or_insert(reason.into());
    }

    /// Appends those of as many rows of the file.
    pub(super) fn extend<T: Pod>(
        &mut self,
        folder: &Arc<Path>,
        layers: &Layers,
        precision: Precision,
        rows: &[T],
    ) -> Result<()> {
        if self.none_because.is_some() {
            return Ok(());
        }
        let fresh = || (precision, Spool::new(folder));
        let (before, spool) = self.all.get_or_insert_with(fresh);
        if *before != precision {
            self.leave_out("the inputs have them in different precisions");
            return Ok(());
        }
        if layers.whole() {
            return spool.extend(rows);
        }
        for row in rows.chunks_exact(layers.row_len) {
            for span in &layers.spans {
                spool.extend(&row[span.clone()])?;
            }
        }
        Ok(())
    }

    /// The weights of a trace of so many in all, or the reason why it has none although some came.
    pub(super) fn finish(mut self, count: u64) -> Result<(Option<WeightData>, Option<String>)> {
        let Some((precision, spool)) = self.all.take() else { return Ok((None, None)) };
        let size = match precision {
            Precision::U8 => 1,
            Precision::F16 | Precision::Bf16 => 2,
            Precision::F32 => 4,
        };
        if spool.len() != count * size {
            self.leave_out("not all tokens have them");
        }
        if self.none_because.is_some() {
            return Ok((None, self.none_because));
        }
        let weights = match precision {
            Precision::U8 => WeightData::U8(spool.into_column()?),
            Precision::F16 => WeightData::F16(spool.into_column()?),
            Precision::Bf16 => WeightData::Bf16(spool.into_column()?),
            Precision::F32 => WeightData::F32(spool.into_column()?),
        };
        Ok((Some(weights), None))
    }
}
