//! Every sample of the shared formats, which all hold one routing: the same ids as
//! `expected.json`, and one digest wherever the same rows are held.

use std::path::PathBuf;

use hotset_traces::testing::shared;
use hotset_traces::{Format, ImportOptions, Imported, Phase, Trace, import_bytes, import_files};
use serde_json::Value;

fn samples(names: &[&str]) -> Option<Vec<PathBuf>> {
    names.iter().map(|name| shared(&format!("formats/{name}"))).collect()
}

fn with(format: Format, names: &[&str], options: &ImportOptions) -> Option<Imported> {
    let paths = samples(names)?;
    Some(import_files(format, &paths, options, &()).unwrap_or_else(|e| panic!("{names:?}: {e}")))
}

fn imported(format: Format, names: &[&str]) -> Option<Trace> {
    with(format, names, &ImportOptions::default()).map(|imported| imported.trace)
}

fn refused(format: Format, names: &[&str], options: &ImportOptions) -> String {
    let Some(paths) = samples(names) else { return String::new() };
    import_files(format, &paths, options, &()).unwrap_err().to_string()
}

fn expected() -> Option<Value> {
    let text = std::fs::read(shared("formats/expected.json")?).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

/// Counts of each expert in each layer, as `expected.json` gives them.
fn counts(trace: &Trace) -> Vec<Vec<u64>> {
    let layers = trace.shape().layers();
    let mut counts: Vec<Vec<u64>> = layers.iter().map(|_| vec![0; 16]).collect();
    for row in 0..trace.tokens() {
        for (layer, counts) in counts.iter_mut().enumerate() {
            trace.layer_ids(row, layer).iter().for_each(|id| counts[id as usize] += 1);
        }
    }
    counts
}

fn expect_counts(trace: &Trace, expected: &Value) {
    let found = serde_json::to_value(counts(trace)).unwrap();
    assert_eq!(&found, expected, "{}", trace.name());
}

/// Ids `[token][layer][rank]` of the first rows.
fn expect_rows(trace: &Trace, expected: &Value) {
    for (row, layers) in expected.as_array().unwrap().iter().enumerate() {
        for (layer, ids) in layers.as_array().unwrap().iter().enumerate() {
            let ids = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32);
            assert!(trace.layer_ids(row, layer).iter().eq(ids), "row {row}, layer {layer}");
        }
    }
}

/// The trace of all three sequences, through the plainest reader.
fn whole() -> Option<Trace> {
    imported(Format::Npz, &["hf_trace.npz"])
}

/// Sequence 0 alone.
fn first() -> Option<Trace> {
    whole().map(|trace| trace.select_sequences(&[0]).unwrap())
}

fn prompts() -> ImportOptions {
    ImportOptions { prompt_tokens: vec![5, 18, 12], ..ImportOptions::default() }
}

const VLLM: [&str; 3] = [
    "vllm_routed_experts_req0.npy",
    "vllm_routed_experts_req1.npy",
    "vllm_routed_experts_req2.npy",
];

#[test]
fn the_recording_is_what_expected_json_says() {
    let (Some(trace), Some(all)) = (whole(), expected()) else { return };
    let expected = &all["hf_trace.npz"];
    assert_eq!((trace.tokens(), trace.sequences().len()), (224, 3));
    let prompts: Vec<u32> = trace.sequences().iter().map(|s| s.prompt_tokens).collect();
    assert_eq!(prompts, [5, 18, 12]);
    assert_eq!(trace.shape().layers().len(), 4);
    expect_counts(&trace, &expected["counts_per_layer"]);
    expect_rows(&trace, &expected["first3_tokens_seq0"]["topk_ids_[token][layer][rank]"]);
    expect_rows(&trace, &all["_all_tokens_seq0"]["topk_ids"]);
    let last = &expected["last_token_seq2"]["topk_ids_[layer][rank]"];
    for (layer, ids) in last.as_array().unwrap().iter().enumerate() {
        let ids: Vec<u32> = serde_json::from_value(ids.clone()).unwrap();
        assert!(trace.layer_ids(223, layer).iter().eq(ids));
    }
    assert_eq!(trace.token_ids().unwrap()[..3], [75, 104, 111]);
    let weights = trace.weights().unwrap();
    assert!((weights.get(0) - 0.819_118).abs() < 1e-6, "{}", weights.get(0));
    assert_eq!((trace.phase(4), trace.phase(5)), (Phase::Prefill, Phase::Decode));
}

