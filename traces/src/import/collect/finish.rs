//! The end of an import: what was collected becomes a trace, or an error with the flag to give.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::Collector;
use super::columns::TokenColumns;
use crate::check;
use crate::column::Column;
use crate::error::{Error, Result};
use crate::import::layers::Layers;
use crate::parts::{EmbeddingData, Parts, PredictionData, WeightData};
use crate::shape::{LayerShape, Shape};
use crate::spool::Spool;
use crate::trace::Trace;

/// Tokens below which a layer of top-1 that holds expert 0 alone may be a coincidence.
const FEW: u64 = 32;

impl Collector<'_> {
    /// Checks everything and makes the trace. `path` is the first input, for names and errors.
    pub(in crate::import) fn finish(
        mut self,
        importer: &str,
        path: &Path,
    ) -> Result<(Trace, Vec<String>)> {
        self.sequences.end(self.rows as usize);
        let refuse = |place: &str, problem: String| Err(Error::import(path, place, problem));
        let Some(layers) = self.layers.take().filter(|_| self.rows > 0) else {
            return refuse("ids", "no tokens; a trace needs at least one".to_owned());
        };
        self.refuse_zeros(path, &layers)?;
        let (experts, experts_from) = self.experts(path)?;
        let bytes_of = |number: u32| {
            let stated = self.stated.bytes.iter().find(|(layer, _)| *layer == number);
            self.options.expert_bytes.or(stated.map(|(_, bytes)| *bytes)).unwrap_or(0)
        };
        let shape = layers.kept.iter().map(|&(number, top_k)| LayerShape {
            number,
            experts,
            top_k,
            expert_bytes: bytes_of(number),
        });
        let shape = Shape::new(shape.collect())?;
        let tokens = self.rows as usize;
        self.note_oddities(&layers);
        if let Some(phase) = self.options.phase {
            self.columns.of_one_phase(phase, tokens)?;
        }
        let steps = self.partial("steps", |columns| &mut columns.steps)?;
        let token_ids = self.partial("token_ids", |columns| &mut columns.token_ids)?;
        let weights = self.finish_weights(&shape)?;
        let predictions = self.finish_predictions(&layers, &shape)?;
        let embeddings = self.embeddings.take().and_then(|(dim, prompt_in, prompt_out)| {
            let all = Some(prompt_in.len()) == dim.checked_mul(self.sequences.all.len());
            if !all {
                self.note("embeddings are left out: not every sequence has one of that dimension");
            }
            let (prompt_in, prompt_out) = (Column::Owned(prompt_in), Column::Owned(prompt_out));
            all.then_some(EmbeddingData { dim, prompt_in, prompt_out })
        });
        let own = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = self.options.name.clone().or(self.stated.name.take()).or_else(own);
        let narrow = check::ids_are_narrow(shape.max_experts());
        let notes = self.notes;
        let trace = Trace::from_parts(Parts {
            name: name.unwrap_or_default(),
            provenance: provenance(importer, self.sources, experts_from, self.facts, &notes),
            sequences: self.sequences.finish(tokens),
            ids: self.ids.into_column(narrow)?,
            positions: self.columns.positions.into_column()?,
            phases: self.columns.phases.into_column()?,
            steps,
            token_ids,
            weights,
            predictions,
            embeddings,
            shape,
        })?;
        Ok((trace, notes))
    }

    /// What is possible, and mostly a sign of a file that was read in another sense.
    fn note_oddities(&mut self, layers: &Layers) {
        let (tokens, count) = (self.rows, layers.kept.len() as u64);
        if tokens == 1 {
            self.note("the trace has one token alone");
        } else if count > tokens {
            self.note(format!(
                "more layers ({count}) than tokens ({tokens}): are the axes or columns of tokens \
                 and layers as this format has them?"
            ));
        }
        if let Some(lowest) = self.ids.lowest().filter(|&lowest| lowest > 0) {
            self.note(format!(
                "expert 0 is never used, the lowest id is {lowest}: do the ids count from 1?"
            ));
        }
    }

    fn refuse_zeros(&self, path: &Path, layers: &Layers) -> Result<()> {
        if self.zeros_are_meant {
            return Ok(());
        }
        let suspicious =
            |&&(_, start, end): &&(u32, usize, usize)| end - start > 1 || self.rows >= FEW;
        let numbers: Vec<String> =
            self.zeros.iter().filter(suspicious).map(|zeros| zeros.0.to_string()).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let (list, all, tokens) = (numbers.join(","), layers.file.len(), self.rows);
        if numbers.len() == layers.kept.len() {
            let problem = format!(
                "nothing but zeros in all {tokens} tokens: the engine captured no routes (vLLM on \
                 a CPU needs --enforce-eager for it: docs/recording.md); \
                 `ImportOptions::dense_layers` none if \
                 expert 0 is meant"
            );
            return Err(Error::import(path, "ids", problem));
        }
        let say = if numbers.len() == 1 { "layer" } else { "layers" };
        Err(Error::import(
            path,
            format!("{say} {list}"),
            format!(
                "nothing but zeros in all {tokens} tokens (of {all} layers): engines write them \
                 where a layer has no router. Give `ImportOptions::dense_layers` {list}, or \
                 `ImportOptions::config` with the \
                 model's config.json; `ImportOptions::dense_layers` none if expert 0 is meant"
            ),
        ))
    }

    /// The number of experts and where it is from.
    fn experts(&self, path: &Path) -> Result<(u32, &'static str)> {
        let highest = u32::from(self.ids.highest());
        let configured = self.config.as_ref().and_then(|config| config.experts);
        let (experts, from, who) = match (self.options.experts, configured, self.stated.experts) {
            (Some(experts), _, _) => (experts, "option", "`ImportOptions::experts` says"),
            (None, Some(experts), _) => (experts, "config", "`ImportOptions::config` says"),
            (None, None, Some(experts)) => (experts, "file", "the file says"),
            (None, None, None) => return Ok((highest + 1, "inferred: highest id + 1")),
        };
        if experts == 0 {
            let problem = format!(
                "{who} 0 experts, {} or more are used: give `ImportOptions::experts`",
                highest + 1
            );
            return Err(Error::import(path, "experts", problem));
        }
        if highest >= experts {
            let (needed, last) = (highest + 1, experts - 1);
            let lowest = self.ids.lowest().unwrap_or(0);
            let problem = if from == "option" {
                format!(
                    "expert id {highest} is used, {who} {experts} experts: give \
                     `ImportOptions::experts` \
                     {needed} or more"
                )
            } else if lowest > 0 && highest == experts {
                format!(
                    "expert ids {lowest} to {highest} are used, {who} {experts} experts, which \
                     are 0 to {last}: these count from 1; write them one less"
                )
            } else {
                format!(
                    "expert ids up to {highest} are used, {who} {experts} experts, which are 0 \
                     to {last}: these may be physical ids of a run with redundant experts, or a \
                     shared expert may be among them; map them to the model's own. Where {needed} \
                     experts is right, give `ImportOptions::experts` {needed}"
                )
            };
            return Err(Error::import(path, "ids", problem));
        }
        Ok((experts, from))
    }

    /// A column that some inputs may have lacked; it is kept only if all rows have it.
    fn partial(
        &mut self,
        name: &str,
        column: fn(&mut TokenColumns) -> &mut Spool,
    ) -> Result<Option<Column<u32>>> {
        let spool = column(&mut self.columns);
        let empty = spool.another();
        let spool = std::mem::replace(spool, empty);
        if spool.len() == 0 {
            return Ok(None);
        }
        if spool.len() != 4 * self.rows {
            self.note(format!("{name} are left out: not all tokens have them"));
            return Ok(None);
        }
        spool.into_column().map(Some)
    }

    fn finish_weights(&mut self, shape: &Shape) -> Result<Option<WeightData>> {
        let weights = std::mem::take(&mut self.weights);
        let (weights, left_out) = weights.finish(self.rows * shape.row_len() as u64)?;
        if let Some(reason) = left_out {
            self.note(format!("weights are left out: {reason}"));
        }
        Ok(weights)
    }

    fn finish_predictions(
        &mut self,
        layers: &Layers,
        shape: &Shape,
    ) -> Result<Option<PredictionData>> {
        let Some(predictions) = self.predictions.take() else { return Ok(None) };
        if !layers.whole() || !predictions.cover(self.rows, shape.layers().len()) {
            self.note(
                "predictions are left out: layers were left out, or not all tokens have them",
            );
            return Ok(None);
        }
        predictions.into_data(check::predictions_are_narrow(shape.max_experts())).map(Some)
    }
}

/// How the trace was made, as JSON.
fn provenance(
    importer: &str,
    mut sources: Vec<Value>,
    experts_from: &str,
    facts: Map<String, Value>,
    notes: &[String],
) -> String {
    let mut made = Map::new();
    made.insert("importer".to_owned(), json!(importer));
    match sources.len() {
        1 => made.insert("source".to_owned(), sources.swap_remove(0)),
        _ => made.insert("sources".to_owned(), Value::Array(sources)),
    };
    made.insert("experts_from".to_owned(), json!(experts_from));
    made.extend(facts);
    if !notes.is_empty() {
        made.insert("notes".to_owned(), json!(notes));
    }
    Value::Object(made).to_string()
}
