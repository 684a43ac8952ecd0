//! Cutting a trace: some of its sequences, whole, as a trace of their own.
//!
//! For train and test splits, for workloads that run sequences again, and for the bundled trace.

use std::ops::Range;

use serde_json::{Value, json};

use crate::builder::TraceBuilder;
use crate::column::Ids;
use crate::error::{Error, Result};
use crate::sequence::Sequence;
use crate::trace::Trace;

impl Trace {
    /// The sequences of these indices, in this order, with every column and embedding that the
    /// trace has; they keep their ids and labels. Positions and recorded steps stay as they are.
    ///
    /// A sequence may be named several times; each time it is a sequence of its own with the same
    /// id. Recorded steps are then left out, for two runs of a sequence would share theirs; the
    /// provenance says so.
    ///
    /// # Errors
    /// [`Error::Column`] without an index, with one that the trace does not have, or for more
    /// tokens than 32 bits number or memory holds.
    pub fn select_sequences(&self, indices: &[usize]) -> Result<Self> {
        self.selection(indices)?.build()
    }

    /// [`Trace::select_sequences`] before it is built, for those who add to it.
    pub(crate) fn selection(&self, indices: &[usize]) -> Result<TraceBuilder> {
        let chosen = indices
            .iter()
            .map(|&index| {
                self.sequences().get(index).ok_or_else(|| {
                    let there = self.sequences().len();
                    Error::column("sequences", format!("no sequence {index}; there are {there}"))
                })
            })
            .collect::<Result<Vec<_>>>()?;
        if chosen.is_empty() {
            return Err(Error::column(
                "sequences",
                "none was selected; a trace needs at least one",
            ));
        }
        let rows: Vec<Range<usize>> = chosen.iter().map(|sequence| sequence.rows.clone()).collect();
        let tokens: u128 = rows.iter().map(|rows| rows.len() as u128).sum();
        if tokens > u128::from(u32::MAX) {
            let problem = format!("{tokens} tokens were selected; they are numbered by 32 bits");
            return Err(Error::column("sequences", problem));
        }
        let repeats = repeats(indices);
        let row_len = self.shape().row_len();

        let ids = self.ids();
        let ids = match ids {
            crate::IdColumn::U8(ids) => Ids::U8(gather("ids", ids, &rows, row_len)?),
            crate::IdColumn::U16(ids) => Ids::U16(gather("ids", ids, &rows, row_len)?),
        };
        let mut next = 0;
        let sequences = chosen.iter().map(|&sequence| {
            let start = next;
            next += sequence.rows.len();
            Sequence { rows: start..next, ..sequence.clone() }
        });
        let mut builder = TraceBuilder::new(self.name(), self.shape().clone(), ids)
            .sequences(sequences.collect())
            .positions(gather("positions", self.positions(), &rows, 1)?)
            .phases(gather("phases", self.phases(), &rows, 1)?)
            .provenance(self.selection_provenance(indices, repeats));
        if let Some(steps) = self.steps().filter(|_| !repeats) {
            builder = builder.steps(gather("steps", steps, &rows, 1)?);
        }
        if let Some(token_ids) = self.token_ids() {
            builder = builder.token_ids(gather("token_ids", token_ids, &rows, 1)?);
        }
        if let Some(weights) = self.weights() {
            use crate::{WeightColumn, Weights};
            builder = builder.weights(match weights {
                WeightColumn::U8(w) => Weights::U8(gather("weights", w, &rows, row_len)?),
                WeightColumn::F16(w) => Weights::F16(gather("weights", w, &rows, row_len)?),
                WeightColumn::Bf16(w) => Weights::Bf16(gather("weights", w, &rows, row_len)?),
                WeightColumn::F32(w) => Weights::F32(gather("weights", w, &rows, row_len)?),
            });
        }
        if let Some(predictions) = self.predictions() {
            let (ahead, width) = (predictions.lookaheads, predictions.width);
            let tokens = self.tokens();
            // Each lookahead is a block of all tokens' rows: the same rows of every block.
            let rows: Vec<Range<usize>> = (0..ahead)
                .flat_map(|a| rows.iter().map(move |r| a * tokens + r.start..a * tokens + r.end))
                .collect();
            let row = predictions.layers * width;
            let ids = match predictions.ids {
                crate::IdColumn::U8(ids) => Ids::U8(gather("predictions", ids, &rows, row)?),
                crate::IdColumn::U16(ids) => Ids::U16(gather("predictions", ids, &rows, row)?),
            };
            builder = builder.predictions(ahead, width, ids);
        }
        if let Some(data) = &self.parts().embeddings {
            let rows: Vec<Range<usize>> = indices.iter().map(|&index| index..index + 1).collect();
            let part = |column: &[u16]| gather("embeddings", column, &rows, data.dim);
            let (prompt_in, prompt_out) =
                (part(data.prompt_in.get())?, part(data.prompt_out.get())?);
            builder = builder.embeddings(data.dim, prompt_in, prompt_out);
        }
        Ok(builder)
    }

