//! Importers: one file a format, one registry.
//!
//! Each makes a [`Trace`] from files that another program wrote. To add one: a file here with its
//! `INFO` and a function that gives rows to the `Collector`, a [`Format`], a line in `REGISTRY`,
//! its test.

mod array;
mod arrays;
mod batch;
mod bigmoe;
mod collect;
mod detect;
mod documents;
mod eval_callback;
mod flame;
mod hf;
pub mod histogram;
mod id_spool;
mod ids;
mod input;
mod jsonl;
mod lattice;
mod layers;
mod lines;
mod llama_csv;
mod llama_nvmoe;
mod nested;
mod npy;
mod npz;
mod nvmoe;
mod options;
mod parquet;
mod pickle;
mod policylang;
mod predictions;
mod rollout;
mod safetensors;
mod sglang;
mod sglang_chain;
mod sglang_json;
#[cfg(test)]
mod tests;
mod torch;
mod vllm;
mod vllm_json;
mod vllm_reply;
mod warp;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::collect::Collector;
pub(crate) use self::input::Input;
use crate::error::{Error, Result};
use crate::trace::Trace;

pub use detect::{Detected, detect, recognise};
pub use input::Progress;
pub use options::ImportOptions;

/// A format that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `hotset-npz/1`, or the arrays of a Hugging Face recording.
    Npz,
    /// A bare array of ids.
    Npy,
    /// One integer a line.
    Ids,
    /// The arrays of [`Format::Npz`] as safetensors.
    Safetensors,
    /// One token a line, experts by layer.
    Jsonl,
    /// One row a token and layer.
    Parquet,
    /// vLLM's `routed_experts`, one array a request.
    Vllm,
    /// vLLM's HTTP replies.
    VllmJson,
    /// SGLang's recorder, mode `per_token`.
    Sglang,
    /// SGLang's `/generate` replies.
    SglangJson,
    /// slime's rollouts.
    Slime,
    /// miles' rollouts.
    Miles,
    /// llama.cpp, pull request 28544.
    LlamaPr28544,
    /// llama.cpp, Cartaz' fork.
    LlamaCartaz,
    /// llama.cpp, thecodacus' fork.
    LlamaThecodacus,
    /// llama.cpp, nvmoe's raw records.
    LlamaNvmoe,
    /// The text of llama.cpp's eval-callback.
    LlamaEvalCallback,
    /// nvmoe's tokens.
    Nvmoe,
    /// warp's tokens.
    Warp,
    /// BigMoeOnEdge's route trace.
    Bigmoe,
    /// moe-policylang's recorder.
    Policylang,
    /// lattice-inference's routing trace.
    Lattice,
    /// FLAME-MoE's traces.
    FlameMoe,
}

/// What the registry knows of a format.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FormatInfo {
    /// The name for `--from`.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// The trace columns that it gives, where its input has them.
    pub columns: &'static [&'static str],
    #[serde(skip)]
    extensions: &'static [&'static str],
    #[serde(skip)]
    format: Format,
    #[serde(skip)]
    importer: Importer,
}

/// How an importer takes its inputs.
#[derive(Debug, Clone, Copy)]
enum Importer {
    /// One after another; a folder stands for the files in it.
    Each(fn(&Input<'_>, &mut Collector<'_>) -> Result<()>),
    /// All at once: they are parts of one recording.
    All(fn(&[Input<'_>], &mut Collector<'_>) -> Result<()>),
    /// One after another, each a folder.
    Folder(fn(&Input<'_>, &mut Collector<'_>) -> Result<()>),
}

const REGISTRY: &[FormatInfo] = &[
    npz::INFO,
    npy::INFO,
    ids::INFO,
    safetensors::INFO,
    jsonl::INFO,
    parquet::INFO,
    vllm::INFO,
    vllm_json::INFO,
    sglang::INFO,
    sglang_json::INFO,
    rollout::SLIME,
    rollout::MILES,
    llama_csv::PR28544,
    llama_csv::CARTAZ,
    llama_csv::THECODACUS,
    llama_nvmoe::INFO,
    eval_callback::INFO,
    nvmoe::INFO,
    warp::INFO,
    bigmoe::INFO,
    policylang::INFO,
    lattice::INFO,
    flame::INFO,
];

/// Why Parquet is not read.
#[cfg(not(feature = "parquet"))]
const NO_PARQUET: &str = "this build reads no Parquet: build hotset with --features parquet";

/// All formats, in the order in which they are listed to people.
pub fn formats() -> &'static [FormatInfo] {
    REGISTRY
}

impl FormatInfo {
    /// The format itself.
    pub fn format(&self) -> Format {
        self.format
    }
}

impl Format {
    /// The format of that name; see [`formats`] for the names.
    pub fn from_name(name: &str) -> Option<Self> {
        REGISTRY.iter().find(|info| info.name == name).map(|info| info.format)
    }

    /// Whether it takes [`ImportOptions::prompt_tokens`]: its rows are requests that do not say
    /// where their prompts end. Other formats say so, or have no requests.
    pub fn takes_prompt_tokens(self) -> bool {
        matches!(self, Self::Vllm | Self::VllmJson | Self::SglangJson)
    }

