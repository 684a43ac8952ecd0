//! Built-in models: ranks, engines' pages, types that fall back, padded slots. Figures worked out by hand or published.

use hotset_cost_models::model::{EngineLayout, Formats, KvFormat, Parallel, RestFormat};
use hotset_cost_models::{GgmlType, Model, SlotLayout, WeightFormat};

#[test]
fn vllm_pages_of_deepseek_v4_flash() {
    let model = Model::builtin("DeepSeek-V4-Flash").unwrap();
    let pages = EngineLayout::Vllm { block: 64, in_flight: 8192, state_slots: 1 };
    let kv = |context| model.kv_in(pages, context, 1, KvFormat::Fp8, 1);
    // 3,915 bytes a token by whole pages of 256, beside 43 windows and the states.
    assert_eq!(kv(1 << 20).tokens, 3915 << 20);
    assert_eq!(kv(1).tokens, 3915 * 256);
    assert_eq!(kv(1).state, 3_219_840 + 12_248_064);
}

#[test]
fn slices_and_shares_add_up() {
    let formats = Formats::new(WeightFormat::Nvfp4, RestFormat::Everything(WeightFormat::Bf16));
    for name in ["DeepSeek-V3", "Qwen3-30B-A3B", "gpt-oss-120b", "Kimi-Linear-48B-A3B"] {
        let model = Model::builtin(name).unwrap();
        let whole = model.weights(&formats, Parallel::NONE);
        let tensor = model.weights(&formats, Parallel { tensor: 4, expert: 1 });
        let expert = model.weights(&formats, Parallel { tensor: 1, expert: 4 });
        assert!(4 * tensor.always() >= whole.always(), "{name}: copies only add");
        assert!(tensor.always() < whole.always(), "{name}");
        assert_eq!(expert.always(), whole.always(), "{name}: experts alone are spread");
        assert_eq!(expert.expert_count() * 4, whole.expert_count(), "{name}");
        assert!(4 * tensor.routed() >= whole.routed(), "{name}");
        assert!(4 * tensor.routed() <= whole.routed() * 103 / 100, "{name}: padding of slices");
    }
    // Latents are whole on every rank, heads are split until there are more ranks than heads.
    let kv = |name, tensor| Model::builtin(name).unwrap().kv(4096, KvFormat::Bf16, tensor).tokens;
    assert_eq!(kv("DeepSeek-V3", 8), kv("DeepSeek-V3", 1));
    assert_eq!(kv("Qwen3-30B-A3B", 4) * 4, kv("Qwen3-30B-A3B", 1));
    assert_eq!(kv("Qwen3-30B-A3B", 8), kv("Qwen3-30B-A3B", 4));
}

#[test]
fn gguf_fallbacks_of_real_widths() {
    let bits = |name: &str, kind| {
        let model = Model::builtin(name).unwrap();
        let shape = model.moe_layers().next().unwrap().1.shape;
        shape.bytes(WeightFormat::Gguf(kind)) as f64 * 8.0 / shape.weights() as f64
    };
    for name in ["Qwen1.5-MoE-A2.7B", "DeepSeek-V2-Lite", "GLM-4.5-Air"] {
        assert!((bits(name, GgmlType::Q4K) - 4.83).abs() < 0.005, "{name}");
        assert!((bits(name, GgmlType::Iq1S) - 2.54).abs() < 0.005, "{name}");
    }
    assert_eq!(bits("gpt-oss-120b", GgmlType::Q4K), 5.5);
    assert_eq!(bits("gpt-oss-120b", GgmlType::Iq1S), 4.5);
    assert_eq!(bits("Qwen3-30B-A3B", GgmlType::Q4K), 4.5);
}

#[test]
fn a_slot_is_padded_and_a_checkpoint_is_not() {
    let model = Model::builtin("gpt-oss-20b").unwrap();
    let slot = SlotLayout { inner_multiple: 128, io_multiple: 256, multiplier: 1.0 };
    let formats = Formats { slot, ..model.native_formats().unwrap() };
    let weights = model.weights(&formats, Parallel::NONE);
    assert_eq!(weights.total(), 13_761_264_768);
    assert!(weights.experts.iter().all(|layer| layer.slot > layer.stored));
    assert!(!weights.slots_differ());
    // The same without naming the published formats; a model that does not give them asks.
    let native = model.weights_or_native(None, slot, Parallel::NONE).unwrap();
    assert_eq!(native, weights);
    let asked = Model::builtin("Kimi-K3").unwrap().weights_or_native(None, slot, Parallel::NONE);
    assert!(asked.unwrap_err().to_string().contains("give a format"));
}

/// Slots that five settings leave, worked out by hand from the same formulas: 0.9 of the memory, less a reserve, all
/// weights outside the experts, and what the sequences keep.
#[test]
fn slots_of_five_settings() {
    let (bf16, one_byte) = (WeightFormat::Bf16, WeightFormat::Fp8Tensor);
    let (q8_0, q4_k) = (WeightFormat::Gguf(GgmlType::Q8_0), WeightFormat::Gguf(GgmlType::Q4K));
    let nvfp4 = WeightFormat::Nvfp4;
    let (kv16, kv8) = (KvFormat::Bf16, KvFormat::Fp8);
    let cases = [
        ("Qwen3-30B-A3B", nvfp4, bf16, 12.0, 1.0, 4, 8192, kv16, (1589, 6144)),
        ("gpt-oss-120b", WeightFormat::Mxfp4, bf16, 24.0, 1.5, 4, 32_768, kv16, (942, 4608)),
        ("GLM-4.5-Air", q4_k, q8_0, 24.0, 1.5, 1, 32_768, kv8, (1037, 5760)),
        ("DeepSeek-V3", nvfp4, one_byte, 80.0, 6.0, 8, 32_768, kv8, (1797, 14_848)),
        ("Qwen3.5-35B-A3B", nvfp4, one_byte, 8.0, 1.0, 4, 32_768, kv16, (715, 10_240)),
    ];
    for (name, experts, rest, memory, reserve, sequences, context, kv, expected) in cases {
        let model = Model::builtin(name).unwrap();
        let gib = |gib: f64| (gib * f64::from(1 << 30)) as u64;
        let formats = Formats::new(experts, RestFormat::Everything(rest));
        let weights = model.weights(&formats, Parallel::NONE);
        let kept = model.kv(context, kv, 1).total() * sequences;
        let left = gib(0.9 * memory) - gib(reserve) - weights.always() - kept;
        assert_eq!((left / weights.largest_slot(), weights.expert_count()), expected, "{name}");
    }
}
