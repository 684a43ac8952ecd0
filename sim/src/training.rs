//! What of a trace is replayed: shuffled if asked for, and cut into a part to train on and one to
//! test on.

use std::sync::Arc;

use hotset_traces::Trace;
use serde::Serialize;

use crate::{PhaseFilter, SimError};

/// The order of tokens was permuted within each sequence and phase before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// Whole tokens: each keeps its experts in all layers.
    Tokens,
}

/// How a trace was cut by sequences, in their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingSplit {
    /// Share of the sequences asked for, in percent.
    pub percent: f64,
    /// The first so many sequences were trained on.
    pub training_sequences: usize,
    /// The others were tested on: all rows are of them.
    pub tested_sequences: usize,
    /// Digest of the training part's routing.
    pub training_digest: String,
    /// Digest of the tested part's routing.
    pub tested_digest: String,
}

impl TrainingSplit {
    /// Cuts a trace: the first `percent` of its sequences, rounded down, and the rest.
    ///
    /// # Errors
    /// A part without a sequence.
    pub fn of(trace: &Trace, percent: f64) -> Result<SplitTrace, SimError> {
        let sequences = trace.sequences().len();
        let first = (percent * sequences as f64 / 100.0 + 1e-9).floor() as usize;
        let none = SimError::TrainingPart { percent, sequences };
        if first == 0 || first >= sequences {
            return Err(none);
        }
        let all: Vec<usize> = (0..sequences).collect();
        let part = |indices: &[usize]| trace.select_sequences(indices).map_err(|_| none.clone());
        let (training, tested) = (part(&all[..first])?, part(&all[first..])?);
        let split = Self {
            percent,
            training_sequences: first,
            tested_sequences: sequences - first,
            training_digest: training.digest().to_owned(),
            tested_digest: tested.digest().to_owned(),
        };
        Ok(SplitTrace { split, training, tested })
    }
}

/// A trace that was cut.
#[derive(Debug, Clone)]
pub struct SplitTrace {
    /// How.
    pub split: TrainingSplit,
    /// What is trained on.
    pub training: Trace,
    /// What is tested.
    pub tested: Trace,
}

/// How often each dense key is chosen by the tokens that `phase` picks.
#[must_use]
pub fn uses(trace: &Trace, phase: PhaseFilter) -> Arc<[u64]> {
    let shape = trace.shape();
    let mut uses = vec![0; shape.total_experts() as usize];
    for row in (0..trace.tokens()).filter(|&row| phase.wants(trace.phase(row))) {
        for layer in 0..shape.layers().len() {
            let base = shape.key_base(layer);
            trace.layer_ids(row, layer).iter().for_each(|id| uses[(base + id) as usize] += 1);
        }
    }
    uses.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_cut_whole_and_rounded_down() {
        let trace = hotset_traces::testing::full_trace(); // sequences of 2, 3 and 2 tokens
        let SplitTrace { split, training, tested } = TrainingSplit::of(&trace, 50.0).unwrap();
        assert_eq!((split.training_sequences, split.tested_sequences), (1, 2));
        assert_eq!((training.tokens(), tested.tokens()), (2, 5));
        assert_ne!(split.training_digest, split.tested_digest);
        assert_eq!(TrainingSplit::of(&trace, 67.0).unwrap().split.training_sequences, 2);
        for percent in [0.0, 33.0, 100.0] {
            let told = TrainingSplit::of(&trace, percent).unwrap_err().to_string();
            assert!(told.contains("3 sequences"), "{told}");
        }
    }

    #[test]
    fn uses_are_counted_by_phase() {
        let trace = hotset_traces::testing::full_trace();
        // Token t uses t and t + 1 of the first layer's 8, t mod 4 of the second's 4.
        assert_eq!(&uses(&trace, PhaseFilter::All)[..], [1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 1]);
        assert_eq!(uses(&trace, PhaseFilter::Verify).iter().sum::<u64>(), 3);
    }
}
