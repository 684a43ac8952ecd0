//! One small configuration for each way in which models differ, counted by hand; and published models whose configurations
//! say things in their own words, against the parameters that their makers state.

use hotset_cost_models::Model;
use hotset_cost_models::model::{KvFormat, UnknownKeys};
use serde_json::{Value, json};

/// A published model by the fields that size it, with its stated parameters in billions: all, and those of a token.
struct Published {
    fields: Value,
    total: f64,
    active: f64,
}

fn published() -> Vec<Published> {
    let of = |total, active, fields| Published { fields, total, active };
    let arctic = json!({
        "model_type": "arctic", "num_hidden_layers": 35, "hidden_size": 7168, "vocab_size": 32000,
        "num_attention_heads": 56, "num_key_value_heads": 8, "num_local_experts": 128,
        "num_experts_per_tok": 2, "intermediate_size": 4864, "parallel_attn_mlp_res": true
    });
    let step3 = json!({
        "model_type": "step3_vl", "text_config": {
            "model_type": "step3_text", "num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 128815,
            "num_attention_heads": 64, "num_attention_groups": 1, "head_dim": 256, "share_q_dim": 2048,
            "moe_num_experts": 48, "moe_top_k": 3, "moe_intermediate_size": 5120, "share_expert_dim": 5120,
            "intermediate_size": 18432,
            "moe_layers_enum": (4..60).map(|layer| layer.to_string()).collect::<Vec<_>>().join(",")
        }
    });
    let step35 = json!({
        "model_type": "step3p5", "num_hidden_layers": 45, "hidden_size": 4096, "vocab_size": 128896,
        "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128, "moe_num_experts": 288,
        "moe_top_k": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280, "intermediate_size": 11264,
        "moe_layers_enum": (3..45).map(|layer| layer.to_string()).collect::<Vec<_>>().join(","),
        "sliding_window": 512, "use_head_wise_attn_gate": true,
        "attention_other_setting": {
            "attention_type": "sliding_attention", "num_attention_heads": 96, "num_attention_groups": 8,
            "head_dim": 128
        },
        "layer_types": (0..45).map(|layer| if layer % 4 == 0 { "full_attention" } else { "sliding_attention" })
            .collect::<Vec<_>>()
    });
    let smallthinker = json!({
        "model_type": "smallthinker", "num_hidden_layers": 52, "hidden_size": 2560, "vocab_size": 151936,
        "num_attention_heads": 28, "num_key_value_heads": 4, "head_dim": 128, "moe_num_primary_experts": 64,
        "moe_num_active_primary_experts": 6, "moe_ffn_hidden_size": 768, "tie_word_embeddings": true
    });
    let solar = json!({
        "model_type": "solar_open", "num_hidden_layers": 48, "hidden_size": 4096, "vocab_size": 196608,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "n_routed_experts": 128,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1280,
        "intermediate_size": 10240, "norm_topk_prob": true, "routed_scaling_factor": 1.0
    });
    let hunyuan_large = json!({
        "model_type": "hunyuan", "num_hidden_layers": 64, "hidden_size": 6400, "vocab_size": 128512,
        "num_attention_heads": 80, "num_key_value_heads": 8, "num_experts": 16, "moe_topk": 1,
        "num_shared_expert": 1, "intermediate_size": 18304, "use_cla": true, "cla_share_factor": 2,
        "use_mixed_mlp_moe": true, "tie_word_embeddings": true
    });
    let ernie = json!({
        "model_type": "ernie4_5_moe", "num_hidden_layers": 54, "hidden_size": 8192, "vocab_size": 103424,
        "num_attention_heads": 64, "num_key_value_heads": 8, "moe_num_experts": 64, "moe_k": 8,
        "moe_intermediate_size": 3584, "intermediate_size": 28672, "moe_layer_start_index": 3,
        "moe_layer_end_index": 53, "moe_num_shared_experts": 0
    });
    vec![
        of(479.0, 17.0, arctic),
        of(316.0, 38.0, step3),
        of(196.0, 11.0, step35),
        of(21.5, 3.0, smallthinker),
        of(102.6, 12.0, solar),
        of(389.0, 52.0, hunyuan_large),
        of(300.0, 47.0, ernie),
    ]
}

