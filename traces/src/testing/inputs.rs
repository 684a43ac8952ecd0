//! A small input of every format, of our own data: what mutation tests and fuzzing begin with.
//!
//! All hold one routing: two requests of three and two tokens, two layers of eight experts, top-2.

use std::io::{Cursor, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{Format, HistogramFormat, ImportOptions};

/// Ids of the tokens: `[token][layer][rank]`.
pub const IDS: [[[u8; 2]; 2]; 5] =
    [[[3, 1], [0, 7]], [[1, 5], [7, 2]], [[6, 0], [2, 4]], [[2, 3], [1, 0]], [[3, 2], [5, 6]]];
/// Tokens of the two requests, and how many of each are prompt.
pub const REQUESTS: [(usize, usize); 2] = [(3, 2), (2, 1)];

/// The ids of a token in a layer.
pub fn cell(row: usize, layer: usize) -> [u8; 2] {
    IDS[row][layer]
}

/// Who reads an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// An importer of routes.
    Trace(Format),
    /// A reader of counts.
    Histogram(HistogramFormat),
}

/// The contents of a file.
#[derive(Debug, Clone)]
pub enum Contents {
    /// As they are.
    Plain(Vec<u8>),
    /// A zip of these entries.
    Zip(Vec<(String, Vec<u8>)>),
}

impl Contents {
    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Zip(entries) => zipped(entries),
        }
    }
}

/// An input, its reader and what the reader has to be told.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Who reads it.
    pub reader: Reader,
    /// What it holds.
    pub contents: Contents,
    /// The flags that it needs.
    pub options: ImportOptions,
}

/// A zip of stored entries.
pub fn zipped(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in entries {
        // Writing to memory does not fail; a name that is there twice is left out.
        if zip.start_file(name.as_str(), options).is_ok() {
            zip.write_all(bytes).ok();
        }
    }
    zip.finish().map(Cursor::into_inner).unwrap_or_default()
}

/// A `.pt` file of a pickle and storages named 0, 1, ...
pub fn torch_file(pickle: Vec<u8>, storages: Vec<Vec<u8>>) -> Contents {
    let mut entries =
        vec![("x/data.pkl".to_owned(), pickle), ("x/byteorder".to_owned(), b"little".to_vec())];
    let storages = storages.into_iter().enumerate();
    entries.extend(storages.map(|(key, bytes)| (format!("x/data/{key}"), bytes)));
    Contents::Zip(entries)
}

/// An `.npy` file.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    text.push_str(&" ".repeat(63 - (10 + text.len()) % 64));
    text.push('\n');
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), data].concat()
}

fn flat() -> Vec<u8> {
    IDS.as_flattened().as_flattened().to_vec()
}

fn wide<T, const N: usize>(ids: &[u8], bytes: impl Fn(u8) -> [T; N]) -> Vec<T> {
    ids.iter().flat_map(|&id| bytes(id)).collect()
}

