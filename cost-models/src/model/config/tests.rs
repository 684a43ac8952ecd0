//! Configurations as people have them, and as they should not be.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::format::WeightFormat;
use crate::model::{AttentionSpan, KvFormat, Mixer, RestFormat};

/// A small mixture of experts with plain attention.
fn plain() -> Value {
    json!({
        "model_type": "qwen3_moe", "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 100,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
        "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 96
    })
}

fn with(changes: Value) -> Value {
    let mut config = plain();
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn without(field: &str) -> Value {
    let mut config = plain();
    config.as_object_mut().unwrap().remove(field);
    config
}

fn read(config: &Value) -> Result<Model, ModelError> {
    Model::from_config_str(&config.to_string(), "test")
}

fn refusal(config: &Value) -> String {
    read(config).unwrap_err().to_string()
}

fn moe(config: &Value) -> Vec<u32> {
    read(config).unwrap().moe_layers().map(|(layer, _)| layer).collect()
}

#[test]
fn by_hand() {
    let model = read(&plain()).unwrap();
    let parameters = model.parameters();
    assert_eq!(parameters.embed, 6400);
    assert_eq!(parameters.lm_head, 6400);
    // Queries and output 64 x 128, keys and values 64 x 64, two norms of a head of 32.
    assert_eq!(parameters.attention, 4 * (2 * 64 * 128 + 2 * 64 * 64 + 64));
    assert_eq!(parameters.routed, 4 * 8 * 3 * 64 * 32);
    assert_eq!(parameters.router, 4 * 64 * 8);
    assert_eq!(parameters.other + parameters.norms_after_attention, 9 * 64);
    assert_eq!(model.active_parameters(), parameters.always() + 4 * 2 * 3 * 64 * 32);
    assert_eq!(model.kv(10, KvFormat::Bf16, 1).tokens, 4 * 2 * 2 * 32 * 2 * 10);
    assert_eq!(model.mixers(), "4 full");
    assert_eq!(model.expert_count(), 32);
    assert!(model.notes.is_empty());
}

#[test]
fn nested_text_configurations_and_fields_outside_of_them() {
    let mut inner = plain();
    inner.as_object_mut().unwrap().remove("num_hidden_layers");
    inner["num_hidden_layers"] = json!(4);
    let nested = json!({
        "model_type": "qwen3_vl_moe", "text_config": inner, "tie_word_embeddings": true,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}
    });
    let model = read(&nested).unwrap();
    assert_eq!(model.architecture, "qwen3_moe");
    assert_eq!(model.layers.len(), 4);
    assert!(model.tied, "said outside");
    assert_eq!(model.parameters().lm_head, 0);
    let native = (WeightFormat::Fp8Block128, RestFormat::Matrices(WeightFormat::Fp8Block128));
    assert_eq!(model.native, Some(native));
}

#[test]
fn every_synonym() {
    for name in names::COUNT {
        let mut config = without("num_experts");
        config[*name] = json!(8);
        assert_eq!(read(&config).unwrap().expert_count(), 32, "{name}");
    }
    for name in names::TOP_K {
        let mut config = without("num_experts_per_tok");
        config[*name] = json!(2);
        assert_eq!(read(&config).unwrap().moe_layers().next().unwrap().1.top_k, 2, "{name}");
    }
    let narrow = without("moe_intermediate_size");
    let inner = read(&narrow).unwrap().moe_layers().next().unwrap().1.shape.inner_width;
    assert_eq!(inner, 96, "intermediate_size where there is no other");
}

#[test]
fn which_layers_have_experts() {
    assert_eq!(moe(&plain()), [0, 1, 2, 3]);
    assert_eq!(moe(&with(json!({"first_k_dense_replace": 1}))), [1, 2, 3]);
    assert_eq!(moe(&with(json!({"first_k_dense_replace": 1, "moe_layer_freq": 2}))), [2]);
    assert_eq!(moe(&with(json!({"moe_layer_freq": [0, 1, 1, 0]}))), [1, 2], "a list");
    assert_eq!(moe(&with(json!({"moe_layer_freq": [0, 1, 1, 0, 1, 1]}))), [1, 2], "longer than L");
    assert_eq!(moe(&with(json!({"decoder_sparse_step": 2}))), [1, 3]);
    assert_eq!(moe(&with(json!({"mlp_only_layers": [0, 3]}))), [1, 2]);
    assert_eq!(moe(&with(json!({"interleave_moe_layer_step": 2}))), [1, 3]);
    assert_eq!(moe(&with(json!({"moe_layers": [2]}))), [2]);
    let kinds = json!({"mlp_layer_types": ["dense", "sparse", "dense", "sparse"]});
    assert_eq!(moe(&with(kinds)), [1, 3]);
    let dense = read(&with(json!({"mlp_only_layers": [0]}))).unwrap();
    assert_eq!(dense.parameters().dense_mlp, 3 * 64 * 96);
}