fn more_published() -> Vec<Published> {
    let of = |total, active, fields| Published { fields, total, active };
    let flex = json!({
        "model_type": "flex_olmo", "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 100352,
        "num_attention_heads": 32, "num_experts": 7, "num_experts_per_tok": 4, "intermediate_size": 11008
    });
    let jamba_large = json!({
        "model_type": "jamba", "num_hidden_layers": 72, "hidden_size": 8192, "vocab_size": 65536,
        "num_attention_heads": 64, "num_key_value_heads": 8, "num_experts": 16, "num_experts_per_tok": 2,
        "intermediate_size": 24576, "attn_layer_period": 8, "attn_layer_offset": 4,
        "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 16, "mamba_d_conv": 4,
        "mamba_expand": 2, "mamba_dt_rank": 512, "mamba_conv_bias": true
    });
    let granite_tiny = json!({
        "model_type": "granitemoehybrid", "num_hidden_layers": 40, "hidden_size": 1536, "vocab_size": 100352,
        "num_attention_heads": 12, "num_key_value_heads": 4, "num_local_experts": 64, "num_experts_per_tok": 6,
        "intermediate_size": 512, "shared_intermediate_size": 1024, "mamba_n_heads": 48, "mamba_d_head": 64,
        "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4, "tie_word_embeddings": true,
        "layer_types": (0..40).map(|layer| if layer % 10 == 5 { "attention" } else { "mamba" }).collect::<Vec<_>>()
    });
    let ling_flash = json!({
        "model_type": "bailing_moe", "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 157184,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 256,
        "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024,
        "intermediate_size": 9216, "first_k_dense_replace": 1
    });
    let skywork = json!({
        "model_type": "skywork_moe", "num_hidden_layers": 52, "hidden_size": 4608, "vocab_size": 65532,
        "num_attention_heads": 36, "num_key_value_heads": 36, "num_experts": [16], "num_experts_per_tok": 2,
        "intermediate_size": 12288
    });
    let inkling = json!({
        "model_type": "inkling_mm_model", "text_config": {
            "model_type": "inkling_text", "num_hidden_layers": 66, "hidden_size": 6144, "vocab_size": 201024,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
            "swa_num_attention_heads": 64, "swa_num_key_value_heads": 16, "swa_head_dim": 128,
            "sliding_window_size": 512, "d_rel": 16, "rel_extent": 1024, "sconv_kernel_size": 4,
            "dense_intermediate_size": 24576, "intermediate_size": 3072,
            "n_routed_experts": 256, "num_experts_per_tok": 6, "n_shared_experts": 2,
            "local_layer_ids": (0..66).filter(|layer| (layer + 1) % 6 != 0).collect::<Vec<u32>>()
        }
    });
    vec![
        of(33.3, 20.0, flex),
        of(398.0, 94.0, jamba_large),
        of(6.9, 1.4, granite_tiny),
        of(103.0, 6.1, ling_flash),
        of(146.0, 22.0, skywork),
        of(975.0, 41.0, inkling),
    ]
}

#[test]
fn published_models_have_their_stated_parameters() {
    for Published { fields, total, active } in published().into_iter().chain(more_published()) {
        let name = fields["model_type"].as_str().unwrap();
        let model = Model::from_config_str(&fields.to_string(), name).unwrap();
        let near = |parameters: u64, stated: f64, within: f64| {
            let found = parameters as f64 / 1e9;
            assert!((found / stated - 1.0).abs() < within, "{name}: {found}, stated {stated}");
        };
        near(model.parameters().total(), total, 0.02);
        // Stated in whole billions, now with the embedding, now without.
        near(model.active_parameters(), active, 0.12);
    }
    for (name, total) in
        [("MiniMax-Text-01", 456), ("LongCat-Flash", 560), ("DBRX", 131), ("GLM-4.5", 352)]
    {
        let model = Model::builtin(name).unwrap();
        assert_eq!(model.parameters().total() / 1_000_000_000, total, "{name}");
    }
}

/// A mixture of experts of two layers, width 64, with these fields besides.
fn small(fields: Value) -> Model {
    let mut config = json!({
        "model_type": "made_up_moe", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 96
    });
    for (key, value) in fields.as_object().unwrap() {
        config[key] = value.clone();
    }
    Model::from_config_str(&config.to_string(), "test").unwrap()
}

/// What fields add to the model's parameters.
fn added(fields: Value) -> i64 {
    let total = |model: Model| i64::try_from(model.parameters().total()).unwrap();
    total(small(fields)) - total(small(json!({})))
}

