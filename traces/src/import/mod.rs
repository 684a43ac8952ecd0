//! Importers: one file a format, one registry.
//!
//! Each makes a [`Trace`] from a file that another program wrote. To add one: a file here with a
//! function of the `Importer` type, a [`Format`], a line in `REGISTRY`, its test.

mod array;
mod ids;
mod npy;
mod npz;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Serialize;

use crate::column::IdColumn;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::trace::{Phase, Trace};

/// What only the caller knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Experts in each layer. Default: what the file states, else the highest id plus one.
    pub experts: Option<u32>,
    /// Experts chosen for each token; where the file has it, it must agree.
    pub top_k: Option<u32>,
    /// Bytes of one expert. Default: not recorded (0).
    pub expert_bytes: Option<u64>,
    /// The trace's name. Default: the model that the file names, else the file's own name.
    pub name: Option<String>,
    /// The phase of all tokens, where the file has no phases (it wins where it has).
    pub phase: Option<Phase>,
}

/// A format that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `hotset-npz/1`.
    Npz,
    /// A bare array of ids.
    Npy,
    /// One integer a line.
    Ids,
}

/// What the registry knows of a format.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FormatInfo {
    /// The name for `--from`.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// The trace columns that it gives, where its input has them.
    pub columns: &'static [&'static str],
    #[serde(skip)]
    format: Format,
    #[serde(skip)]
    importer: Importer,
}

type Importer = fn(&Path, &ImportOptions) -> Result<Trace>;

/// In the order of [`Format`].
const REGISTRY: &[FormatInfo] = &[
    FormatInfo {
        name: "npz",
        description: "hotset-npz/1: token-major NumPy arrays in one zip, with phases, weights, \
                      predictions and embeddings",
        columns: &[
            "ids",
            "positions",
            "phases",
            "token_ids",
            "weights",
            "predictions",
            "embeddings",
        ],
        format: Format::Npz,
        importer: npz::import,
    },
    FormatInfo {
        name: "npy",
        description: "one NumPy array of ids [tokens, layers, top-k]; weights_bf16.npy or \
                      weights.npy and sequences.csv are taken from the same folder",
        columns: &["ids", "positions", "phases", "weights"],
        format: Format::Npy,
        importer: npy::import,
    },
    FormatInfo {
        name: "ids",
        description: "text, one integer a line: a plain cache trace as one layer with top-1",
        columns: &["ids", "positions", "phases"],
        format: Format::Ids,
        importer: ids::import,
    },
];

/// All formats, in the order in which they are listed to people.
pub fn formats() -> &'static [FormatInfo] {
    REGISTRY
}

impl FormatInfo {
    /// The format itself.
    pub fn format(&self) -> Format {
        self.format
    }
}

impl Format {
    /// The format of that name; see [`formats`] for the names.
    pub fn from_name(name: &str) -> Option<Self> {
        REGISTRY.iter().find(|info| info.name == name).map(|info| info.format)
    }

    /// What the registry knows of it.
    pub fn info(self) -> &'static FormatInfo {
        &REGISTRY[self as usize]
    }
}

/// Imports a file.
///
/// # Errors
/// [`crate::Error::Io`]; [`crate::Error::Import`] naming the array or line; the errors of
/// [`crate::TraceBuilder::build`] for values that no trace may have.
pub fn import(format: Format, path: impl AsRef<Path>, options: &ImportOptions) -> Result<Trace> {
    (format.info().importer)(path.as_ref(), options)
}

/// The importers that give a column.
pub(crate) fn giving(column: &str) -> Vec<&'static str> {
    REGISTRY.iter().filter(|info| info.columns.contains(&column)).map(|info| info.name).collect()
}

/// What provenance says of the input: its length and BLAKE3, which find it again under any name.
fn source(path: &Path) -> Result<serde_json::Value> {
    let io = |e| Error::io("read", path, e);
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut hasher = blake3::Hasher::new();
    let bytes = std::io::copy(&mut file, &mut hasher).map_err(io)?;
    Ok(serde_json::json!({ "bytes": bytes, "blake3": hasher.finalize().to_hex().as_str() }))
}

/// The number of experts and where it is from: the option, else what the file states, else one
/// above the highest id.
fn experts(
    path: &Path,
    options: &ImportOptions,
    stated: Option<u32>,
    ids: IdColumn<'_>,
) -> Result<(u32, &'static str)> {
    let Some(highest) = ids.iter().max() else {
        return Err(Error::import(path, "ids", "no tokens; a trace needs at least one"));
    };
    Ok(match (options.experts, stated) {
        (Some(experts), _) => (experts, "option"),
        (None, Some(experts)) => (experts, "file"),
        (None, None) => (highest + 1, "inferred: highest id + 1"),
    })
}

/// Equal layers for an array of ids `[tokens][layers][top_k]`.
fn uniform_shape(
    path: &Path,
    options: &ImportOptions,
    layers: usize,
    top_k: usize,
    experts: u32,
) -> Result<Shape> {
    let (Ok(layers), Ok(found)) = (u32::try_from(layers), u32::try_from(top_k)) else {
        return Err(Error::import(path, "shape", "layers or top-k over 32 bits"));
    };
    if let Some(asked) = options.top_k.filter(|&asked| asked != found) {
        let problem = format!("top-k {asked} was asked for, the file has {found}");
        return Err(Error::import(path, "shape", problem));
    }
    let shape = Shape::uniform(layers, experts, found)?;
    Ok(shape.with_expert_bytes(options.expert_bytes.unwrap_or(0)))
}

/// The trace's name: the option, else what the file says, else the file's own name.
fn name(path: &Path, options: &ImportOptions, stated: Option<&str>) -> String {
    let own = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    options.name.clone().or_else(|| stated.map(str::to_owned)).or_else(own).unwrap_or_default()
}
