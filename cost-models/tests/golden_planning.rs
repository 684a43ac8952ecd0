//! Every number of the golden planning figures, exact, for every model; and the models' table beside them.
//!
//! Figures come from `golden/planning.json` and `configs/models.csv` in the shared folder, configurations from
//! `configs/`. Cases worked by hand stand beside the formulas themselves.

use std::collections::BTreeMap;

use hotset_cost_models::model::{
    KvFormat, Mixer, Parallel, Parameters, RestFormat, builtin_models,
};
use hotset_cost_models::{Model, WeightFormat};
use serde_json::Value;

struct Case {
    name: String,
    model: Model,
    golden: Value,
}

/// Every model of the golden figures, read from its configuration.
fn cases() -> Option<Vec<Case>> {
    let golden = crate::shared::shared("golden/planning.json")?;
    let configs = crate::shared::shared("configs")?;
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let case = |(name, golden): (&String, &Value)| Case {
        name: name.clone(),
        model: Model::from_config_path(&configs.join(format!("{name}.json"))).unwrap(),
        golden: golden.clone(),
    };
    Some(golden.as_object().unwrap().iter().map(case).collect())
}

/// The rows of the models' table by name.
fn table() -> Option<BTreeMap<String, BTreeMap<String, String>>> {
    let mut reader = csv::Reader::from_path(crate::shared::shared("configs/models.csv")?).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    Some(rows.map(|row| (row["model"].clone(), row)).collect())
}

fn format_of(golden: &str) -> WeightFormat {
    match golden {
        "int4_g32_bf16scale" => WeightFormat::Int4Group32,
        "int4_g128_bf16scale" => WeightFormat::Int4Group128,
        other => other.parse().unwrap(),
    }
}

#[test]
fn expert_bytes_in_every_format() {
    let Some(cases) = cases() else { return };
    let mut checked = 0;
    for case in &cases {
        for (format, bytes) in case.golden["expert_bytes"].as_object().unwrap() {
            let (_, experts) = case.model.moe_layers().next().unwrap();
            let computed = experts.shape.bytes(format_of(format));
            assert_eq!(Some(computed), bytes.as_u64(), "{} in {format}", case.name);
            checked += 1;
        }
    }
    assert_eq!((cases.len(), checked), (39, 39 * 20));
}

#[test]
fn experts_layers_and_routed_parameters() {
    let Some(cases) = cases() else { return };
    for Case { name, model, golden } in &cases {
        let moe: Vec<_> = model.moe_layers().collect();
        let first = moe[0].1;
        assert!(moe.iter().all(|(_, experts)| *experts == first), "{name}");
        let expected = |key: &str| golden[key].as_u64().unwrap();
        assert_eq!(moe.len() as u64, expected("moe_layers"), "{name}");
        assert_eq!(u64::from(first.count), expected("E"), "{name}");
        assert_eq!(u64::from(first.top_k), expected("k"), "{name}");
        let one = first.shape.weights() + first.shape.bias_elements();
        assert_eq!(one, expected("expert_params"), "{name}");
        assert_eq!(model.parameters().routed, expected("routed_params"), "{name}");
    }
}

/// The reference names parts by module: the norm after attention falls to `attn`, but for Kimi-K2 to `other`.
fn named_as_reference(name: &str, parameters: &Parameters) -> BTreeMap<&'static str, u64> {
    let norms_in_other = name.starts_with("Kimi-K2");
    let norms = parameters.norms_after_attention;
    let (attn, other) = if norms_in_other { (0, norms) } else { (norms, 0) };
    BTreeMap::from([
        ("embed", parameters.embed),
        ("attn", parameters.attention + attn),
        ("dense_mlp", parameters.dense_mlp),
        ("router", parameters.router),
        ("routed", parameters.routed),
        ("shared", parameters.shared),
        ("other", parameters.other + other),
        ("lm_head", parameters.lm_head),
        ("total", parameters.total()),
    ])
}

#[test]
fn parameters_part_by_part() {
    let Some(cases) = cases() else { return };
    let mut counted = 0;
    for Case { name, model, golden } in &cases {
        let Some(counts) = golden["counts"].as_object() else { continue };
        let mut computed = named_as_reference(name, &model.parameters());
        if name == "Kimi-K3" {
            // The reference library ignores the routed experts' own width and counts them twice as large.
            let routed = computed["routed"];
            computed.insert("routed", 2 * routed);
            computed.insert("total", computed["total"] + routed);
        }
        for (part, expected) in counts {
            assert_eq!(Some(computed[part.as_str()]), expected.as_u64(), "{name}: {part}");
        }
        for (part, computed) in &computed {
            assert!(counts.contains_key(*part) || *computed == 0, "{name}: {part}");
        }
        assert_eq!(Some(model.parameters().total()), golden["total_params"].as_u64(), "{name}");
        assert_eq!(Some(model.active_parameters()), golden["active_params"].as_u64(), "{name}");
        counted += 1;
    }
    assert_eq!(counted, 37, "all but MiniMax-M3 and Step-3.7, whose totals nobody published");
}

