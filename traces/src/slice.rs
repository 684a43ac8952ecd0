//! Cutting a trace: some sequences, some rows, one phase; and giving it other steps.
//!
//! Columns are gathered into spools, so that a part of a large trace takes no more memory than a
//! part of a small one.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use serde_json::{Value, json};

use crate::column::Column;
use crate::error::{Error, Result};
use crate::parts::{EmbeddingData, IdData, Parts, PredictionData, WeightData};
use crate::sequence::{Phase, Sequence};
use crate::spool::Spool;
use crate::trace::Trace;

/// What to keep of a trace; everything by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// Sequences by their index, rising.
    pub sequences: Option<Vec<usize>>,
    /// Rows.
    pub tokens: Option<Range<usize>>,
    /// Tokens of one phase.
    pub phase: Option<Phase>,
}

impl Trace {
    /// The part of the trace that `slice` keeps, with every column; sequences without a token
    /// left are left out, others keep their ids and labels, tokens their positions and steps.
    ///
    /// # Errors
    /// [`Error::Column`] naming `sequences` where one is absent or nothing is left;
    /// [`Error::Io`] where a temporary file cannot be written.
    pub fn slice(&self, slice: &Slice) -> Result<Self> {
        let Parts { sequences, .. } = self.parts();
        let all = 0..sequences.len();
        let indices = slice.sequences.clone().unwrap_or_else(|| all.collect());
        let mut before = None;
        let (mut rows, mut kept, mut embedded) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        for index in indices {
            let Some(sequence) = sequences.get(index) else {
                let problem = format!("no sequence {index}; there are {}", sequences.len());
                return Err(Error::column("sequences", problem));
            };
            if before.replace(index).is_some_and(|before| before >= index) {
                return Err(Error::column(
                    "sequences",
                    format!("{index} is not after the one before"),
                ));
            }
            let start = next;
            for range in self.rows_of(sequence, slice) {
                next += range.len();
                rows.push(range);
            }
            if next > start {
                kept.push(Sequence { rows: start..next, ..sequence.clone() });
                embedded.push(index..index + 1);
            }
        }
        if kept.is_empty() {
            return Err(Error::column("sequences", "nothing is left of the trace"));
        }
        let made = json!({
            "sequences": slice.sequences,
            "tokens": slice.tokens.as_ref().map(|tokens| [tokens.start, tokens.end]),
            "phase": slice.phase.map(Phase::name),
        });
        self.gathered(kept, &rows, &embedded, self.derived("slice", made))
    }

    /// The same trace as run in other steps: `steps[row]` is the step of each token.
    ///
    /// # Errors
    /// [`Error::Column`] where there is not one step a token; [`Error::Token`] where a step falls
    /// in a sequence.
    pub fn with_steps(&self, steps: Vec<u32>, how: Value) -> Result<Self> {
        Self::from_parts(Parts {
            steps: Some(Column::Owned(steps)),
            provenance: self.derived("composed", how),
            ..self.parts().clone()
        })
    }

    fn rows_of(&self, sequence: &Sequence, slice: &Slice) -> Vec<Range<usize>> {
        let tokens = slice.tokens.clone().unwrap_or(0..usize::MAX);
        let start = sequence.rows.start.max(tokens.start);
        let end = sequence.rows.end.min(tokens.end);
        if start >= end {
            return Vec::new();
        }
        let mut ranges = Vec::new();
        let Some(phase) = slice.phase else {
            ranges.push(start..end);
            return ranges;
        };
        let mut at = start;
        for run in self.phases()[start..end].chunk_by(|a, b| a == b) {
            if run[0] == phase as u8 {
                ranges.push(at..at + run.len());
            }
            at += run.len();
        }
        ranges
    }

