//! Parquet, one row for each token and layer, tokens in order: `seq_id`, `position`, `layer`,
//! `experts` (a list, best first), and where recorded `is_decode` or `phase`, `token_id`, `step`,
//! `weights`. Reading it needs the cargo feature `parquet`.

#[cfg(feature = "parquet")]
mod guard;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod rows;
#[cfg(feature = "parquet")]
pub(super) mod table;
#[cfg(all(test, feature = "parquet"))]
mod tests;
#[cfg(feature = "parquet")]
mod thrift;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::sniff::Sniff;
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "parquet",
    description: "Parquet, one row a token and layer: seq_id, position, token_id, is_decode, \
                  layer, experts, weights (builds with the feature parquet)",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    extensions: &["parquet"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Binary,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.start.starts_with(b"PAR1"))
}

#[cfg(not(feature = "parquet"))]
fn import(input: &Input<'_>, _: &mut Collector<'_>) -> Result<()> {
    Err(input.error("file", super::info::NO_PARQUET))
}

#[cfg(feature = "parquet")]
fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    rows::import(input, into)?;
    into.read(input.source()?);
    Ok(())
}
