//! `hotset compare`.

use hotset::sim::compare;

use super::plot;
use super::request::{give_priced, request, with_threads};
use crate::cli::CompareArgs;
use crate::commands;
use crate::fault::{Ending, Fault};
use crate::progress::Bar;

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.replay.trace.as_deref())?;
    let request = request(&args.replay, &args.capacity, &trace)?;
    let work = || compare(&trace, &request, &Bar::new());
    let report = with_threads(args.replay.threads, work)??;
    let output = hotset::reports::comparison(&report)?;
    plot::give(&output, args.plot.as_deref())?;
    give_priced(output, &args.replay.time, &request.links, &args.output)?;
    Ok(Ending::Passed)
}
