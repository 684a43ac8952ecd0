//! `hotset trace export | slice | compose`.

use std::ops::Range;

use hotset::policies::nearest;
use hotset::sim::{Arrival, Composition, Steps};
use hotset::traces::{ExportFormat, Slice, Trace, export_formats, export_watched};
use serde_json::json;

use crate::cli::{ArrivalName, ComposeArgs, ExportArgs, SliceArgs};
use crate::fault::{Ending, Fault};
use crate::output::Stoppable;
use crate::{commands, session};

/// Writes a trace in another format.
pub fn export(args: &ExportArgs) -> Result<Ending, Fault> {
    let name = args.to.as_str();
    let format = ExportFormat::from_name(name).ok_or_else(|| {
        let known = || export_formats().iter().map(|info| info.name);
        let near = nearest(name, known()).map(|near| format!("did you mean '{near}'? "));
        Fault::Usage(format!(
            "there is no format '{name}' to export to; {}formats: {}",
            near.unwrap_or_default(),
            known().collect::<Vec<_>>().join(" ")
        ))
    })?;
    let stop = Stoppable::begin();
    let trace = commands::open(args.trace.as_deref())?;
    export_watched(&trace, format, &args.output, &stop)?;
    let dropped = format.dropped(&trace);
    if !dropped.is_empty() {
        session::note(format!("note: {name} does not keep the trace's {}", dropped.join(", ")));
    }
    super::written(&args.output, &trace);
    Ok(Ending::Passed)
}

/// Writes a part of a trace.
pub fn slice(args: &SliceArgs) -> Result<Ending, Fault> {
    let stop = Stoppable::begin();
    super::write(&sliced(args)?, &args.output, args.zstd, &stop)?;
    Ok(Ending::Passed)
}

/// The part of a trace.
pub fn sliced(args: &SliceArgs) -> Result<Trace, Fault> {
    let trace = commands::open(args.trace.as_deref())?;
    let sequences = places(&args.sequences, trace.sequences().len())?;
    let slice = Slice {
        sequences: (!args.sequences.is_empty()).then_some(sequences),
        tokens: args.tokens.clone(),
        phase: args.phase.map(Into::into),
    };
    Ok(trace.slice(&slice)?)
}

/// The places that ranges name, of so many sequences; ranges rise, so there are no more than that.
fn places(ranges: &[Range<usize>], sequences: usize) -> Result<Vec<usize>, Fault> {
    let mut places = Vec::new();
    for range in ranges {
        if range.end > sequences {
            let absent = range.start.max(sequences);
            let problem = format!("--sequences: no sequence {absent}; there are {sequences}");
            return Err(Fault::Usage(problem));
        }
        if places.last().is_some_and(|&last| range.start <= last) {
            let problem = format!("--sequences: {} is not after the one before", range.start);
            return Err(Fault::Usage(problem));
        }
        places.extend(range.clone());
    }
    Ok(places)
}

/// Writes a trace with the steps of a batch.
pub fn compose(args: &ComposeArgs) -> Result<Ending, Fault> {
    let stop = Stoppable::begin();
    let composed = composed(args)?;
    stop.go_on(&args.output)?;
    super::write(&composed, &args.output, args.zstd, &stop)?;
    Ok(Ending::Passed)
}

/// The trace with the steps of a batch.
pub fn composed(args: &ComposeArgs) -> Result<Trace, Fault> {
    let trace = commands::open(args.trace.as_deref())?;
    let arrival = match args.arrival {
        ArrivalName::Recorded => Arrival::Recorded,
        ArrivalName::Shuffled => Arrival::Shuffled(args.seed),
    };
    let how = Composition {
        concurrency: args.concurrency,
        chunk: args.chunk,
        verify: args.verify_tokens,
        arrival,
    };
    let steps = Steps::compose(&trace, &how)?;
    let mut column = vec![0u32; trace.tokens()];
    for step in 0..steps.len() {
        for place in steps.places(step) {
            column[steps.row(place)] = step as u32;
        }
    }
    let composed = trace.with_steps(column, json!(how))?;
    session::note(format!("{} steps of up to {} requests", steps.len(), args.concurrency));
    Ok(composed)
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn ranges_are_checked_before_they_are_expanded() {
        let said = |ranges: &[std::ops::Range<usize>]| places(ranges, 3).unwrap_err().to_string();
        assert_eq!(places(&[0..1, 2..3], 3).unwrap(), [0, 2]);
        assert!(said(&[0..1, 1..usize::MAX]).contains("no sequence 3; there are 3"));
        assert!(said(&[0..1, 99..100]).contains("no sequence 99; there are 3"));
        assert!(said(&[0..3, 0..3]).contains("0 is not after"));
    }
}