/// A sample of every format.
pub fn samples() -> Vec<Sample> {
    let trace = |format, contents| Sample {
        reader: Reader::Trace(format),
        contents,
        options: ImportOptions::default(),
    };
    let plain = |format, text: String| trace(format, Contents::Plain(text.into_bytes()));
    let told = |sample: Sample, options: ImportOptions| Sample { options, ..sample };
    let count = |format, contents| Sample {
        reader: Reader::Histogram(format),
        contents,
        options: ImportOptions::default(),
    };
    let top_k = || ImportOptions { top_k: Some(2), ..ImportOptions::default() };
    let shape = || ImportOptions { layers: Some(2), ..top_k() };
    let prompts = ImportOptions { prompt_tokens: vec![2], ..ImportOptions::default() };
    let vllm = npy("|u1", "(5, 2, 2)", &flat());
    let vllm_i32 = npy("<i4", "(5, 2, 2)", &wide(&flat(), |id| i32::from(id).to_le_bytes()));
    vec![
        trace(Format::Npz, hotset_npz()),
        trace(Format::Npz, hf_npz()),
        trace(Format::Npy, Contents::Plain(vllm.clone())),
        plain(Format::Ids, "# a trace\n7\n0\n70000\n0\n7\n".to_owned()),
        trace(Format::Safetensors, Contents::Plain(safetensors())),
        plain(Format::Jsonl, jsonl()),
        told(trace(Format::Vllm, Contents::Plain(vllm)), prompts),
        trace(Format::Vllm, Contents::Plain(vllm_i32)),
        plain(Format::VllmJson, vllm_base64()),
        plain(Format::VllmJson, vllm_nested()),
        trace(Format::Sglang, sglang(true)),
        told(plain(Format::SglangJson, sglang_json()), shape()),
        trace(Format::Slime, slime()),
        trace(Format::Miles, miles()),
        told(plain(Format::LlamaPr28544, pr28544()), top_k()),
        plain(Format::LlamaCartaz, cartaz()),
        plain(Format::LlamaThecodacus, thecodacus()),
        plain(Format::LlamaNvmoe, llama_nvmoe()),
        plain(Format::LlamaEvalCallback, eval_callback()),
        plain(Format::Nvmoe, nvmoe()),
        plain(Format::Warp, warp()),
        plain(Format::Bigmoe, bigmoe()),
        plain(Format::Policylang, policylang()),
        plain(Format::Lattice, lattice()),
        count(HistogramFormat::Imatrix, Contents::Plain(imatrix())),
        count(HistogramFormat::SglangStat, sglang_stat()),
        count(HistogramFormat::SglangPerPass, sglang(false)),
        count(HistogramFormat::TensorrtLlm, Contents::Plain(tensorrt_llm())),
        count(HistogramFormat::MoeInfinity, Contents::Plain(moe_infinity())),
    ]
}

/// Request, place in it and phase of every token.
fn tokens() -> impl Iterator<Item = (usize, usize, usize, bool)> {
    let each = REQUESTS.iter().enumerate().flat_map(|(request, &(tokens, prompt))| {
        (0..tokens).map(move |place| (request, place, place < prompt))
    });
    each.enumerate().map(|(row, (request, place, prompt))| (row, request, place, prompt))
}

fn u32s(values: impl Iterator<Item = u32>) -> Vec<u8> {
    values.flat_map(u32::to_le_bytes).collect()
}

fn weights() -> Vec<u8> {
    (0..20).flat_map(|n| (1.0 / (1.0 + n as f32)).to_le_bytes()).collect()
}

fn hotset_npz() -> Contents {
    let info = br#"{"model": "m", "experts": 8, "sequence_labels": ["a", "b"], "doc": [4, null]}"#;
    let predicted: Vec<u8> = IDS.iter().flat_map(|token| [255, 255, token[1][0], 255]).collect();
    let arrays = [
        ("expert_ids", npy("|u1", "(5, 2, 2)", &flat())),
        ("sequence", npy("<u4", "(5,)", &u32s(tokens().map(|t| t.1 as u32)))),
        ("position", npy("<u4", "(5,)", &u32s(tokens().map(|t| t.2 as u32)))),
        ("phase", npy("|u1", "(5,)", &tokens().map(|t| u8::from(!t.3)).collect::<Vec<u8>>())),
        ("token_id", npy("<u4", "(5,)", &u32s(0..5))),
        ("expert_weights", npy("<f4", "(5, 2, 2)", &weights())),
        ("predicted_ids", npy("|u1", "(1, 5, 2, 2)", &predicted)),
        ("prompt_embedding_in", npy("<f2", "(2, 2)", &[1; 8])),
        ("prompt_embedding_out", npy("<f2", "(2, 2)", &[2; 8])),
        ("info", npy("|u1", &format!("({},)", info.len()), info)),
    ];
    Contents::Zip(arrays.map(|(name, bytes)| (format!("{name}.npy"), bytes)).to_vec())
}

fn hf_npz() -> Contents {
    let ids = wide(&flat(), |id| u16::from(id).to_le_bytes());
    let arrays = [
        ("topk_ids", npy("<u2", "(5, 2, 2)", &ids)),
        ("seq_id", npy("<i4", "(5,)", &u32s(tokens().map(|t| t.1 as u32)))),
        ("position", npy("<i4", "(5,)", &u32s(tokens().map(|t| t.2 as u32)))),
        ("is_decode", npy("|u1", "(5,)", &tokens().map(|t| u8::from(!t.3)).collect::<Vec<u8>>())),
        ("moe_layer_ids", npy("<i4", "(2,)", &u32s(3..5))),
    ];
    Contents::Zip(arrays.map(|(name, bytes)| (format!("{name}.npy"), bytes)).to_vec())
}

