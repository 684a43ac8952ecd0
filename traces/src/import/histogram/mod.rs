//! Histograms: how often each expert was chosen, without any order.
//!
//! Several tools write only that. It is enough to place experts by popularity and to plan memory,
//! not to replay: a cache's hits depend on the order, so a histogram is never made into a trace.

mod arrays;
mod columns;
mod gguf;
mod imatrix;
mod info;
mod json;
mod moe_infinity;
mod registry;
mod sglang;
mod tensorrt_llm;
#[cfg(test)]
mod tests;
mod text;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::info::{ExpertCounts, MOST};
use super::input::Input;
use crate::error::{Error, Result};
use crate::shape::Shape;

pub use self::info::HistogramInfo;
pub(crate) use self::registry::all;
pub use self::registry::{HistogramFormat, histogram_formats};

/// Uses of one layer's experts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerCounts {
    /// The layer's number in the model.
    pub number: u32,
    /// Uses of each expert.
    pub counts: Vec<u64>,
}

/// Uses of every expert, by layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// For people: the file's own name.
    pub name: String,
    /// The name of the format that it was read from.
    pub format: &'static str,
    /// Layers with a router, by rising number.
    pub layers: Vec<LayerCounts>,
    /// Tokens that were counted, where recorded.
    pub tokens: Option<u64>,
    /// What was left out or assumed, in words.
    pub notes: Vec<String>,
}

impl Histogram {
    /// Reads one histogram from a file, a folder or the files of several ranks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Import`] naming the tensor or entry, or why the format has no
    /// counts.
    pub fn read(format: HistogramFormat, paths: &[PathBuf]) -> Result<Self> {
        let inputs: Vec<Input<'_>> = paths.iter().map(|path| Input::file(path, &())).collect();
        Self::from_inputs(format, &inputs)
    }

    /// The same from bytes in memory, as if they were a file of that name.
    ///
    /// # Errors
    /// As [`Histogram::read`].
    pub fn from_bytes(
        format: HistogramFormat,
        name: impl AsRef<Path>,
        bytes: &[u8],
    ) -> Result<Self> {
        Self::from_inputs(format, &[Input::bytes(name.as_ref(), bytes)])
    }

    fn from_inputs(format: HistogramFormat, inputs: &[Input<'_>]) -> Result<Self> {
        let info = format.info();
        let Some(first) = inputs.first() else {
            return Err(Error::import(Path::new(info.name), "inputs", "none was named"));
        };
        let ExpertCounts { layers, tokens, notes } = (info.reader)(inputs)?;
        if layers.is_empty() {
            return Err(first.error("counts", "no expert was counted"));
        }
        let cells: usize = layers.iter().map(|(_, counts)| counts.len()).sum();
        if cells > MOST {
            let problem = format!("{cells} experts over all layers; at most {MOST} are possible");
            return Err(first.error("counts", problem));
        }
        let name = first.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let layers =
            layers.into_iter().map(|(number, counts)| LayerCounts { number, counts }).collect();
        Ok(Self { name: name.unwrap_or_default(), format: info.name, layers, tokens, notes })
    }

    /// Uses of each layer's experts: the layer's number and one count an expert.
    pub fn per_layer(&self) -> impl ExactSizeIterator<Item = (u32, &[u64])> {
        self.layers.iter().map(|layer| (layer.number, layer.counts.as_slice()))
    }

    /// All uses together.
    pub fn total(&self) -> u64 {
        self.layers.iter().flat_map(|layer| &layer.counts).fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Uses by dense expert key of a model of this shape: what a static placement ranks by.
    ///
    /// # Errors
    /// [`Error::Shape`] naming both numbers where layers or experts are not the model's.
    pub fn uses(&self, shape: &Shape) -> Result<Vec<u64>> {
        let name = &self.name;
        let mut uses = Vec::new();
        for layer in shape.layers() {
            let counted = self.layers.iter().find(|counted| counted.number == layer.number);
            let counted = counted.ok_or_else(|| {
                let number = layer.number;
                Error::shape(format!("{name} has no counts of layer {number}, the model has it"))
            })?;
            if counted.counts.len() != layer.experts as usize {
                let (number, found, experts) = (layer.number, counted.counts.len(), layer.experts);
                return Err(Error::shape(format!(
                    "{name} counts {found} experts in layer {number}, the model has {experts}"
                )));
            }
            uses.extend_from_slice(&counted.counts);
        }
        if self.layers.len() != shape.layers().len() {
            let (found, layers) = (self.layers.len(), shape.layers().len());
            return Err(Error::shape(format!(
                "{name} counts {found} layers, the model has {layers}"
            )));
        }
        Ok(uses)
    }

    /// Why it cannot be replayed, in words.
    pub fn refusal(&self) -> String {
        refusal(&self.name, self.format)
    }
}

/// Why a histogram cannot be replayed or imported as a trace.
pub fn refusal(name: &str, format: &str) -> String {
    format!(
        "{name} is a histogram ({format}): it says how often each expert was used, not in which \
         order, and a cache's hits depend on the order. 'hotset trace info' shows it"
    )
}
