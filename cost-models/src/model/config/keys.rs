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
    "aux",
    "auto_map",
    "beam",
    "bias",
    "bos_",
    "cache_implementation",
    "capacity",
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
    "fp32",
    "freq_base",
    "fuse",
    "gamma",
    "generat",
    "group_experts",
    "hidden_act",
    "id2label",
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
    "model_type",
    "mrope",
    "multiplier",
    "mup",
    "n_group",
    "name",
    "no_rope",
    "nope",
    "norm",
    "output_hidden",
    "output_attentions",
    "output_router",
    "pad_token",
    "parallel_size",
    "penalty",
    "position",
    "pretraining",
    "problem",
    "projector",
    "prun",
    "quant",
    "remove_invalid",
    "rescale",
    "return_dict",
    "rope",
    "rotary",
    "router_",
    "routing",
    "sample",
    "scal",
    "score",
    "scoring",
    "seed",
    "seq_len",
    "seq_length",
    "softcap",
    "sparsity",
    "speech",
    "suppress",
    "talker",
    "temperature",
    "theta",
    "time_step",
    "token_id",
    "token_index",
    "tokenizer",
    "top_p",
    "topk_group",
    "topk_method",
    "topk_prob",
    "torch",
    "transformers",
    "typical_p",
    "use_cache",
    "vision",
    "visual",
    "video",
    "warmup",
    "yarn",
    "z_loss",
];

/// Keys that are harmless by their whole name.
const HARMLESS_NAMES: &[&str] = &[
    "architectures",
    "do_sample",
    "early_stopping",
    "expand",
    "head_dim",
    "log_base",
    "max_length",
    "max_window_layers",
    "min_length",
    "no_repeat_ngram_size",
    "num_key_value_heads",
    "prefix",
    "rotary_dim",
    "top_k",
    "use_mla",
    "encoder_no_repeat_ngram_size",
    "seq_aux",
    "truncation",
    "bad_words_ids",
    "is_hybrid",
    "attn_mode",
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
        || HARMLESS.iter().any(|part| key.contains(part))
}
