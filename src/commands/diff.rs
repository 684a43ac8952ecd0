//! `hotset diff`: exit code 1 where two results differ.

use std::path::Path;

use hotset::reports::{diff, difference, read_result};
use serde_json::Value;

use crate::cli::DiffArgs;
use crate::fault::{Ending, Fault};
use crate::input::read_bytes;
use crate::output;

/// No result of a command is longer.
const MOST_RESULT_BYTES: u64 = 1 << 30;

/// Reads both results and tells what changed.
pub fn run(args: &DiffArgs) -> Result<Ending, Fault> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let [name, other] = [&args.before, &args.after].map(|path| path.display().to_string());
    let found = diff((&name, &before), (&other, &after), args.tolerance)?;
    output::give(&difference(&found)?, &args.output)?;
    Ok(if found.same { Ending::Passed } else { Ending::Failed })
}

fn read(path: &Path) -> Result<Value, Fault> {
    let bytes = read_bytes(path, MOST_RESULT_BYTES)?;
    Ok(read_result(&path.display().to_string(), &bytes)?)
}
