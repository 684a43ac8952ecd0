//! Importing, describing and checking traces, and what damaged input does.

use crate::common::{hotset, json, refused, shared, stderr, stdout};
use std::path::Path;

pub fn import(from: &str, input: &Path, output: &Path, more: &[&str]) {
    let paths = [input.to_str().unwrap(), "-o", output.to_str().unwrap()];
    stdout(&[&["trace", "import", "--from", from], &paths[..], more].concat());
}

/// A small trace written by the program itself.
pub fn small(folder: &Path) -> std::path::PathBuf {
    let ids = folder.join("ids.txt");
    std::fs::write(
        &ids,
        "# a comment\n7\n0\n1\n2\n0\n3\n0\n4\n2\n3\n0\n3\n2\n1\n2\n0\n1\n7\n0\n1\n",
    )
    .unwrap();
    let trace = folder.join("small.hst");
    import("ids", &ids, &trace, &[]);
    trace
}

#[test]
fn the_textbook_string_through_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let report = json(&[
        "compare",
        trace.to_str().unwrap(),
        "--semantics",
        "sequential",
        "--capacity",
        "3",
        "--policy",
        "fifo,lru,belady",
    ]);
    for (policy, faults) in [("fifo", 15), ("lru", 12), ("belady", 9)] {
        let row = report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["policy"] == policy && row["window"] == "all")
            .unwrap();
        assert_eq!(row["misses"], faults, "{policy}");
        assert_eq!(row["links"].as_array().unwrap().len(), 0, "no size, no price");
    }
}

#[test]
fn a_policy_without_its_column_says_which_importers_give_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let args = ["compare", trace.to_str().unwrap(), "--capacity", "3", "--policy", "mrs"];
    refused(&args, &["policy 'mrs' needs the column 'weights'", "npz, npy"]);
    // What is trained is tested on the other half of the sequences, and the report says so.
    let args = ["compare", "--policy", "static", "--capacity", "25%", "--phase", "decode"];
    let report = json(&args);
    assert_eq!(report["rows"][0]["tokens"], 24 * 256);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("the first 24 were trained on"), "{warnings}");
}

