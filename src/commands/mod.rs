//! One file a command.

pub mod compare;
pub mod link;
pub mod policies;
pub mod trace;

use std::path::Path;

use hotset::traces::Trace;

use crate::fault::Fault;

/// The trace that was named, else the bundled one.
fn open(path: Option<&Path>) -> Result<Trace, Fault> {
    Ok(match path {
        Some(path) => Trace::open(path)?,
        None => hotset::traces::bundled()?,
    })
}
