//! Borrowed views of a trace's optional columns: predicted experts, prompt embeddings.
//!
//! And the list of every column there can be, with the importers that give it.

use half::f16;
use serde::Serialize;

use crate::column::IdColumn;
use crate::trace::Trace;

/// Experts predicted for each layer before the token reached it.
///
/// Entry `[a][token][layer]` predicts `layer`; it was made `a + 1` layers before, by that layer's
/// router on the earlier layer's output. Layers without a prediction hold the none marker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predictions<'a> {
    /// How many layers ahead predictions were made: lookahead indices run from 0 to one below.
    pub lookaheads: usize,
    /// Predicted ids in each entry.
    pub width: usize,
    /// Tokens, as in the trace.
    pub tokens: usize,
    /// Layers, as in the trace's shape.
    pub layers: usize,
    /// All ids: `[lookaheads][tokens][layers][width]`.
    pub ids: IdColumn<'a>,
}

impl<'a> Predictions<'a> {
    /// One entry with its none markers (see [`IdColumn::none_marker`]): `width` ids, best first.
    pub fn entry(&self, lookahead: usize, token: usize, layer: usize) -> IdColumn<'a> {
        assert!(
            lookahead < self.lookaheads && token < self.tokens && layer < self.layers,
            "no prediction entry [{lookahead}][{token}][{layer}]"
        );
        let start = ((lookahead * self.tokens + token) * self.layers + layer) * self.width;
        self.ids.slice(start..start + self.width)
    }

    /// The experts of one entry, best first, without none markers.
    pub fn experts(
        &self,
        lookahead: usize,
        token: usize,
        layer: usize,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let entry = self.entry(lookahead, token, layer);
        let none = entry.none_marker();
        entry.iter().filter(move |&id| id != none)
    }
}

/// Embeddings of each sequence's first prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Embeddings<'a> {
    /// Numbers in each embedding.
    pub dim: usize,
    /// Mean input embedding of the prompt: `[sequences][dim]`.
    pub prompt_in: &'a [f16],
    /// Mean final hidden state of the prompt: `[sequences][dim]`.
    pub prompt_out: &'a [f16],
}

impl<'a> Embeddings<'a> {
    /// The mean input embedding of one sequence (its index): `dim` numbers.
    pub fn input(&self, sequence: usize) -> &'a [f16] {
        &self.prompt_in[sequence * self.dim..(sequence + 1) * self.dim]
    }

    /// The mean final hidden state of one sequence (its index): `dim` numbers.
    pub fn output(&self, sequence: usize) -> &'a [f16] {
        &self.prompt_out[sequence * self.dim..(sequence + 1) * self.dim]
    }
}

/// One column that a trace may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// Whether the trace has it.
    pub present: bool,
    /// Its element type and extent where the trace has it, else empty.
    pub detail: String,
    /// The importers that give it, where their input has it.
    pub importers: Vec<&'static str>,
}

pub(crate) fn column_infos(trace: &Trace) -> Vec<ColumnInfo> {
    let (tokens, row) = (trace.tokens(), trace.shape().row_len());
    let id_type = |ids: IdColumn<'_>| if matches!(ids, IdColumn::U8(_)) { "u8" } else { "u16" };
    let details = [
        ("ids", Some(format!("{} [{tokens}][{row}]", id_type(trace.ids())))),
        ("positions", Some(format!("u32 [{tokens}]"))),
        ("phases", Some(format!("u8 [{tokens}]"))),
        ("steps", trace.steps().map(|_| format!("u32 [{tokens}]"))),
        ("token_ids", trace.token_ids().map(|_| format!("u32 [{tokens}]"))),
        ("weights", trace.weights().map(|w| format!("{} [{tokens}][{row}]", w.precision()))),
        (
            "predictions",
            trace.predictions().map(|p| {
                let (ahead, layers, width) = (p.lookaheads, p.layers, p.width);
                format!("{} [{ahead}][{tokens}][{layers}][{width}]", id_type(p.ids))
            }),
        ),
        (
            "embeddings",
            trace.embeddings().map(|e| format!("2 x f16 [{}][{}]", trace.sequences().len(), e.dim)),
        ),
    ];
    details
        .into_iter()
        .map(|(name, detail)| ColumnInfo {
            name,
            present: detail.is_some(),
            detail: detail.unwrap_or_default(),
            importers: crate::import::giving(name),
        })
        .collect()
}
