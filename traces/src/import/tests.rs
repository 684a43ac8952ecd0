//! Faulty and hostile arrays: each refused in words that name the array and what was expected.

use std::io::Write;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::array::tests::npy;
use super::{Format, ImportOptions, formats, giving, import, import_bytes};
use crate::{Error, Phase, Trace};

/// The required arrays of two tokens in two sequences, over 1 layer with top-2.
fn sound() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("expert_ids", npy("|u1", "(2, 1, 2)", &[3, 1, 0, 2])),
        ("sequence", npy("<u4", "(2,)", &[0, 0, 0, 0, 1, 0, 0, 0])),
        ("position", npy("<u4", "(2,)", &[0; 8])),
        ("phase", npy("|u1", "(2,)", &[0, 1])),
    ]
}

fn with(name: &'static str, array: Vec<u8>) -> Vec<(&'static str, Vec<u8>)> {
    let mut arrays = sound();
    arrays.retain(|(other, _)| *other != name);
    arrays.push((name, array));
    arrays
}

fn zipped(arrays: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Result<Trace, Error> {
    let bytes = zipped(arrays, CompressionMethod::Deflated);
    import_bytes(Format::Npz, "a.npz", &bytes, &ImportOptions::default())
}

/// What is refused, without the folder.
fn refusal(arrays: &[(&str, Vec<u8>)]) -> String {
    let message = npz(arrays).unwrap_err().to_string();
    message.split_once("a.npz: ").map_or(message.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn stored_and_deflated_are_the_same() {
    let deflated = npz(&sound()).unwrap();
    let stored = zipped(&sound(), CompressionMethod::Stored);
    let options = ImportOptions { expert_bytes: Some(9), ..ImportOptions::default() };
    let stored = import_bytes(Format::Npz, "a.npz", &stored, &options).unwrap();
    assert_eq!(stored.digest(), deflated.digest());
    assert!(stored.ids().iter().eq([3, 1, 0, 2]));
    assert_eq!((deflated.sequences().len(), deflated.name()), (2, "a"));
    assert_eq!(deflated.sequences()[0].prompt_tokens, 1, "counted from the phases");
    assert_eq!(deflated.shape().total_experts(), 4);
    assert_eq!(stored.shape().total_bytes(), Some(36));
}

#[test]
fn a_missing_column_is_named() {
    for missing in ["expert_ids", "sequence", "position", "phase"] {
        let mut arrays = sound();
        arrays.retain(|(name, _)| *name != missing);
        let expected = format!(
            "array {missing}: is missing; hotset-npz/1 needs expert_ids, sequence, position and phase"
        );
        assert_eq!(refusal(&arrays), expected);
    }
    let one = with("prompt_embedding_in", npy("<f2", "(2, 1)", &[0; 4]));
    assert_eq!(refusal(&one), "array prompt_embedding_out: is missing beside prompt_embedding_in");
}

#[test]
fn wrong_ranks_types_and_lengths_are_named() {
    let says = |name, array, expected: &str| assert_eq!(refusal(&with(name, array)), expected);
    says(
        "expert_ids",
        npy("|u1", "(2, 2)", &[0, 1, 2, 3]),
        "array expert_ids: expected [tokens, layers, top-k] of u8 or u16, found [2, 2] of u8",
    );
    says(
        "expert_ids",
        npy("<f4", "(1, 1, 1)", &[0; 4]),
        "array expert_ids: expected u8 or u16, found [1, 1, 1] of f32",
    );
    says(
        "sequence",
        npy("<f4", "(2,)", &[0; 8]),
        "array sequence: expected [2] of u32 or i32, found [2] of f32",
    );
    says(
        "position",
        npy("<u4", "(3,)", &[0; 12]),
        "array position: expected [2] of u32 or i32, found [3] of u32",
    );
    let negative = npy("<i4", "(2,)", &[255; 8]);
    says("position", negative, "array position: -1 is negative");
    says("phase", npy("|u1", "(1,)", &[0]), "array phase: expected [2] of u8, found [1] of u8");
    says(
        "expert_weights",
        npy("|u1", "(2, 2)", &[0; 4]),
        "array expert_weights: expected [2, 1, 2] of u8, f16 or f32, found [2, 2] of u8",
    );
    says(
        "predicted_ids",
        npy("|u1", "(2, 1, 2)", &[0; 4]),
        "array predicted_ids: expected [lookaheads, 2, 1, width] of u8 or u16, found [2, 1, 2] of u8",
    );
    let falling = npy("<u4", "(2,)", &[1, 0, 0, 0, 0, 0, 0, 0]);
    says("sequence", falling, "array sequence: row 1 has 0 after 1; sequences must rise");
}

#[test]
fn impossible_values_are_refused() {
    let twice = with("expert_ids", npy("|u1", "(2, 1, 2)", &[3, 1, 2, 2]));
    assert_eq!(
        refusal(&twice),
        "column ids, token 1, layer 0: expert 2 is chosen twice in one top-2"
    );
    let nan = with("expert_weights", npy("<f2", "(2, 1, 2)", &[0, 0, 0, 0x7e, 0, 0, 0, 0]));
    assert!(refusal(&nan).starts_with("column weights, token 0, layer 0: weight NaN"));
    let phase = with("phase", npy("|u1", "(2,)", &[0, 3]));
    assert!(refusal(&phase).starts_with("column phases, token 1: phase 3"));
    let empty = [
        ("expert_ids", npy("|u1", "(0, 1, 2)", &[])),
        ("sequence", npy("<u4", "(0,)", &[])),
        ("position", npy("<u4", "(0,)", &[])),
        ("phase", npy("|u1", "(0,)", &[])),
    ];
    assert_eq!(refusal(&empty), "ids: no tokens; a trace needs at least one");
    let few = ImportOptions { experts: Some(3), ..ImportOptions::default() };
    let bytes = zipped(&sound(), CompressionMethod::Stored);
    let error = import_bytes(Format::Npz, "a.npz", &bytes, &few).unwrap_err().to_string();
    let expected = "a.npz: ids: expert id 3 is used, `ImportOptions::experts` says 3 experts: \
                    give `ImportOptions::experts` 4";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn hostile_arrays_ask_for_no_memory() {
    let huge = npy("|u1", "(4294967296, 4294967296, 8)", &[0; 4]);
    assert!(refusal(&with("expert_ids", huge)).contains("does not fit its 4 bytes of data"));
    let large = npy("|u1", "(1152921504606846976, 1, 2)", &[0; 4]);
    assert!(refusal(&with("expert_ids", large)).contains("does not fit its 4 bytes of data"));
    // 65 MiB of zeros deflate to 65 KB, less than a thousandth.
    let zeros = npy("|u1", "(68157440,)", &vec![0; 65 << 20]);
    assert_eq!(
        refusal(&[("expert_ids", zeros)]).split(" bytes in").next(),
        Some("array expert_ids: states 68157568")
    );
    let message = import_bytes(Format::Npz, "a.npz", b"not a zip", &ImportOptions::default());
    assert!(message.unwrap_err().to_string().contains("zip: not an npz file"));
    let mut cut = zipped(&sound(), CompressionMethod::Deflated);
    cut.truncate(cut.len() / 2);
    assert!(import_bytes(Format::Npz, "a.npz", &cut, &ImportOptions::default()).is_err());
}

#[test]
fn info_is_believed_only_where_it_fits() {
    let info =
        |text: &str| with("info", npy("|u1", &format!("({},)", text.len()), text.as_bytes()));
    let trace = npz(&info(
        r#"{"model": "m", "experts": 16, "doc": [5, 6], "sequence_labels": ["a", "b"], "turns": [7, 1]}"#,
    ))
    .unwrap();
    assert_eq!((trace.name(), trace.shape().total_experts()), ("m", 16));
    let second = &trace.sequences()[1];
    assert_eq!((second.label.as_str(), second.document, second.prompt_tokens), ("b", Some(6), 7));
    assert_eq!(
        refusal(&info(r#"{"sequence_labels": ["a"]}"#)),
        "array info: sequence_labels has 1 entries, there are 2 sequences"
    );
    assert_eq!(refusal(&info(r#"{"top_k": 4}"#)), "array info: says top_k 4, expert_ids has 2");
    assert!(refusal(&info("[")).starts_with("array info: not a JSON object"));
}

#[test]
fn bare_arrays_of_every_integer_type() {
    let ids = |descr: &str, bytes: &[u8]| {
        let options = ImportOptions { phase: Some(Phase::Prefill), ..ImportOptions::default() };
        import_bytes(Format::Npy, "x.npy", &npy(descr, "(1, 1, 2)", bytes), &options)
    };
    let wide = [7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let traces = [
        ids("|u1", &[7, 1]),
        ids("<u2", &[7, 0, 1, 0]),
        ids("<i4", &[7, 0, 0, 0, 1, 0, 0, 0]),
        ids("<i8", &wide),
    ];
    for trace in traces {
        let trace = trace.unwrap();
        assert!(trace.ids().iter().eq([7, 1]));
        assert_eq!((trace.phase(0), trace.shape().total_experts()), (Phase::Prefill, 8));
    }
    let negative = ids("<i4", &[7, 0, 0, 0, 255, 255, 255, 255]).unwrap_err().to_string();
    assert!(negative.ends_with("x.npy: token 0: id -1; expert ids are 0 to 65535"), "{negative}");
    assert!(ids("<f4", &[0; 8]).unwrap_err().to_string().contains("floats, expected integer ids"));
}

#[test]
fn what_lies_beside_a_bare_array_must_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experts.npy");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let message = || import(Format::Npy, &path, &ImportOptions::default()).unwrap_err().to_string();
    write("experts.npy", &npy("|u1", "(3, 1, 1)", &[0, 1, 2]));
    write("sequences.csv", b"first_row,decode_tokens,category\n0,1,x\n1,2,y\n");
    let trace = import(Format::Npy, &path, &ImportOptions::default()).unwrap();
    assert_eq!(
        (trace.sequences()[1].label.as_str(), trace.sequences()[1].rows.clone()),
        ("y", 1..3)
    );
    assert_eq!(trace.positions(), [0, 0, 1]);
    write("sequences.csv", b"first_row,decode_tokens\n0,1\n2,2\n");
    assert!(message().ends_with("sequences.csv: line 3: first_row is 2, expected 1"));
    write("sequences.csv", b"first_row,decode_tokens\n0,1\n1,one\n");
    assert!(message().ends_with("line 3: column decode_tokens: \"one\" is not a whole number"));
    write("sequences.csv", b"first_row,decode_tokens\n0,4\n");
    assert!(message().ends_with("its sequences have 4 rows, the array of ids has 3"));
    write("sequences.csv", b"first_row\n0\n");
    assert!(message().ends_with("line 1: column decode_tokens is missing"));
    std::fs::remove_file(folder.path().join("sequences.csv")).unwrap();
    write("weights_bf16.npy", &npy("<u2", "(2, 1, 1)", &[0; 4]));
    assert!(message().contains("expected the shape of the ids, [3, 1, 1], found [2, 1, 1]"));
}

#[test]
fn every_format_is_registered_under_its_name() {
    for info in formats() {
        assert_eq!(Format::from_name(info.name).unwrap().info().name, info.name);
        let same = |other: &&super::info::FormatInfo| other.name == info.name;
        assert_eq!(formats().iter().filter(same).count(), 1, "{}", info.name);
    }
    assert_eq!(Format::from_name("nzp"), None);
    assert_eq!(giving("weights")[..2], ["npz", "npy"]);
    let first = ["npz", "safetensors", "jsonl", "parquet", "sglang", "columns"];
    let later = ["arrays", "coli-route", "llama-moe-stream", "nested-json"];
    assert_eq!(giving("steps"), [&first[..], &later].concat());
}

/// Every sample of our own has the routing that it was made of.
#[test]
fn samples_of_our_own_are_read() {
    use crate::testing::inputs::{REQUESTS, Reader, cell, samples};
    for sample in samples() {
        let Reader::Trace(format) = sample.reader else { continue };
        let name = sample.name();
        let trace = sample.read(&sample.contents).unwrap_or_else(|e| panic!("{name}: {e}"));
        let trace = trace.expect("routes");
        if format == Format::Ids {
            continue;
        }
        for row in 0..trace.tokens() {
            for layer in 0..2 {
                let ids = cell(row, layer).map(u32::from);
                assert!(trace.layer_ids(row, layer).iter().eq(ids), "{name}, row {row}");
            }
        }
        let phases: Vec<u8> = REQUESTS
            .iter()
            .flat_map(|&(tokens, prompt)| (0..tokens).map(move |n| u8::from(n >= prompt)))
            .collect();
        if trace.sequences().len() == 2 && format != Format::Lattice {
            assert_eq!(trace.phases(), phases, "{name}");
        }
    }
}

#[test]
fn sequences_that_come_again_are_refused() {
    let line =
        |seq: u32, pos: u32| format!("{{\"seq\":{seq},\"pos\":{pos},\"experts\":{{\"0\":[1]}}}}\n");
    let lines = |order: &[(u32, u32)]| -> String {
        order.iter().map(|&(seq, pos)| line(seq, pos)).collect()
    };
    let jsonl = |text: &str| {
        import_bytes(Format::Jsonl, "a.jsonl", text.as_bytes(), &ImportOptions::default())
    };
    let refused = jsonl(&lines(&[(0, 0), (1, 0), (0, 1), (1, 1)])).unwrap_err().to_string();
    assert_eq!(
        refused,
        "a.jsonl: token 2: sequence 0 comes again after another; the tokens of a sequence must \
         lie together: sort the file by sequence"
    );
    assert_eq!(jsonl(&lines(&[(1, 0), (1, 1), (0, 0)])).unwrap().sequences().len(), 2);
    let cells = br#"{"p":0,"t":0,"l":0,"e":[1]}
{"p":1,"t":0,"l":0,"e":[1]}
{"p":0,"t":1,"l":0,"e":[1]}
"#;
    let options = ImportOptions::default();
    let refused = import_bytes(Format::Policylang, "a", cells, &options).unwrap_err().to_string();
    assert!(refused.contains("sequence 0 comes again"), "{refused}");
}

#[test]
fn prompt_tokens_are_used_or_refused() {
    let given = |prompt_tokens: &[u32]| ImportOptions {
        prompt_tokens: prompt_tokens.to_vec(),
        ..ImportOptions::default()
    };
    for info in formats().iter().filter(|info| !info.takes_prompt_tokens) {
        let refused =
            import_bytes(Format::from_name(info.name).unwrap(), "a", b"1\n2\n", &given(&[1]))
                .unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("`ImportOptions::prompt_tokens`: "), "{refused}");
        assert!(refused.contains("vllm, vllm-json, sglang-json take them"), "{refused}");
    }
    let request = npy("|u1", "(2, 1, 1)", &[3, 1]);
    let vllm = |numbers: &[u32]| import_bytes(Format::Vllm, "a", &request, &given(numbers));
    assert_eq!(vllm(&[1]).unwrap().sequences()[0].prompt_tokens, 1);
    let refused = vllm(&[1, 2]).unwrap_err().to_string();
    assert!(refused.contains("2 numbers for 1 requests"), "{refused}");
    // Two choices as lists: each its own number.
    let reply = br#"{"choices": [{"routed_experts": [[[3]], [[1]], [[2]]]},
                                 {"routed_experts": [[[3]], [[1]], [[2]]]}]}"#;
    let lists = |numbers: &[u32]| import_bytes(Format::VllmJson, "a", reply, &given(numbers));
    let prompts: Vec<u32> =
        lists(&[1, 2]).unwrap().sequences().iter().map(|s| s.prompt_tokens).collect();
    assert_eq!(prompts, [1, 2]);
    let refused = lists(&[1, 2, 2]).unwrap_err().to_string();
    assert!(refused.contains("3 numbers for 2 requests"), "{refused}");
}

#[test]
fn engines_that_captured_nothing_are_told_apart_from_dense_layers() {
    let with = |ids: [u8; 8]| {
        let array = npy("|u1", "(2, 2, 2)", &ids);
        let message = import_bytes(Format::Vllm, "a", &array, &ImportOptions::default());
        message.unwrap_err().to_string()
    };
    let nothing = with([0; 8]);
    assert!(nothing.contains("ids: nothing but zeros in all 2 tokens"), "{nothing}");
    assert!(nothing.contains("--enforce-eager"), "{nothing}");
    let dense = with([0, 0, 3, 1, 0, 0, 2, 1]);
    assert!(dense.contains("layer 0: nothing but zeros"), "{dense}");
    assert!(dense.contains("`ImportOptions::dense_layers` 0"), "{dense}");
}

#[test]
fn jsonl_says_what_it_passes_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let notes = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let imported = super::import_files(
            Format::Jsonl,
            std::slice::from_ref(&path),
            &ImportOptions::default(),
            &(),
        );
        imported.unwrap().notes.join("; ")
    };
    let mistyped = notes("{\"seq\":0,\"phse\":\"prefill\",\"experts\":{\"0\":[1]}}\n");
    assert!(mistyped.contains("the key \"phse\" means nothing in jsonl"), "{mistyped}");
    assert!(mistyped.contains("without a phase count as decode"), "{mistyped}");
    let whole = "{\"type\":\"header\",\"maker\":\"me\"}\n\
                 {\"seq\":0,\"phase\":\"prefill\",\"experts\":{\"0\":[1]}}\n";
    assert!(!notes(whole).contains("passed over"), "{}", notes(whole));
}

#[test]
fn lists_of_replies_are_read_as_replies() {
    let reply = r#"{"choices": [{"routed_experts": [[[3, 1]], [[1, 2]]]}]}"#;
    let options = ImportOptions { dense_layers: Some(Vec::new()), ..ImportOptions::default() };
    let read =
        |text: String| import_bytes(Format::VllmJson, "a", text.as_bytes(), &options).unwrap();
    let lines = read(format!("{reply}\n{reply}\n"));
    assert_eq!(lines.sequences().len(), 2);
    assert_eq!(read(format!("[{reply}, {reply}]")).digest(), lines.digest());
}

#[test]
fn more_layers_than_any_model_has_are_refused() {
    let cells: String = (0..5000)
        .map(|layer| format!("\"{layer}\":[1]{}", if layer < 4999 { "," } else { "" }))
        .collect();
    let line = format!("{{\"experts\":{{{cells}}}}}\n");
    let refused = import_bytes(Format::Jsonl, "a", line.as_bytes(), &ImportOptions::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("5000 layers; at most 4096"), "{refused}");
}

#[test]
fn a_config_that_is_none_is_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    std::fs::write(&path, vec![b' '; (1 << 20) + 1]).unwrap();
    let options = ImportOptions { config: Some(path), ..ImportOptions::default() };
    let request = npy("|u1", "(2, 1, 1)", &[3, 1]);
    let refused = import_bytes(Format::Vllm, "a", &request, &options).unwrap_err().to_string();
    assert!(refused.contains("over 1 MiB"), "{refused}");
}