    fn gathered(
        &self,
        sequences: Vec<Sequence>,
        rows: &[Range<usize>],
        embedded: &[Range<usize>],
        provenance: String,
    ) -> Result<Self> {
        let parts = self.parts();
        let folder: Arc<Path> = Arc::from(std::env::temp_dir());
        let row_len = parts.shape.row_len();
        let gather_ids = |ids: &IdData, rows: &[Range<usize>], width: usize| {
            Ok::<_, Error>(match ids {
                IdData::U8(column) => IdData::U8(gather(column, rows, width, &folder)?),
                IdData::U16(column) => IdData::U16(gather(column, rows, width, &folder)?),
            })
        };
        let optional = |column: &Option<Column<u32>>| {
            column.as_ref().map(|column| gather(column, rows, 1, &folder)).transpose()
        };
        let weights = parts.weights.as_ref().map(|weights| {
            Ok::<_, Error>(match weights {
                WeightData::U8(w) => WeightData::U8(gather(w, rows, row_len, &folder)?),
                WeightData::F16(w) => WeightData::F16(gather(w, rows, row_len, &folder)?),
                WeightData::Bf16(w) => WeightData::Bf16(gather(w, rows, row_len, &folder)?),
                WeightData::F32(w) => WeightData::F32(gather(w, rows, row_len, &folder)?),
            })
        });
        let tokens = self.tokens();
        let predictions = parts.predictions.as_ref().map(|data| {
            // Each lookahead is a block of all tokens' rows: the same rows of every block.
            let of_all: Vec<Range<usize>> = (0..data.lookaheads)
                .flat_map(|a| rows.iter().map(move |r| a * tokens + r.start..a * tokens + r.end))
                .collect();
            let ids = gather_ids(&data.ids, &of_all, parts.shape.layers().len() * data.width)?;
            Ok::<_, Error>(PredictionData { ids, ..*data })
        });
        let embeddings = parts.embeddings.as_ref().map(|data| {
            Ok::<_, Error>(EmbeddingData {
                dim: data.dim,
                prompt_in: gather(&data.prompt_in, embedded, data.dim, &folder)?,
                prompt_out: gather(&data.prompt_out, embedded, data.dim, &folder)?,
            })
        });
        Self::from_parts(Parts {
            name: parts.name.clone(),
            shape: parts.shape.clone(),
            sequences,
            ids: gather_ids(&parts.ids, rows, row_len)?,
            positions: gather(&parts.positions, rows, 1, &folder)?,
            phases: gather(&parts.phases, rows, 1, &folder)?,
            steps: optional(&parts.steps)?,
            token_ids: optional(&parts.token_ids)?,
            weights: weights.transpose()?,
            predictions: predictions.transpose()?,
            embeddings: embeddings.transpose()?,
            provenance,
        })
    }

    /// Provenance of a trace that was made of this one.
    fn derived(&self, how: &str, made: Value) -> String {
        let from: Value = serde_json::from_str(self.provenance()).unwrap_or(Value::Null);
        json!({ how: made, "of": { "digest": self.digest(), "made": from } }).to_string()
    }
}

/// The rows of `ranges`, `width` values each, one range after another.
fn gather<T: Pod>(
    column: &Column<T>,
    ranges: &[Range<usize>],
    width: usize,
    folder: &Arc<Path>,
) -> Result<Column<T>> {
    let values = column.get();
    let mut spool = Spool::new(folder);
    for range in ranges {
        spool.extend(&values[range.start * width..range.end * width])?;
    }
    spool.into_column()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::full_trace;

    #[test]
    fn everything_is_the_same_trace_and_sequences_agree_with_selection() {
        let trace = full_trace();
        let same = trace.slice(&Slice::default()).unwrap();
        assert_eq!(same.content_digest(), trace.content_digest());
        let two = trace.slice(&Slice { sequences: Some(vec![0, 2]), ..Slice::default() }).unwrap();
        let selected = trace.select_sequences(&[0, 2]).unwrap();
        assert_eq!(two.content_digest(), selected.content_digest());
        assert_eq!(two.embeddings(), selected.embeddings());
    }

    #[test]
    fn rows_and_phases() {
        // Phases 0 1 | 0 1 2 | 0 1.
        let trace = full_trace();
        let decode = Slice { phase: Some(Phase::Decode), ..Slice::default() };
        let decode = trace.slice(&decode).unwrap();
        assert_eq!(decode.token_ids().unwrap(), [1001, 1003, 1006]);
        assert_eq!(decode.positions(), [1, 1, 9]);
        assert_eq!(decode.predictions().unwrap().entry(0, 1, 1), {
            let all = trace.predictions().unwrap();
            all.entry(0, 3, 1)
        });
        let middle = trace.slice(&Slice { tokens: Some(1..4), ..Slice::default() }).unwrap();
        assert_eq!(middle.token_ids().unwrap(), [1001, 1002, 1003]);
        assert_eq!(middle.sequences().len(), 2);
        assert_eq!(middle.sequences()[1].rows, 1..3);
        let verify = Slice { phase: Some(Phase::Verify), sequences: Some(vec![1]), tokens: None };
        assert_eq!(trace.slice(&verify).unwrap().token_ids().unwrap(), [1004]);
        assert!(middle.provenance().contains(trace.digest()));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let refused = |slice| full_trace().slice(&slice).unwrap_err().to_string();
        let of = |list: &[usize]| Slice { sequences: Some(list.to_vec()), ..Slice::default() };
        assert_eq!(refused(of(&[3])), "column sequences: no sequence 3; there are 3");
        assert!(refused(of(&[1, 0])).contains("0 is not after"));
        let beyond = Slice { tokens: Some(7..9), ..Slice::default() };
        assert!(refused(beyond).contains("nothing is left"));
    }

    #[test]
    fn other_steps() {
        let trace = full_trace();
        let how = json!({ "concurrency": 2 });
        let composed = trace.with_steps(vec![0, 1, 0, 1, 2, 3, 4], how.clone()).unwrap();
        assert_eq!(composed.steps().unwrap()[4], 2);
        assert_eq!(composed.digest(), trace.digest());
        assert!(composed.provenance().contains(r#""concurrency":2"#));
        let falls = trace.with_steps(vec![1, 0, 0, 0, 0, 0, 0], how.clone()).unwrap_err();
        assert!(falls.to_string().contains("step 0 follows 1"), "{falls}");
        assert!(trace.with_steps(vec![0], how).is_err());
    }
}
