//! What mixes tokens in each layer.
//!
//! Windows and recurrences save most of a long context's memory, and a layer taken for full attention is the error
//! that overstates it four times; so a layer kind that is not known is refused, never billed as something else.

use super::fields::Fields;
use crate::model::ModelError;
use crate::model::layer::{
    AttentionSpan, CompressedAttention, CompressedPast, GatedDelta, HeadsAttention, Indexer,
    KimiDelta, LatentAttention, Mamba2, Mixer, QkNorm,
};

/// One mixer a layer.
pub fn mixers(fields: &Fields<'_>, layers: u64) -> Result<Vec<Mixer>, ModelError> {
    if let Some(pattern) = fields.text("hybrid_override_pattern") {
        let attention = Mixer::Heads(heads(fields, AttentionSpan::Full)?);
        let mamba = Mixer::Mamba2(mamba2(fields)?);
        let mixer = |part| match part {
            b'M' => mamba.clone(),
            b'*' => attention.clone(),
            _ => Mixer::None,
        };
        return Ok(pattern.bytes().map(mixer).collect());
    }
    if fields.has("compress_ratios") {
        return compressed(fields, layers);
    }
    if let Some(linear) = fields.inside("linear_attn_config") {
        return kimi_linear(fields, &linear, layers);
    }
    if fields.has("kv_lora_rank") {
        return latent(fields, layers);
    }
    if let Some(kinds) = fields.flags("hybrid_layer_pattern", layers)? {
        return kinds.into_iter().map(|sliding| mimo(fields, sliding)).collect();
    }
    refuse_other_state(fields)?;
    match fields.words("layer_types", layers)? {
        Some(kinds) => kinds.into_iter().map(|kind| by_kind(fields, kind)).collect(),
        None => (0..layers).map(|layer| by_kind(fields, implied_kind(fields, layer)?)).collect(),
    }
}

/// A recurrence that none of the known forms reads must not be billed as attention.
fn refuse_other_state(fields: &Fields<'_>) -> Result<(), ModelError> {
    let signs =
        ["ssm_state_size", "mamba_num_heads", "mamba_d_state", "time_mix_extra_dim", "rwkv"];
    let known = fields.has("linear_num_value_heads");
    match signs.iter().find(|sign| fields.has(sign)) {
        Some(sign) if !known => {
            Err(unknown(fields, format!("its `{sign}` means a recurrent state")))
        }
        _ => Ok(()),
    }
}

fn unknown(fields: &Fields<'_>, why: String) -> ModelError {
    ModelError::UnknownArchitecture {
        origin: fields.origin.into(),
        architecture: fields.architecture.into(),
        why,
    }
}

/// The mixer of a layer of this kind.
fn by_kind(fields: &Fields<'_>, kind: &str) -> Result<Mixer, ModelError> {
    match kind {
        "full_attention" | "attention" => match gemma_full(fields)? {
            Some(wide) => Ok(Mixer::Heads(wide)),
            None => Ok(Mixer::Heads(heads(fields, AttentionSpan::Full)?)),
        },
        "sliding_attention" => {
            let window = fields.tokens(&["sliding_window", "sliding_window_size"])?;
            let window = window.ok_or_else(|| fields.missing(&["sliding_window"]))?;
            let attention = heads(fields, AttentionSpan::Sliding(window))?;
            Ok(Mixer::Heads(attention))
        }
        "chunked_attention" => {
            let chunk = fields.tokens(&["attention_chunk_size"])?;
            let chunk = chunk.ok_or_else(|| fields.missing(&["attention_chunk_size"]))?;
            Ok(Mixer::Heads(heads(fields, AttentionSpan::Chunked(chunk))?))
        }
        "linear_attention" => Ok(Mixer::GatedDelta(gated_delta(fields)?)),
        other => Err(unknown(fields, format!("it has layers of the kind `{other}`"))),
    }
}

