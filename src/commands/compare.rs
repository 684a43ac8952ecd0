//! `hotset compare`.

use hotset::sim::compare;

use super::request::{request, with_threads};
use crate::cli::CompareArgs;
use crate::fault::{Ending, Fault};
use crate::progress::Bar;
use crate::{commands, output};

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.replay.trace.as_deref())?;
    let request = request(&args.replay, &args.capacity, &trace)?;
    let work = || compare(&trace, &request, &Bar::new());
    let mut report = with_threads(args.replay.threads, work)??;
    report.settings.machine.clone_from(&args.replay.time.machine);
    output::give(&hotset::reports::comparison(&report)?, &args.output)?;
    Ok(Ending::Passed)
}
