//! What mixes tokens in each layer: the kind, and the fields that give its sizes.

use super::fields::Fields;
use super::heads;
use super::kinds::Kind;
use super::names::{HEADS, WINDOW};
use super::states;
use crate::model::ModelError;
use crate::model::layer::{
    AttentionSpan, CompressedAttention, CompressedPast, HeadsAttention, LatentAttention, Mixer,
};

/// One mixer a layer.
pub fn mixers(fields: &Fields<'_>, kinds: &[Kind]) -> Result<Vec<Mixer>, ModelError> {
    let layers = kinds.len() as u64;
    if fields.has("compress_ratios") {
        return compressed(fields, layers);
    }
    if let Some(linear) = fields.inside("linear_attn_config") {
        return kimi_linear(fields, &linear, layers);
    }
    states::refuse_other(fields, kinds)?;
    let owns = indexers(fields, layers)?;
    let share = match fields.flag("use_cla")? {
        true => fields.need_count(&["cla_share_factor"])?,
        false => 1,
    };
    let borrowing = fields.count(&["num_kv_shared_layers"])?.unwrap_or(0);
    let mut mixers = Vec::with_capacity(kinds.len());
    for (layer, (kind, owns)) in (0..).zip(kinds.iter().zip(owns)) {
        let mut mixer = of_kind(&fields.at(layer), *kind, owns)?;
        if let Mixer::Heads(heads) = &mut mixer {
            heads.borrows_keys = layer % share != 0 || layer + borrowing >= layers;
        }
        mixers.push(mixer);
    }
    Ok(mixers)
}

/// The mixer of a layer of this kind.
fn of_kind(fields: &Fields<'_>, kind: Kind, owns_indexer: bool) -> Result<Mixer, ModelError> {
    let latent = fields.has("kv_lora_rank") && !is_off(fields, "use_mla");
    match kind {
        Kind::None => Ok(Mixer::None),
        Kind::Full if latent => latent_attention(fields, owns_indexer).map(Mixer::Latent),
        Kind::Full => heads::full(fields).map(Mixer::Heads),
        Kind::Sparse => {
            let plain = heads::full(fields)?;
            let indexer = Some(heads::indexer(fields)?);
            Ok(Mixer::Heads(HeadsAttention { indexer, ..plain }))
        }
        Kind::Sliding if latent => Err(fields.unknown("it has windows of latent attention".into())),
        Kind::Sliding => heads::sliding(fields).map(Mixer::Heads),
        Kind::Chunked => {
            let chunk = fields.tokens(&["attention_chunk_size"])?;
            let chunk = chunk.ok_or_else(|| fields.missing(&["attention_chunk_size"]))?;
            heads::heads(fields, AttentionSpan::Chunked(chunk)).map(Mixer::Heads)
        }
        Kind::Linear | Kind::Mamba | Kind::Conv => states::state(fields, kind),
    }
}

/// Whether a flag is there and false.
fn is_off(fields: &Fields<'_>, name: &str) -> bool {
    fields.value(&[name]).is_some_and(|(_, value)| value.as_bool() == Some(false))
}

fn latent_attention(fields: &Fields<'_>, owns: bool) -> Result<LatentAttention, ModelError> {
    Ok(LatentAttention {
        heads: fields.need_count(HEADS)?,
        query_rank: fields.width(&["q_lora_rank"])?,
        latent: fields.need_width(&["kv_lora_rank"])?,
        rope: fields.need_width(&["qk_rope_head_dim"])?,
        nope: fields.need_width(&["qk_nope_head_dim"])?,
        value: fields.need_width(&["v_head_dim"])?,
        indexer: if owns { Some(heads::indexer(fields)?) } else { None },
        output_gate: heads::output_gate(fields)?,
    })
}

/// Which layers own an indexer: listed, or one in so many after the first few, or all; none where there is none.
fn indexers(fields: &Fields<'_>, layers: u64) -> Result<Vec<bool>, ModelError> {
    if !fields.has("index_n_heads") {
        return Ok(vec![false; layers as usize]);
    }
    if let Some(kinds) = fields.words("indexer_types", layers)? {
        return Ok(kinds.into_iter().map(|kind| kind == "full").collect());
    }
    let step = fields.count(&["index_topk_freq"])?.unwrap_or(1).max(1);
    let offset = fields.count(&["index_skip_topk_offset"])?.unwrap_or(1);
    let owns = |layer: u64| (layer + 1).saturating_sub(offset).is_multiple_of(step);
    Ok((0..layers).map(owns).collect())
}

/// Kimi Linear: layers of full (latent) attention are listed from 1, the others keep a state.
fn kimi_linear(
    fields: &Fields<'_>,
    linear: &Fields<'_>,
    layers: u64,
) -> Result<Vec<Mixer>, ModelError> {
    let attention = Mixer::Latent(latent_attention(fields, fields.has("index_n_heads"))?);
    let delta = Mixer::KimiDelta(states::kimi_delta(linear)?);
    let full = linear.list("full_attn_layers")?;
    let full = full.ok_or_else(|| linear.missing(&["linear_attn_config.full_attn_layers"]))?;
    let mixer = |layer| if full.contains(&layer) { attention.clone() } else { delta.clone() };
    Ok((1..=layers).map(mixer).collect())
}

/// DeepSeek-V4: each layer's ratio of compression, 0 for a window alone.
fn compressed(fields: &Fields<'_>, layers: u64) -> Result<Vec<Mixer>, ModelError> {
    let ratios = fields.numbers("compress_ratios", layers)?;
    let ratios = ratios.ok_or_else(|| fields.missing(&["compress_ratios"]))?;
    let plain = CompressedAttention {
        heads: fields.need_count(HEADS)?,
        width: fields.need_width(&["head_dim"])?,
        rope: fields.need_width(&["qk_rope_head_dim"])?,
        query_rank: fields.need_width(&["q_lora_rank"])?,
        output_groups: fields.need_count(&["o_groups"])?,
        output_rank: fields.need_width(&["o_lora_rank"])?,
        window: fields.tokens(WINDOW)?.ok_or_else(|| fields.missing(&["sliding_window"]))?,
        past: CompressedPast::None,
    };
    let index = heads::indexer(fields)?;
    let mixer = |ratio| {
        let past = match ratio {
            0 => CompressedPast::None,
            4 => CompressedPast::Sparse(4, index),
            128 => CompressedPast::Heavy(128),
            other => {
                let why = format!("holds {other}; known are 0, 4 and 128");
                return Err(fields.invalid("compress_ratios", why));
            }
        };
        Ok(Mixer::Compressed(CompressedAttention { past, ..plain }))
    };
    ratios.into_iter().map(mixer).collect()
}
