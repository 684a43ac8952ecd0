//! What mixes tokens in a layer of a GGUF file: told by the tensors that the layer has.

use super::LayerTensors;
use super::keys::Keys;
use super::reader::Value;
use crate::model::ModelError;
use crate::model::layer::{
    AttentionSpan, GatedDelta, HeadsAttention, Indexer, KimiDelta, LatentAttention, Mamba1, Mamba2,
    Mixer, OutputGate, QkNorm, ShortConv,
};

/// The mixer of one layer.
pub fn mixer(
    keys: &Keys<'_>,
    tensors: &LayerTensors<'_>,
    layer: u64,
    layers: u64,
) -> Result<Mixer, ModelError> {
    let has = |start: &str| tensors.keys().any(|name| name.starts_with(start));
    if has("ssm_") {
        return recurrent(keys, &has);
    }
    if has("shortconv.") {
        return Ok(Mixer::ShortConv(ShortConv {
            width: keys.need_width("embedding_length")?,
            kernel: keys.need_count("shortconv.l_cache")?,
        }));
    }
    if has("attn_kv_a_mqa") {
        return latent(keys, &has);
    }
    if !has("attn_k.") && !has("attn_qkv") && !has("attn_q.") {
        return Ok(Mixer::None);
    }
    // The last layers of some models read the keys and values of earlier ones.
    let shared = keys.count("attention.shared_kv_layers")?.unwrap_or(0);
    if layer >= layers.saturating_sub(shared) {
        return Ok(Mixer::None);
    }
    heads(keys, layer).map(Mixer::Heads)
}

fn recurrent(keys: &Keys<'_>, has: &impl Fn(&str) -> bool) -> Result<Mixer, ModelError> {
    let kernel = keys.need_count("ssm.conv_kernel")?;
    if has("ssm_f_a") {
        return Ok(Mixer::KimiDelta(KimiDelta {
            heads: keys.of_layer("attention.head_count", 0)?.unwrap_or(1),
            width: keys.need_width("kda.head_dim")?,
            kernel,
            whole_gates: !has("ssm_f_b"),
        }));
    }
    let inner = keys.need_width("ssm.inner_size")?;
    if has("ssm_x") {
        return Ok(Mixer::Mamba1(Mamba1 {
            inner,
            state: keys.need_width("ssm.state_size")?,
            kernel,
            rank: keys.need_count("ssm.time_step_rank")?,
            conv_bias: has("ssm_conv1d.bias"),
        }));
    }
    let heads = keys.need_count("ssm.time_step_rank")?;
    let state = keys.need_width("ssm.state_size")?;
    let groups = keys.count("ssm.group_count")?.unwrap_or(1).max(1);
    if !inner.is_multiple_of(heads) {
        return Err(
            keys.invalid("ssm.inner_size", format!("is {inner}, not whole heads of {heads}"))
        );
    }
    if ["ssm_beta", "ssm_alpha", "ssm_ba"].iter().any(|name| has(name)) {
        return Ok(Mixer::GatedDelta(GatedDelta {
            key_heads: groups,
            value_heads: heads,
            key_width: state,
            value_width: inner / heads,
            kernel,
        }));
    }
    if has("ssm_in") && has("ssm_d") {
        let (width, conv_bias) = (inner / heads, has("ssm_conv1d.bias"));
        return Ok(Mixer::Mamba2(Mamba2 { heads, width, groups, state, kernel, conv_bias }));
    }
    Err(keys
        .unknown("it has a recurrence of another kind than Mamba-2, Gated DeltaNet and Kimi Delta"))
}

