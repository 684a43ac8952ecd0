//! JSON in which tokens and layers are levels: `{"token_80": {"layer_0": {"selected_experts"}}}`,
//! `forwards[].rows[].layers[].expert_ids`, `activations[]` with one expert each, `{"layer_0":
//! [[ids], ...]}`, bare lists. Pretty-printed or a document a line.
//!
//! Names of keys decide, not their order nor their depth. Lists of JSON do not document which axis
//! is the tokens: without a name or a number of layers they are refused.

mod rows;
#[cfg(test)]
mod tests;
mod walk;
mod words;

use serde::de::DeserializeSeed;

use self::rows::Cells;
use self::walk::{Any, Got, Walk};
use self::words::Word;
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::sniff::Sniff;
use super::tables::{self, Node, Shape};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "nested-json",
    description: "JSON with levels of tokens and layers: token_<n>.layer_<n>.selected_experts, \
                  forwards.rows.layers.expert_ids, activations, layer_<n> lists, [token][layer][k]",
    columns: &["ids", "positions", "phases", "steps", "weights"],
    extensions: &["json", "jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

/// Why lists of experts without tokens are no routing.
const NO_TOKENS: &str = "one list of experts for each layer, and no tokens: a ranking, pins or a \
                         placement say which experts, not when they were chosen nor how often \
                         (no counts). Where they are counts, name them: {\"expert_counts\": ..}";

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let text = sniff.text();
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(Claim::No);
    }
    let mut walk = Walk::default();
    let mut document = serde_json::Deserializer::from_str(text);
    // The text is cut where the file is long: what was found until then tells.
    let whole = Any { walk: &mut walk, key: Word::Other }.deserialize(&mut document).is_ok();
    if whole && document.end().is_ok() && rows::no_tokens(&walk.cells) {
        return Err(sniff.input.error("document", NO_TOKENS));
    }
    let has = |key: &str| text.contains(key);
    if walk.cells.is_empty() && (has("\"device_expert\"") || has("\"physical_to_logical_map\"")) {
        return Err(sniff.input.error(
            "document",
            "a placement: it maps the experts of each layer to devices, and says nothing of tokens",
        ));
    }
    let cells = walk.nested && walk.cells.iter().any(|cell| cell.ids.1 > 0);
    let lists = walk.by_layer >= 2
        || walk.named >= 3
        || (text.trim_start().starts_with('[') && walk.bare >= 3);
    // Surer than a reader of records, which finds names in nested documents too; less sure than a
    // format of one program's own, whose documents are nested as well.
    Claim::Form.when(cells || lists)
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut stream = input.stream()?;
    let mut cells = Cells::new(input, into);
    let mut documents = serde_json::Deserializer::from_reader(&mut stream);
    let mut lists: Option<(Walk, Node)> = None;
    let mut number = 0u64;
    loop {
        // Between documents only blanks may be.
        let mut walk = Walk::default();
        let got = match (Any { walk: &mut walk, key: Word::Other }).deserialize(&mut documents) {
            Ok(got) => got,
            Err(e) if e.is_eof() && number > 0 && documents.end().is_ok() => break,
            Err(e) => return Err(input.error(format!("document {number}"), e.to_string())),
        };
        number += 1;
        let fault = |problem: String| input.error(format!("document {}", number - 1), problem);
        let tree = match got {
            Got::Numbers(first, shape) if shape.len() > 1 => {
                let table = walk.tables.len();
                walk.tables.push(Shape { name: String::new(), shape, first: first as usize });
                Some(Node::Table(table))
            }
            Got::Tree(node) => Some(node),
            _ => None,
        };
        match tree.filter(|_| walk.cells.is_empty()) {
            Some(_) if number > 1 => {
                return Err(fault("lists by layer in more than one document".to_owned()));
            }
            Some(node) => lists = Some((walk, node)),
            None if walk.cells.is_empty() && walk.ragged.is_some() => {
                let (before, now) = walk.ragged.unwrap_or_default();
                return Err(fault(format!(
                    "a list of {now} beside one of {before}: every token has as many experts"
                )));
            }
            None => cells.document(walk)?,
        }
    }
    cells.finish()?;
    drop(documents);
    if let Some((walk, node)) = lists {
        into.stated_experts = into.stated_experts.max(walk.experts);
        into.stated_name = into.stated_name.take().or(walk.model);
        tables::import_lists(input, &walk.numbers, walk.tables, &node, into)?;
    }
    into.read(stream.source()?);
    Ok(())
}
