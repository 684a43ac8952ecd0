//! Rows in, a trace out: what every importer writes to.
//!
//! Columns are spooled, so memory does not grow with the input; layers are selected on the way;
//! what the files leave open and the caller did not say is an error here, with the flag that
//! settles it.

mod columns;
mod finish;
mod sequences;
mod weights;

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use serde_json::{Map, Value};

use self::columns::TokenColumns;
use self::sequences::Sequences;
pub(super) use self::sequences::sequence_limit;
pub(super) use self::weights::Precision;
use self::weights::Weights;
use super::id_spool::{IdSpool, RawId};
use super::input::Input;
use super::layers::{Layers, Numbering};
use super::options::{ImportOptions, ModelConfig};
use super::predictions::PredictionSpool;
use crate::error::Result;
use crate::sequence::{Phase, Sequence};
use crate::spool::Spool;

/// What the files state of their model.
#[derive(Debug, Default)]
pub(super) struct Stated {
    pub(super) experts: Option<u32>,
    /// The model's name, the trace's where the caller gives none.
    pub(super) name: Option<String>,
    /// Bytes of an expert by layer number.
    pub(super) bytes: Vec<(u32, u64)>,
}

pub(super) struct Collector<'a> {
    pub(super) options: &'a ImportOptions,
    pub(super) config: Option<ModelConfig>,
    folder: Arc<Path>,
    layers: Option<Layers>,
    ids: IdSpool,
    /// Places in a file's row that held nothing but zeros so far: layer number, first, end.
    zeros: Vec<(u32, usize, usize)>,
    rows: u64,
    sequences: Sequences,
    columns: TokenColumns,
    weights: Weights,
    predictions: Option<PredictionSpool>,
    embeddings: Option<(usize, Vec<u16>, Vec<u16>)>,
    pub(super) stated: Stated,
    /// A layer of nothing but zeros is what it seems.
    pub(super) zeros_are_meant: bool,
    notes: Vec<String>,
    sources: Vec<Value>,
    /// What provenance says beside the usual.
    pub(super) facts: Map<String, Value>,
}

impl<'a> Collector<'a> {
    /// For inputs of so many bytes.
    pub(super) fn new(options: &'a ImportOptions, bytes: u64) -> Result<Self> {
        let config = options.config.as_deref().map(ModelConfig::read).transpose()?;
        let folder = options.temporary.clone().unwrap_or_else(std::env::temp_dir);
        let folder: Arc<Path> = Arc::from(folder);
        Ok(Self {
            options,
            config,
            layers: None,
            ids: IdSpool::new(&folder),
            zeros: Vec::new(),
            rows: 0,
            sequences: Sequences::new(bytes),
            columns: TokenColumns::new(&folder),
            weights: Weights::default(),
            predictions: None,
            embeddings: None,
            stated: Stated::default(),
            zeros_are_meant: options.dense_layers.as_ref().is_some_and(Vec::is_empty),
            notes: Vec::new(),
            sources: Vec::new(),
            facts: Map::new(),
            folder,
        })
    }

    /// An empty spool beside those of the columns.
    pub(super) fn spool(&self) -> Spool {
        Spool::new(&self.folder)
    }

    /// Sequences that these inputs may have.
    pub(super) fn sequence_limit(&self) -> u64 {
        self.sequences.limit
    }

    /// What provenance says of an input that was read.
    pub(super) fn read(&mut self, source: Value) {
        self.sources.push(source);
    }

    /// Something that the caller should know; said once.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// States the layers of the rows to come; every input must have the same.
    pub(super) fn layers(
        &mut self,
        input: &Input<'_>,
        numbering: Numbering<'_>,
        top_ks: &[u32],
    ) -> Result<&Layers> {
        let layers = Layers::new(input, self.options, self.config.as_ref(), numbering, top_ks)?;
        if let Some(before) = &self.layers {
            before.agree(input, &layers)?;
        } else {
            let mut at = 0;
            for &(number, top_k) in &layers.file {
                let end = at + top_k as usize;
                if layers.keeps(number) {
                    self.zeros.push((number, at, end));
                }
                at = end;
            }
        }
        Ok(self.layers.insert(layers))
    }

    /// The layers that were stated, if any were.
    pub(super) fn known_layers(&self) -> Option<&Layers> {
        self.layers.as_ref()
    }

    /// Begins a sequence of an input; its number is its place unless it is given one.
    pub(super) fn sequence(&mut self, input: &Input<'_>, id: Option<u32>) -> Result<&mut Sequence> {
        self.sequences.begin(input, id, self.rows as usize)
    }

