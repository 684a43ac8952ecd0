//! Importing on one thread: a bare array of one byte an id, one of four, JSON lines (a token a line, and a
//! token and layer a line by named columns) and `.hst`, each beside a plain read of the same file and the
//! counting of its lines, as `wc -l` does. What a ratio says: how many such passes it costs.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use hotset_traces::testing::inputs::npy;
use hotset_traces::{Codec, Format, ImportOptions, Trace, import, import_files, write_hst};

const LAYERS: usize = 48;
const TOP_K: usize = 8;
const EXPERTS: usize = 128;

/// Ids of so many tokens: eight of 128 in each layer, none twice.
fn ids(tokens: usize) -> Vec<u8> {
    let mut ids = Vec::with_capacity(tokens * LAYERS * TOP_K);
    for token in 0..tokens {
        for layer in 0..LAYERS {
            let start = token * 37 + layer * 11 + (token >> 3) * 5;
            ids.extend((0..TOP_K).map(|rank| ((start + rank * 13) % EXPERTS) as u8));
        }
    }
    ids
}

fn jsonl(ids: &[u8]) -> String {
    let mut text = String::new();
    for (token, row) in ids.chunks_exact(LAYERS * TOP_K).enumerate() {
        let _ =
            write!(text, "{{\"seq\": 0, \"pos\": {token}, \"phase\": \"decode\", \"experts\": {{");
        for (layer, ids) in row.chunks_exact(TOP_K).enumerate() {
            let comma = if layer == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}\"{layer}\": {ids:?}");
        }
        text.push_str("}}\n");
    }
    text
}

/// One token and layer a line, with weights, as people log them.
fn named(ids: &[u8]) -> String {
    let weights = [0.3071, 0.2214, 0.1437, 0.1102, 0.0816, 0.0641, 0.0422, 0.0297];
    let mut text = String::new();
    for (row, ids) in ids.chunks_exact(TOP_K).enumerate() {
        let (token, layer) = (row / LAYERS, row % LAYERS);
        let _ = writeln!(
            text,
            "{{\"token\": {token}, \"layer\": {layer}, \"topk_ids\": {ids:?}, \"topk_weights\": {weights:?}}}"
        );
    }
    text
}

/// Line ends of a file, read in pieces of a MiB.
fn lines_of(path: &Path) -> usize {
    let mut buffer = vec![0; 1 << 20];
    let mut file = std::fs::File::open(path).expect("the file is there");
    let mut lines = 0;
    loop {
        match file.read(&mut buffer).expect("the file can be read") {
            0 => return lines,
            read => lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}

fn speeds(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("no pool was built yet");
    let testing = std::env::args().any(|argument| argument == "--test");
    let tokens = if testing { 40 } else { 600_000 };
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let path = |name: &str| folder.path().join(name);
    let ids = ids(tokens);
    let shape = format!("({tokens}, {LAYERS}, {TOP_K})");
    let write = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).expect("there is room");
    let (u8, i32, json, hst) = (path("u8.npy"), path("i32.npy"), path("x.jsonl"), path("x.hst"));
    let columns = path("columns.jsonl");
    write(&columns, named(&ids[..ids.len() / 16]).as_bytes());
    write(&u8, &npy("|u1", &shape, &ids));
    let part = &ids[..ids.len() / 4];
    let wide: Vec<u8> = part.iter().flat_map(|&id| i32::from(id).to_le_bytes()).collect();
    write(&i32, &npy("<i4", &format!("({}, {LAYERS}, {TOP_K})", tokens / 4), &wide));
    write(&json, jsonl(&ids[..ids.len() / 8]).as_bytes());
    let trace = import(Format::Npy, &u8, &ImportOptions::default()).expect("it is sound");
    write_hst(&trace, &hst, Codec::Raw).expect("there is room");
    drop(trace);

    for (name, format, path) in [
        ("npy-u8", Some(Format::Npy), &u8),
        ("npy-i32", Some(Format::Vllm), &i32),
        ("jsonl", Some(Format::Jsonl), &json),
        ("jsonl-columns", Some(Format::Columns), &columns),
        ("hst", None, &hst),
    ] {
        measure(criterion, name, format, path, &path_of(&folder, "out.hst"));
    }
}

fn path_of(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

fn measure(criterion: &mut Criterion, name: &str, format: Option<Format>, path: &Path, out: &Path) {
    let bytes = std::fs::metadata(path).expect("it was just written").len();
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::BytesDecimal(bytes));
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.bench_function("limit-read", |bencher| {
        let mut buffer = vec![0; 1 << 20];
        bencher.iter(|| {
            let mut file = std::fs::File::open(path).expect("the file is there");
            while file.read(&mut buffer).expect("the file can be read") > 0 {
                black_box(&buffer);
            }
        });
    });
    group.bench_function("limit-lines", |bencher| bencher.iter(|| lines_of(path)));
    let options = ImportOptions::default();
    let paths = [path.to_owned()];
    match format {
        Some(format) => {
            group.bench_function("import", |bencher| {
                bencher.iter(|| import_files(format, &paths, &options, &()).expect("it is sound"));
            });
            group.bench_function("import-and-write", |bencher| {
                bencher.iter(|| {
                    let all = import_files(format, &paths, &options, &()).expect("it is sound");
                    write_hst(&all.trace, out, Codec::Raw).expect("there is room");
                });
            });
        }
        None => {
            group.bench_function("import", |bencher| {
                bencher.iter(|| Trace::open(path).expect("it is sound"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, speeds);
criterion_main!(benches);
