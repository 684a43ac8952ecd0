//! A small input of every format, of our own data: what mutation tests and fuzzing begin with.
//!
//! All hold one routing: two requests of three and two tokens, two layers of eight experts, top-2.

mod arrays;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod tables;
mod text;
mod torch;

use std::io::{Cursor, Write};
use std::sync::OnceLock;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{
    Error, Format, Histogram, HistogramFormat, ImportOptions, Result, Trace, import, import_bytes,
};

pub use crate::import::FuzzTarget;

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
    /// A folder of these files; a name may have folders in it.
    Folder(Vec<(String, Vec<u8>)>),
}

impl Contents {
    /// The file's bytes; of a folder those of all files.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Zip(entries) => zipped(entries),
            Self::Folder(files) => files.iter().flat_map(|(_, bytes)| bytes).copied().collect(),
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

impl Sample {
    /// Reads contents as this sample's are read: the trace, or none where they are counts.
    ///
    /// # Errors
    /// What the reader refuses.
    pub fn read(&self, contents: &Contents) -> Result<Option<Trace>> {
        let whole;
        let bytes = match contents {
            Contents::Plain(bytes) => bytes,
            Contents::Zip(entries) => {
                whole = zipped(entries);
                &whole
            }
            Contents::Folder(files) => return self.read_folder(files).map(Some),
        };
        match self.reader {
            Reader::Trace(format) => import_bytes(format, "x", bytes, &self.options).map(Some),
            Reader::Histogram(format) => Histogram::from_bytes(format, "x", bytes).map(|_| None),
        }
    }

    fn read_folder(&self, files: &[(String, Vec<u8>)]) -> Result<Trace> {
        let io = |e| Error::io("write", std::env::temp_dir(), e);
        let folder = tempfile::tempdir().map_err(io)?;
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(io)?;
            std::fs::write(&path, bytes).map_err(io)?;
        }
        let Reader::Trace(format) = self.reader else {
            return Err(Error::import(folder.path(), "folder", "holds no counts"));
        };
        import(format, folder.path(), &self.options)
    }

    /// The fuzzing target that mutates it.
    pub fn target(&self) -> FuzzTarget {
        match self.reader {
            Reader::Trace(format) => format.info().fuzz,
            Reader::Histogram(format) => format.info().fuzz,
        }
    }

    /// The name of the format.
    pub fn name(&self) -> &'static str {
        match self.reader {
            Reader::Trace(format) => format.info().name,
            Reader::Histogram(format) => format.info().name,
        }
    }
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

/// The samples that a fuzzing target mutates. The first byte of its inputs says whose reader gets
/// the rest.
pub fn fuzzed(target: FuzzTarget) -> Vec<Sample> {
    samples().into_iter().filter(|sample| sample.target() == target).collect()
}

/// One input of a fuzzing target.
pub fn fuzz(target: FuzzTarget, input: &[u8]) {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| fuzzed(target));
    let Some((&first, file)) = input.split_first() else { return };
    let Some(sample) = samples.get(usize::from(first) % samples.len().max(1)) else { return };
    let contents = if target == FuzzTarget::Unpickler {
        // With a few storages for its tensors.
        torch_file(file.to_vec(), (0..4u8).map(|n| [n, 0, 0, 0].repeat(64)).collect())
    } else {
        Contents::Plain(file.to_vec())
    };
    sample.read(&contents).ok();
}

/// The inputs with which a fuzzing target begins: its samples, each behind its number.
pub fn corpus(target: FuzzTarget) -> Vec<Vec<u8>> {
    let behind = |(number, sample): (usize, Sample)| {
        let bytes = match &sample.contents {
            Contents::Zip(entries) if target == FuzzTarget::Unpickler => entries[0].1.clone(),
            contents => contents.bytes(),
        };
        [&[number as u8][..], &bytes].concat()
    };
    fuzzed(target).into_iter().enumerate().map(behind).collect()
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
    let all = vec![
        trace(Format::Npz, arrays::hotset_npz()),
        trace(Format::Npz, arrays::hf_npz()),
        trace(Format::Npy, Contents::Plain(vllm.clone())),
        plain(Format::Ids, "# a trace\n7\n0\n70000\n0\n7\n".to_owned()),
        trace(Format::Safetensors, Contents::Plain(arrays::safetensors())),
        plain(Format::Jsonl, text::jsonl()),
        told(trace(Format::Vllm, Contents::Plain(vllm)), prompts),
        trace(Format::Vllm, Contents::Plain(vllm_i32)),
        plain(Format::VllmJson, text::vllm_base64()),
        plain(Format::VllmJson, text::vllm_nested()),
        trace(Format::Sglang, torch::sglang(true)),
        told(plain(Format::SglangJson, text::sglang_json()), shape()),
        trace(Format::Slime, torch::slime()),
        trace(Format::Miles, torch::miles()),
        told(plain(Format::LlamaPr28544, text::pr28544()), top_k()),
        plain(Format::LlamaCartaz, text::cartaz()),
        plain(Format::LlamaThecodacus, text::thecodacus()),
        plain(Format::LlamaNvmoe, text::llama_nvmoe()),
        plain(Format::LlamaEvalCallback, text::eval_callback()),
        plain(Format::Nvmoe, text::nvmoe()),
        plain(Format::Warp, text::warp()),
        plain(Format::Bigmoe, text::bigmoe()),
        plain(Format::Policylang, text::policylang()),
        plain(Format::Lattice, text::lattice()),
        plain(Format::Columns, text::columns_jsonl()),
        plain(Format::Columns, text::columns_csv()),
        trace(Format::Arrays, tables::layer_arrays()),
        trace(Format::Arrays, Contents::Plain(tables::padded_array())),
        told(trace(Format::Arrays, Contents::Plain(tables::scores())), top_k()),
        told(trace(Format::Arrays, torch::router_logits()), top_k()),
        told(trace(Format::Esft, tables::esft()), top_k()),
        plain(Format::ColiRoute, tables::coli_route()),
        trace(Format::LlamaMoeStream, Contents::Plain(tables::moe_stream())),
        plain(Format::Dynamo, tables::dynamo()),
        plain(Format::NestedJson, tables::router_data()),
        plain(Format::NestedJson, tables::activations()),
        plain(Format::NestedJson, tables::forwards()),
        plain(Format::NestedJson, tables::layer_lists()),
        told(plain(Format::NestedJson, tables::bare_lists()), shape()),
        count(HistogramFormat::Imatrix, Contents::Plain(arrays::imatrix())),
        count(HistogramFormat::SglangStat, torch::sglang_stat()),
        count(HistogramFormat::SglangPerPass, torch::sglang(false)),
        count(HistogramFormat::TensorrtLlm, Contents::Plain(arrays::tensorrt_llm())),
        count(HistogramFormat::MoeInfinity, Contents::Plain(arrays::moe_infinity())),
        count(HistogramFormat::Columns, Contents::Plain(text::counts_csv().into_bytes())),
        count(HistogramFormat::Json, Contents::Plain(text::counts_json().into_bytes())),
        count(HistogramFormat::ColiUsage, Contents::Plain(text::coli_usage().into_bytes())),
        count(HistogramFormat::Moeprof, Contents::Plain(text::moeprof().into_bytes())),
        count(HistogramFormat::ArrayCounts, torch::expert_load()),
    ];
    #[cfg(feature = "parquet")]
    let all = [all, parquet::samples()].concat();
    all
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
