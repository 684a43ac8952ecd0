//! Fewer experts a token: the same trace with the best ranks only.

use serde_json::{Value, json};

use crate::builder::TraceBuilder;
use crate::column::{Ids, Weights};
use crate::error::Result;
use crate::shape::{LayerShape, Shape};
use crate::trace::Trace;
use crate::{IdColumn, WeightColumn};

impl Trace {
    /// The trace as if every token used at most its `top_k` best experts of each layer (at least
    /// one): ids and weights of further ranks are left out, weights are not spread over the others;
    /// everything else is kept. Recorded routing is not what such a model would do: its later layers
    /// would see other hidden states.
    ///
    /// # Errors
    /// None that a sound trace could cause.
    pub fn keep_top(&self, top_k: u32) -> Result<Self> {
        let top_k = top_k.max(1);
        let layers = self.shape().layers();
        let less = |layer: &LayerShape| LayerShape { top_k: layer.top_k.min(top_k), ..*layer };
        let shape = Shape::new(layers.iter().map(less).collect())?;
        let kept = self.kept_ranks(top_k);
        let ids = match self.ids() {
            IdColumn::U8(ids) => Ids::U8(cut(ids, &kept)),
            IdColumn::U16(ids) => Ids::U16(cut(ids, &kept)),
        };
        let from: Value = serde_json::from_str(self.provenance()).unwrap_or(Value::Null);
        let made = json!({ "kept_ranks": top_k, "of": { "digest": self.digest(), "made": from } });
        let mut builder = TraceBuilder::new(self.name(), shape, ids)
            .sequences(self.sequences().to_vec())
            .positions(self.positions().to_vec())
            .phases(self.phases().to_vec())
            .provenance(made.to_string());
        if let Some(steps) = self.steps() {
            builder = builder.steps(steps.to_vec());
        }
        if let Some(token_ids) = self.token_ids() {
            builder = builder.token_ids(token_ids.to_vec());
        }
        if let Some(weights) = self.weights() {
            builder = builder.weights(match weights {
                WeightColumn::U8(w) => Weights::U8(cut(w, &kept)),
                WeightColumn::F16(w) => Weights::F16(cut(w, &kept)),
                WeightColumn::Bf16(w) => Weights::Bf16(cut(w, &kept)),
                WeightColumn::F32(w) => Weights::F32(cut(w, &kept)),
            });
        }
        if let Some(predictions) = self.predictions() {
            let ids = match predictions.ids {
                IdColumn::U8(ids) => Ids::U8(ids.to_vec()),
                IdColumn::U16(ids) => Ids::U16(ids.to_vec()),
            };
            builder = builder.predictions(predictions.lookaheads, predictions.width, ids);
        }
        if let Some(data) = &self.parts().embeddings {
            let (before, after) = (data.prompt_in.get().to_vec(), data.prompt_out.get().to_vec());
            builder = builder.embeddings(data.dim, before, after);
        }
        builder.build()
    }

    /// The share of the router's weight beyond each token's `top_k` best experts of a layer, 0 to 1:
    /// the mean over the layers and the tokens that `wanted` picks by row. `None` without weights, or
    /// without such tokens.
    #[must_use]
    pub fn weight_beyond(&self, top_k: u32, wanted: impl Fn(usize) -> bool) -> Option<f64> {
        let weights = self.weights()?;
        let (row_len, mut lost, mut events) = (self.shape().row_len(), 0.0, 0u64);
        for row in (0..self.tokens()).filter(|&row| wanted(row)) {
            for (index, layer) in self.shape().layers().iter().enumerate() {
                let start = row * row_len + self.shape().row_offset(index);
                let sum = |ranks: std::ops::Range<u32>| -> f64 {
                    ranks.map(|rank| f64::from(weights.get(start + rank as usize))).sum()
                };
                let (all, beyond) = (sum(0..layer.top_k), sum(top_k.min(layer.top_k)..layer.top_k));
                lost += if all > 0.0 { beyond / all } else { 0.0 };
                events += 1;
            }
        }
        (events > 0).then(|| lost / events as f64)
    }

    /// Of a token's row, which places are of the best ranks.
    fn kept_ranks(&self, top_k: u32) -> Vec<bool> {
        let layers = self.shape().layers().iter();
        layers.flat_map(|layer| (0..layer.top_k).map(move |rank| rank < top_k)).collect()
    }
}

fn cut<T: Copy>(column: &[T], kept: &[bool]) -> Vec<T> {
    let rows = column.chunks_exact(kept.len());
    rows.flat_map(|row| row.iter().zip(kept).filter(|(_, kept)| **kept).map(|(&x, _)| x)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_ranks_are_kept_with_their_weights() {
        let shape = Shape::uniform(2, 8, 3).unwrap();
        let trace =
            TraceBuilder::new("t", shape, Ids::U8(vec![5, 1, 7, 0, 3, 2, 6, 4, 1, 2, 0, 5]))
                .weights(Weights::F32(vec![
                    0.5, 0.25, 0.25, 0.5, 0.375, 0.125, 0.75, 0.25, 0.0, 0.5, 0.5, 0.0,
                ]))
                .build()
                .unwrap();
        let two = trace.keep_top(2).unwrap();
        assert_eq!(two.shape().layers()[1].top_k, 2);
        let rows: Vec<Vec<u32>> = [(0, 0), (0, 1), (1, 0), (1, 1)]
            .map(|(r, l)| two.layer_ids(r, l).iter().collect())
            .into();
        assert_eq!(rows, [[5, 1], [0, 3], [6, 4], [2, 0]]);
        assert_eq!(two.weights().map(|weights| weights.get(3)), Some(0.375));
        // 0.25 and 0.125 of the first token, nothing of the second.
        assert_eq!(trace.weight_beyond(2, |_| true), Some(0.375 / 4.0));
        assert_eq!(trace.weight_beyond(2, |row| row == 1), Some(0.0));
        assert_eq!(trace.weight_beyond(2, |_| false), None);
        assert_eq!(trace.keep_top(9).unwrap().digest(), trace.digest());
    }
}
