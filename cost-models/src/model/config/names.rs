//! What architectures call the same thing, the commonest name first.

/// Width of the hidden state.
pub const HIDDEN: &[&str] = &["hidden_size", "d_model", "n_embd", "model_dim", "dim"];
/// Layers.
pub const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "num_layers", "n_layers"];
/// Query heads.
pub const HEADS: &[&str] =
    &["num_attention_heads_per_layer", "num_attention_heads", "n_heads", "n_head", "num_heads"];
/// Key-value heads.
pub const KV_HEADS: &[&str] = &[
    "num_key_value_heads_per_layer",
    "num_key_value_heads",
    "kv_n_heads",
    "n_kv_heads",
    "num_kv_heads",
    "num_attention_groups",
    "num_query_groups",
];
/// Width of a head.
pub const HEAD_WIDTH: &[&str] = &["head_dim", "attention_head_dim", "kv_channels", "d_head"];
/// Routed experts of a layer.
pub const COUNT: &[&str] = &[
    "num_experts",
    "n_routed_experts",
    "num_local_experts",
    "moe_num_experts",
    "num_routed_experts",
    "n_experts",
    "num_moe_experts",
    "moe_num_primary_experts",
];
/// Experts chosen for a token.
pub const TOP_K: &[&str] = &[
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_top_k",
    "moe_topk",
    "moe_k",
    "num_selected_experts",
    "num_active_experts",
    "n_activated_experts",
    "moe_router_topk",
    "moe_num_active_primary_experts",
];
/// An expert's width.
pub const WIDTH: &[&str] = &[
    "moe_intermediate_size",
    "expert_ffn_hidden_size",
    "moe_ffn_hidden_size",
    "expert_intermediate_size",
    "moe_expert_intermediate_size",
    "expert_hidden_dim",
    "ffn_hidden_size",
    "intermediate_size",
];
/// Width of a dense feed-forward part.
pub const DENSE_WIDTH: &[&str] = &[
    "intermediate_size_mlp",
    "dense_intermediate_size",
    "dense_ffn_hidden_size",
    "hidden_dim",
    "ffn_hidden_size",
    "intermediate_size",
];
/// Shared experts of a layer.
pub const SHARED_COUNT: &[&str] = &[
    "n_shared_experts",
    "num_shared_experts",
    "num_shared_expert",
    "moe_num_shared_experts",
    "n_shared_expert",
];
/// Width of one shared expert, where it is not a routed one's.
pub const SHARED_WIDTH: &[&str] = &[
    "moe_shared_expert_intermediate_size",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
    "share_expert_dims",
    "shared_expert_dim",
];
/// Layers without experts at the beginning.
pub const FIRST_DENSE: &[&str] = &[
    "first_k_dense_replace",
    "num_dense_layers",
    "n_dense_layers",
    "moe_layer_start_index",
    "dense_mlp_idx",
];
/// Tokens of a window.
pub const WINDOW: &[&str] =
    &["sliding_window", "sliding_window_size", "window_size", "attention_window_size"];
/// The longest context.
pub const CONTEXT: &[&str] =
    &["max_position_embeddings", "model_max_length", "max_seq_len", "max_sequence_length"];
/// Draft layers.
pub const DRAFTS: &[&str] = &[
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "mtp_num_layers",
    "num_mtp_layers",
];
/// Residual streams.
pub const STREAMS: &[&str] = &["hc_mult", "hc_count"];
/// Heads of an indexer.
pub const INDEX_HEADS: &[&str] = &["index_n_heads", "indexer_n_heads"];
/// Width of an index key.
pub const INDEX_WIDTH: &[&str] = &["index_head_dim", "indexer_head_dim"];
/// Tokens that an indexer chooses.
pub const INDEX_CHOSEN: &[&str] = &["index_topk", "indexer_budget"];

/// A name with its synonyms in brackets.
pub fn with_synonyms(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).into(),
        [first, others @ ..] => format!("{first} ({})", others.join(", ")),
    }
}
