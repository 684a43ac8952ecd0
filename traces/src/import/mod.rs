//! Importers: one file a format, one registry.
//!
//! Each makes a [`Trace`] from files that another program wrote. To add one: a file here with its
//! `INFO` (how to tell its files, how to read them, who fuzzes it) and a line in `registry.rs`; a
//! sample in `testing/inputs` joins it to the tests of all formats.

mod array;
mod arrays;
mod batch;
mod bigmoe;
mod coli_route;
mod collect;
mod decode;
mod detect;
mod documents;
mod dynamo;
mod element;
mod esft;
mod eval_callback;
mod flame;
mod folder;
mod hf;
pub mod histogram;
mod id_spool;
mod ids;
mod info;
mod input;
mod jsonl;
mod lattice;
mod layers;
mod lines;
mod llama_csv;
mod llama_nvmoe;
mod lookalikes;
mod moe_stream;
mod named;
mod nested;
mod nested_json;
mod npy;
mod npz;
mod nvmoe;
mod options;
mod parquet;
mod pickle;
mod policylang;
mod predictions;
mod registry;
mod rollout;
mod safetensors;
mod sglang;
mod sglang_chain;
mod sglang_json;
mod sniff;
mod tables;
#[cfg(test)]
mod tests;
mod token_arrays;
mod torch;
mod vllm;
mod vllm_json;
mod vllm_reply;
mod warp;

use std::path::{Path, PathBuf};

use self::collect::Collector;
use self::folder::expand;
use self::info::{FormatInfo, Importer};
pub(crate) use self::input::Input;
use crate::error::{Error, Result};
use crate::trace::Trace;

pub use detect::{Detected, detect, recognise, recognise_with};
pub use info::FuzzTarget;
pub use input::ReadProgress;
pub use options::{ColumnName, ImportOptions};
pub(crate) use registry::giving;
pub use registry::{Format, formats};

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
    progress: &dyn ReadProgress,
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
    if given > 0 && !info.takes_prompt_tokens {
        let takes = formats().iter().filter(|info| info.takes_prompt_tokens);
        let takes: Vec<&str> = takes.map(|info| info.name).collect();
        let (name, takes) = (info.name, takes.join(", "));
        let problem = format!("{name} has no use for them; {takes} take them: leave them out");
        return Err(Error::import(first.path(), "`ImportOptions::prompt_tokens`", problem));
    }
    let bytes = inputs.iter().map(Input::size).sum();
    let mut collector = Collector::new(options, bytes)?;
    match info.importer {
        Importer::All(all) | Importer::Parts(all) => all(inputs, &mut collector)?,
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
        return Err(Error::import(first.path(), "`ImportOptions::prompt_tokens`", problem));
    }
    Ok(Imported { trace, notes })
}
