//! `hotset trace import`.

use std::path::Path;

use hotset::policies::nearest;
use hotset::traces::{
    Detected, Format, ImportOptions, Imported, Trace, formats, histogram_formats, import_files,
    input_bytes, recognise_with, temporary_folder,
};

use crate::cli::{ImportArgs, LayerList, ReadArgs};
use crate::fault::{Ending, Fault};
use crate::flags::with_flags;
use crate::output::Stoppable;
use crate::progress::Bytes;
use crate::{interrupt, session};

/// Imports files as one trace and writes it as `.hst`.
pub fn import(args: &ImportArgs) -> Result<Ending, Fault> {
    let trace = read(args)?;
    let stop = Stoppable::begin();
    stop.go_on(&args.output)?;
    super::write(&trace, &args.output, args.zstd, &stop)?;
    Ok(Ending::Passed)
}

/// Reads the files as one trace.
pub fn read(args: &ImportArgs) -> Result<Trace, Fault> {
    let options = options(&args.read, &args.output)?;
    let format = match &args.read.from {
        Some(name) => named(name)?,
        None => told(&args.input, &options)?,
    };
    let bar = Bytes::new(input_bytes(format, &args.input)?);
    let Imported { trace, notes } = import_files(format, &args.input, &options, &bar)?;
    drop(bar);
    // Who was interrupted hears nothing of a trace that is not written.
    if interrupt::requested() {
        return Err(Fault::Interrupted);
    }
    for note in notes {
        session::note(format!("note: {}", with_flags(&note)));
    }
    Ok(trace)
}

/// What a person says of the files to read; columns that outgrow memory are kept beside `output`.
fn options(args: &ReadArgs, output: &Path) -> Result<ImportOptions, Fault> {
    // There must be room for the trace there anyway; the system's folder may be in memory.
    Ok(ImportOptions { temporary: Some(temporary_folder(output)), ..args.options()? })
}

impl ReadArgs {
    /// The same for a library.
    pub(super) fn options(&self) -> Result<ImportOptions, Fault> {
        // One of the two would be without effect.
        if self.phase.is_some() && !self.prompt_tokens.is_empty() {
            return Err(Fault::Usage(
            "--phase gives all tokens one phase, --prompt-tokens tells prompts from answers: give \
             one of them"
                .to_owned(),
        ));
        }
        let list = |list: &Option<LayerList>| list.as_ref().map(|list| list.0.clone());
        Ok(ImportOptions {
            experts: self.experts,
            top_k: self.top_k,
            layers: self.layers,
            dense_layers: list(&self.dense_layers),
            skip_layers: list(&self.skip_layers).unwrap_or_default(),
            config: self.config.clone(),
            prompt_tokens: self.prompt_tokens.clone(),
            expert_bytes: self.expert_size,
            name: self.name.clone(),
            phase: self.phase.map(Into::into),
            columns: self.columns.clone(),
            temporary: None,
        })
    }
}

pub(super) fn named(name: &str) -> Result<Format, Fault> {
    if let Some(format) = Format::from_name(name) {
        return Ok(format);
    }
    if histogram_formats().iter().any(|info| info.name == name) {
        return Err(Fault::Usage(hotset::traces::histogram_refusal("such a file", name)));
    }
    let known = || formats().iter().map(|info| info.name);
    let near = nearest(name, known()).map(|near| format!("did you mean '{near}'? "));
    Err(Fault::Usage(format!(
        "there is no format '{name}'; {}formats: {}",
        near.unwrap_or_default(),
        known().collect::<Vec<_>>().join(" ")
    )))
}

/// The format that all inputs have, by their contents.
fn told(inputs: &[std::path::PathBuf], options: &ImportOptions) -> Result<Format, Fault> {
    let mut found = None;
    for path in inputs {
        let name = path.display();
        let say = |problem: String| Err(Fault::Usage(format!("{name}: {problem}")));
        if std::fs::metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return say("there is no such file".to_owned());
        }
        let format = match recognise_with(path, options)? {
            Some(Detected::Trace(format)) => format,
            Some(Detected::Histogram(format)) => {
                let name = name.to_string();
                let refusal = hotset::traces::histogram_refusal(&name, format.info().name);
                return Err(Fault::Usage(refusal));
            }
            Some(Detected::Hst) => return say("is an .hst file already".to_owned()),
            _ => {
                return say(
                    "its format cannot be told by its contents: give --from (see 'hotset trace \
                     import --help')"
                        .to_owned(),
                );
            }
        };
        if let Some(before) = found.replace(format).filter(|&before| before != format) {
            let (before, now) = (Format::info(before).name, format.info().name);
            return say(format!(
                "is {now}, the inputs before it {before}; one trace has one format"
            ));
        }
    }
    let format = found.ok_or_else(|| Fault::Usage("no input".to_owned()))?;
    session::note(format!("format: {}", format.info().name));
    Ok(format)
}
