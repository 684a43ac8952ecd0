//! `hotset compare`.

use hotset::sim::compare;

use super::request::{own_compute_warnings, request, with_threads};
use crate::cli::CompareArgs;
use crate::fault::{Ending, Fault};
use crate::progress::Bar;
use crate::{commands, output};

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.replay.trace.as_deref())?;
    let request = request(&args.replay, &args.capacity, &trace)?;
    let work = || compare(&trace, &request, &Bar::new());
    let report = with_threads(args.replay.threads, work)??;
    let mut output = hotset::reports::comparison(&report)?;
    output.warnings.extend(own_compute_warnings(&args.replay.time, &request.links));
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}