#[test]
fn all_formats_of_the_whole_routing_have_one_digest() {
    let Some(whole) = whole() else { return };
    let dialects: [(Format, &[&str]); 6] = [
        (Format::Npz, &["hf_trace_deflate.npz"]),
        (Format::Safetensors, &["hf_trace.safetensors"]),
        (Format::Jsonl, &["hf_trace.jsonl"]),
        (Format::Sglang, &["sglang_per_token.pt"]),
        (Format::Slime, &["slime_rollout_0.pt"]),
        (Format::Miles, &["miles_rollout_0.pt"]),
    ];
    let mut traces: Vec<Trace> =
        dialects.iter().filter_map(|(format, names)| imported(*format, names)).collect();
    traces.extend(with(Format::Vllm, &VLLM, &prompts()).map(|imported| imported.trace));
    let shape = ImportOptions { layers: Some(4), top_k: Some(4), ..ImportOptions::default() };
    let replies = with(Format::SglangJson, &["sglang_generate.jsonl"], &shape);
    traces.extend(replies.map(|imported| imported.trace));
    for trace in &traces {
        assert_eq!(trace.digest(), whole.digest(), "{}", trace.provenance());
        assert_eq!(trace.positions(), whole.positions(), "{}", trace.provenance());
        assert_eq!(trace.phases(), whole.phases(), "{}", trace.provenance());
        let prompts = |trace: &Trace| -> Vec<u32> {
            trace.sequences().iter().map(|sequence| sequence.prompt_tokens).collect()
        };
        assert_eq!(prompts(trace), prompts(&whole), "{}", trace.provenance());
        if let Some(ids) = trace.token_ids() {
            assert_eq!(Some(ids), whole.token_ids(), "{}", trace.provenance());
        }
    }
}

#[test]
fn all_formats_of_the_first_request_have_one_digest() {
    let Some(first) = first() else { return };
    let top_k = ImportOptions { top_k: Some(4), ..ImportOptions::default() };
    let prompt = ImportOptions { prompt_tokens: vec![5], ..ImportOptions::default() };
    let plain = ImportOptions::default();
    let dialects: [(Format, &str, &ImportOptions); 6] = [
        (Format::Vllm, "vllm_i32_routed_experts.npy", &prompt),
        (Format::VllmJson, "vllm_chat_completion.json", &plain),
        (Format::VllmJson, "vllm_0_21_chat_completion_nested.json", &plain),
        (Format::LlamaPr28544, "llamacpp_pr28544_moe_trace.csv", &top_k),
        (Format::LlamaCartaz, "llamacpp_phase_token_layer_rank_expert.csv", &plain),
        (Format::LlamaThecodacus, "llamacpp_thecodacus_pos_layer_ids.csv", &plain),
    ];
    for (format, name, options) in dialects {
        let Some(Imported { trace, .. }) = with(format, &[name], options) else { return };
        assert_eq!(trace.digest(), first.digest(), "{name}");
        assert_eq!(trace.phases(), first.phases(), "{name}");
        assert_eq!(trace.positions(), first.positions(), "{name}");
        assert_eq!(trace.sequences()[0].prompt_tokens, 5, "{name}");
    }
}

