//! Borrowed views of a trace's optional columns: predicted experts, prompt embeddings.

use half::f16;

use crate::column::IdColumn;

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
