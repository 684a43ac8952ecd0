//! Attention with keys and values of their own for each key-value head.

use super::fields::Fields;
use super::names::{
    HEAD_WIDTH, HEADS, HIDDEN, INDEX_CHOSEN, INDEX_HEADS, INDEX_WIDTH, KV_HEADS, WINDOW,
};
use crate::model::ModelError;
use crate::model::layer::{AttentionSpan, HeadsAttention, Indexer, OutputGate, QkNorm};

/// Grouped-query attention as the main fields give it.
pub fn heads(fields: &Fields<'_>, span: AttentionSpan) -> Result<HeadsAttention, ModelError> {
    let query_heads = fields.need_count(HEADS)?;
    let one = if fields.flag("multi_query")? { 1 } else { query_heads };
    let kv_heads = fields.count(KV_HEADS)?.unwrap_or(one);
    let hidden = fields.need_width(HIDDEN)?;
    let key_width = match fields.width(HEAD_WIDTH)? {
        Some(width) => width,
        None => hidden / query_heads,
    };
    if kv_heads == 0 || kv_heads > query_heads {
        return Err(
            fields.invalid("num_key_value_heads", format!("is {kv_heads} of {query_heads} heads"))
        );
    }
    let architecture = fields.architecture;
    let bias = fields.flag("attention_bias")?
        || fields.flag("qkv_bias")?
        || fields.flag("use_qkv_bias")?;
    Ok(HeadsAttention {
        query_heads,
        kv_heads,
        key_width,
        value_width: fields.width(&["v_head_dim"])?.unwrap_or(key_width),
        span,
        output_gate: output_gate(fields)?,
        query_rank: fields.width(&["share_q_dim"])?,
        convolved: (0, 0),
        relative: fields.count(&["d_rel"])?.unwrap_or(0),
        borrows_keys: false,
        indexer: None,
        qkv_bias: bias || architecture == "qwen2_moe",
        output_bias: fields.flag("attention_bias")? && architecture != "glm4_moe",
        qk_norm: qk_norm(fields)?,
        sinks: architecture == "gpt_oss",
        values_from_keys: false,
    })
}

fn qk_norm(fields: &Fields<'_>) -> Result<QkNorm, ModelError> {
    let named =
        fields.flag("use_qk_norm")? | fields.flag("qk_norm")? | fields.flag("qk_layernorm")?;
    Ok(match fields.architecture {
        // Its norm has no parameters.
        "llama4_text" | "llama4" => QkNorm::None,
        "olmoe" | "minimax_m2" | "flex_olmo" => QkNorm::Projection,
        "qwen3_moe"
        | "qwen3_next"
        | "qwen3_5_moe_text"
        | "qwen3_5_moe"
        | "qwen4_exp_text"
        | "qwen3_omni_moe_text"
        | "qwen3_vl_moe_text"
        | "gemma4_text"
        | "afmoe"
        | "laguna"
        | "lfm2_moe"
        | "dots1"
        | "mellum"
        | "muse_spark_text"
        | "step3p5" => QkNorm::Head,
        _ if named => QkNorm::Head,
        _ => QkNorm::None,
    })
}

/// What gates attention's output: named, or part of the architecture.
pub fn output_gate(fields: &Fields<'_>) -> Result<OutputGate, ModelError> {
    let gating = fields.text("gating");
    let by_head = match gating {
        Some(kind) => kind.contains("head"),
        None => fields.flag("gating")?,
    } | fields.flag("use_head_wise_attn_gate")?
        | (fields.architecture == "bailing_hybrid" && fields.has("short_conv_kernel_size"));
    let by_element = gating.is_some_and(|kind| kind.contains("element"))
        | fields.flag("attn_output_gate")?
        | ["qwen3_next", "qwen4_exp_text", "afmoe", "muse_spark_text"]
            .contains(&fields.architecture);
    Ok(match (by_element, by_head) {
        (true, _) => OutputGate::Elements,
        (false, true) => OutputGate::Heads,
        (false, false) => OutputGate::None,
    })
}

/// The layers of full attention where an architecture's differ: fewer, wider heads whose values come from the keys'
/// projection (Gemma 4).
pub fn full(fields: &Fields<'_>) -> Result<HeadsAttention, ModelError> {
    let plain = convolved(fields, heads(fields, AttentionSpan::Full)?)?;
    let sinks = plain.sinks || fields.flag("add_full_attention_sink_bias")?;
    let Some(width) = fields.width(&["global_head_dim"])? else {
        return Ok(HeadsAttention { sinks, ..plain });
    };
    Ok(HeadsAttention {
        kv_heads: fields.count(&["num_global_key_value_heads"])?.unwrap_or(plain.kv_heads),
        key_width: width,
        value_width: width,
        values_from_keys: fields.flag("attention_k_eq_v")?,
        ..plain
    })
}

/// The layers with a window, which may have heads and sinks of their own (MiMo, Step-3.5).
pub fn sliding(fields: &Fields<'_>) -> Result<HeadsAttention, ModelError> {
    let window = fields.tokens(WINDOW)?.ok_or_else(|| fields.missing(&["sliding_window"]))?;
    let plain = heads(fields, AttentionSpan::Sliding(window))?;
    let sinks = plain.sinks || fields.flag("add_swa_attention_sink_bias")?;
    let own = HeadsAttention {
        query_heads: fields.count(&["swa_num_attention_heads"])?.unwrap_or(plain.query_heads),
        kv_heads: fields.count(&["swa_num_key_value_heads"])?.unwrap_or(plain.kv_heads),
        key_width: fields.width(&["swa_head_dim"])?.unwrap_or(plain.key_width),
        value_width: fields.width(&["swa_v_head_dim"])?.unwrap_or(plain.value_width),
        sinks,
        ..plain
    };
    let Some(other) = fields.inside("attention_other_setting") else {
        return convolved(fields, own);
    };
    if other.text("attention_type").is_some_and(|kind| kind != "sliding_attention") {
        return Err(fields.invalid("attention_other_setting", "is not of sliding_attention"));
    }
    let width = other.width(&["head_dim"])?.unwrap_or(own.key_width);
    Ok(HeadsAttention {
        query_heads: other.count(HEADS)?.unwrap_or(own.query_heads),
        kv_heads: other.count(KV_HEADS)?.unwrap_or(own.kv_heads),
        key_width: width,
        value_width: width,
        ..own
    })
}

/// Short convolutions on keys, on values, and on what attention and the feed-forward part put out (Inkling).
fn convolved(fields: &Fields<'_>, plain: HeadsAttention) -> Result<HeadsAttention, ModelError> {
    if !fields.architecture.starts_with("inkling") {
        return Ok(plain);
    }
    let taps = fields.count(&["conv_kernel_size", "sconv_kernel_size"])?.unwrap_or(4);
    let kept = plain.kv_heads * (plain.key_width + plain.value_width);
    let channels = kept + 2 * fields.need_width(HIDDEN)?;
    Ok(HeadsAttention { convolved: (channels, taps), ..plain })
}

/// The indexer of sparse attention.
pub fn indexer(fields: &Fields<'_>) -> Result<Indexer, ModelError> {
    Ok(Indexer {
        heads: fields.need_count(INDEX_HEADS)?,
        width: fields.need_width(INDEX_WIDTH)?,
        top_k: fields.tokens(INDEX_CHOSEN)?.unwrap_or(0),
    })
}
