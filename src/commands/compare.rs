//! `hotset compare`.

use hotset::experiments::lead;
use hotset::sim::compare_misses;

use super::plot;
use super::request::{give_priced, requests, with_threads};
use crate::cli::CompareArgs;
use crate::commands;
use crate::fault::{Ending, Fault};
use crate::progress::Bar;

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.replay.trace.as_deref())?;
    let requests = requests(&args.replay, &args.capacity, &trace)?;
    let work = || -> Result<_, Fault> {
        let report = compare_misses(&trace, &requests, &Bar::new())?;
        let lead = lead(&trace, &requests, &report, &Bar::new())?;
        Ok((report, lead))
    };
    let (report, lead) = with_threads(args.replay.threads, work)??;
    let output = hotset::reports::comparison(&report, lead.as_ref())?;
    plot::give(&output, args.plot.as_deref())?;
    let links = requests.first().map_or(&[][..], |request| &request.value.links);
    give_priced(output, &args.replay.time, links, &args.output)?;
    Ok(Ending::Passed)
}
