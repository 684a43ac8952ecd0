//! Which layers of a file become layers of the trace.
//!
//! Engines that write a slot for every hidden layer fill those of dense layers with zeros, which
//! must never be read as expert 0. Which they are, the file does not say: the caller does.

use std::ops::Range;

use super::ImportOptions;
use super::input::Input;
use super::options::ModelConfig;
use crate::error::{Error, Result};
use crate::shape::MAX_LAYERS;

/// How a file numbers its layers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Numbering<'a> {
    /// One slot for each hidden layer, dense ones included.
    Hidden,
    /// Layers by their numbers in the model.
    Numbered(&'a [u32]),
    /// So many layers, in order; whether dense ones are among them is not known.
    Unknown,
}

/// The layers of a file's rows, and the part of a row that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layers {
    /// Number and top-k of each layer in the file.
    pub(super) file: Vec<(u32, u32)>,
    /// Number and top-k of each layer that is kept.
    pub(super) kept: Vec<(u32, u32)>,
    /// Stretches of a row that are kept, neighbours joined.
    pub(super) spans: Vec<Range<usize>>,
    /// Dense layers: their number and place in a row.
    pub(super) dense: Vec<(u32, Range<usize>)>,
    /// Ids in a row of the file.
    pub(super) row_len: usize,
}

impl Layers {
    /// Checks what the file has against what the caller says.
    pub(super) fn new(
        input: &Input<'_>,
        options: &ImportOptions,
        config: Option<&ModelConfig>,
        numbering: Numbering<'_>,
        top_ks: &[u32],
    ) -> Result<Self> {
        let refuse = |problem: String| Err(input.error("shape", problem));
        if top_ks.len() > MAX_LAYERS {
            return refuse(format!("{} layers; at most {MAX_LAYERS} are possible", top_ks.len()));
        }
        let count = top_ks.len() as u32;
        if let Some(asked) = options.layers.filter(|&asked| asked != count) {
            return refuse(format!(
                "`ImportOptions::layers` says {asked}, the file has {count} layers: give \
                 `ImportOptions::layers` {count}, or \
                 leave it out"
            ));
        }
        let mut numbers: Vec<u32> = match numbering {
            Numbering::Hidden | Numbering::Unknown => (0..count).collect(),
            Numbering::Numbered(numbers) => numbers.to_vec(),
        };
        if let Some(config) = config {
            let routed: Vec<u32> =
                (0..config.layers).filter(|layer| !config.dense.contains(layer)).collect();
            match numbering {
                Numbering::Numbered(_) => {
                    if let Some(beyond) = numbers.iter().find(|&&n| n >= config.layers) {
                        let layers = config.layers;
                        return refuse(format!(
                            "the file has a layer {beyond}, `ImportOptions::config` says \
                             {layers} layers (0 to \
                             {}): give the config.json of this model",
                            layers - 1
                        ));
                    }
                }
                _ if count == config.layers => {}
                _ if count as usize == routed.len() => numbers = routed,
                _ => {
                    return refuse(format!(
                        "the file has {count} layers, `ImportOptions::config` says {} ({} of \
                         them routed): give \
                         the config.json of this model",
                        config.layers,
                        routed.len()
                    ));
                }
            }
        }
        for (&top_k, number) in top_ks.iter().zip(&numbers) {
            let says = |flag: &str, asked: u32| {
                format!(
                    "{flag} says top-k {asked}, the file has {top_k} in layer {number}: give \
                     `ImportOptions::top_k` {top_k}, or leave it out"
                )
            };
            if let Some(asked) = options.top_k.filter(|&asked| asked != top_k) {
                return refuse(says("`ImportOptions::top_k`", asked));
            }
            let configured = config.and_then(|config| config.top_k);
            if let Some(asked) = configured.filter(|&asked| asked != top_k)
                && options.top_k.is_none()
            {
                return refuse(says("`ImportOptions::config`", asked));
            }
        }
        let file: Vec<(u32, u32)> = numbers.into_iter().zip(top_ks.iter().copied()).collect();
        // A file that numbers its layers need not have those that are dense.
        let may_lack_dense = matches!(numbering, Numbering::Numbered(_));
        Self::select(input, options, config, file, may_lack_dense)
    }

    fn select(
        input: &Input<'_>,
        options: &ImportOptions,
        config: Option<&ModelConfig>,
        file: Vec<(u32, u32)>,
        may_lack_dense: bool,
    ) -> Result<Self> {
        let dense_from_config = config.map(|config| config.dense.as_slice()).unwrap_or_default();
        let dense = options.dense_layers.as_deref().unwrap_or(dense_from_config);
        let named = options.dense_layers.as_deref().filter(|_| !may_lack_dense).unwrap_or_default();
        for (flag, list) in [
            ("`ImportOptions::dense_layers`", named),
            ("`ImportOptions::skip_layers`", &options.skip_layers),
        ] {
            if let Some(absent) = list.iter().find(|&&n| !file.iter().any(|layer| layer.0 == n)) {
                let first = file.first().map_or(0, |layer| layer.0);
                let last = file.last().map_or(0, |layer| layer.0);
                let problem =
                    format!("{flag} names layer {absent}, the file has layers {first} to {last}");
                return Err(input.error("shape", problem));
            }
        }
        let mut layers =
            Self { file, kept: Vec::new(), spans: Vec::new(), dense: Vec::new(), row_len: 0 };
        let mut at = 0usize;
        for &(number, top_k) in &layers.file {
            let span = at..at.saturating_add(top_k as usize);
            at = span.end;
            if dense.contains(&number) {
                layers.dense.push((number, span));
            } else if !options.skip_layers.contains(&number) {
                layers.kept.push((number, top_k));
                match layers.spans.last_mut() {
                    Some(last) if last.end == span.start => last.end = span.end,
                    _ => layers.spans.push(span),
                }
            }
        }
        layers.row_len = at;
        if layers.kept.is_empty() || at == 0 {
            let count = layers.file.len();
            return Err(input.error("shape", format!("none of its {count} layers is kept")));
        }
        Ok(layers)
    }

    /// Whether rows are kept as they are.
    pub(super) fn whole(&self) -> bool {
        self.kept.len() == self.file.len()
    }

    /// Whether the layer of this number is one of the trace's.
    pub(super) fn keeps(&self, number: u32) -> bool {
        self.kept.iter().any(|layer| layer.0 == number)
    }

    /// Refuses another file whose rows are others.
    pub(super) fn agree(&self, input: &Input<'_>, other: &Self) -> Result<()> {
        let refuse = |problem: String| Err::<(), Error>(input.error("shape", problem));
        let (mine, theirs) = (self.file.len(), other.file.len());
        if mine != theirs {
            return refuse(format!(
                "has {theirs} layers, the inputs before it {mine}; one trace has one model"
            ));
        }
        for (before, layer) in self.file.iter().zip(&other.file) {
            if before.0 != layer.0 {
                let (before, layer) = (before.0, layer.0);
                return refuse(format!("has layer {layer} where the others have {before}"));
            }
            if before.1 != layer.1 {
                let (number, before, layer) = (layer.0, before.1, layer.1);
                return refuse(format!(
                    "has top-k {layer} in layer {number}, the inputs before it {before}"
                ));
            }
        }
        Ok(())
    }
}