#[test]
fn windows_chunks_and_states() {
    let spans = |config: Value| -> Vec<AttentionSpan> {
        let heads = |mixer: &Mixer| match mixer {
            Mixer::Heads(heads) => heads.span,
            other => panic!("{other:?}"),
        };
        read(&config).unwrap().layers.iter().map(|layer| heads(&layer.mixer)).collect()
    };
    use AttentionSpan::{Chunked, Full, Sliding};
    let oss = json!({"model_type": "gpt_oss", "sliding_window": 8});
    assert_eq!(spans(with(oss)), [Sliding(8), Full, Sliding(8), Full]);
    let llama = json!({"model_type": "llama4_text", "attention_chunk_size": 16});
    assert_eq!(spans(with(llama)), [Chunked(16), Chunked(16), Chunked(16), Full]);
    let listed = json!({
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "sliding_window": 8
    });
    assert_eq!(spans(with(listed)), [Full, Sliding(8), Sliding(8), Full]);
    let unused = json!({"sliding_window": 8, "use_sliding_window": false});
    assert_eq!(spans(with(unused)), [Full; 4], "a window that is named and not used");
    let plain_window = json!({"model_type": "mixtral", "sliding_window": 8});
    assert_eq!(spans(with(plain_window)), [Sliding(8); 4]);
}

#[test]
fn ratios_of_compression_longer_than_the_layers() {
    let v4 = json!({
        "model_type": "deepseek_v4", "num_hidden_layers": 3, "hidden_size": 64, "vocab_size": 100,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32, "q_lora_rank": 16,
        "qk_rope_head_dim": 8, "o_groups": 2, "o_lora_rank": 8, "hc_mult": 4, "sliding_window": 8,
        "index_n_heads": 2, "index_head_dim": 16, "n_routed_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "compress_ratios": [0, 4, 128, 4, 128, 0]
    });
    let model = read(&v4).unwrap();
    let rows: Vec<u64> =
        model.layers.iter().map(|layer| layer.mixer.kv(256, KvFormat::Bf16, 1).tokens).collect();
    // 8 tokens of the window; 64 entries and index keys of 16 + 4 bytes; 2 entries.
    assert_eq!(rows, [8 * 64, 8 * 64 + 64 * (64 + 20), 8 * 64 + 2 * 64]);
    let mut short = v4.clone();
    short["compress_ratios"] = json!([0, 4]);
    assert_eq!(refusal(&short), "test: compress_ratios lists 2 layers of 3");
    let mut odd = v4;
    odd["compress_ratios"] = json!([0, 4, 7]);
    assert_eq!(refusal(&odd), "test: compress_ratios holds 7; known are 0, 4 and 128");
}

#[test]
fn dense_models_are_told_so() {
    let said = "test: `qwen3_moe` is a dense model: it has no routed experts, so there is nothing \
                to cache and every weight is read for every token";
    assert_eq!(refusal(&without("num_experts")), said);
    assert_eq!(refusal(&with(json!({"num_experts": 0}))), said);
    assert_eq!(refusal(&with(json!({"first_k_dense_replace": 4}))), said);
}

#[test]
fn absent_fields_are_named_all_at_once() {
    let mut config = without("vocab_size");
    config.as_object_mut().unwrap().remove("num_experts_per_tok");
    assert_eq!(
        refusal(&config),
        "test: architecture `qwen3_moe` needs vocab_size, num_experts_per_tok \
         (num_experts_per_token, experts_per_token, top_k_experts, moe_top_k, moe_topk, moe_k, \
         num_selected_experts, num_active_experts, n_activated_experts, moe_router_topk, \
         moe_num_active_primary_experts), which the configuration lacks"
    );
}

#[test]
fn unknown_architectures() {
    let model = read(&with(json!({"model_type": "brand_new_moe"}))).unwrap();
    assert!(model.notes[0].contains("`brand_new_moe` is not one"), "{:?}", model.notes);
    let state = refusal(&with(json!({"model_type": "brand_new_moe", "ssm_state_size": 16})));
    assert!(state.contains("its `ssm_state_size` means a recurrent state"), "{state}");
    assert!(state.contains("read from num_hidden_layers, hidden_size"), "{state}");
    let kinds = json!({"layer_types": ["full_attention", "lightning", "lightning", "lightning"]});
    assert!(refusal(&with(kinds)).contains("layers of the kind `lightning`"));
}

