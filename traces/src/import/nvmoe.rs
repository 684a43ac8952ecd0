//! nvmoe's tokens: a line `[[layer, expert], ...]` for each decode token, layers rising, each
//! layer's best expert first.

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::lines::{Rows, at_line, each_line, json_line};
use super::nested::LayerPairs;
use super::sniff::Sniff;
use crate::error::Result;
use crate::trace::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "nvmoe",
    description: "nvmoe's tokens: a line [[layer,expert],...] for each decode token",
    columns: &["ids", "positions", "phases"],
    extensions: &["jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    // Pairs in a list; lists that lie deeper are those of tokens or layers.
    let line = sniff.first_line();
    let depth = line.chars().filter(|c| !c.is_whitespace()).take_while(|&c| c == '[').count();
    let first = line.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
    let inner = first.split(']').next().unwrap_or_default();
    Claim::Likely.when(depth == 2 && inner.split(',').count() == 2)
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let (mut ids, mut layers, mut first) = (Vec::new(), Vec::new(), Vec::new());
    let mut position = 0u32;
    let source = each_line(input, |line, text| {
        ids.clear();
        layers.clear();
        let pairs = LayerPairs { ids: &mut ids, layers: &mut layers };
        json_line(input, line, text, pairs)?;
        if position == 0 {
            first.clone_from(&layers);
            let numbers: Vec<u32> = first.iter().map(|layer| layer.0).collect();
            let top_ks: Vec<u32> = first.iter().map(|layer| layer.1).collect();
            rows.collector().layers(input, Numbering::Numbered(&numbers), &top_ks)?;
            rows.sequence(None)?;
        }
        if layers != first {
            let pairs = layers.iter().zip(&first);
            let problem = match pairs.into_iter().find(|(found, before)| found != before) {
                Some(((layer, k), (before, before_k))) => format!(
                    "layer {layer} with {k} experts, where the lines before it have layer \
                     {before} with {before_k}"
                ),
                None => format!("{} layers, {} in the lines before it", layers.len(), first.len()),
            };
            return Err(at_line(input, line, problem));
        }
        rows.push(&ids, position, Phase::Decode)?;
        position += 1;
        Ok(())
    })?;
    rows.flush()?;
    into.read(source);
    Ok(())
}
