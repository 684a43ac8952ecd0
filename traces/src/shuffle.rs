//! The shuffle control: the same tokens in another order, so that what is left of a result owes
//! nothing to which token followed which.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use serde_json::{Value, json};

use crate::builder::TraceBuilder;
use crate::column::{Ids, Weights};
use crate::draw;
use crate::error::Result;
use crate::trace::Trace;
use crate::{IdColumn, WeightColumn};

impl Trace {
    /// The trace with the order of tokens permuted at random within each sequence, every stretch
    /// of one phase for itself. What belongs to a token goes with it (experts in all layers,
    /// weights, predictions, vocabulary id); positions, phases and steps stay where they are. So
    /// popularity, the experts of each sequence and the layers' order are kept, and the
    /// likeness of neighbouring tokens is lost.
    ///
    /// # Errors
    /// None that a sound trace could cause.
    pub fn shuffle_tokens(&self, seed: u64) -> Result<Self> {
        let order = self.shuffled_rows(seed);
        let row_len = self.shape().row_len();
        let ids = match self.ids() {
            IdColumn::U8(ids) => Ids::U8(permute(ids, &order, row_len)),
            IdColumn::U16(ids) => Ids::U16(permute(ids, &order, row_len)),
        };
        let name = format!("{}, tokens shuffled", self.name());
        let mut builder = TraceBuilder::new(name, self.shape().clone(), ids)
            .sequences(self.sequences().to_vec())
            .positions(self.positions().to_vec())
            .phases(self.phases().to_vec())
            .provenance(self.shuffle_provenance(seed));
        if let Some(steps) = self.steps() {
            builder = builder.steps(steps.to_vec());
        }
        if let Some(token_ids) = self.token_ids() {
            builder = builder.token_ids(permute(token_ids, &order, 1));
        }
        if let Some(weights) = self.weights() {
            builder = builder.weights(match weights {
                WeightColumn::U8(w) => Weights::U8(permute(w, &order, row_len)),
                WeightColumn::F16(w) => Weights::F16(permute(w, &order, row_len)),
                WeightColumn::Bf16(w) => Weights::Bf16(permute(w, &order, row_len)),
                WeightColumn::F32(w) => Weights::F32(permute(w, &order, row_len)),
            });
        }
        if let Some(predictions) = self.predictions() {
            let tokens = self.tokens() as u32;
            // Each lookahead is a block of all tokens' rows.
            let rows: Vec<u32> = (0..predictions.lookaheads as u32)
                .flat_map(|ahead| order.iter().map(move |row| ahead * tokens + row))
                .collect();
            let width = predictions.layers * predictions.width;
            let ids = match predictions.ids {
                IdColumn::U8(ids) => Ids::U8(permute(ids, &rows, width)),
                IdColumn::U16(ids) => Ids::U16(permute(ids, &rows, width)),
            };
            builder = builder.predictions(predictions.lookaheads, predictions.width, ids);
        }
        if let Some(data) = &self.parts().embeddings {
            let [prompt_in, prompt_out] =
                [&data.prompt_in, &data.prompt_out].map(|column| column.get().to_vec());
            builder = builder.embeddings(data.dim, prompt_in, prompt_out);
        }
        builder.build()
    }

    /// Which row comes to each place.
    fn shuffled_rows(&self, seed: u64) -> Vec<u32> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut order: Vec<u32> = (0..self.tokens() as u32).collect();
        let phases = self.phases();
        for sequence in self.sequences() {
            let mut start = sequence.rows.start;
            for stretch in phases[sequence.rows.clone()].chunk_by(|a, b| a == b) {
                let rows = &mut order[start..start + stretch.len()];
                start += stretch.len();
                draw::shuffle(&mut random, rows);
            }
        }
        order
    }

    fn shuffle_provenance(&self, seed: u64) -> String {
        let from: Value = serde_json::from_str(self.provenance()).unwrap_or(Value::Null);
        json!({
            "shuffled": "tokens within each sequence and phase",
            "seed": seed,
            "of": { "digest": self.digest(), "made": from },
        })
        .to_string()
    }
}