#[test]
fn wide_ids_and_dense_layers() {
    let (Some(first), Some(all)) = (first(), expected()) else { return };
    let Some(wide) = imported(Format::Vllm, &["vllm_u16_routed_experts.npy"]) else { return };
    assert!(wide.ids().iter().eq(first.ids().iter().map(|id| id + 300)));
    let name = "vllm_dense_layer0.npy";
    let message = refused(Format::Vllm, &[name], &ImportOptions::default());
    assert!(
        message.contains("layer 0: nothing but zeros in all 68 tokens")
            && message.contains("`ImportOptions::dense_layers` 0")
            && message.contains("`ImportOptions::config`"),
        "{message}"
    );
    let dense = |list: &[u32]| ImportOptions {
        dense_layers: Some(list.to_vec()),
        ..ImportOptions::default()
    };
    let Some(Imported { trace, .. }) = with(Format::Vllm, &[name], &dense(&[0])) else { return };
    let numbers: Vec<u32> = trace.shape().layers().iter().map(|layer| layer.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let expected = all[name]["counts_per_layer"].as_array().unwrap();
    expect_counts(&trace, &Value::Array(expected[1..].to_vec()));
    let message = refused(Format::Vllm, &[name], &dense(&[1]));
    assert!(
        message.contains("routed to expert 10, yet the layer is said to be dense"),
        "{message}"
    );
    let message = refused(Format::Vllm, &[name], &dense(&[7]));
    assert!(
        message.contains("`ImportOptions::dense_layers` names layer 7, the file has layers 0 to 3"),
        "{message}"
    );

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let json = r#"{"num_hidden_layers": 4, "first_k_dense_replace": 1, "n_routed_experts": 16,
                   "num_experts_per_tok": 4}"#;
    std::fs::write(&config, json).unwrap();
    let options = ImportOptions { config: Some(config.clone()), ..ImportOptions::default() };
    let Some(Imported { trace: configured, .. }) = with(Format::Vllm, &[name], &options) else {
        return;
    };
    assert_eq!(configured.digest(), trace.digest());
    assert_eq!(configured.shape().total_experts(), 48);
    std::fs::write(&config, json.replace("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 6"))
        .unwrap();
    let message = refused(Format::Vllm, &[name], &options);
    assert!(
        message
            .contains("the file has 4 layers, `ImportOptions::config` says 6 (5 of them routed)")
    );
}

#[test]
fn no_experts_at_all_is_a_sentence_whoever_says_it() {
    let unstated = "{\"seq\":0,\"pos\":0,\"tok\":0,\"experts\":{\"0\":[1,2]}}\n";
    let stated = format!("{{\"type\":\"header\",\"num_experts\":0}}\n{unstated}");
    for (file, experts) in [(stated.as_str(), None), (unstated, Some(0))] {
        let options = ImportOptions { experts, ..ImportOptions::default() };
        let message = match import_bytes(Format::Jsonl, "x.jsonl", file.as_bytes(), &options) {
            Ok(trace) => panic!("{file}: read as {:?}", trace.shape()),
            Err(error) => error.to_string(),
        };
        assert!(message.contains("says 0 experts"), "{message}");
    }
}

#[test]
fn mismatches_name_both_numbers_and_the_flag() {
    let options = |experts, top_k, layers| ImportOptions {
        experts,
        top_k,
        layers,
        ..ImportOptions::default()
    };
    let says = |options: &ImportOptions, parts: &[&str]| {
        let message = refused(Format::Vllm, &[VLLM[0]], options);
        assert!(message.is_empty() || parts.iter().all(|part| message.contains(part)), "{message}");
    };
    says(
        &options(None, Some(8), None),
        &["`ImportOptions::top_k` says top-k 8, the file has 4", "`ImportOptions::top_k` 4"],
    );
    says(
        &options(None, None, Some(5)),
        &["`ImportOptions::layers` says 5, the file has 4", "`ImportOptions::layers` 4"],
    );
    says(
        &options(Some(8), None, None),
        &["expert id 15", "`ImportOptions::experts` says 8", "`ImportOptions::experts` 16"],
    );
    let message =
        refused(Format::SglangJson, &["sglang_generate.jsonl"], &options(None, Some(4), Some(5)));
    assert!(
        message.is_empty() || message.contains("1088 ids are no whole tokens of 5 layers x top-4")
    );
    let message =
        refused(Format::SglangJson, &["sglang_generate.jsonl"], &options(None, None, None));
    assert!(message.is_empty() || message.contains("give `ImportOptions::layers`"), "{message}");
}

