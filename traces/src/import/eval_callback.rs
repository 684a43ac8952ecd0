//! The text of llama.cpp's eval-callback: blocks `ffn_moe_topk-<layer>`, a row of ids a token.
//!
//! Lossy by design: past six rows or columns it prints the first and last three. Only whole blocks
//! are taken, and each block's ids must add up to the sum that stands under it.

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line, utf8};
use super::llama_csv::Passes;
use super::sniff::Sniff;
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "llama-eval-callback",
    description: "the text of llama.cpp's eval-callback (whole blocks only: it cuts what has over \
                  six rows or columns)",
    columns: &["ids", "positions", "phases"],
    extensions: &["txt", "log"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(!sniff.is_json() && sniff.first_line().contains("cb_eval:"))
}

/// A block that is being read.
struct Block {
    layer: u32,
    top_k: usize,
    tokens: usize,
    ids: Vec<u16>,
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut passes = Passes::default();
    let mut block: Option<Block> = None;
    let source = each_line(input, |line, text| {
        let text = utf8(input, line, text)?.trim();
        let refuse = |problem: String| at_line(input, line, problem);
        if let Some((_, name)) = text.split_once("ffn_moe_topk-")
            && text.contains("cb_eval:")
            && !text[..text.len() - name.len()].contains('(')
        {
            block =
                Some(header(name).ok_or_else(|| refuse("not a block's first line".to_owned()))?);
        } else if text.contains("cb_eval:") {
            block = None;
        }
        let Some(open) = &mut block else { return Ok(()) };
        if text.contains("...") {
            return Err(refuse(format!(
                "layer {} is cut (\"...\"): eval-callback prints at most six rows and columns, so \
                 ids are missing; record with a tool that keeps all of them",
                open.layer
            )));
        }
        if let Some(sum) = text.strip_prefix("sum = ") {
            let all: u64 = open.ids.iter().map(|&id| u64::from(id)).sum();
            let (found, expected) = (open.ids.len(), open.top_k * open.tokens);
            if found != expected {
                let layer = open.layer;
                return Err(refuse(format!("layer {layer} has {found} ids, states {expected}")));
            }
            if sum.parse() != Ok(all as f64) {
                let layer = open.layer;
                return Err(refuse(format!("layer {layer}: ids add up to {all}, not to {sum}")));
            }
            passes.layer(input, &mut rows, open.layer)?;
            for (index, ids) in open.ids.chunks_exact(open.top_k).enumerate() {
                let token = index as i64 - open.tokens as i64;
                passes.batch.add(refuse, token, open.layer, ids, &[])?;
            }
            block = None;
        } else if let Some(row) = text.strip_prefix('[').map(|row| row.trim_end_matches([']', ',']))
        {
            for value in row.split(',').map(str::trim).filter(|value| !value.is_empty()) {
                let id = value.parse::<f64>().ok().filter(|id| id.fract() == 0.0);
                let id = id.filter(|id| (0.0..=65535.0).contains(id));
                let id = id.ok_or_else(|| refuse(format!("{value:?} is not an expert id")))?;
                if open.ids.len() == open.top_k * open.tokens {
                    return Err(refuse(format!("more ids than layer {} states", open.layer)));
                }
                open.ids.push(id as u16);
            }
        }
        Ok(())
    })?;
    passes.end(input, &mut rows)?;
    passes.finish(&mut rows)?;
    into.note("eval-callback records prompts alone: no generated token is in it");
    into.read(source);
    Ok(())
}

/// `3 = (i32) VIEW(ffn_moe_argsort-3{16, 5, 1, 1}, }) = {4, 5, 1, 1}`
fn header(text: &str) -> Option<Block> {
    let (layer, rest) = text.split_once(' ')?;
    let (_, extent) = rest.rsplit_once("= {")?;
    let extent = extent.strip_suffix('}')?;
    let extent: Vec<usize> =
        extent.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    let [top_k, tokens, 1, 1] = extent[..] else { return None };
    let sane = (1..=1 << 16).contains(&top_k) && (1..=1 << 24).contains(&tokens);
    sane.then_some(Block { layer: layer.parse().ok()?, top_k, tokens, ids: Vec::new() })
}
