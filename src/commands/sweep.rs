//! `hotset sweep`.

use hotset::sim::{SimError, Sweep, sweep};

use super::compare::{request, with_threads};
use crate::cli::SweepArgs;
use crate::fault::{Fault, Verdict};
use crate::progress::Bar;
use crate::{commands, output};

/// Sweeps and gives the report.
pub fn run(args: &SweepArgs) -> Result<Verdict, Fault> {
    let request = Sweep {
        compare: request(&args.replay, &args.capacity)?,
        knee_ms_per_gib: args.knee,
        journal: args.resume.clone(),
    };
    let trace = commands::open(args.replay.trace.as_deref())?;
    let work = || sweep(&trace, &request, &Bar::new());
    let report = with_threads(args.replay.threads, work)?;
    if let (Err(SimError::Interrupted), Some(journal)) = (&report, &args.resume) {
        eprintln!("the same command goes on with what {} has", journal.display());
    }
    output::give(&hotset::reports::sweep(&report?)?, &args.output)?;
    Ok(Verdict::Passed)
}