#[test]
fn sglang_keeps_true_steps_and_ignores_devices() {
    let Some(trace) = imported(Format::Sglang, &["sglang_per_token.pt"]) else { return };
    let steps = trace.steps().unwrap();
    // One extend pass of all three prompts, then 63 decode passes of three tokens each.
    assert_eq!(steps.iter().filter(|&&step| step == 0).count(), 35);
    assert!((1..64).all(|step| steps.iter().filter(|&&s| s == step).count() == 3));
    let Some(cut) = imported(Format::Sglang, &["sglang_per_token_cuda_location.pt"]) else {
        return;
    };
    assert_eq!(cut.tokens(), 35 + 2 * 3);
    assert!(cut.layer_ids(0, 0).iter().eq(trace.layer_ids(0, 0).iter()));
    // The same file as another rank of the same tensor-parallel group: nothing is there twice.
    let twice = ["sglang_per_token.pt", "sglang_per_token.pt"];
    let Some(twice) = imported(Format::Sglang, &twice) else { return };
    assert_eq!(twice.digest(), trace.digest());
    let wide = ImportOptions { top_k: Some(10), ..ImportOptions::default() };
    let message = refused(Format::Sglang, &["sglang_per_token.pt"], &wide);
    assert!(message.contains("keeps 8 experts a layer"), "{message}");
}

#[test]
fn llama_records_without_the_last_layer() {
    let (Some(first), Some(all)) = (first(), expected()) else { return };
    let name = "llamacpp_nvmoe_raw.jsonl";
    let plain = ImportOptions::default();
    let Some(Imported { trace, notes }) = with(Format::LlamaNvmoe, &[name], &plain) else { return };
    assert_eq!(trace.tokens(), 64);
    assert_eq!(trace.positions()[0], 4, "aligned to the last prompt token");
    assert!(notes[0].starts_with("4 tokens are left out"), "{notes:?}");
    for row in 0..64 {
        assert!((0..4).all(|l| trace.layer_ids(row, l) == first.layer_ids(row + 4, l)));
    }
    let skip = ImportOptions { skip_layers: vec![3], ..ImportOptions::default() };
    let Some(Imported { trace, .. }) = with(Format::LlamaNvmoe, &[name], &skip) else { return };
    assert_eq!(trace.tokens(), 68);
    let expected = all[name]["counts_per_layer"].as_array().unwrap();
    expect_counts(&trace, &Value::Array(expected[..3].to_vec()));

    let name = "llama_eval_callback_5tok.txt";
    let whole = with(Format::LlamaEvalCallback, &[name], &skip).unwrap().trace;
    assert_eq!((whole.tokens(), whole.shape().layers().len()), (5, 3));
    for row in 0..5 {
        assert!((0..3).all(|l| whole.layer_ids(row, l) == first.layer_ids(row, l)));
    }
    let last = with(Format::LlamaEvalCallback, &[name], &plain).unwrap().trace;
    assert_eq!((last.tokens(), last.positions()[0]), (1, 4));
    assert!(last.layer_ids(0, 3).iter().eq([9, 2, 11, 13]));
    let message =
        refused(Format::LlamaEvalCallback, &["llama_eval_callback_22tok_elided.txt"], &plain);
    assert!(message.contains("is cut (\"...\")"), "{message}");
}