/// What an architecture means where it lists no kinds.
fn implied_kind(fields: &Fields<'_>, layer: u64) -> Result<&'static str, ModelError> {
    let next = layer + 1;
    if let Some(interval) = fields.count(&["full_attention_interval"])? {
        let full = interval > 0 && next.is_multiple_of(interval);
        return Ok(if full { "full_attention" } else { "linear_attention" });
    }
    let window = fields.tokens(&["sliding_window"])?;
    let sliding = match fields.architecture {
        "gpt_oss" => !next.is_multiple_of(2),
        "gemma4_text" => !next.is_multiple_of(6),
        "llama4_text" if !next.is_multiple_of(4) => return Ok("chunked_attention"),
        "llama4_text" => false,
        // Qwen names a window and mostly does not use it.
        _ if fields.has("use_sliding_window") => {
            let from = fields.count(&["max_window_layers"])?.unwrap_or(0);
            fields.flag("use_sliding_window")? && layer >= from && window.is_some()
        }
        "qwen2_moe" => false,
        _ => window.is_some(),
    };
    Ok(if sliding { "sliding_attention" } else { "full_attention" })
}

/// Grouped-query attention as the main fields give it.
fn heads(fields: &Fields<'_>, span: AttentionSpan) -> Result<HeadsAttention, ModelError> {
    let query_heads = fields.need_count(&["num_attention_heads"])?;
    let kv_heads = fields.count(&["num_key_value_heads"])?.unwrap_or(query_heads);
    let hidden = fields.need_width(&["hidden_size"])?;
    let key_width = match fields.width(&["head_dim"])? {
        Some(width) => width,
        None => hidden / query_heads,
    };
    if kv_heads == 0 || kv_heads > query_heads {
        return Err(
            fields.invalid("num_key_value_heads", format!("is {kv_heads} of {query_heads} heads"))
        );
    }
    let architecture = fields.architecture;
    let bias = fields.flag("attention_bias")? || fields.flag("qkv_bias")?;
    let qk_norm = match architecture {
        "olmoe" | "minimax_m2" => QkNorm::Projection,
        "qwen3_moe" | "qwen3_next" | "qwen3_5_moe_text" | "qwen3_5_moe" | "gemma4_text" => {
            QkNorm::Head
        }
        "glm4_moe" | "minimax_m3" if fields.flag("use_qk_norm")? => QkNorm::Head,
        _ => QkNorm::None,
    };
    Ok(HeadsAttention {
        query_heads,
        kv_heads,
        key_width,
        value_width: fields.width(&["v_head_dim"])?.unwrap_or(key_width),
        span,
        output_gate: architecture == "qwen3_next" || fields.flag("attn_output_gate")?,
        qkv_bias: bias || architecture == "qwen2_moe",
        output_bias: fields.flag("attention_bias")? && architecture != "glm4_moe",
        qk_norm,
        sinks: architecture == "gpt_oss",
        values_from_keys: false,
    })
}

/// Gemma 4's full layers: fewer, wider heads whose values come from the keys' projection.
fn gemma_full(fields: &Fields<'_>) -> Result<Option<HeadsAttention>, ModelError> {
    let Some(width) = fields.width(&["global_head_dim"])? else { return Ok(None) };
    let local = heads(fields, AttentionSpan::Full)?;
    Ok(Some(HeadsAttention {
        kv_heads: fields.count(&["num_global_key_value_heads"])?.unwrap_or(local.kv_heads),
        key_width: width,
        value_width: width,
        values_from_keys: fields.flag("attention_k_eq_v")?,
        ..local
    }))
}

/// MiMo: windowed layers have heads and sinks of their own.
fn mimo(fields: &Fields<'_>, sliding: bool) -> Result<Mixer, ModelError> {
    let full = heads(fields, AttentionSpan::Full)?;
    if !sliding {
        let sinks = fields.flag("add_full_attention_sink_bias")?;
        return Ok(Mixer::Heads(HeadsAttention { sinks, ..full }));
    }
    let window = fields.tokens(&["sliding_window", "sliding_window_size"])?;
    let window = window.ok_or_else(|| fields.missing(&["sliding_window"]))?;
    Ok(Mixer::Heads(HeadsAttention {
        query_heads: fields.count(&["swa_num_attention_heads"])?.unwrap_or(full.query_heads),
        kv_heads: fields.count(&["swa_num_key_value_heads"])?.unwrap_or(full.kv_heads),
        key_width: fields.width(&["swa_head_dim"])?.unwrap_or(full.key_width),
        value_width: fields.width(&["swa_v_head_dim"])?.unwrap_or(full.value_width),
        span: AttentionSpan::Sliding(window),
        sinks: fields.flag("add_swa_attention_sink_bias")?,
        ..full
    }))
}

fn latent_attention(fields: &Fields<'_>) -> Result<LatentAttention, ModelError> {
    Ok(LatentAttention {
        heads: fields.need_count(&["num_attention_heads"])?,
        query_rank: fields.width(&["q_lora_rank"])?,
        latent: fields.need_width(&["kv_lora_rank"])?,
        rope: fields.need_width(&["qk_rope_head_dim"])?,
        nope: fields.need_width(&["qk_nope_head_dim"])?,
        value: fields.need_width(&["v_head_dim"])?,
        indexer: None,
    })
}

fn indexer(fields: &Fields<'_>) -> Result<Indexer, ModelError> {
    Ok(Indexer {
        heads: fields.need_count(&["index_n_heads"])?,
        width: fields.need_width(&["index_head_dim"])?,
        top_k: fields.tokens(&["index_topk"])?.unwrap_or(0),
    })
}

/// Latent attention, with an indexer on the layers that own one.
fn latent(fields: &Fields<'_>, layers: u64) -> Result<Vec<Mixer>, ModelError> {
    let plain = latent_attention(fields)?;
    let index = if fields.has("index_n_heads") { Some(indexer(fields)?) } else { None };
    let kinds = fields.words("indexer_types", layers)?;
    // Without a list: every layer, or one in so many after the first few.
    let step = fields.count(&["index_topk_freq"])?.unwrap_or(1).max(1);
    let offset = fields.count(&["index_skip_topk_offset"])?.unwrap_or(1);
    let owns = |layer: u64| match &kinds {
        Some(kinds) => kinds[layer as usize] == "full",
        None => (layer + 1).saturating_sub(offset).is_multiple_of(step),
    };
    let mixer =
        |layer| Mixer::Latent(LatentAttention { indexer: index.filter(|_| owns(layer)), ..plain });
    Ok((0..layers).map(mixer).collect())
}

/// Kimi Linear: layers of full (latent) attention are listed from 1, the others keep a state.
fn kimi_linear(
    fields: &Fields<'_>,
    linear: &Fields<'_>,
    layers: u64,
) -> Result<Vec<Mixer>, ModelError> {
    let attention = Mixer::Latent(latent_attention(fields)?);
    let delta = Mixer::KimiDelta(KimiDelta {
        heads: linear.need_count(&["num_heads"])?,
        width: linear.need_width(&["head_dim"])?,
        kernel: linear.need_count(&["short_conv_kernel_size"])?,
    });
    let full = linear.list("full_attn_layers")?;
    let full = full.ok_or_else(|| linear.missing(&["linear_attn_config.full_attn_layers"]))?;
    let mixer = |layer| if full.contains(&layer) { attention.clone() } else { delta.clone() };
    Ok((1..=layers).map(mixer).collect())
}

fn gated_delta(fields: &Fields<'_>) -> Result<GatedDelta, ModelError> {
    Ok(GatedDelta {
        key_heads: fields.need_count(&["linear_num_key_heads"])?,
        value_heads: fields.need_count(&["linear_num_value_heads"])?,
        key_width: fields.need_width(&["linear_key_head_dim"])?,
        value_width: fields.need_width(&["linear_value_head_dim"])?,
        kernel: fields.need_count(&["linear_conv_kernel_dim"])?,
    })
}

fn mamba2(fields: &Fields<'_>) -> Result<Mamba2, ModelError> {
    Ok(Mamba2 {
        heads: fields.need_count(&["mamba_num_heads"])?,
        width: fields.need_width(&["mamba_head_dim"])?,
        groups: fields.need_count(&["n_groups"])?,
        state: fields.need_width(&["ssm_state_size"])?,
        kernel: fields.need_count(&["conv_kernel"])?,
        conv_bias: fields.flag("use_conv_bias")?,
    })
}

/// DeepSeek-V4: each layer's ratio of compression, 0 for a window alone.
fn compressed(fields: &Fields<'_>, layers: u64) -> Result<Vec<Mixer>, ModelError> {
    let ratios = fields.numbers("compress_ratios", layers)?;
    let ratios = ratios.ok_or_else(|| fields.missing(&["compress_ratios"]))?;
    let plain = CompressedAttention {
        heads: fields.need_count(&["num_attention_heads"])?,
        width: fields.need_width(&["head_dim"])?,
        rope: fields.need_width(&["qk_rope_head_dim"])?,
        query_rank: fields.need_width(&["q_lora_rank"])?,
        output_groups: fields.need_count(&["o_groups"])?,
        output_rank: fields.need_width(&["o_lora_rank"])?,
        window: fields
            .tokens(&["sliding_window"])?
            .ok_or_else(|| fields.missing(&["sliding_window"]))?,
        past: CompressedPast::None,
    };
    let index = indexer(fields)?;
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