fn latent(keys: &Keys<'_>, has: &impl Fn(&str) -> bool) -> Result<Mixer, ModelError> {
    let heads = keys
        .of_layer("attention.head_count", 0)?
        .ok_or_else(|| keys.missing("attention.head_count"))?;
    let rope = keys.need_width("rope.dimension_count")?;
    let Some(key) = keys.width("attention.key_length_mla")? else {
        // Files from before latents were kept: every head's keys and values are.
        return Ok(Mixer::Heads(HeadsAttention {
            key_width: keys.need_width("attention.key_length")?,
            value_width: keys.need_width("attention.value_length")?,
            ..plain(heads, heads)
        }));
    };
    let indexer = if has("indexer.") {
        Some(Indexer {
            heads: keys.need_count("attention.indexer.head_count")?,
            width: keys.need_width("attention.indexer.key_length")?,
            top_k: keys.tokens("attention.indexer.top_k")?.unwrap_or(0),
        })
    } else {
        None
    };
    Ok(Mixer::Latent(LatentAttention {
        heads,
        query_rank: keys.width("attention.q_lora_rank")?,
        latent: keys.need_width("attention.kv_lora_rank")?,
        rope,
        nope: key.saturating_sub(rope),
        value: keys.width("attention.value_length_mla")?.unwrap_or(key.saturating_sub(rope)),
        indexer,
        output_gate: OutputGate::None,
    }))
}

fn plain(query_heads: u64, kv_heads: u64) -> HeadsAttention {
    HeadsAttention {
        query_heads,
        kv_heads,
        key_width: 1,
        value_width: 1,
        span: AttentionSpan::Full,
        output_gate: OutputGate::None,
        query_rank: None,
        convolved: (0, 0),
        relative: 0,
        borrows_keys: false,
        indexer: None,
        qkv_bias: false,
        output_bias: false,
        qk_norm: QkNorm::None,
        sinks: false,
        values_from_keys: false,
    }
}

fn heads(keys: &Keys<'_>, layer: u64) -> Result<HeadsAttention, ModelError> {
    let query = keys.of_layer("attention.head_count", layer)?;
    let query =
        query.filter(|heads| *heads > 0).ok_or_else(|| keys.missing("attention.head_count"))?;
    let kv = keys.of_layer("attention.head_count_kv", layer)?.unwrap_or(query);
    let span = span(keys, layer)?;
    let implied = keys.need_width("embedding_length")? / query;
    let local = !matches!(span, AttentionSpan::Full);
    let width = |key: &str| -> Result<u64, ModelError> {
        let of_windows = if local { keys.width(&format!("attention.{key}_swa"))? } else { None };
        let all = keys.width(&format!("attention.{key}"))?;
        Ok(of_windows.or(all).unwrap_or(implied))
    };
    Ok(HeadsAttention {
        key_width: width("key_length")?,
        value_width: width("value_length")?,
        span,
        ..plain(query, kv)
    })
}

/// Which layers have a window: listed, every so many, or as the architecture implies.
fn span(keys: &Keys<'_>, layer: u64) -> Result<AttentionSpan, ModelError> {
    if keys.architecture == "llama4" {
        let full = (layer + 1).is_multiple_of(4);
        return Ok(if full { AttentionSpan::Full } else { AttentionSpan::Chunked(8192) });
    }
    // A window as long as the context is none.
    let context = keys.tokens("context_length")?.unwrap_or(u64::MAX);
    let window = keys.tokens("attention.sliding_window")?;
    let window = window.filter(|window| *window > 0 && *window < context);
    let Some(window) = window else { return Ok(AttentionSpan::Full) };
    let sliding = match keys.get("attention.sliding_window_pattern") {
        Some(Value::List(list)) => list.get(layer as usize).is_some_and(|flag| *flag != 0),
        Some(Value::Number(every @ 1..)) => !(layer + 1).is_multiple_of(*every),
        _ => match keys.architecture {
            "gpt-oss" => layer.is_multiple_of(2),
            "afmoe" | "exaone-moe" => !(layer + 1).is_multiple_of(4),
            "smallthinker" => !layer.is_multiple_of(4),
            _ => return Err(keys.unknown("it names a window but not the layers that have it")),
        },
    };
    Ok(if sliding { AttentionSpan::Sliding(window) } else { AttentionSpan::Full })
}