#[test]
fn kv_and_state_at_every_context() {
    let Some(cases) = cases() else { return };
    let mut checked = 0;
    for Case { name, model, golden } in &cases {
        for (key, format) in [("kv", KvFormat::Bf16), ("kv_fp8", KvFormat::Fp8)] {
            for (context, expected) in golden[key].as_object().unwrap() {
                let kv = model.kv(context.parse().unwrap(), format, 1);
                let at = format!("{name}: {key} at {context}");
                assert_eq!(Some(kv.tokens as f64), expected["tokens"].as_f64(), "{at}");
                assert_eq!(Some(kv.state as f64), expected["state"].as_f64(), "{at}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 39 * 6);
}

#[test]
fn the_table_of_models() {
    let (Some(cases), Some(table)) = (cases(), table()) else { return };
    for Case { name, model, .. } in &cases {
        let row = &table[name];
        let number = |column: &str| row[column].parse::<u64>().ok();
        let (_, experts) = model.moe_layers().next().unwrap();
        assert_eq!(Some(model.layers.len() as u64), number("num_hidden_layers"), "{name}");
        assert_eq!(Some(u64::from(model.mtp_layers)), number("mtp_layers"), "{name}");
        assert_eq!(
            Some(experts.shared.weights(model.hidden)),
            number("shared_expert_params_per_layer"),
            "{name}"
        );
        let state = model.kv(0, KvFormat::Bf16, 1).state;
        assert_eq!(Some(state), number("state_bytes_per_sequence"), "{name}");
        assert_eq!(model.max_context, number("max_position_embeddings"), "{name}");
        for (column, context) in [("ctx1024", 1024), ("ctx131072", 131_072)] {
            let token = model.kv(context, KvFormat::Bf16, 1).tokens as f64 / context as f64;
            let listed: f64 = row[&format!("kv_bytes_per_token_bf16_{column}")].parse().unwrap();
            assert!((token - listed).abs() <= 0.5, "{name} {column}: {token} against {listed}");
        }
    }
}

#[test]
fn published_checkpoints_to_the_byte() {
    let (Some(cases), Some(table)) = (cases(), table()) else { return };
    let mut exact = 0;
    for Case { name, model, .. } in &cases {
        let Ok(published) = table[name]["ckpt_bytes_verified"].parse::<u64>() else { continue };
        let weights = model.weights(&model.native_formats().unwrap(), Parallel::NONE);
        if name == "DeepSeek-V3" {
            let off = weights.with_mtp() as f64 / published as f64 - 1.0;
            assert!(off.abs() < 2e-4, "{name}: {} against {published}", weights.with_mtp());
            continue;
        }
        assert_eq!(weights.total(), published, "{name}");
        exact += 1;
    }
    assert_eq!(exact, 3);
}

#[test]
fn computed_checkpoints_of_the_table() {
    let (Some(cases), Some(table)) = (cases(), table()) else { return };
    let mut checked = 0;
    for Case { name, .. } in &cases {
        let Ok(listed) = table[name]["ckpt_gib_text_computed"].parse::<f64>() else { continue };
        // Built-in: two of the cited configurations do not say how experts are stored.
        let model = Model::builtin(name).unwrap();
        let weights = model.weights(&model.native_formats().unwrap(), Parallel::NONE);
        let gib = weights.total() as f64 / f64::from(1 << 30);
        // What a checkpoint keeps in bf16 is a convention where matrices are fp8.
        let slack = match model.native.unwrap().1 {
            RestFormat::Everything(_) => 0.006,
            RestFormat::Matrices(_) => listed * 1e-3,
        };
        assert!((gib - listed).abs() <= slack, "{name}: {gib} against {listed}");
        checked += 1;
    }
    assert_eq!(checked, 36);
}

#[test]
fn builtin_models_are_their_configurations() {
    let Some(cases) = cases() else { return };
    assert!(builtin_models().len() > cases.len());
    for Case { name, model, .. } in cases {
        let mut builtin = Model::builtin(&name).unwrap();
        if ["Kimi-K2.5", "Qwen3.6-35B-A3B"].contains(&name.as_str()) {
            assert!(model.native.is_none() && builtin.native.is_some(), "{name}");
            (builtin.native, builtin.notes) = (model.native, model.notes.clone());
        }
        builtin.name = model.name.clone();
        // A remark on the type that the configuration names, which the facts leave out.
        builtin.notes = model.notes.clone();
        assert_eq!(builtin, model, "{name}");
    }
}

#[test]
fn keys_and_values_are_never_charged_on_recurrent_layers() {
    let Some(cases) = cases() else { return };
    let mut recurrent = 0;
    for Case { name, model, .. } in &cases {
        for layer in model.layers.iter().filter(|layer| layer.mixer.is_recurrent()) {
            let (short, long) =
                (layer.mixer.kv(1, KvFormat::Bf16, 1), layer.mixer.kv(1 << 20, KvFormat::Bf16, 1));
            assert_eq!((short.tokens, long.tokens), (0, 0), "{name}");
            assert!(short.state > 0 && short == long, "{name}");
            recurrent += 1;
        }
        let attention = model
            .layers
            .iter()
            .filter(|layer| !layer.mixer.is_recurrent() && layer.mixer != Mixer::None);
        let sum: u64 = attention.map(|layer| layer.mixer.kv(4096, KvFormat::Bf16, 1).tokens).sum();
        assert_eq!(sum, model.kv(4096, KvFormat::Bf16, 1).tokens, "{name}");
    }
    // Qwen3-Next 36, Qwen3.5 30 + 36 + 45, Qwen3.6 30, Kimi 69 + 20, Nemotron 23 + 40.
    assert_eq!(recurrent, 36 + 30 + 36 + 45 + 30 + 69 + 20 + 23 + 40);
}