    /// How long the prompt is with which the last sequence begins.
    pub(super) fn prompt(&mut self, tokens: u32) {
        if let Some(last) = self.sequences.all.last_mut() {
            last.prompt_tokens = tokens;
        }
    }

    /// The sequences of rows that came before, each with its number and tokens, and its prompt's.
    pub(super) fn backdated(&mut self, runs: &[(u32, u64)], prompts: &[u32]) {
        self.sequences.backdate(self.rows as usize, runs, prompts);
    }

    /// The sequences from this one on.
    pub(super) fn since(&mut self, first: usize) -> &mut [Sequence] {
        &mut self.sequences.all[first..]
    }

    /// Tokens so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Sequences so far.
    pub(super) fn sequences(&self) -> usize {
        self.sequences.all.len()
    }

    /// Appends whole rows of ids as the file has them. [`Collector::layers`] came before.
    pub(super) fn ids<T: RawId>(&mut self, input: &Input<'_>, rows: &[T]) -> Result<()> {
        let Some(layers) = &self.layers else {
            return Err(input.error("ids", "rows before their layers"));
        };
        let row_len = layers.row_len;
        if !rows.len().is_multiple_of(row_len) {
            let problem = format!("{} ids are no whole rows of {row_len}", rows.len());
            return Err(input.error("ids", problem));
        }
        for (number, span) in &layers.dense {
            for (index, row) in rows.chunks_exact(row_len).enumerate() {
                if let Some(id) = row[span.clone()].iter().find(|&&id| id.as_i64() > 0) {
                    let (row, id) = (self.rows + index as u64, id.as_i64());
                    return Err(input.error(
                        format!("token {row}, layer {number}"),
                        format!(
                            "routed to expert {id}, yet the layer is said to be dense: correct \
                             `ImportOptions::dense_layers` or `ImportOptions::config`, or give \
                             `ImportOptions::skip_layers` {number}"
                        ),
                    ));
                }
            }
        }
        self.zeros.retain(|&(_, start, end)| {
            rows.chunks_exact(row_len).all(|row| row[start..end].iter().all(|&id| id == T::ZERO))
        });
        if let Some(wrong) = self.ids.extend(rows, row_len, &layers.spans)? {
            let row = self.rows + (wrong.index / row_len) as u64;
            let problem = format!("id {}; expert ids are 0 to 65535", wrong.value);
            return Err(input.error(format!("token {row}"), problem));
        }
        self.rows += (rows.len() / row_len) as u64;
        Ok(())
    }

    /// Positions and phases of as many rows.
    pub(super) fn places(&mut self, positions: &[u32], phases: &[u8]) -> Result<()> {
        self.columns.positions.extend(positions)?;
        self.columns.phases.extend(phases)
    }

    /// Positions and phase of rows that follow each other.
    pub(super) fn run(
        &mut self,
        input: &Input<'_>,
        first: u64,
        count: u64,
        phase: Phase,
    ) -> Result<()> {
        self.columns.run(input, first, count, phase)
    }

    /// Steps of as many rows.
    pub(super) fn steps(&mut self, steps: &[u32]) -> Result<()> {
        self.columns.steps.extend(steps)
    }

    /// Vocabulary ids of as many rows.
    pub(super) fn token_ids(&mut self, token_ids: &[u32]) -> Result<()> {
        self.columns.token_ids.extend(token_ids)
    }

    /// Weights of as many rows of the file.
    pub(super) fn weights<T: Pod>(&mut self, precision: Precision, rows: &[T]) -> Result<()> {
        let Some(layers) = &self.layers else { return Ok(()) };
        self.weights.extend(&self.folder, layers, precision, rows)
    }

    /// Leaves the weights out, for this reason.
    pub(super) fn no_weights(&mut self, reason: impl Into<String>) {
        self.weights.leave_out(reason);
    }

    /// The predictions of all rows to come, at this width.
    pub(super) fn predictions(&mut self, lookaheads: usize, width: usize) -> &mut PredictionSpool {
        let folder = &self.folder;
        self.predictions.get_or_insert_with(|| PredictionSpool::new(folder, lookaheads, width))
    }

    /// Embeddings of the sequences of one input, as bit patterns of half precision.
    pub(super) fn embeddings(&mut self, dim: usize, prompt_in: &[u16], prompt_out: &[u16]) {
        let (before, all_in, all_out) =
            self.embeddings.get_or_insert_with(|| (dim, Vec::new(), Vec::new()));
        if *before == dim {
            all_in.extend_from_slice(prompt_in);
            all_out.extend_from_slice(prompt_out);
        }
    }
}
