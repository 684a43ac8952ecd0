//! Exporters: one file a format, one registry, so that other tools read our traces.
//!
//! All write row by row: memory does not grow with the trace. The file appears whole or not at
//! all. To add one: a file here with its `INFO`, an [`ExportFormat`], a line in `REGISTRY`, its
//! test.

mod jsonl;
mod npz;
mod oracle_general;
pub(crate) mod parquet;
#[cfg(test)]
mod tests;

use std::io::BufWriter;
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::import::ReadProgress;
use crate::trace::Trace;
use crate::whole_file::{Watched, write_whole};

/// A format that can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExportFormat {
    /// `hotset-npz/1`.
    Npz,
    /// One token a line.
    Jsonl,
    /// One row a token and layer.
    Parquet,
    /// libCacheSim's binary format.
    OracleGeneral,
}

/// What the registry knows of a format.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ExportInfo {
    /// The name for `--to`.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// The trace columns that it keeps.
    pub columns: &'static [&'static str],
    #[serde(skip)]
    format: ExportFormat,
    #[serde(skip)]
    exporter: Exporter,
}

/// Where an exporter writes to.
type Out<'a, 'b> = &'a mut BufWriter<Watched<'b>>;
type Exporter = fn(&Trace, Out<'_, '_>, &Path) -> Result<()>;

const REGISTRY: &[ExportInfo] = &[npz::INFO, jsonl::INFO, parquet::INFO, oracle_general::INFO];

/// All formats that can be exported to.
pub fn export_formats() -> &'static [ExportInfo] {
    REGISTRY
}

impl ExportFormat {
    /// The format of that name; see [`export_formats`] for the names.
    pub fn from_name(name: &str) -> Option<Self> {
        REGISTRY.iter().find(|info| info.name == name).map(|info| info.format)
    }

    /// What the registry knows of it.
    pub fn info(self) -> &'static ExportInfo {
        // A test walks all formats.
        REGISTRY.iter().find(|info| info.format == self).unwrap_or(&REGISTRY[0])
    }

    /// Columns that the trace has and the format does not keep.
    pub fn dropped(self, trace: &Trace) -> Vec<&'static str> {
        let kept = self.info().columns;
        let columns = trace.columns().into_iter().filter(|column| column.present);
        columns.map(|column| column.name).filter(|name| !kept.contains(name)).collect()
    }
}

/// Writes a trace in another format; `path` appears whole or not at all.
///
/// # Errors
/// [`Error::Io`] where it cannot be written; [`Error::Shape`] or [`Error::Column`] where the
/// format cannot hold the trace.
pub fn export(trace: &Trace, format: ExportFormat, path: impl AsRef<Path>) -> Result<()> {
    export_watched(trace, format, path, &())
}

/// [`export`] that tells of the bytes written and stops, leaving nothing, when asked to.
///
/// # Errors
/// As [`export`]; [`Error::Io`] where it was stopped.
pub fn export_watched(
    trace: &Trace,
    format: ExportFormat,
    path: impl AsRef<Path>,
    progress: &dyn ReadProgress,
) -> Result<()> {
    let path = path.as_ref();
    write_whole(path, progress, |file| (format.info().exporter)(trace, file, path))
}

/// The system's refusal to write.
fn refused(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |e| Error::io("write", path, e)
}