#[test]
fn nvmoe_and_warp_tokens() {
    let (Some(first), Some(all)) = (first(), expected()) else { return };
    let Some(trace) = imported(Format::Nvmoe, &["nvmoe_tokens.jsonl"]) else { return };
    assert_eq!(trace.tokens(), 63);
    assert!((0..63).all(|row| trace.layer_ids(row, 2) == first.layer_ids(row + 5, 2)));
    expect_counts(&trace, &all["nvmoe_tokens.jsonl"]["counts_per_layer"]);
    let data = [
        (Format::Nvmoe, "nvmoe/olmoe-all.tokens.jsonl", 897, 16, 8),
        (Format::Nvmoe, "nvmoe/dsv2lite-all.tokens.jsonl", 1396, 26, 6),
        (Format::Nvmoe, "nvmoe/gptoss-all.tokens.jsonl", 1396, 36, 4),
        (Format::Warp, "warp/trace_kimi_300.jsonl", 300, 26, 8),
        (Format::Warp, "warp/trace_olmoe_299.jsonl", 299, 16, 8),
    ];
    for (format, name, tokens, layers, top_k) in data {
        let Some(path) = shared(&format!("data/{name}")) else { return };
        let imported = import_files(format, &[path], &ImportOptions::default(), &()).unwrap();
        let shape = imported.trace.shape();
        assert_eq!(imported.trace.tokens(), tokens, "{name}");
        assert_eq!((shape.layers().len(), shape.as_uniform().unwrap().1), (layers, top_k));
    }
    let Some(path) = shared("data/nvmoe/dsv2lite-all.tokens.jsonl") else { return };
    let deepseek =
        import_files(Format::Nvmoe, &[path], &ImportOptions::default(), &()).unwrap().trace;
    assert_eq!(deepseek.shape().layers()[0].number, 1, "layer 0 is dense");
}

#[test]
fn a_folder_is_its_files_in_the_order_of_their_numbers() {
    let Some(paths) = samples(&VLLM) else { return };
    let folder = tempfile::tempdir().unwrap();
    for (path, name) in paths.iter().zip(["r2.npy", "r10.npy", "r100.npy"]) {
        std::fs::copy(path, folder.path().join(name)).unwrap();
    }
    let folders = [folder.path().to_owned()];
    let imported = import_files(Format::Vllm, &folders, &prompts(), &()).unwrap();
    assert_eq!(Some(imported.trace.digest()), whole().as_ref().map(Trace::digest));
    let message = import_files(Format::Slime, &folders, &prompts(), &()).unwrap_err().to_string();
    assert!(message.contains("has no file that ends in .pt"), "{message}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_the_whole_routing() {
    use hotset_traces::{ExportFormat, export};
    let Some(whole) = whole() else { return };
    let trace = imported(Format::Parquet, &["long_trace.parquet"]).unwrap();
    assert_eq!(trace.digest(), whole.digest());
    assert_eq!((trace.phases(), trace.positions()), (whole.phases(), whole.positions()));
    assert_eq!(trace.token_ids(), whole.token_ids());
    let flame = imported(Format::FlameMoe, &["flame_moe"]).unwrap();
    assert_eq!((flame.tokens(), flame.sequences().len()), (224, 1));
    assert!(flame.ids() == whole.ids());
    assert_eq!(flame.token_ids(), whole.token_ids());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.parquet");
    for original in [&whole, &hotset_traces::testing::full_trace()] {
        export(original, ExportFormat::Parquet, &path).unwrap();
        let back = import_files(
            Format::Parquet,
            std::slice::from_ref(&path),
            &ImportOptions::default(),
            &(),
        )
        .unwrap();
        assert_eq!(back.trace.digest(), original.digest());
        // The note states one number of experts: of unequal layers the largest.
        let layers = |trace: &Trace| trace.shape().layers().to_vec();
        for (back, of) in layers(&back.trace).into_iter().zip(layers(original)) {
            let experts = original.shape().max_experts();
            assert_eq!(back, hotset_traces::LayerShape { experts, ..of });
        }
        assert_eq!(back.trace.name(), original.name());
        assert_eq!(back.trace.phases(), original.phases());
        assert_eq!(back.trace.steps(), original.steps());
    }
}
