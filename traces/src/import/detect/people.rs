//! Every sample of the layouts that people write has one surest claimant, or is refused by all.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::tests::surest;
use super::{Detected, Format, HistogramFormat, recognise_with};
use crate::import::ImportOptions;
use crate::testing::shared;

/// Who a sample belongs to.
#[derive(Debug, Clone, Copy)]
enum Reader {
    /// This importer, which may still refuse what it reads.
    Routes(Format),
    Counts(HistogramFormat),
    /// Nobody: what it is like is told.
    Nobody,
}

/// Every sample, and who it belongs to.
fn readers() -> Vec<(&'static str, Reader)> {
    use Format::*;
    use Reader::*;
    vec![
        ("vllm_logger", Routes(Columns)),
        ("vllm_logger_running_index", Routes(Columns)),
        ("vllm_logger_layer_files", Routes(Columns)),
        ("vllm_logger_all_layers", Routes(Columns)),
        ("moe_cache_lab", Routes(Columns)),
        ("jsonl_requests_interleaved", Routes(Columns)),
        ("ds4_moe_trace", Routes(Columns)),
        ("lightllm_router_trace", Routes(Columns)),
        ("jsonl_layer_batches", Routes(Columns)),
        ("flash_moe_trace", Routes(Columns)),
        ("json_forwards", Routes(NestedJson)),
        ("gpt_oss_router_data", Routes(NestedJson)),
        ("jsonl_activations", Routes(NestedJson)),
        ("counts_csv", Counts(HistogramFormat::Columns)),
        ("counts_csv_sparse", Counts(HistogramFormat::Columns)),
        ("counts_csv_extra_columns", Counts(HistogramFormat::Columns)),
        ("counts_csv_phases", Counts(HistogramFormat::Columns)),
        ("counts_csv_sglang_2025", Counts(HistogramFormat::Columns)),
        ("coli_usage", Counts(HistogramFormat::ColiUsage)),
        ("coli_route_trace", Routes(ColiRoute)),
        ("arcint_trace_v1", Routes(Columns)),
        ("esft_layer_files", Routes(Esft)),
        ("logits_layer_files", Routes(Arrays)),
        ("ids_layer_files", Routes(Arrays)),
        ("moe_beyond_csv", Routes(Columns)),
        ("csv_token_layer_expert", Routes(Columns)),
        ("csv_ds4_routing", Routes(Columns)),
        ("csv_commented_header", Routes(Columns)),
        ("csv_ragged_ids", Routes(Columns)),
        ("csv_ids_semicolons", Routes(Columns)),
        ("csv_layer_ids", Routes(Columns)),
        ("csv_moe_log", Routes(Columns)),
        ("csv_top1_top2", Routes(Columns)),
        ("csv_dataframe", Routes(Columns)),
        ("npy_top8_beside_logits", Routes(Npy)),
        ("npz_layer_keys", Routes(Arrays)),
        ("npz_arr_0", Routes(Arrays)),
        ("pt_tensor", Routes(Arrays)),
        ("pt_router_logits", Routes(Arrays)),
        ("pt_moe_routing_trace", Routes(Arrays)),
        ("pt_captures_by_layer", Routes(Arrays)),
        ("pt_layer_list", Routes(Arrays)),
        ("fiddler_popularity", Counts(HistogramFormat::Json)),
        ("mindspeed_token_collects", Counts(HistogramFormat::Json)),
        ("llama_eval_moe_counts", Counts(HistogramFormat::Json)),
        ("reap_observations", Counts(HistogramFormat::Json)),
        ("moeprof_v1", Counts(HistogramFormat::Moeprof)),
        ("llama_moe_trace_bin", Routes(LlamaMoeStream)),
        ("dynamo_nvext", Routes(Dynamo)),
        ("json_by_layer", Routes(NestedJson)),
        ("json_nested_lists", Routes(NestedJson)),
        ("jsonl_gz", Routes(Jsonl)),
        ("csv_spreadsheet", Routes(Columns)),
        ("jsonl_with_type", Routes(Jsonl)),
        ("npy_probabilities_f64", Routes(Arrays)),
        ("pt_expert_load", Counts(HistogramFormat::ArrayCounts)),
        ("refuse_pins", Nobody),
        ("refuse_scores", Nobody),
        ("refuse_no_header_two_orders", Nobody),
        ("refuse_no_header_triples", Nobody),
        ("refuse_one_based", Routes(Columns)),
        ("refuse_placement", Nobody),
        ("refuse_logits_without_k", Routes(Arrays)),
        ("refuse_training_shares", Routes(Columns)),
        ("refuse_ranking", Nobody),
        ("refuse_physical_ids", Routes(Columns)),
    ]
}

/// What a user would give with a sample.
fn options(case: &Value) -> ImportOptions {
    let flags: Vec<&str> =
        case["flags"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    let number = |name: &str| {
        let place = flags.iter().position(|flag| flag.strip_prefix("--") == Some(name))?;
        Some(flags[place + 1].parse().unwrap())
    };
    ImportOptions { top_k: number("top-k"), layers: number("layers"), ..Default::default() }
}

/// The files of an input that one format reads, or the folder that it reads whole.
fn parts(path: PathBuf, options: &ImportOptions) -> Vec<PathBuf> {
    if path.is_file() || !surest(&path, options).is_empty() {
        return vec![path];
    }
    std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn expect(path: &Path, reader: Reader, options: &ImportOptions) {
    let expected = match reader {
        Reader::Routes(format) => vec![Detected::Trace(format)],
        Reader::Counts(format) => vec![Detected::Histogram(format)],
        Reader::Nobody => Vec::new(),
    };
    assert_eq!(surest(path, options), expected, "{}", path.display());
    match (recognise_with(path, options), expected.first()) {
        (Ok(told), Some(_)) => assert_eq!(told.as_ref(), expected.first(), "{}", path.display()),
        (Err(reason), None) => assert!(reason.to_string().len() > 60, "{reason}"),
        (told, _) => panic!("{}: {told:?}", path.display()),
    }
}

#[test]
fn one_reader_claims_each_sample_of_people() {
    let Some(root) = shared("formats/people/shown") else { return };
    let cases = std::fs::read(root.join("expected.json")).unwrap();
    let cases: serde_json::Map<String, Value> = serde_json::from_slice(&cases).unwrap();
    let readers = readers();
    assert!(cases.keys().all(|case| readers.iter().any(|(name, _)| case == name)));
    for (name, reader) in readers {
        let case = &cases[name];
        let options = options(case);
        for input in case["inputs"].as_array().unwrap() {
            for part in parts(root.join(input.as_str().unwrap()), &options) {
                expect(&part, reader, &options);
            }
        }
    }
}
