//! The layers of a configuration, put together from what mixes tokens and what follows.

use super::fields::Fields;
use super::kinds::{self, Kind};
use super::names::{HIDDEN, STREAMS};
use super::{experts, mixers};
use crate::model::ModelError;
use crate::model::layer::Layer;

/// Every layer, in order.
pub fn layers(fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<Vec<Layer>, ModelError> {
    let count = fields.layers()?;
    let single = kinds::single_parts(fields, count)?;
    let (kinds, moe, dense_listed) = match single {
        Some(parts) => (parts.kinds, parts.moe, Some(parts.dense)),
        None => (kinds_unless_given(fields, count)?, experts::moe_layers(fields, count)?, None),
    };
    let mixers = mixers::mixers(fields, &kinds)?;
    let hidden = fields.need_width(HIDDEN)?;
    let streams = fields.count(STREAMS)?.unwrap_or(1);
    if !(1..=256).contains(&streams) {
        return Err(fields.invalid(STREAMS[0], "is not 1 to 256"));
    }
    let stream_rank = fields.width(&["hc_lowrank"])?;
    // Asked once, so that the keys count as read wherever no layer needs them.
    let beside = experts::beside_experts(&fields.at(0))?;
    let mut layers = Vec::with_capacity(count as usize);
    for (index, (mixer, moe)) in (0..count).zip(mixers.into_iter().zip(moe)) {
        let here = fields.at(index);
        let dense = experts::dense(&here);
        let has_dense = dense_listed.as_ref().map_or(!moe, |listed| listed[index as usize]);
        let dense = match (has_dense, moe) {
            (true, _) => Some(dense?.ok_or_else(|| experts::no_dense(&here))?),
            (false, true) if beside.is_some() => experts::beside_experts(&here)?,
            _ => None,
        };
        let (norm_after_mixer, other_norms) = norms(fields, dense_listed.is_some(), hidden)?;
        layers.push(Layer {
            mixer,
            experts: if moe { Some(experts::experts(&here, notes)?) } else { None },
            dense,
            norm_after_mixer,
            other_norms,
            streams,
            stream_rank,
        });
    }
    if fields.architecture.starts_with("longcat_flash") {
        return doubled(fields, layers);
    }
    Ok(layers)
}

/// The kinds, where no other list of the configuration says what mixes tokens.
fn kinds_unless_given(fields: &Fields<'_>, count: u64) -> Result<Vec<Kind>, ModelError> {
    let elsewhere = fields.has("compress_ratios") || fields.has("linear_attn_config");
    if elsewhere { Ok(vec![Kind::Full; count as usize]) } else { kinds::kinds(fields, count) }
}

/// Elements of the norm after the mixer and of the layer's others.
fn norms(fields: &Fields<'_>, single: bool, hidden: u64) -> Result<(u64, u64), ModelError> {
    let gemma = fields.architecture == "gemma4_text";
    // Before and after each part.
    let sandwich = ["afmoe", "muse_spark_text"].contains(&fields.architecture)
        || fields.flag("use_post_norm")?
        || fields.class == "Grok1ForCausalLM";
    Ok(match (single, gemma, sandwich) {
        // Layers of one part have one norm.
        (true, ..) => (0, hidden),
        // Gemma: before and after each part, and around the experts beside the dense part.
        (_, true, _) => (hidden, 6 * hidden),
        (_, _, true) => (hidden, 3 * hidden),
        _ => (hidden, hidden),
    })
}

/// LongCat-Flash: each layer has two attentions and two dense parts, and experts beside the first.
fn doubled(fields: &Fields<'_>, layers: Vec<Layer>) -> Result<Vec<Layer>, ModelError> {
    let dense = Some(experts::dense(fields)?.ok_or_else(|| experts::no_dense(fields))?);
    let both = |layer: Layer| {
        let first = Layer { dense, ..layer };
        let second = Layer { experts: None, ..first.clone() };
        [first, second]
    };
    Ok(layers.into_iter().flat_map(both).collect())
}

/// Elements of tables of n-grams beside the embedding.
pub fn tables(fields: &Fields<'_>) -> Result<u64, ModelError> {
    let hidden = fields.need_width(HIDDEN)?;
    // Rows for each n-gram length and head, which share the width between them.
    if let Some(rows) = fields.rows(&["ngram_vocab_size_base"])? {
        let width = fields.width(&["ple_embed_dim"])?.unwrap_or(hidden);
        let places = fields.list("ple_layer_ids")?.map_or(1, |layers| layers.len() as u64);
        return Ok(rows.saturating_mul(width).saturating_mul(places));
    }
    // LongCat: so many times the vocabulary.
    if let Some(ratio) = fields.count(&["ngram_vocab_size_ratio"])? {
        return Ok((ratio * fields.vocab()?).saturating_mul(hidden));
    }
    // Gemma: for every word a small row a layer.
    let row = fields.count(&["hidden_size_per_layer_input"])?.unwrap_or(0);
    let words = fields.rows(&["vocab_size_per_layer_input"])?.unwrap_or(fields.vocab()?);
    Ok((row * fields.layers()?).saturating_mul(words))
}
