//! A trace's contents before they are checked: what a builder or a file reader puts together.
//!
//! The only type that holds columns; [`crate::Trace`] wraps one that passed every check.

use std::fmt;

use crate::column::{
    ByteColumn, Column, IdColumn, Ids, LentIds, LentWeights, WeightColumn, Weights, lent,
};
use crate::error::Result;
use crate::sequence::Sequence;
use crate::shape::Shape;
use crate::views::{Embeddings, Predictions};
use half::f16;
use half::slice::HalfBitsSliceExt;

/// Expert ids of either width, owned or in place.
#[derive(Clone)]
pub(crate) enum IdData {
    U8(Column<u8>),
    U16(Column<u16>),
}

impl IdData {
    pub(crate) fn view(&self) -> IdColumn<'_> {
        match self {
            Self::U8(column) => IdColumn::U8(column.get()),
            Self::U16(column) => IdColumn::U16(column.get()),
        }
    }

    pub(crate) fn bytes(&self) -> &(dyn ByteColumn + Sync) {
        match self {
            Self::U8(column) => column,
            Self::U16(column) => column,
        }
    }

    /// As [`Column::windows`].
    pub(crate) fn windows(
        &self,
        row: usize,
        mut visit: impl FnMut(usize, IdColumn<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::U8(column) => column.windows(row, |first, ids| visit(first, IdColumn::U8(ids))),
            Self::U16(column) => column.windows(row, |first, ids| visit(first, IdColumn::U16(ids))),
        }
    }
}

impl fmt::Debug for IdData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ids", self.view().len())
    }
}

impl fmt::Debug for WeightData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} weights ({})", self.view().len(), self.view().precision())
    }
}

impl IdData {
    /// Ids that are not copied; `None` where half an id is left over.
    pub(crate) fn lent(ids: LentIds) -> Option<Self> {
        Some(match ids {
            LentIds::U8(bytes) => Self::U8(lent(bytes)?),
            LentIds::U16(bytes) => Self::U16(lent(bytes)?),
        })
    }
}

impl WeightData {
    /// Weights that are not copied; `None` where a part of one is left over.
    pub(crate) fn lent(weights: LentWeights) -> Option<Self> {
        Some(match weights {
            LentWeights::U8(bytes) => Self::U8(lent(bytes)?),
            LentWeights::F16(bytes) => Self::F16(lent(bytes)?),
            LentWeights::Bf16(bytes) => Self::Bf16(lent(bytes)?),
            LentWeights::F32(bytes) => Self::F32(lent(bytes)?),
        })
    }
}

impl From<Ids> for IdData {
    fn from(ids: Ids) -> Self {
        match ids {
            Ids::U8(ids) => Self::U8(Column::Owned(ids)),
            Ids::U16(ids) => Self::U16(Column::Owned(ids)),
        }
    }
}

/// Weights of any precision, owned or in place.
#[derive(Clone)]
pub(crate) enum WeightData {
    U8(Column<u8>),
    F16(Column<u16>),
    Bf16(Column<u16>),
    F32(Column<f32>),
}

impl WeightData {
    pub(crate) fn view(&self) -> WeightColumn<'_> {
        match self {
            Self::U8(column) => WeightColumn::U8(column.get()),
            Self::F16(column) => WeightColumn::F16(column.get()),
            Self::Bf16(column) => WeightColumn::Bf16(column.get()),
            Self::F32(column) => WeightColumn::F32(column.get()),
        }
    }

    pub(crate) fn bytes(&self) -> &(dyn ByteColumn + Sync) {
        match self {
            Self::U8(column) => column,
            Self::F16(column) | Self::Bf16(column) => column,
            Self::F32(column) => column,
        }
    }

    /// As [`Column::windows`].
    pub(crate) fn windows(
        &self,
        mut visit: impl FnMut(usize, WeightColumn<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::U8(column) => column.windows(1, |first, w| visit(first, WeightColumn::U8(w))),
            Self::F16(column) => column.windows(1, |first, w| visit(first, WeightColumn::F16(w))),
            Self::Bf16(column) => column.windows(1, |first, w| visit(first, WeightColumn::Bf16(w))),
            Self::F32(column) => column.windows(1, |first, w| visit(first, WeightColumn::F32(w))),
        }
    }
}

impl From<Weights> for WeightData {
    fn from(weights: Weights) -> Self {
        match weights {
            Weights::U8(w) => Self::U8(Column::Owned(w)),
            Weights::F16(w) => Self::F16(Column::Owned(w)),
            Weights::Bf16(w) => Self::Bf16(Column::Owned(w)),
            Weights::F32(w) => Self::F32(Column::Owned(w)),
        }
    }
}

/// Predicted ids: `[lookaheads][tokens][layers][width]`.
#[derive(Clone)]
pub(crate) struct PredictionData {
    pub(crate) lookaheads: usize,
    pub(crate) width: usize,
    pub(crate) ids: IdData,
}

/// Prompt embeddings: bit patterns of half precision, `[sequences][dim]` each.
#[derive(Clone)]
pub(crate) struct EmbeddingData {
    pub(crate) dim: usize,
    pub(crate) prompt_in: Column<u16>,
    pub(crate) prompt_out: Column<u16>,
}

/// All that a trace consists of; see the accessors of [`crate::Trace`] for the meanings.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) ids: IdData,
    pub(crate) positions: Column<u32>,
    pub(crate) phases: Column<u8>,
    pub(crate) steps: Option<Column<u32>>,
    pub(crate) token_ids: Option<Column<u32>>,
    pub(crate) weights: Option<WeightData>,
    pub(crate) predictions: Option<PredictionData>,
    pub(crate) embeddings: Option<EmbeddingData>,
    pub(crate) provenance: String,
}

impl Parts {
    /// Tokens, as the sequences state them.
    pub(crate) fn tokens(&self) -> usize {
        self.sequences.last().map_or(0, |sequence| sequence.rows.end)
    }

    pub(crate) fn predictions(&self) -> Option<Predictions<'_>> {
        self.predictions.as_ref().map(|data| Predictions {
            lookaheads: data.lookaheads,
            width: data.width,
            tokens: self.tokens(),
            layers: self.shape.layers().len(),
            ids: data.ids.view(),
        })
    }

    pub(crate) fn embeddings(&self) -> Option<Embeddings<'_>> {
        self.embeddings.as_ref().map(|data| Embeddings {
            dim: data.dim,
            prompt_in: data.prompt_in.get().reinterpret_cast::<f16>(),
            prompt_out: data.prompt_out.get().reinterpret_cast::<f16>(),
        })
    }
}
