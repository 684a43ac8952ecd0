//! Building a trace from columns: every importer and generator ends here.
//!
//! What is not given takes the plainest default; what is given is checked in full by
//! [`TraceBuilder::build`], which is the only way to a [`Trace`] besides opening a file.

use crate::check;
use crate::column::{Column, IdColumn, Ids, LentIds, LentWeights, Weights};
use crate::error::{Error, Result};
use crate::parts::{EmbeddingData, IdData, Parts, PredictionData, WeightData};
use crate::sequence::{Phase, Sequence};
use crate::shape::Shape;
use crate::trace::Trace;

/// Columns in, a validated [`Trace`] out.
///
/// ```
/// use hotset_traces::{Ids, Shape, TraceBuilder};
/// let shape = Shape::uniform(2, 8, 2)?; // 2 layers of 8 experts, 2 chosen: 4 ids a token
/// let trace = TraceBuilder::new("two tokens", shape, Ids::U8(vec![0, 1, 2, 3, 4, 5, 6, 7])).build()?;
/// assert_eq!(trace.tokens(), 2);
/// assert!(trace.layer_ids(1, 0).iter().eq([4, 5]));
/// # Ok::<(), hotset_traces::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TraceBuilder {
    name: String,
    shape: Shape,
    ids: IdData,
    sequences: Option<Vec<Sequence>>,
    positions: Option<Vec<u32>>,
    phases: Option<Vec<u8>>,
    steps: Option<Vec<u32>>,
    token_ids: Option<Vec<u32>>,
    weights: Option<WeightData>,
    predictions: Option<(usize, usize, Ids)>,
    embeddings: Option<(usize, Vec<u16>, Vec<u16>)>,
    provenance: String,
}

impl TraceBuilder {
    /// Begins with the ids, `[tokens][row_len]`, each layer's best first. Their width does not
    /// matter: the trace keeps one byte an id where every layer has at most 256 experts.
    pub fn new(name: impl Into<String>, shape: Shape, ids: Ids) -> Self {
        Self::of(name.into(), shape, ids.into())
    }

    /// [`TraceBuilder::new`] over ids that are not copied, where their width is the trace's own and
    /// they are aligned for it.
    ///
    /// # Errors
    /// [`Error::Column`] where half an id is left over.
    pub fn over(name: impl Into<String>, shape: Shape, ids: LentIds) -> Result<Self> {
        let ids =
            IdData::lent(ids).ok_or_else(|| Error::column("ids", "half an id is left over"))?;
        Ok(Self::of(name.into(), shape, ids))
    }

    fn of(name: String, shape: Shape, ids: IdData) -> Self {
        Self {
            name,
            shape,
            ids,
            sequences: None,
            positions: None,
            phases: None,
            steps: None,
            token_ids: None,
            weights: None,
            predictions: None,
            embeddings: None,
            provenance: "{}".to_owned(),
        }
    }

    /// The sequences, their rows following each other. Default: all tokens are one sequence.
    pub fn sequences(mut self, sequences: Vec<Sequence>) -> Self {
        self.sequences = Some(sequences);
        self
    }

    /// Positions, `[tokens]`. Default: counted from 0 in each sequence.
    pub fn positions(mut self, positions: Vec<u32>) -> Self {
        self.positions = Some(positions);
        self
    }

    /// Phases, `[tokens]`, as numbers of [`Phase`]. Default: all decode.
    pub fn phases(mut self, phases: Vec<u8>) -> Self {
        self.phases = Some(phases);
        self
    }

    /// The engine's own steps, `[tokens]`.
    pub fn steps(mut self, steps: Vec<u32>) -> Self {
        self.steps = Some(steps);
        self
    }

    /// No steps, whatever was given: for tokens in an order that the engine did not run.
    pub(crate) fn without_steps(mut self) -> Self {
        self.steps = None;
        self
    }

    /// Vocabulary ids, `[tokens]`.
    pub fn token_ids(mut self, token_ids: Vec<u32>) -> Self {
        self.token_ids = Some(token_ids);
        self
    }

