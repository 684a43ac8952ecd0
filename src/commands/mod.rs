//! One file a command.

pub mod advise;
pub mod compare;
pub mod conform;
pub mod diff;
pub mod experiment;
pub mod install;
mod layers;
pub mod link;
mod link_fit;
mod link_price;
#[cfg(feature = "cuda")]
pub mod live;
pub mod machines;
pub mod plan;
mod plot;
pub mod policies;
pub mod replay;
mod request;
pub mod sweep;
pub mod trace;
pub mod verify_live;
pub mod verify_plan;

use std::path::Path;

use hotset::traces::{Detected, Error, Histogram, Trace, detect, histogram_refusal};

use crate::fault::Fault;
use crate::input::refuse_pipe;
use crate::session;

/// The trace that was named, else the bundled one, which 'bundled' names too.
fn open(path: Option<&Path>) -> Result<Trace, Fault> {
    if let Some(trace) = path.and_then(session::trace) {
        return Ok(trace);
    }
    let named = path.filter(|path| *path != Path::new("bundled") || path.exists());
    named.map_or(Ok(()), refuse_pipe)?;
    Ok(match named {
        Some(path) => Trace::open(path).map_err(|error| other_format(path, error))?,
        None => hotset::traces::bundled()?,
    })
}

/// What a file is that is no `.hst` file, and what to do with it.
fn other_format(path: &Path, error: Error) -> Fault {
    let name = path.display().to_string();
    match (&error, detect(path)) {
        (Error::NotHst { .. }, Some(Detected::Histogram(format))) => {
            Fault::Usage(histogram_refusal(&name, format.info().name))
        }
        (Error::NotHst { .. }, Some(Detected::Trace(format))) => {
            let from = format.info().name;
            Fault::Usage(format!(
                "{name}: not an .hst file but {from}: 'hotset trace import --from {from} {name} -o \
                 OUT.hst' makes one"
            ))
        }
        _ => error.into(),
    }
}

/// An engine's counts.
fn open_histogram(path: &Path) -> Result<Histogram, Fault> {
    refuse_pipe(path)?;
    match detect(path) {
        Some(Detected::Histogram(format)) => Ok(Histogram::read(format, &[path.to_owned()])?),
        _ => {
            let (file, path) = (std::fs::File::open(path), path.display().to_string());
            file.map_err(|reason| Fault::Read { path: path.clone(), reason })?;
            Err(Fault::Usage(format!("{path} is no histogram: see 'hotset trace info {path}'")))
        }
    }
}

/// Breaks a text into lines that leave the table within 80 columns.
fn wrap(text: &str) -> String {
    wrap_to(text, 50)
}

/// Breaks a text into lines of at most `width` bytes, where its words let it.
fn wrap_to(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
