//! Keys of a configuration that nothing here has read: harmless, or reason to doubt the sizes.
//!
//! A key that is not understood may stand for a part that is not counted. So what is read is noted as it is read, and
//! what is left is measured against what can be no size: rates, names, token ids, positions, formats, towers.

use serde_json::Value;

use super::fields::Fields;

/// Keys that contain one of these change no size worth counting.
const HARMLESS: &[&str] = &[
    "act_fn",
    "activation",
    "alibi",
    "alpha",
    "arch",
    "attn_impl",
    "audio",
    "auto_map",
    "aux",
    "batch",
    "beam",
    "bf16",
    "bias",
    "bos_",
    "cache_implementation",
    "capacity",
    "checkpointing",
    "chunk_size",
    "clip",
    "code2wav",
    "coef",
    "correction",
    "cu_seqlens",
    "decay",
    "deterministic",
    "diversity",
    "drop",
    "dtype",
    "eos_",
    "ep_size",
    "eps",
    "expert_group",
    "flash",
    "fp16",
    "fp32",
    "freq_base",
    "fuse",
    "gamma",
    "generat",
    "gradient",
    "group_experts",
    "hidden_act",
    "id2label",
    "ignore",
    "image",
    "init",
    "is_causal",
    "is_decoder",
    "is_encoder",
    "jitter",
    "kernels",
    "label",
    "langu",
    "length_penalty",
    "limit",
    "loss",
    "mm_",
    "modal",
    "model_type",
    "moe_gate",
    "mrope",
    "multiplier",
    "mup",
    "n_group",
    "name",
    "no_rope",
    "nope",
    "norm",
    "offload",
    "output_attentions",
    "output_hidden",
    "output_router",
    "pad_token",
    "parallel_size",
    "penalty",
    "pipeline_parallel",
    "position",
    "pretraining",
    "problem",
    "projector",
    "prun",
    "quant",
    "recompute",
    "remove_invalid",
    "rescale",
    "return_dict",
    "rope",
    "rotary",
    "router",
    "routing",
    "sample",
    "scal",
    "score",
    "scoring",
    "seed",
    "seq_len",
    "seq_length",
    "sequence_parallel",
    "softcap",
    "sparsity",
    "speech",
    "suppress",
    "talker",
    "temperature",
    "tensor_parallel",
    "theta",
    "time_step",
    "token_id",
    "token_index",
    "tokenizer",
    "top_p",
    "topk",
    "torch",
    "transformers",
    "typical_p",
    "use_cache",
    "video",
    "vision",
    "visual",
    "warmup",
    "yarn",
    "z_loss",
];

/// Keys that are harmless by their whole name.
const HARMLESS_NAMES: &[&str] = &[
    "architectures",
    "attn_mode",
    "bad_words_ids",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "expand",
    "head_dim",
    "is_hybrid",
    "is_moe",
    "log_base",
    "max_length",
    "max_window_layers",
    "min_length",
    "moe_group",
    "no_repeat_ngram_size",
    "num_key_value_heads",
    "padded_vocab_size",
    "prefix",
    "rotary_dim",
    "seq_aux",
    "top_k",
    "truncation",
    "unpadded_vocab_size",
    "use_mixed_mlp_moe",
    "use_mla",
    "use_moe",
];

/// Keys that say which layers are of a kind: unread only where another key, which was read, says the same.
const SAID_TWICE: &[&str] = &[
    "attn_layer_offset",
    "attn_layer_period",
    "decoder_sparse_step",
    "first_k_dense_replace",
    "full_attention_interval",
    "global_attn_every_n_layers",
    "layer_group_size",
    "mlp_only_layers",
    "moe_layer_freq",
    "num_dense_layers",
    "sliding_window",
    "sliding_window_layout",
    "sliding_window_pattern",
    "sliding_window_size",
    "use_sliding_window",
];

/// Keys with a value that may stand for something whose size is not counted.
pub fn not_understood(fields: &Fields<'_>) -> Vec<String> {
    let mut left = Vec::new();
    for (key, value) in fields.innermost() {
        if !is_nothing(value) && !is_harmless(key) && !fields.was_read(key) {
            left.push(key.to_owned());
        }
    }
    left.sort_unstable();
    left
}

/// Absent, off, none, empty: no part of a model.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.iter().all(is_nothing),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn is_harmless(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.starts_with('_')
        || HARMLESS_NAMES.contains(&key.as_str())
        || SAID_TWICE.contains(&key.as_str())
        || HARMLESS.iter().any(|part| key.contains(part))
}
