//! `hotset replay`.

use std::io::{BufWriter, Write};
use std::path::Path;

use hotset::sim::timeline::Recorder;
use hotset::sim::{Recording, replay_in_full};

use super::request::{give_priced, request, with_threads};
use crate::cli::InFullArgs;
use crate::fault::{Ending, Fault};
use crate::progress::Bar;
use crate::{commands, output};

/// Replays one setting, gives the report and writes what ran when.
pub fn run(args: &InFullArgs) -> Result<Ending, Fault> {
    let of = &args.compare.replay;
    if args.compare.plot.is_some() {
        return Err(Fault::Usage(super::plot::NO_CURVE.to_owned()));
    }
    let trace = commands::open(of.trace.as_deref())?;
    let request = request(of, &args.compare.capacity, &trace)?;
    let recording = args
        .trace_events
        .as_ref()
        .map(|_| Recording { skip_steps: args.skip_steps, most_spans: args.most_events });
    let work = || replay_in_full(&trace, &request, recording, &Bar::new());
    let (report, recorder) = with_threads(of.threads, work)??;
    if let Some(path) = &args.trace_events {
        let Some(recorder) = recorder else {
            return Err(Fault::Usage("--trace-events needs a link".to_owned()));
        };
        let link = request.links.first().map_or("", |link| link.name.as_str());
        write_events(path, &recorder, &format!("{} over {link}", trace.name()))?;
    }
    let output = hotset::reports::in_full(&report)?;
    give_priced(output, &of.time, &request.links, &args.compare.output)?;
    Ok(Ending::Passed)
}

fn write_events(path: &Path, recorder: &Recorder, title: &str) -> Result<(), Fault> {
    if recorder.spans().is_empty() {
        eprintln!("warning: there is nothing to show: --skip-steps is at or past the last step");
    }
    if recorder.dropped() > 0 {
        eprintln!(
            "{} has the first {} events; {} more did not fit (--most-events, --skip-steps)",
            path.display(),
            recorder.spans().len(),
            recorder.dropped()
        );
    }
    output::write_through(path, |file| {
        let mut out = BufWriter::new(file);
        let written = recorder.write_chrome(title, &mut out).and_then(|()| out.flush());
        written.map_err(|reason| Fault::Write { path: path.display().to_string(), reason })
    })
}
