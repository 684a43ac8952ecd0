//! `hotset sweep`.

use hotset::sim::{Sweep, sweep};

use super::plot;
use super::request::{give_priced, request, with_threads};
use crate::cli::SweepArgs;
use crate::commands;
use crate::fault::{Ending, Fault};
use crate::interrupt;
use crate::progress::Bar;

/// Sweeps and gives the report.
pub fn run(args: &SweepArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.replay.trace.as_deref())?;
    let request = Sweep {
        compare: request(&args.replay, &args.capacity, &trace)?,
        knee_ms_per_gib: args.knee,
        journal: args.resume.clone(),
    };
    if let Some(journal) = &args.resume {
        interrupt::goes_on(format!("the same command goes on with what {} has", journal.display()));
    }
    let work = || sweep(&trace, &request, &Bar::new());
    let report = with_threads(args.replay.threads, work)??;
    let output = hotset::reports::sweep(&report)?;
    plot::give(&output, args.plot.as_deref())?;
    give_priced(output, &args.replay.time, &request.compare.links, &args.output)?;
    Ok(Ending::Passed)
}