    /// What the registry knows of it.
    pub fn info(self) -> &'static FormatInfo {
        let info = REGISTRY.iter().find(|info| info.format == self);
        // A test walks all formats.
        info.unwrap_or(&REGISTRY[0])
    }
}

/// An imported trace, and what the one who asked for it should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The trace.
    pub trace: Trace,
    /// What was left out or assumed, in words; also in the trace's provenance.
    pub notes: Vec<String>,
}

/// Imports a file.
///
/// # Errors
/// [`crate::Error::Io`]; [`crate::Error::Import`] naming the array or line; the errors of
/// [`crate::TraceBuilder::build`] for values that no trace may have.
pub fn import(format: Format, path: impl AsRef<Path>, options: &ImportOptions) -> Result<Trace> {
    let paths = [path.as_ref().to_owned()];
    import_files(format, &paths, options, &()).map(|imported| imported.trace)
}

/// Imports several files or folders as one trace, in that order; of a folder all files with the
/// format's extensions are taken, `part2` before `part10`. Memory does not grow with their size:
/// columns that outgrow a few MiB are kept in unnamed files meanwhile.
///
/// # Errors
/// As [`import`].
pub fn import_files(
    format: Format,
    paths: &[PathBuf],
    options: &ImportOptions,
    progress: &dyn Progress,
) -> Result<Imported> {
    let info = format.info();
    let paths = expand(info, paths)?;
    let inputs: Vec<Input<'_>> = paths.iter().map(|path| Input::file(path, progress)).collect();
    run(info, &inputs, options)
}

/// Bytes that [`import_files`] is going to read, as far as the files' sizes tell.
///
/// # Errors
/// A file or folder that is not there.
pub fn input_bytes(format: Format, paths: &[PathBuf]) -> Result<u64> {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    Ok(expand(format.info(), paths)?.iter().map(size).sum())
}

/// Imports bytes that lie in memory, as if they were a file of that name.
///
/// # Errors
/// As [`import`].
pub fn import_bytes(
    format: Format,
    name: impl AsRef<Path>,
    bytes: &[u8],
    options: &ImportOptions,
) -> Result<Trace> {
    let input = Input::bytes(name.as_ref(), bytes);
    run(format.info(), &[input], options).map(|imported| imported.trace)
}

fn run(info: &FormatInfo, inputs: &[Input<'_>], options: &ImportOptions) -> Result<Imported> {
    let Some(first) = inputs.first() else {
        return Err(Error::import(Path::new(info.name), "inputs", "none was named"));
    };
    let given = options.prompt_tokens.len();
    if given > 0 && !info.format.takes_prompt_tokens() {
        let takes = REGISTRY.iter().filter(|info| info.format.takes_prompt_tokens());
        let takes: Vec<&str> = takes.map(|info| info.name).collect();
        let (name, takes) = (info.name, takes.join(", "));
        let problem = format!("{name} has no use for them; {takes} take them: leave them out");
        return Err(Error::import(first.path(), "--prompt-tokens", problem));
    }
    let bytes = inputs.iter().map(Input::size).sum();
    let mut collector = Collector::new(options, bytes)?;
    match info.importer {
        Importer::All(all) => all(inputs, &mut collector)?,
        Importer::Each(each) | Importer::Folder(each) => {
            inputs.iter().try_for_each(|input| each(input, &mut collector))?;
        }
    }
    let (trace, notes) = collector.finish(info.name, first.path())?;
    let requests = trace.sequences().len();
    if given > 1 && given != requests {
        let problem = format!(
            "{given} numbers for {requests} requests: give one for each, or one that stands for \
             all"
        );
        return Err(Error::import(first.path(), "--prompt-tokens", problem));
    }
    Ok(Imported { trace, notes })
}

/// Files that lie beside ids and are not ids.
const BESIDE: [&str; 2] = ["weights_bf16.npy", "weights.npy"];

/// Folders as the files in them.
fn expand(info: &FormatInfo, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() || matches!(info.importer, Importer::Folder(_)) {
            all.push(path.clone());
            continue;
        }
        let io = |e| Error::io("read the folder", path, e);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io)? {
            let file = entry.map_err(io)?.path();
            let extension = file.extension().and_then(|text| text.to_str()).unwrap_or_default();
            let beside = BESIDE.iter().any(|name| file.ends_with(name));
            if file.is_file() && !beside && info.extensions.contains(&extension) {
                files.push(file);
            }
        }
        if files.is_empty() {
            let wanted = info.extensions.join(", .");
            return Err(Error::import(
                path,
                "folder",
                format!("has no file that ends in .{wanted}"),
            ));
        }
        files.sort_by_cached_key(|file| natural(&file.to_string_lossy()));
        all.extend(files);
    }
    Ok(all)
}

/// A key by which numbers in names are compared as numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        key.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    key
}

/// The importers that give a column.
pub(crate) fn giving(column: &str) -> Vec<&'static str> {
    REGISTRY.iter().filter(|info| info.columns.contains(&column)).map(|info| info.name).collect()
}
