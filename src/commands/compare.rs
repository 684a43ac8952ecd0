//! `hotset compare`.

use hotset::sim::compare;

use super::request::{request, with_threads};
use crate::cli::CompareArgs;
use crate::fault::{Fault, Verdict};
use crate::flags::with_flags;
use crate::progress::Bar;
use crate::{commands, output};

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Verdict, Fault> {
    let trace = commands::open(args.replay.trace.as_deref())?;
    let request = request(&args.replay, &args.capacity, &trace)?;
    let work = || compare(&trace, &request, &Bar::new());
    let mut report = with_threads(args.replay.threads, work)??;
    let told = &mut report.warnings;
    told.iter_mut().for_each(|warning| *warning = with_flags(warning));
    output::give(&hotset::reports::comparison(&report)?, &args.output)?;
    Ok(Verdict::Passed)
}
