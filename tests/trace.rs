//! Importing, describing and checking traces, and what damaged input does.

use crate::common::{hotset, json, refused, shared, stderr, stdout};
use std::path::Path;

fn import(from: &str, input: &Path, output: &Path, more: &[&str]) {
    let paths = [input.to_str().unwrap(), "-o", output.to_str().unwrap()];
    stdout(&[&["trace", "import", "--from", from], &paths[..], more].concat());
}

/// A small trace written by the program itself.
fn small(folder: &Path) -> std::path::PathBuf {
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
fn damaged_files_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let good = std::fs::read(&trace).unwrap();
    let bad = folder.path().join("bad.hst");
    let path = bad.to_str().unwrap();
    let try_bytes = |bytes: &[u8], parts: &[&str]| {
        std::fs::write(&bad, bytes).unwrap();
        refused(&["compare", path], parts);
        refused(&["trace", "info", path], parts);
        let out = folder.path().join("out.json");
        refused(&["compare", path, "-o", out.to_str().unwrap()], parts);
        assert!(!out.exists(), "an output file was left");
        assert_eq!(hotset(&["trace", "validate", path]).status.code(), Some(1));
    };
    try_bytes(&good[..good.len() - 1], &["bad.hst"]);
    try_bytes(&good[..40], &["bad.hst"]);
    try_bytes(&[], &["bad.hst"]);
    try_bytes(
        b"PK\x03\x04 not a trace at all, but long enough for a preamble of 64 bytes....",
        &["bad.hst"],
    );
    let mut longer = good.clone();
    longer.push(0);
    try_bytes(&longer, &["bad.hst"]);
    for place in (0..good.len()).step_by(good.len() / 60 + 1) {
        let mut flipped = good.clone();
        flipped[place] ^= 0x10;
        try_bytes(&flipped, &["bad.hst"]);
    }
}

#[test]
fn bad_imports_are_refused_and_leave_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    let out = folder.path().join("out.hst");
    let try_import = |from: &str, bytes: &[u8], more: &[&str], parts: &[&str]| {
        std::fs::write(&input, bytes).unwrap();
        let paths = [input.to_str().unwrap(), "-o", out.to_str().unwrap()];
        refused(&[&["trace", "import", "--from", from], &paths[..], more].concat(), parts);
        assert!(!out.exists(), "an output file was left");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file stayed");
    };
    try_import("ids", b"", &[], &[]);
    try_import("ids", b"1\n2\nthree\n", &[], &["line 3"]);
    try_import("ids", b"1\n-2\n", &[], &["line 2"]);
    try_import("ids", b"5\n", &["--experts", "5"], &["5"]);
    try_import("npy", b"\x93NUMPY\x01\x00", &[], &["in"]);
    try_import("npz", b"PK\x05\x06", &[], &["in"]);
    try_import("nzp", b"", &[], &["did you mean 'npz'?"]);
    // One token, one layer, top-2, the same expert twice.
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 2), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let padded = format!("{header:<117}\n");
    npy.extend((padded.len() as u16).to_le_bytes());
    npy.extend(padded.as_bytes());
    let twice = [&npy[..], &[3, 3]].concat();
    try_import("npy", &twice, &[], &["3"]);
    try_import("npy", &[&npy[..], &[3, 1]].concat(), &["--experts", "3"], &["3"]);
    try_import("npy", &[&npy[..], &[3, 1]].concat(), &["--top-k", "4"], &["top-k 4"]);
    let fine = [&npy[..], &[3, 1]].concat();
    std::fs::write(&input, fine).unwrap();
    import("npy", &input, &out, &[]);
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
fn an_output_never_takes_its_inputs_place() {
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let ids = folder.path().join("ids.txt");
    let dotted = folder.path().join(".").join("small.hst");
    let (path, dotted) = (trace.to_str().unwrap(), dotted.to_str().unwrap());
    let before = std::fs::read(&trace).unwrap();
    for command in [
        &["trace", "export", path, "--to", "jsonl"][..],
        &["trace", "slice", path],
        &["trace", "compose", path, "--concurrency", "1"],
        &["trace", "shuffle", path],
        &["trace", "info", path],
        &["trace", "validate", path],
        &["compare", path],
        &["sweep", path],
        &["sweep", "--resume", path],
        &["replay", path],
        &["compare", "--policy", "static", "--histogram", path],
        &["compare", "--link", &format!("h200-pcie,{path}")],
        &["experiment", "prefetch", path],
        &["plan", "--model", path, "--machine", "h200"],
        &["plan", "--model", "OLMoE-1B-7B", "--machine", path],
        &["preflight", "--model", path, "--machine", "h200"],
        &["conform", path, "--policy", "lru", "--capacity", "25%"],
        &["link", "fit", path],
        &["link", "show", path],
        &["verify-live", path, "--links", "a", "--traces", "b"],
    ] {
        refused(&[command, &["-o", dotted]].concat(), &["the output is the input"]);
        assert!(std::fs::read(&trace).unwrap() == before, "{command:?}");
    }
    let recorded = ["conform", path, "--policy", "lru", "--capacity", "25%", "--record", dotted];
    refused(&recorded, &["the output is the input"]);
    refused(&["replay", path, "--trace-events", dotted], &["the output is the input"]);
    let new = folder.path().join("new.json");
    std::fs::write(&new, "").unwrap();
    let new = new.to_str().unwrap();
    refused(&["replay", path, "--trace-events", new, "-o", new], &["the output is the input"]);
    assert!(std::fs::read(&trace).unwrap() == before);
    let ids = ids.to_str().unwrap();
    let import = |input: &str, output: &str, part: &str| {
        refused(&["trace", "import", "--from", "ids", input, "-o", output], &[part]);
    };
    import(ids, ids, "the output is the input");
    let whole = folder.path().to_str().unwrap();
    import(whole, &format!("{whole}/new.hst"), "lies in the input folder");
}

#[cfg(unix)]
#[test]
fn links_and_devices_stay_what_they_are() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let path = trace.to_str().unwrap();
    let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
    std::fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    stdout(&["trace", "export", path, "--to", "jsonl", "-o", link.to_str().unwrap()]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().starts_with("{\""));
    for command in [&["trace", "slice", path][..], &["trace", "export", path, "--to", "npz"]] {
        stdout(&[command, &["-o", "/dev/null"]].concat());
        let kind = std::fs::metadata("/dev/null").unwrap().file_type();
        assert!(kind.is_char_device());
    }
    stdout(&["trace", "info", path, "-o", "/dev/null"]);
    if Path::new("/dev/full").exists() {
        let full = ["trace", "export", path, "--to", "jsonl", "-o", "/dev/full"];
        refused(&full, &["cannot write /dev/full"]);
    }
}

#[test]
fn write_errors_name_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("absent").join("out.hst");
    let output = hotset(&["trace", "slice", "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("absent/out.hst") && !error.contains(".hotset-"), "{error}");
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

/// Ctrl-C while a file is being written: the work ends with code 3, says so, and leaves nothing.
#[cfg(unix)]
#[test]
fn an_interrupted_export_leaves_nothing() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_hotset"))
        .args(["trace", "export", "--to", "jsonl", "-o", out.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    // The temporary file is there: the work is being written.
    while entries() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    if child.try_wait().unwrap().is_none() {
        let id = child.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    // A machine that wrote it all before the signal came has nothing to show.
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("interrupted; nothing was written"));
        assert_eq!(entries(), 0, "something was left");
    }
}