/// A file of these tensors.
fn tensors(list: &[(&str, &str, &[u64], Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), json!({ "model": "m", "top_k": "2" }));
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in list {
        let start = data.len();
        data.extend_from_slice(bytes);
        let offsets = [start, data.len()];
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
        header.insert((*name).to_owned(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

fn safetensors() -> Vec<u8> {
    let decode = tokens().map(|t| u8::from(!t.3)).collect();
    tensors(&[
        ("topk_ids", "U8", &[5, 2, 2], flat()),
        ("seq_id", "I32", &[5], u32s(tokens().map(|t| t.1 as u32))),
        ("position", "I32", &[5], u32s(tokens().map(|t| t.2 as u32))),
        ("is_decode", "U8", &[5], decode),
        ("topk_weights", "F32", &[5, 2, 2], weights()),
    ])
}

fn tensorrt_llm() -> Vec<u8> {
    let counts = |n: i64| (0..8).flat_map(|expert| (expert * n).to_le_bytes()).collect();
    tensors(&[
        ("7_0", "I64", &[8], counts(1)),
        ("7_1", "I64", &[8], counts(2)),
        ("8_0", "I64", &[8], counts(3)),
    ])
}

fn moe_infinity() -> Vec<u8> {
    let counts: Vec<u8> = (0..16).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    npy("<f8", "(1, 2, 8)", &counts)
}

fn jsonl() -> String {
    let mut text =
        "{\"type\": \"header\", \"model\": \"m\", \"num_experts\": 8, \"top_k\": 2}\n".to_owned();
    for (row, request, place, prompt) in tokens() {
        let phase = if prompt { "prefill" } else { "decode" };
        let [a, b] = IDS[row];
        let line = json!({
            "seq": request, "pos": place, "tok": row, "phase": phase, "step": row,
            "experts": { "3": a, "4": b }, "weights": { "3": [0.75, 0.25], "4": [0.5, 0.5] },
        });
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn vllm_base64() -> String {
    let reply = |rows: std::ops::Range<usize>| {
        let ids = IDS[rows.clone()].as_flattened().as_flattened();
        let array = npy("|u1", &format!("({}, 2, 2)", rows.len()), ids);
        let choice =
            json!({ "index": 0, "token_ids": [1, 2], "routed_experts": STANDARD.encode(array) });
        json!({ "model": "m", "choices": [choice] }).to_string()
    };
    format!("{}\n{}\n", reply(0..3), reply(3..5))
}

fn vllm_nested() -> String {
    json!({
        "model": "m", "prompt_routed_experts": IDS[..2], "usage": { "prompt_tokens": 2 },
        "choices": [{ "token_ids": [1, 2], "routed_experts": IDS[2..3] }],
    })
    .to_string()
}

fn sglang_json() -> String {
    let reply = |ids: &[[[u8; 2]; 2]]| {
        let raw = wide(ids.as_flattened().as_flattened(), |id| i32::from(id).to_le_bytes());
        let meta = json!({
            "prompt_tokens": ids.len() - 1, "completion_tokens": 2,
            "routed_experts": STANDARD.encode(raw),
        });
        json!({ "text": "x", "output_ids": [1, 2], "meta_info": meta }).to_string()
    };
    format!("{}\n{}\n", reply(&IDS[..3]), reply(&IDS[3..]))
}

/// Pieces of a pickle of protocol 2.
mod pickle {
    pub(super) fn whole(value: Vec<u8>) -> Vec<u8> {
        [b"\x80\x02", value.as_slice(), b"."].concat()
    }

    pub(super) fn int(value: i32) -> Vec<u8> {
        [b"J", &value.to_le_bytes()[..]].concat()
    }

    pub(super) fn text(value: &str) -> Vec<u8> {
        [b"X", &(value.len() as u32).to_le_bytes()[..], value.as_bytes()].concat()
    }

    pub(super) fn none() -> Vec<u8> {
        b"N".to_vec()
    }

    pub(super) fn list(values: &[Vec<u8>]) -> Vec<u8> {
        [b"](", values.concat().as_slice(), b"e"].concat()
    }

    pub(super) fn ints(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
        list(&values.into_iter().map(int).collect::<Vec<_>>())
    }

    pub(super) fn tuple(values: &[Vec<u8>]) -> Vec<u8> {
        [b"(", values.concat().as_slice(), b"t"].concat()
    }

    pub(super) fn dict(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let entries: Vec<u8> =
            entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()).collect();
        [b"}(", entries.as_slice(), b"u"].concat()
    }

    pub(super) fn call(module: &str, name: &str, arguments: &[Vec<u8>]) -> Vec<u8> {
        [format!("c{module}\n{name}\n").as_bytes(), &tuple(arguments), b"R"].concat()
    }

    /// A whole tensor of a storage.
    pub(super) fn tensor(kind: &str, key: usize, shape: &[i32]) -> Vec<u8> {
        let count: i32 = shape.iter().product();
        let kind = format!("ctorch\n{kind}\n").into_bytes();
        let id = [text("storage"), kind, text(&key.to_string()), text("cuda:0"), int(count)];
        let storage = [tuple(&id).as_slice(), b"Q"].concat();
        let strides: Vec<Vec<u8>> =
            (0..shape.len()).map(|axis| int(shape[axis + 1..].iter().product())).collect();
        let shape: Vec<Vec<u8>> = shape.iter().map(|&size| int(size)).collect();
        let hooks = call("collections", "OrderedDict", &[]);
        let arguments = [storage, int(0), tuple(&shape), tuple(&strides), b"\x89".to_vec(), hooks];
        call("torch._utils", "_rebuild_tensor_v2", &arguments)
    }
}

fn i32s(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// The recorder's file: one extend pass of both prompts, then one decode pass of both.
fn sglang(per_token: bool) -> Contents {
    let passes: [(&[usize], [i32; 2]); 2] = [(&[0, 1, 3], [2, 1]), (&[2, 4], [0, 0])];
    let (mut records, mut storages) = (Vec::new(), Vec::new());
    for (pass, (rows, extends)) in passes.iter().enumerate() {
        let positions =
            tokens().filter(|token| rows.contains(&token.0)).map(|token| token.2 as i32);
        let head = [
            ("forward_pass_id", pickle::int(pass as i32 + 1)),
            ("rank", pickle::int(0)),
            ("gatherer_key", pickle::text("primary")),
        ];
        let mut entries = head.to_vec();
        let key = storages.len();
        if per_token {
            let lens = if pass == 0 { pickle::ints(*extends) } else { pickle::none() };
            entries.extend([
                ("input_ids", pickle::ints(rows.iter().map(|&row| row as i32))),
                ("positions", pickle::ints(positions)),
                ("extend_seq_lens", lens),
                ("forward_mode", pickle::int(pass as i32 + 1)),
                (
                    "topk_ids_of_layer",
                    pickle::tensor("IntStorage", key, &[2, rows.len() as i32, 8]),
                ),
            ]);
            storages.push(i32s((0..2).flat_map(|layer| {
                rows.iter().flat_map(move |&row| {
                    (0..8).map(move |rank| cell(row, layer).get(rank).map_or(-1, |&id| id.into()))
                })
            })));
        } else {
            let counts = pickle::tensor("IntStorage", key, &[2, 8]);
            entries.push(("global_physical_count", counts));
            storages.push(i32s((0..2).flat_map(|layer| {
                (0..8u8).map(move |expert| {
                    let ids = rows.iter().flat_map(|&row| cell(row, layer));
                    ids.filter(|&id| id == expert).count() as i32
                })
            })));
        }
        records.push(pickle::dict(&entries));
    }
    let map = pickle::tensor("LongStorage", storages.len(), &[2, 8]);
    storages.push((0..16i64).flat_map(|place| (place % 8).to_le_bytes()).collect());
    let root = [("records", pickle::list(&records)), ("last_physical_to_logical_map", map)];
    torch_file(pickle::whole(pickle::dict(&root)), storages)
}

fn sglang_stat() -> Contents {
    let root = [
        ("rank", pickle::int(0)),
        ("logical_count", pickle::tensor("IntStorage", 0, &[2, 2, 8])),
        ("average_utilization_rate_over_window", pickle::none()),
    ];
    torch_file(pickle::whole(pickle::dict(&root)), vec![i32s(0..32)])
}

/// A rollout whose samples have these routes.
fn rollout(routes: impl Fn(usize, &[u8], i32) -> Vec<u8>, miles: bool) -> Vec<u8> {
    let mut at = 0;
    let samples = REQUESTS.iter().enumerate().map(|(index, &(tokens, prompt))| {
        let ids = IDS[at..at + tokens].as_flattened().as_flattened();
        at += tokens;
        pickle::dict(&[
            ("index", pickle::int(index as i32)),
            ("prompt", pickle::text("x")),
            ("tokens", pickle::ints(0..=tokens as i32)),
            ("response_length", pickle::int((tokens + 1 - prompt) as i32)),
            ("rollout_routed_experts", routes(index, ids, tokens as i32)),
        ])
    });
    let samples = pickle::list(&samples.collect::<Vec<_>>());
    let mut root = vec![("rollout_id", pickle::int(0)), ("samples", samples)];
    if miles {
        root.push(("metadata", b"}".to_vec()));
    }
    pickle::whole(pickle::dict(&root))
}

fn slime() -> Contents {
    let tensor = |key, _: &[u8], tokens| pickle::tensor("IntStorage", key, &[tokens, 2, 2]);
    let mut at = 0;
    let storages = REQUESTS.iter().map(|&(tokens, _)| {
        let ids = IDS[at..at + tokens].as_flattened().as_flattened();
        at += tokens;
        i32s(ids.iter().map(|&id| id.into()))
    });
    let storages = storages.collect();
    torch_file(rollout(tensor, false), storages)
}

fn miles() -> Contents {
    let array = |_, ids: &[u8], tokens| {
        let raw = wide(ids, |id| i32::from(id).to_le_bytes());
        let raw: String = raw.iter().map(|&byte| char::from(byte)).collect();
        let data = pickle::call("_codecs", "encode", &[pickle::text(&raw), pickle::text("latin1")]);
        let empty =
            [b"cnumpy\nndarray\n".to_vec(), pickle::tuple(&[pickle::int(0)]), pickle::text("b")];
        let array = pickle::call("numpy._core.multiarray", "_reconstruct", &empty);
        let arguments = [pickle::text("i4"), b"\x89".to_vec(), b"\x88".to_vec()];
        let dtype = pickle::call("numpy", "dtype", &arguments);
        let state = [pickle::int(3), pickle::text("<"), pickle::none()];
        let dtype = [dtype.as_slice(), &pickle::tuple(&state), b"b"].concat();
        let shape = pickle::tuple(&[pickle::int(tokens), pickle::int(2), pickle::int(2)]);
        let state = [pickle::int(1), shape, dtype, b"\x89".to_vec(), data];
        [array.as_slice(), &pickle::tuple(&state), b"b"].concat()
    };
    torch_file(rollout(array, true), Vec::new())
}

/// The passes of the first request: its prompt, then its generated token.
const PASSES: [std::ops::Range<usize>; 2] = [0..2, 2..3];

fn pr28544() -> String {
    let mut text = "layer,expert\n".to_owned();
    for rows in PASSES {
        for layer in 0..2 {
            for id in rows.clone().flat_map(|row| cell(row, layer)) {
                text.push_str(&format!("{layer},{id}\n"));
            }
        }
    }
    text
}

fn cartaz() -> String {
    let mut text = "phase,token,layer,rank,expert\n".to_owned();
    for (pass, rows) in PASSES.into_iter().enumerate() {
        let phase = ["prefill", "decode"][pass];
        for (layer, row) in (0..2).flat_map(|layer| rows.clone().map(move |row| (layer, row))) {
            for (rank, id) in cell(row, layer).iter().enumerate() {
                text.push_str(&format!("{phase},{row},{layer},{rank},{id}\n"));
            }
        }
    }
    text
}

fn thecodacus() -> String {
    let mut text = String::new();
    for rows in PASSES {
        for (layer, row) in (0..2).flat_map(|layer| rows.clone().map(move |row| (layer, row))) {
            let [a, b] = cell(row, layer);
            text.push_str(&format!("{},{layer},{a},{b}\n", row as i64 - 2));
        }
    }
    text
}

fn llama_nvmoe() -> String {
    let mut text = String::new();
    for rows in PASSES {
        for layer in 0..2 {
            let ids: Vec<[u8; 2]> = rows.clone().map(|row| cell(row, layer)).collect();
            text.push_str(&format!("{}\n", json!({ "l": layer, "t": ids.len(), "e": ids })));
        }
    }
    text
}

fn eval_callback() -> String {
    let mut text = String::new();
    for layer in 0..2 {
        text.push_str(&format!(
            "common_debug_cb_eval: ffn_moe_topk-{layer} = (i32) VIEW(ffn_moe_argsort-{layer}{{8, 3, \
             1, 1}}, }}) = {{2, 3, 1, 1}}\n    [\n        [\n"
        ));
        let mut sum = 0;
        for token in &IDS[..3] {
            let [a, b] = token[layer];
            sum += u32::from(a) + u32::from(b);
            text.push_str(&format!("            [ {a:>12}.0000, {b:>12}.0000  ],\n"));
        }
        text.push_str(&format!("        ],\n    ]\n    sum = {sum}.000000\n"));
    }
    text
}

fn nvmoe() -> String {
    let line = |token: &[[u8; 2]; 2]| {
        let pairs: Vec<(usize, u8)> =
            (0..2).flat_map(|layer| token[layer].map(|id| (layer + 1, id))).collect();
        format!("{}\n", json!(pairs))
    };
    IDS.iter().map(line).collect()
}

fn warp() -> String {
    let line = |(place, token)| format!("{}\n", json!({ "tok": place, "layers": token }));
    IDS.iter().enumerate().map(line).collect()
}

fn bigmoe() -> String {
    let mut text = "# route_trace v1\n# model=m.gguf arch=a n_layer=2 n_expert=8 n_expert_used=2\n\
                    # layer=0 expert_bytes=1000 dense_bytes=5\n\
                    turn,phase,step,layer,slot,expert,weight,residency,expert_bytes,dropped\n"
        .to_owned();
    for (pass, rows) in PASSES.into_iter().enumerate() {
        for (layer, row) in (0..2).flat_map(|layer| rows.clone().map(move |row| (layer, row))) {
            for (slot, id) in cell(row, layer).iter().enumerate() {
                text.push_str(&format!("0,{pass},{row},{layer},{slot},{id},0.5,0,1000,0\n"));
            }
        }
    }
    text
}

fn policylang() -> String {
    let header = json!({ "model_name": "m", "num_layers": 2, "num_experts": 8, "top_k": 2 });
    let mut text = format!("{header}\n");
    for (row, request, place, prompt) in tokens() {
        for (layer, ids) in IDS[row].iter().enumerate() {
            let phase = if prompt { "prefill" } else { "decode" };
            let cell = json!({
                "p": request, "t": place, "l": layer, "e": ids, "s": [0.75, 0.25], "ph": phase,
            });
            text.push_str(&format!("{cell}\n"));
        }
    }
    text
}

fn lattice() -> String {
    let mut text = String::new();
    for (row, _, place, _) in tokens() {
        for (layer, ids) in IDS[row].iter().enumerate() {
            let cell = json!({
                "layer_idx": layer, "token_idx": place, "selected_ids": ids,
                "gate_weights": [0.75, 0.25],
            });
            text.push_str(&format!("{cell}\n"));
        }
    }
    text
}

fn imatrix() -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(4u64.to_le_bytes());
    file.extend(3u64.to_le_bytes());
    file.extend([text("general.type"), 8u32.to_le_bytes().to_vec(), text("imatrix")].concat());
    for key in ["imatrix.chunk_count", "imatrix.chunk_size"] {
        let number = [4u32.to_le_bytes(), 2u32.to_le_bytes()].concat();
        file.extend([text(key), number].concat());
    }
    let names = (0..2).flat_map(|layer| {
        ["gate", "down"].map(|part| format!("blk.{layer}.ffn_{part}_exps.weight.counts"))
    });
    for (index, name) in names.enumerate() {
        file.extend(text(&name));
        file.extend(2u32.to_le_bytes());
        file.extend([1u64.to_le_bytes(), 8u64.to_le_bytes()].concat());
        file.extend(0u32.to_le_bytes());
        file.extend((32 * index as u64).to_le_bytes());
    }
    file.resize(file.len().next_multiple_of(32), 0);
    for layer in 0..2u8 {
        for _ in 0..2 {
            file.extend((0..8u8).flat_map(|expert| f32::from(expert + layer).to_le_bytes()));
        }
    }
    file
}