    /// Router weights, one for each id.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = Some(weights.into());
        self
    }

    /// [`TraceBuilder::weights`] that are not copied where they are aligned.
    ///
    /// # Errors
    /// [`Error::Column`] where a part of a weight is left over.
    pub fn weights_over(mut self, weights: LentWeights) -> Result<Self> {
        let partial = || Error::column("weights", "a part of a weight is left over");
        self.weights = Some(WeightData::lent(weights).ok_or_else(partial)?);
        Ok(self)
    }

    /// Predicted ids, `[lookaheads][tokens][layers][width]`; 255 (`U8`) or 65,535 (`U16`) where
    /// there is no prediction.
    pub fn predictions(mut self, lookaheads: usize, width: usize, ids: Ids) -> Self {
        self.predictions = Some((lookaheads, width, ids));
        self
    }

    /// Prompt embeddings: bit patterns of half precision, `[sequences][dim]` each.
    pub fn embeddings(mut self, dim: usize, prompt_in: Vec<u16>, prompt_out: Vec<u16>) -> Self {
        self.embeddings = Some((dim, prompt_in, prompt_out));
        self
    }

    /// How the trace was made, as JSON text. Default: an empty object.
    pub fn provenance(mut self, json: impl Into<String>) -> Self {
        self.provenance = json.into();
        self
    }

    /// Checks everything and makes the trace.
    ///
    /// # Errors
    /// [`Error::Column`] for lengths that do not fit together, [`Error::Token`] for impossible
    /// values; see [`Trace::validate`].
    pub fn build(self) -> Result<Trace> {
        let row_len = self.shape.row_len();
        let ids = self.ids.view();
        let tokens = ids.len() / row_len;
        if tokens * row_len != ids.len() {
            let problem = format!("{} ids are not a whole number of rows of {row_len}", ids.len());
            return Err(Error::column("ids", problem));
        }
        let sequences = self.sequences.unwrap_or_else(|| vec![whole(tokens)]);
        let positions =
            self.positions.map_or_else(|| counted(&sequences, tokens), Ok::<_, Error>)?;
        let phases = self.phases.unwrap_or_else(|| vec![Phase::Decode as u8; tokens]);
        let narrow = check::ids_are_narrow(self.shape.max_experts());
        let narrow_predictions = check::predictions_are_narrow(self.shape.max_experts());
        Trace::from_parts(Parts {
            name: self.name,
            sequences,
            ids: fit("ids", self.ids, narrow, |id| id)?,
            positions: Column::Owned(positions),
            phases: Column::Owned(phases),
            steps: self.steps.map(Column::Owned),
            token_ids: self.token_ids.map(Column::Owned),
            weights: self.weights,
            predictions: match self.predictions {
                None => None,
                Some((lookaheads, width, ids)) => Some(PredictionData {
                    lookaheads,
                    width,
                    ids: fit("predictions", ids.into(), narrow_predictions, swap_marker)?,
                }),
            },
            embeddings: self.embeddings.map(|(dim, prompt_in, prompt_out)| EmbeddingData {
                dim,
                prompt_in: Column::Owned(prompt_in),
                prompt_out: Column::Owned(prompt_out),
            }),
            provenance: self.provenance,
            shape: self.shape,
        })
    }
}

fn whole(tokens: usize) -> Sequence {
    Sequence {
        id: 0,
        label: String::new(),
        document: None,
        prompt_tokens: 0,
        has_repetition: None,
        rows: 0..tokens,
    }
}

fn counted(sequences: &[Sequence], tokens: usize) -> Result<Vec<u32>> {
    // Rows that do not cover the tokens are refused by the checks; here they must not ask for
    // more memory than the ids did.
    if sequences.iter().any(|s| s.rows.end > tokens) || u32::try_from(tokens).is_err() {
        let problem = format!("a sequence has rows beyond the {tokens} tokens that have ids");
        return Err(Error::column("sequences", problem));
    }
    let mut positions = vec![0; tokens];
    for sequence in sequences {
        if let Some(rows) = positions.get_mut(sequence.rows.clone()) {
            rows.iter_mut().zip(0..).for_each(|(position, n)| *position = n);
        }
    }
    Ok(positions)
}

/// The none marker of one width as that of the other.
fn swap_marker(id: u16) -> u16 {
    match id {
        0xff => 0xffff,
        0xffff => 0xff,
        other => other,
    }
}

/// The ids in the width that the shape asks for; `convert` is applied to each where it changes.
fn fit(column: &'static str, ids: IdData, narrow: bool, convert: fn(u16) -> u16) -> Result<IdData> {
    match (ids.view(), narrow) {
        (IdColumn::U16(ids), true) => {
            let mut bytes = Vec::with_capacity(ids.len());
            for (index, &id) in ids.iter().enumerate() {
                bytes.push(u8::try_from(convert(id)).map_err(|_| {
                    Error::column(column, format!("entry {index} is {id}, over the 256 experts"))
                })?);
            }
            Ok(Ids::U8(bytes).into())
        }
        (IdColumn::U8(ids), false) => {
            Ok(Ids::U16(ids.iter().map(|&id| convert(id.into())).collect()).into())
        }
        _ => Ok(ids),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_lent_is_read_in_place() {
        let bytes: Arc<Vec<u8>> = Arc::new(vec![0, 1, 2, 3]);
        let shape = Shape::uniform(1, 4, 2).unwrap();
        let lent = LentIds::U8(bytes.clone());
        let trace = TraceBuilder::over("lent", shape.clone(), lent).unwrap().build().unwrap();
        let IdColumn::U8(ids) = trace.ids() else { panic!("4 experts take a byte") };
        assert_eq!(ids.as_ptr(), bytes.as_ptr());
        let owned = TraceBuilder::new("lent", shape.clone(), Ids::U8(vec![0, 1, 2, 3]));
        assert_eq!(trace.digest(), owned.build().unwrap().digest());
        let half = TraceBuilder::over("half", shape.clone(), LentIds::U16(Arc::new(vec![0; 3])));
        assert_eq!(half.unwrap_err().to_string(), "column ids: half an id is left over");
        let high = TraceBuilder::over("high", shape, LentIds::U8(Arc::new(vec![0, 4])));
        assert!(high.unwrap().build().is_err());
    }

    #[test]
    fn lent_weights_are_checked() {
        let shape = Shape::uniform(1, 4, 2).unwrap();
        let weights = |bytes: Vec<u8>| {
            let builder = TraceBuilder::new("w", shape.clone(), Ids::U8(vec![0, 1]));
            builder.weights_over(LentWeights::F32(Arc::new(bytes)))
        };
        let nan: Vec<u8> = [0.5, f32::NAN].iter().flat_map(|w: &f32| w.to_le_bytes()).collect();
        assert!(weights(nan).unwrap().build().is_err());
        assert!(weights(vec![0; 7]).is_err());
        assert!(weights(vec![0; 8]).unwrap().build().is_ok());
    }
}