#[test]
fn what_fields_add_by_hand() {
    // Two layers each: queries and output 64 x 64, keys and values 64 x 32.
    let attention = 2 * 64 * 64 + 2 * 64 * 32;
    let mamba = json!({
        "layer_types": ["mamba", "attention"], "mamba_d_state": 8, "mamba_d_conv": 4, "mamba_expand": 2,
        "mamba_dt_rank": "auto", "mamba_conv_bias": true
    });
    // Inner width 128, rank 4: in and out, taps and bias, state, time step, decay and skip, three norms.
    let of_mamba = 3 * 64 * 128 + 128 * 5 + 128 * 20 + 4 * 128 + 2 * 128 + 128 * 8 + 20;
    assert_eq!(added(mamba), of_mamba - attention);
    let mamba2 = json!({
        "layer_types": ["mamba", "attention"], "mamba_d_state": 8, "mamba_d_conv": 4, "mamba_n_heads": 8,
        "mamba_d_head": 16, "mamba_n_groups": 1
    });
    assert_eq!(added(mamba2), 64 * (128 + 144 + 8) + 144 * 4 + 24 + 128 + 128 * 64 - attention);
    let conv = json!({"layer_types": ["conv", "full_attention"], "conv_L_cache": 3});
    assert_eq!(added(conv), 4 * 64 * 64 + 64 * 3 - attention);
    let lightning = json!({"attn_type_list": [0, 1]});
    assert_eq!(added(lightning), 5 * 64 * 64 + 64 + 32 - attention);
    assert_eq!(added(json!({"n_shared_experts": 2})), 2 * 2 * 3 * 64 * 32);
    assert_eq!(added(json!({"residual_moe": true})), 2 * 3 * 64 * 96);
    assert_eq!(added(json!({"parallel_attn_mlp_res": true})), 2 * 3 * 64 * 64);
    assert_eq!(added(json!({"gating": "per-head"})), 2 * 64 * 4);
    assert_eq!(added(json!({"attn_output_gate": true})), 2 * 64 * 64);
    assert_eq!(added(json!({"moe_hidden_size": 32})), -2 * 8 * 3 * 32 * 32 + 2 * 2 * 64 * 32);
    assert_eq!(added(json!({"zero_expert_num": 4})), 2 * 4 * 64);
    assert_eq!(added(json!({"share_q_dim": 8})), 2 * (64 * 8 + 8 + 8 * 64 - 64 * 64));
    // The second of each pair reads the first one's keys and values.
    assert_eq!(added(json!({"use_cla": true, "cla_share_factor": 2})), -2 * 64 * 32);
    assert_eq!(added(json!({"num_attention_heads": [4, 8]})), 2 * 64 * 64);
    assert_eq!(added(json!({"ngram_vocab_size_ratio": 10})), 10 * 100 * 64);
    assert_eq!(added(json!({"moe_intermediate_size": [32, 64]})), 8 * 3 * 64 * 32);
}

#[test]
fn what_sequences_keep_by_hand() {
    let kept = |fields: Value, context| {
        let kept = small(fields).kv(context, KvFormat::Bf16, 1);
        (kept.tokens, kept.state)
    };
    // A layer keeps 2 x 2 x 16 elements of two bytes a token.
    assert_eq!(kept(json!({}), 100), (2 * 100 * 128, 0));
    let windows = json!({"sliding_window": 8, "sliding_window_pattern": "LG"});
    assert_eq!(kept(windows, 100), (108 * 128, 0));
    let none = json!({"sliding_window": 4096, "max_position_embeddings": 4096});
    assert_eq!(kept(none, 100), (200 * 128, 0), "a window as long as the context");
    let local = json!({"sliding_window": 8, "local_layer_ids": [1]});
    assert_eq!(kept(local, 100), (108 * 128, 0));
    assert_eq!(kept(json!({"use_cla": true, "cla_share_factor": 2}), 100), (100 * 128, 0));
    assert_eq!(kept(json!({"attn_type_list": [1, 0]}), 100), (100 * 128, 4 * 16 * 16 * 4));
    let conv = json!({"full_attn_idxs": [0], "conv_L_cache": 3});
    assert_eq!(kept(conv, 100), (100 * 128, 2 * 64 * 2));
    let states = json!({
        "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8, "mamba_d_conv": 4,
        "mamba_expand": 2, "mamba_dt_rank": 4
    });
    assert_eq!(kept(states, 100), (100 * 128, 128 * 8 * 4 + 128 * 3 * 2));
}

#[test]
fn keys_that_nothing_understands_are_named() {
    let config = |known: bool| {
        json!({
            "model_type": if known { "qwen3_moe" } else { "made_up_moe" }, "num_hidden_layers": 2,
            "hidden_size": 64, "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 2,
            "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
            // What changes no size.
            "rope_theta": 1e6, "bos_token_id": 1, "router_aux_loss_coef": 0.1, "hidden_act": "silu",
            "initializer_range": 0.02, "rms_norm_eps": 1e-6, "use_cache": true, "torch_dtype": "bfloat16",
            "attention_dropout": 0.0, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "n_group": 8,
            "scoring_func": "sigmoid", "vision_config": {"depth": 3}, "pretraining_tp": 1, "use_adapters": false,
            // What may.
            "memory_slots": 4096, "side_network": {"width": 7}
        })
        .to_string()
    };
    let said = Model::from_config_str(&config(false), "test").unwrap_err().to_string();
    assert!(said.contains("`memory_slots`, `side_network` may stand for weights"), "{said}");
    let model = Model::from_config_str_with(&config(false), "test", UnknownKeys::Allow).unwrap();
    assert!(model.notes[1].contains("not understood"), "{:?}", model.notes);
    assert!(model.notes[1].contains("memory_slots, side_network"), "{:?}", model.notes);
    assert!(Model::from_config_str(&config(true), "test").unwrap().notes.is_empty());
}
