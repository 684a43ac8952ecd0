//! The arrays of a Hugging Face recording: `topk_ids` `[T, L, K]`, `seq_id`, `position`,
//! `is_decode` `[T]`; kept where present: `topk_weights`, `token_id`, `moe_layer_ids` `[L]`.
//! `router_logits` are not kept: the trace has the weights that the router gave.

use serde_json::{Map, Value};

use super::array::{Dtype, Place, top_ks};
use super::arrays::{Arrays, column_u32, mismatch, required};
use super::collect::Collector;
use super::input::Input;
use super::layers::Numbering;
use super::token_arrays::{Prompts, fact, layer_numbers, runs, weights};
use crate::error::Result;
use crate::sequence::Phase;

const LAYOUT: &str = "a recording needs topk_ids, seq_id, position and is_decode";

pub(super) fn import(
    input: &Input<'_>,
    file: &mut dyn Arrays,
    into: &mut Collector<'_>,
) -> Result<()> {
    let place = |name| Place { path: input.path(), name };
    let metadata = file.metadata().clone();
    let ids = required(file, input, "topk_ids", LAYOUT)?;
    let [tokens, layers, top_k] = ids.shape[..] else {
        return Err(mismatch(input, "topk_ids", "[tokens, layers, top-k]", &ids));
    };
    let top_ks = top_ks(place("topk_ids"), layers, top_k)?;
    drop(ids);
    let numbers = match file.array("moe_layer_ids")? {
        Some(mut array) if array.dtype.size() == 4 => Some(array.values(place("moe_layer_ids"))?),
        _ => layer_numbers(input, &metadata, "moe_layer_ids", layers)?,
    };
    if let Some(numbers) = numbers.as_ref().filter(|numbers: &&Vec<u32>| numbers.len() != layers) {
        let problem = format!("numbers {} layers, topk_ids has {layers}", numbers.len());
        return Err(input.error("array moe_layer_ids", problem));
    }
    let numbering = match &numbers {
        Some(numbers) => Numbering::Numbered(numbers),
        None => Numbering::Unknown,
    };
    into.layers(input, numbering, &top_ks)?;
    state(input, &metadata, top_k, into)?;
    required(file, input, "topk_ids", LAYOUT)?.ids(input, "topk_ids", into)?;

    let runs = runs(input, "seq_id", tokens, file.array("seq_id")?)?
        .ok_or_else(|| input.error("array seq_id", format!("is missing; {LAYOUT}")))?;
    let positions = file.array("position")?;
    if !column_u32(input, "position", tokens, positions, &mut |b| into.places(b, &[]))? {
        return Err(input.error("array position", format!("is missing; {LAYOUT}")));
    }
    let mut decode = required(file, input, "is_decode", LAYOUT)?;
    if decode.shape != [tokens] || decode.dtype != Dtype::U8 {
        return Err(mismatch(input, "is_decode", &format!("[{tokens}] of u8"), &decode));
    }
    let mut prompts = Prompts::new(&runs);
    decode.blocks::<u8>(place("is_decode"), 1, |block| {
        prompts.see(block, |&decode| decode == 0);
        let phase = |&decode: &u8| if decode == 0 { Phase::Prefill } else { Phase::Decode } as u8;
        into.places(&[], &block.iter().map(phase).collect::<Vec<u8>>())
    })?;
    drop(decode);
    let prompts = prompts.lengths();
    into.backdated(&runs, &prompts);
    column_u32(input, "token_id", tokens, file.array("token_id")?, &mut |b| into.token_ids(b))?;
    if let Some(array) = file.array("topk_weights")? {
        weights(input, "topk_weights", [tokens, layers, top_k], array, into)?;
    }
    Ok(())
}

/// What the metadata (strings of JSON) say of the model.
fn state(
    input: &Input<'_>,
    metadata: &Map<String, Value>,
    top_k: usize,
    into: &mut Collector<'_>,
) -> Result<()> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    let number = |key: &str| text(key).and_then(|text| text.trim().parse::<u32>().ok());
    if let Some(stated) = number("top_k").filter(|&stated| stated as usize != top_k) {
        let problem = format!("says top-k {stated}, topk_ids has {top_k}");
        return Err(input.error("metadata", problem));
    }
    into.stated.experts = into.stated.experts.max(number("num_experts"));
    into.stated.name = into.stated.name.take().or(text("model").map(str::to_owned));
    for key in ["engine", "engine_version", "note"] {
        if let Some(text) = text(key) {
            fact(into, key, text);
        }
    }
    Ok(())
}
