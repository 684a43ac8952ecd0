//! `hotset sweep`.

use hotset::experiments::lead;
use hotset::sim::{Named, Sweep, sweep, sweep_part};

use super::plot;
use super::request::{give_priced, request, with_threads};
use crate::cli::SweepArgs;
use crate::commands;
use crate::fault::{Ending, Fault};
use crate::progress::Bar;
use crate::{interrupt, session};

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
    if let (Some(part), Some(journal)) = (&args.replays, &args.resume) {
        let work = || sweep_part(&trace, &request, part.clone(), &Bar::new());
        let all = with_threads(args.replay.threads, work)??;
        let (first, end, path) = (part.start.min(all), part.end.min(all), journal.display());
        session::note(format!("{path}: replays {first}..{end} of {all}"));
        return Ok(Ending::Passed);
    }
    let work = || -> Result<_, Fault> {
        let report = sweep(&trace, &request, &Bar::new())?;
        let asked = Named::new("", request.compare.clone());
        let lead = lead(&trace, &[asked], &report.report, &Bar::new())?;
        Ok((report, lead))
    };
    let (report, lead) = with_threads(args.replay.threads, work)??;
    let output = hotset::reports::sweep(&report, lead.as_ref())?;
    plot::give(&output, args.plot.as_deref())?;
    give_priced(output, &args.replay.time, &request.compare.links, &args.output)?;
    Ok(Ending::Passed)
}