/// The rows of `width` values in this order.
fn permute<T: Copy>(column: &[T], order: &[u32], width: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(order.len() * width);
    for &row in order {
        out.extend_from_slice(&column[row as usize * width..][..width]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::full_trace;

    #[test]
    fn tokens_stay_in_their_sequence_and_phase_and_keep_what_is_theirs() {
        let trace = crate::bundled().unwrap();
        let shuffled = trace.shuffle_tokens(7).unwrap();
        shuffled.validate().unwrap();
        assert_ne!(shuffled.digest(), trace.digest());
        assert_eq!(shuffled.phases(), trace.phases());
        assert_eq!(shuffled.positions(), trace.positions());
        let row_len = trace.shape().row_len();
        let mut moved = 0;
        for sequence in trace.sequences() {
            let tokens = |trace: &Trace, phase: u8| {
                let rows = sequence.rows.clone().filter(|&row| trace.phases()[row] == phase);
                let of_row = |row: usize| trace.ids().to_ids(row * row_len..(row + 1) * row_len);
                rows.map(|row| format!("{:?}", of_row(row))).collect::<Vec<_>>()
            };
            for phase in [0, 1] {
                let (mut before, mut after) = (tokens(&trace, phase), tokens(&shuffled, phase));
                moved += before.iter().zip(&after).filter(|(a, b)| a != b).count();
                before.sort_unstable();
                after.sort_unstable();
                assert_eq!(before, after);
            }
        }
        // All but about one token a stretch move.
        assert!(moved > trace.tokens() * 9 / 10, "{moved} of {} moved", trace.tokens());
    }

    #[test]
    fn a_seed_gives_one_order() {
        let trace = crate::bundled().unwrap();
        let digest = |seed| trace.shuffle_tokens(seed).unwrap().digest().to_owned();
        assert_eq!(digest(1), digest(1));
        assert_ne!(digest(1), digest(2));
        let provenance = trace.shuffle_tokens(1).unwrap().provenance().to_owned();
        assert!(provenance.contains(trace.digest()) && provenance.contains(r#""seed":1"#));
    }

    #[test]
    fn every_column_goes_with_its_token() {
        // Sequences of two and three tokens, each of a phase of its own but two decode tokens.
        let trace = full_trace();
        let swapped = (0..64)
            .map(|seed| trace.shuffle_tokens(seed).unwrap())
            .find(|shuffled| shuffled.digest() != trace.digest());
        // Only equal neighbours in phase may swap; this trace has none, so nothing ever moves.
        assert!(swapped.is_none());
        let mut phases = trace.phases().to_vec();
        phases[2..5].fill(1);
        let trace = crate::testing::full_builder().phases(phases).build().unwrap();
        let shuffled = (0..64)
            .map(|seed| trace.shuffle_tokens(seed).unwrap())
            .find(|shuffled| shuffled.token_ids() != trace.token_ids())
            .unwrap();
        for row in 0..trace.tokens() {
            let token = shuffled.token_ids().unwrap()[row];
            let old = trace.token_ids().unwrap().iter().position(|&t| t == token).unwrap();
            assert_eq!(shuffled.layer_ids(row, 0), trace.layer_ids(old, 0));
            assert_eq!(shuffled.layer_ids(row, 1), trace.layer_ids(old, 1));
            let weight =
                |t: &Trace, row: usize| t.weights().unwrap().get(row * t.shape().row_len());
            assert_eq!(weight(&shuffled, row), weight(&trace, old));
            for ahead in 0..2 {
                let entry =
                    |t: &Trace, row| t.predictions().unwrap().entry(ahead, row, 1).to_ids(0..2);
                assert_eq!(entry(&shuffled, row), entry(&trace, old));
            }
            assert_eq!(shuffled.steps().unwrap()[row], trace.steps().unwrap()[row]);
        }
        assert_eq!(shuffled.embeddings(), trace.embeddings());
    }
}