#[test]
fn imported_twice_is_the_same_file_and_the_same_report() {
    let Some(input) = shared("data/h200-moe/routes.npz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [first, second, packed] = ["a.hst", "b.hst", "c.hst"].map(|name| folder.path().join(name));
    import("npz", &input, &first, &["--expert-size", "1769472"]);
    import("npz", &input, &second, &["--expert-size", "1769472"]);
    import("npz", &input, &packed, &["--expert-size", "1769472", "--zstd", "3"]);
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
    let report = |path: &Path| stdout(&["compare", path.to_str().unwrap(), "--format", "json"]);
    assert_eq!(report(&first), report(&second));
    assert_eq!(report(&first), report(&packed), "the codec shows");
    stdout(&["trace", "validate", first.to_str().unwrap()]);
    let info = json(&["trace", "info", first.to_str().unwrap()]);
    assert_eq!(info["tokens"], 43_008);
    assert_eq!(info["tokens_by_phase"]["prefill"], 18_432);
    assert_eq!(info["sequences"], 96);
    let present = |name: &str| {
        info["columns"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["name"] == name && c["present"] == true)
    };
    for column in ["weights", "predictions", "embeddings", "token_ids", "phases"] {
        assert!(present(column), "{column} was lost");
    }
}

#[test]
fn info_tells_shape_and_locality_of_the_bundled_trace() {
    let text = stdout(&["trace", "info"]);
    for part in ["experts in all", "shared with the previous token", "reuse distance p90", "digest"]
    {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let output = hotset(&["trace", "validate"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn formats_are_told_and_histograms_are_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hst");
    let out = out.to_str().unwrap();
    let Some(sample) = shared("formats/vllm_dense_layer0.npy") else { return };
    let sample = sample.to_str().unwrap();
    refused(&["trace", "import", sample, "-o", out], &["layer 0", "--dense-layers 0", "--config"]);
    refused(&["compare", sample], &["not an .hst file but npy", "hotset trace import --from npy"]);
    stdout(&["trace", "import", "--from", "vllm", sample, "--dense-layers", "0", "-o", out]);
    assert_eq!(json(&["trace", "info", out])["layers"], 3);
    for (name, format) in [
        ("llama_imatrix.gguf", "imatrix"),
        ("sglang_stat.pt", "sglang-stat"),
        ("sglang_per_pass.pt", "sglang-per-pass"),
        ("moe_infinity_trace.npy", "moe-infinity"),
    ] {
        let path = shared(&format!("formats/{name}")).unwrap();
        let path = path.to_str().unwrap();
        let text = stdout(&["trace", "info", path]);
        assert!(text.contains(format), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(json(&["trace", "info", path])["layers"].as_array().unwrap().len(), 4);
        refused(&["compare", path], &["is a histogram", "not in which order"]);
        refused(&["trace", "import", path, "-o", out], &["is a histogram"]);
        refused(&["trace", "import", "--from", format, path, "-o", out], &["is a histogram"]);
    }
    let dat = shared("formats/llama_imatrix.dat").unwrap();
    refused(&["trace", "info", dat.to_str().unwrap()], &["not each expert's uses"]);
}

#[test]
fn several_inputs_are_one_trace() {
    let Some(first) = shared("formats/vllm_routed_experts_req0.npy") else { return };
    let more = [1, 2].map(|n| shared(&format!("formats/vllm_routed_experts_req{n}.npy")).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let [out, whole] = ["out.hst", "whole.hst"].map(|name| folder.path().join(name));
    let paths = [&first, &more[0], &more[1]].map(|path| path.to_str().unwrap());
    let flags = ["--prompt-tokens", "5,18,12", "-o", out.to_str().unwrap()];
    stdout(&[&["trace", "import"], &paths[..], &flags[..]].concat());
    let npz = shared("formats/hf_trace.npz").unwrap();
    import("npz", &npz, &whole, &[]);
    let digest = |path: &Path| json(&["trace", "info", path.to_str().unwrap()])["digest"].clone();
    assert_eq!(digest(&out), digest(&whole));
}

#[test]
fn cut_composed_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [part, composed, npz, back, jsonl] =
        ["part.hst", "composed.hst", "a.npz", "back.hst", "a.jsonl"].map(path);
    stdout(&["trace", "slice", "--sequences", "0..3,5", "-o", &part]);
    let info = json(&["trace", "info", &part]);
    assert_eq!((info["sequences"].clone(), info["tokens"].clone()), (4.into(), (4 * 448).into()));
    let decode = path("decode.hst");
    stdout(&["trace", "slice", &part, "--phase", "decode", "-o", &decode]);
    assert_eq!(json(&["trace", "info", &decode])["tokens"], 4 * 256);

    // Composing beforehand and while comparing are the same replay.
    stdout(&["trace", "compose", &part, "--concurrency", "3", "--chunk", "64", "-o", &composed]);
    let flags = ["--policy", "lru,belady", "--capacity", "25%", "--no-timeline"];
    let there = json(&[&["compare", &composed], &flags[..]].concat());
    let concurrent = ["--concurrency", "3", "--chunk", "64"];
    let live = json(&[&["compare", &part], &flags[..], &concurrent[..]].concat());
    assert_eq!(there["rows"], live["rows"]);

    for (to, file) in [("npz", &npz), ("jsonl", &jsonl)] {
        stdout(&["trace", "export", &part, "--to", to, "-o", file]);
        stdout(&["trace", "import", file, "-o", &back]);
        assert_eq!(json(&["trace", "info", &back])["digest"], info["digest"], "{to}");
    }
    let oracle = path("a.bin");
    stdout(&["trace", "export", &part, "--to", "oracle-general", "-o", &oracle]);
    assert_eq!(std::fs::metadata(&oracle).unwrap().len(), 24 * 4 * 448 * 16 * 8);
    refused(&["trace", "export", &part, "--to", "npzz", "-o", &npz], &["did you mean 'npz'?"]);
    refused(&["trace", "slice", "--sequences", "99", "-o", &back], &["no sequence 99"]);
    refused(&["trace", "compose", "--concurrency", "99", "-o", &back], &["concurrency 99"]);
}

#[test]
fn a_slice_of_absurdly_many_sequences_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hst");
    let out = out.to_str().unwrap();
    for list in ["0..18446744073709551615", "18446744073709551614"] {
        refused(&["trace", "slice", "--sequences", list, "-o", out], &["no sequence", "there are"]);
    }
    refused(&["trace", "slice", "--sequences", "0..3,2", "-o", out], &["2 is not after"]);
}

#[test]
fn prompt_tokens_without_effect_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let (ids, out) = (folder.path().join("ids.txt"), folder.path().join("out.hst"));
    let (ids, out) = (ids.to_str().unwrap(), out.to_str().unwrap());
    let import = ["trace", "import", "--from", "ids", ids, "-o", out, "--prompt-tokens", "1"];
    refused(&import, &["--prompt-tokens", "ids has no use for them"]);
    refused(&[&import[..], &["--phase", "decode"]].concat(), &["--phase", "give one of them"]);
    let Some(request) = shared("formats/vllm_routed_experts_req0.npy") else { return };
    let request = request.to_str().unwrap();
    let import = ["trace", "import", "--from", "vllm", request, "-o", out, "--prompt-tokens"];
    refused(&[&import[..], &["5,18"]].concat(), &["2 numbers for 1 requests"]);
}

#[test]
fn export_says_what_it_drops() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let columns = json(&["trace", "info"])["columns"].clone();
    let output = hotset(&["trace", "export", "--to", "jsonl", "-o", out]);
    let error = stderr(&output);
    assert!(output.status.success(), "{error}");
    for column in columns.as_array().unwrap() {
        let name = column["name"].as_str().unwrap();
        let lost = ["predictions", "embeddings"].contains(&name) && column["present"] == true;
        let said = error.lines().any(|line| line.starts_with("note: ") && line.contains(name));
        assert_eq!(said, lost, "{name}: {error}");
    }
    let oracle = hotset(&["trace", "export", "--to", "oracle-general", "-o", out]);
    assert!(stderr(&oracle).contains("note: oracle-general does not keep the trace's positions"));
}

#[test]
fn what_keeps_a_format_from_being_told_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.npy");
    let path = input.to_str().unwrap();
    let says = |input: &str, part: &str| {
        refused(&["trace", "import", input, "-o", "out.hst"], &[part]);
    };
    says(folder.path().to_str().unwrap(), "has no files");
    says(path, "there is no such file");
    std::fs::write(&input, "").unwrap();
    says(path, "is empty");
    let header = "{'descr': '<c8', 'fortran_order': False, 'shape': (0, 1, 2), }";
    let padded = format!("{header:<117}\n");
    let size = (padded.len() as u16).to_le_bytes();
    std::fs::write(&input, [b"\x93NUMPY\x01\x00", &size[..], padded.as_bytes()].concat()).unwrap();
    says(path, "elements of type <c8");
    #[cfg(unix)]
    says("/dev/null", "give --from");
}

#[test]
fn descriptions_state_their_schema() {
    assert_eq!(json(&["trace", "info"])["schema"], "hotset/1");
    assert_eq!(json(&["trace", "validate"])["schema"], "hotset/1");
    let Some(counts) = shared("formats/llama_imatrix.gguf") else { return };
    assert_eq!(json(&["trace", "info", counts.to_str().unwrap()])["schema"], "hotset/1");
}