    fn selection_provenance(&self, indices: &[usize], repeats: bool) -> String {
        let from: Value = serde_json::from_str(self.provenance()).unwrap_or(Value::Null);
        let of = json!({ "digest": self.digest(), "made": from });
        let mut made = json!({ "selected_sequences": indices, "of": of });
        if repeats && self.steps().is_some() {
            made["steps"] = json!("left out: sequences repeat, and would share the recorded steps");
        }
        made.to_string()
    }
}

/// Whether any index is there twice.
fn repeats(indices: &[usize]) -> bool {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The rows of `ranges`, `width` values each, one range after another.
fn gather<T: Copy>(
    name: &'static str,
    column: &[T],
    ranges: &[Range<usize>],
    width: usize,
) -> Result<Vec<T>> {
    let rows = ranges.iter().fold(0usize, |rows, range| rows.saturating_add(range.len()));
    let mut out = Vec::new();
    out.try_reserve_exact(rows.saturating_mul(width)).map_err(|_| {
        let problem = format!("{rows} rows of {width} are more than memory holds; select fewer");
        Error::column(name, problem)
    })?;
    for range in ranges {
        out.extend_from_slice(&column[range.start * width..range.end * width]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::full_trace;

    #[test]
    fn every_column_follows_its_sequence() {
        let trace = full_trace();
        let cut = trace.select_sequences(&[2, 0]).unwrap();
        let (two, zero) = (&trace.sequences()[2], &trace.sequences()[0]);
        let rows: Vec<usize> = two.rows.clone().chain(zero.rows.clone()).collect();
        assert_eq!(cut.tokens(), rows.len());
        assert_eq!(cut.sequences()[0].label, two.label);
        assert_eq!(cut.sequences()[1].rows, two.rows.len()..rows.len());
        for (new, &old) in rows.iter().enumerate() {
            for layer in 0..trace.shape().layers().len() {
                assert_eq!(cut.layer_ids(new, layer), trace.layer_ids(old, layer));
                for ahead in 0..2 {
                    let entry = |t: &Trace, row| {
                        t.predictions().unwrap().entry(ahead, row, layer).to_ids(0..2)
                    };
                    assert_eq!(entry(&cut, new), entry(&trace, old));
                }
            }
            let weight =
                |t: &Trace, row: usize| t.weights().unwrap().get(row * t.shape().row_len());
            assert_eq!(weight(&cut, new), weight(&trace, old));
            assert_eq!(cut.positions()[new], trace.positions()[old]);
            assert_eq!(cut.phases()[new], trace.phases()[old]);
            assert_eq!(cut.steps().unwrap()[new], trace.steps().unwrap()[old]);
            assert_eq!(cut.token_ids().unwrap()[new], trace.token_ids().unwrap()[old]);
        }
        let (new, old) = (cut.embeddings().unwrap(), trace.embeddings().unwrap());
        assert_eq!(new.input(0), old.input(2));
        assert_eq!(new.output(1), old.output(0));
        cut.validate().unwrap();
    }

    #[test]
    fn all_sequences_in_order_are_the_same_routing() {
        let trace = full_trace();
        let same = trace.select_sequences(&[0, 1, 2]).unwrap();
        assert_eq!(same.digest(), trace.digest());
        assert_eq!(same.content_digest(), trace.content_digest());
        assert_ne!(same.provenance(), trace.provenance());
    }

    #[test]
    fn sequences_may_repeat() {
        let trace = full_trace();
        let twice = trace.select_sequences(&[1, 0, 1]).unwrap();
        twice.validate().unwrap();
        let ids: Vec<u32> = twice.sequences().iter().map(|sequence| sequence.id).collect();
        assert_eq!(ids, [11, 10, 11]);
        assert_eq!(twice.sequences()[2].document, Some(111));
        assert_eq!((twice.tokens(), twice.positions()), (8, &[0, 1, 2, 0, 1, 0, 1, 2][..]));
        assert_eq!(twice.layer_ids(7, 1), trace.layer_ids(4, 1));
        let (new, old) = (twice.embeddings().unwrap(), trace.embeddings().unwrap());
        assert_eq!((new.input(2), new.output(0)), (old.input(1), old.output(1)));
        // Both runs of sequence 1 would have had steps 0, 2 and 3, and so run together.
        assert!(twice.steps().is_none() && twice.provenance().contains("sequences repeat"));
        assert!(trace.select_sequences(&[1, 0]).unwrap().steps().is_some());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("twice.hst");
        for codec in [crate::Codec::Raw, crate::Codec::Zstd(3)] {
            crate::write_hst(&twice, &path, codec).unwrap();
            let opened = Trace::open(&path).unwrap();
            opened.validate().unwrap();
            assert!(opened == twice);
        }
    }

    #[test]
    fn absent_sequences_are_refused() {
        let message =
            |indices: &[usize]| full_trace().select_sequences(indices).unwrap_err().to_string();
        assert_eq!(message(&[0, 3]), "column sequences: no sequence 3; there are 3");
        assert!(message(&[]).contains("none was selected"));
    }
}
