//! One routing and one table of counts, written as people write them: whatever the syntax, the
//! trace has the same digest, and counts place and plan alike.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::{counts_file, json, stdout};

/// Three tokens in layers 1 and 2, best expert first, in the syntaxes that have a rank.
const ROUTINGS: [(&str, &str); 9] = [
    (
        "lines.jsonl",
        r#"{"token_idx": 0, "layer": 1, "topk_ids": [3, 1]}
{"token_idx": 0, "layer": 2, "topk_ids": [0, 2]}
{"token_idx": 1, "layer": 1, "topk_ids": [2, 0]}
{"token_idx": 1, "layer": 2, "topk_ids": [1, 3]}
{"token_idx": 2, "layer": 1, "topk_ids": [0, 3]}
{"token_idx": 2, "layer": 2, "topk_ids": [2, 1]}
"#,
    ),
    (
        "array.json",
        r#"[{"pos": 0, "il": 1, "experts": [3, 1]}, {"pos": 0, "il": 2, "experts": [0, 2]},
            {"pos": 1, "il": 1, "experts": [2, 0]}, {"pos": 1, "il": 2, "experts": [1, 3]},
            {"pos": 2, "il": 1, "experts": [0, 3]}, {"pos": 2, "il": 2, "experts": [2, 1]}]"#,
    ),
    (
        "selections.csv",
        "expert,rank,layer,position\n3,0,1,0\n1,1,1,0\n0,0,2,0\n2,1,2,0\n2,0,1,1\n0,1,1,1\n\
         1,0,2,1\n3,1,2,1\n0,0,1,2\n3,1,1,2\n2,0,2,2\n1,1,2,2\n",
    ),
    (
        "spreadsheet.csv",
        "\u{feff}token;layer;expert_ids\r\n0;1;\"3,1\"\r\n0;2;\"0,2\"\r\n1;1;\"2,0\"\r\n\
         1;2;\"1,3\"\r\n2;1;\"0,3\"\r\n2;2;\"2,1\"\r\n",
    ),
    (
        "columns.tsv",
        "token\tlayer\te0\te1\n0\t1\t3\t1\n0\t2\t0\t2\n1\t1\t2\t0\n1\t2\t1\t3\n2\t1\t0\t3\n\
         2\t2\t2\t1\n",
    ),
    (
        "blanks.txt",
        "# token layer expert_ids\n0 1 3 1\n0 2 0 2\n1 1 2 0\n1 2 1 3\n2 1 0 3\n2 2 2 1\n",
    ),
    (
        "nested.json",
        r#"{"tokens": [
            {"layer_2": {"selected_experts": [0, 2]}, "layer_1": {"selected_experts": [3, 1]}},
            {"layer_2": {"selected_experts": [1, 3]}, "layer_1": {"selected_experts": [2, 0]}},
            {"layer_2": {"selected_experts": [2, 1]}, "layer_1": {"selected_experts": [0, 3]}}]}"#,
    ),
    (
        "by_layer.json",
        r#"{"layer_1": [[3, 1], [2, 0], [0, 3]], "layer_2": [[0, 2], [1, 3], [2, 1]]}"#,
    ),
    (
        "tokens.jsonl",
        r#"{"seq": 0, "pos": 0, "experts": {"1": [3, 1], "2": [0, 2]}}
{"seq": 0, "pos": 1, "experts": {"1": [2, 0], "2": [1, 3]}}
{"seq": 0, "pos": 2, "experts": {"1": [0, 3], "2": [2, 1]}}
"#,
    ),
];

#[test]
fn one_routing_has_one_digest_in_every_syntax() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hst");
    let mut first = None;
    for (name, text) in ROUTINGS {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let [path, out] = [&path, &out].map(|path| path.to_str().unwrap());
        stdout(&["trace", "import", path, "--experts", "4", "--name", "same", "-o", out]);
        let info = json(&["trace", "info", out]);
        assert_eq!((&info["tokens"], &info["layers"]), (&3.into(), &2.into()), "{name}");
        let digest = first.get_or_insert_with(|| info["digest"].clone());
        assert_eq!(&info["digest"], digest, "{name}");
    }
}

/// Uses of an expert of OLMoE that no two layers and no two neighbours share.
fn uses(layer: u64, expert: u64) -> u64 {
    (expert * 37 + layer * 11) % 64 + 1
}

/// The counts of `uses` as CSV, JSON, colibri's text and MoE-Infinity's array.
fn write_counts(folder: &Path) -> [String; 4] {
    let mut csv = String::from("layer,expert,count\n");
    let mut colibri = String::from("-1 16 64\n-2 1 2166136261\n");
    for (layer, expert) in (0..16).flat_map(|layer| (0..64).map(move |expert| (layer, expert))) {
        let count = uses(layer, expert);
        writeln!(csv, "{layer},{expert},{count}").unwrap();
        writeln!(colibri, "{layer} {expert} {count}").unwrap();
    }
    let row = |layer| (0..64).map(|expert| uses(layer, expert)).collect::<Vec<_>>();
    let matrix: Vec<Vec<u64>> = (0..16).map(row).collect();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let paths = ["counts.csv", "counts.json", ".coli_usage", "counts.npy"].map(path);
    std::fs::write(&paths[0], csv).unwrap();
    std::fs::write(&paths[1], serde_json::json!({ "expert_counts": matrix }).to_string()).unwrap();
    std::fs::write(&paths[2], colibri).unwrap();
    counts_file(paths[3].as_ref(), matrix.iter().flatten().map(|&count| count as f64));
    paths
}

#[test]
fn counts_place_and_plan_alike_in_every_syntax() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = None;
    for path in write_counts(folder.path()) {
        let placed = ["compare", "--policy", "static", "--capacity", "25%", "--phase", "decode"];
        let placed = json(&[&placed[..], &["--histogram", &path]].concat());
        let plan = ["plan", "--model", "OLMoE-1B-7B", "--machine", "h200", "--free", "5GiB"];
        let plan = json(&[&plan[..], &["--histogram", &path]].concat());
        assert_eq!(plan["routing"]["kind"], "histogram", "{path}");
        let found = (placed["rows"].clone(), plan["speed"].clone(), plan["fit"].clone());
        assert!(found.0[0]["hits"].as_u64().unwrap() > 0, "{path}");
        let first = first.get_or_insert_with(|| found.clone());
        assert_eq!(&found, first, "{path}");
    }
}
