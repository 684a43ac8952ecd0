//! Parquet, one row a token and layer: what `--from parquet` reads. Needs the cargo feature
//! `parquet`.

use std::path::Path;

use super::{ExportFormat, ExportInfo, Out};
use crate::error::{Error, Result};
use crate::trace::Trace;

pub(super) const INFO: ExportInfo = ExportInfo {
    name: "parquet",
    description: "Parquet, one row a token and layer (builds with the feature parquet)",
    format: ExportFormat::Parquet,
    exporter: export,
};

fn export(_: &Trace, _: Out<'_, '_>, path: &Path) -> Result<()> {
    let problem = "this build writes no Parquet: build hotset with --features parquet";
    Err(Error::import(path, "file", problem))
}