#[test]
fn impossible_values() {
    let cases = [
        (json!({"hidden_size": 9_007_199_254_740_993u64}), "hidden_size is 9007199254740993, not"),
        (json!({"hidden_size": 1e300}), "hidden_size is 1e+300, not a whole number"),
        (json!({"hidden_size": -1}), "hidden_size is -1, not"),
        (json!({"hidden_size": 2.5}), "hidden_size is 2.5, not"),
        (json!({"hidden_size": "64"}), "hidden_size is \"64\", not"),
        (json!({"num_hidden_layers": 1u64 << 40}), "num_hidden_layers is 1099511627776, not"),
        (json!({"num_experts_per_tok": 9}), "num_experts_per_tok chooses 9 of 8 experts"),
        (json!({"num_key_value_heads": 8}), "num_key_value_heads is 8 of 4 heads"),
        (json!({"moe_layer_freq": 0}), "moe_layer_freq is 0: give 1"),
        (json!({"moe_layer_freq": [0, 2, 0, 0]}), "moe_layer_freq holds 2, not 0 or 1"),
        (json!({"attention_bias": 1}), "attention_bias is not true or false"),
        (json!({"num_nextn_predict_layers": 65}), "no model has more than 64"),
        (json!({"hybrid_override_pattern": "ME*"}), "is not 4 letters of M, *, E and -"),
        (json!({"sliding_window": 8, "layer_types": ["a"]}), "layer_types lists 1 layers of 4"),
    ];
    for (change, expected) in cases {
        let said = refusal(&with(change));
        assert!(said.contains(expected), "{said}");
    }
    let huge = json!({
        "num_hidden_layers": 4096, "hidden_size": 1 << 20, "num_experts": 65536,
        "moe_intermediate_size": 1 << 20
    });
    let said = refusal(&with(huge));
    assert!(said.contains("more than 2^53: no model is so large"), "{said}");
    assert!(refusal(&json!([1, 2])).contains("is not a JSON object"));
    let cut = Model::from_config_str("{\"hidden_size\": 6", "test").unwrap_err().to_string();
    assert!(cut.starts_with("test is not a model's configuration: EOF"), "{cut}");
}

#[test]
fn formats_of_the_checkpoint() {
    let native =
        |quantization: Value| read(&with(json!({"quantization_config": quantization}))).unwrap();
    let experts = |quantization| native(quantization).native.map(|(experts, _)| experts);
    assert_eq!(experts(json!({"quant_method": "mxfp4"})), Some(WeightFormat::Mxfp4));
    assert_eq!(experts(json!({"quant_method": "fp8"})), Some(WeightFormat::Fp8Tensor));
    let nvfp4 = json!({"quant_method": "modelopt", "quant_algo": "NVFP4"});
    assert_eq!(experts(nvfp4), Some(WeightFormat::Nvfp4));
    let int4 = json!({"quant_method": "compressed-tensors", "config_groups":
        {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}}});
    assert_eq!(experts(int4), Some(WeightFormat::Int4Group128));
    let silent = native(json!({"quant_method": "compressed-tensors"}));
    assert_eq!(silent.native, None);
    assert!(silent.notes[0].contains("names `compressed-tensors` but not how"));
    let asked = silent.native_formats().unwrap_err().to_string();
    assert!(asked.contains("does not say how experts are stored: give a format"), "{asked}");
}

proptest! {
    #[test]
    fn any_text_is_a_model_or_an_error(text in "[ -~\n]{0,200}") {
        let _ = Model::from_config_str(&text, "test");
    }

    #[test]
    fn any_numbers_are_a_model_or_an_error(
        field in 0usize..10,
        value in prop_oneof![any::<u64>(), 0u64..4, Just(1 << 20), Just(1 << 16)],
    ) {
        let names: Vec<String> = plain().as_object().unwrap().keys().cloned().collect();
        if let Ok(model) = read(&with(json!({names[field].as_str(): value}))) {
            prop_assert!(model.parameters().total() <= super::super::MAX_PARAMETERS);
        }
    }

    /// More context never keeps less, and nothing overflows.
    #[test]
    fn keys_and_values_grow(a in any::<u64>(), b in any::<u64>(), tensor in 1u32..16) {
        let (short, long) = (a.min(b), a.max(b));
        for name in ["gpt-oss-20b", "DeepSeek-V4-Flash", "Qwen3-Next-80B-A3B", "GLM-5.2"] {
            let model = Model::builtin(name).unwrap();
            for format in KvFormat::ALL {
                let at = |context| model.kv(context, format, tensor).total();
                prop_assert!(at(short) <= at(long));
            }
        }
    }
}

#[test]
fn the_longest_context_is_the_last_that_fits() {
    for name in ["gpt-oss-20b", "DeepSeek-V4-Flash", "Qwen3-Next-80B-A3B", "Llama-4-Scout"] {
        let model = Model::builtin(name).unwrap();
        let budget = 10 << 30;
        let longest = model.longest_context(budget, 4, KvFormat::Bf16, 1, 10_000_000);
        let takes = |context| 4 * model.kv(context, KvFormat::Bf16, 1).total();
        assert!(takes(longest) <= budget && takes(longest + 1) > budget, "{name}: {longest}");
        assert_eq!(model.longest_context(0, 4, KvFormat::Bf16, 1, 1000), 0);
        assert_eq!(model.longest_context(u64::MAX, 1, KvFormat::Bf16, 1, 1000), 1000);
    }
}
