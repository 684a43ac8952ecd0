//! Parquet.
use super::{Format, FormatInfo, Importer};
use crate::error::Result;
use super::collect::Collector;
use super::input::Input;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "parquet",
    description: "Parquet, one row a token and layer: seq_id, position, token_id, is_decode, \
                  layer, experts, weights",
    columns: &["ids", "positions", "phases", "token_ids", "weights"],
    extensions: &["parquet"],
    format: Format::Parquet,
    importer: Importer::Each(import),
};

fn import(input: &Input<'_>, _: &mut Collector<'_>) -> Result<()> {
    Err(input.error("file", "this build reads no Parquet: build hotset with --features parquet"))
}
