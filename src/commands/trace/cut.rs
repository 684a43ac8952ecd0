//! `hotset trace export | slice | compose`.

use hotset::sim::{Arrival, Composition, Steps};
use hotset::traces::{Codec, ExportFormat, Slice, export as write, export_formats, write_hst};
use serde_json::json;

use crate::cli::{ArrivalName, ComposeArgs, ExportArgs, SliceArgs};
use crate::commands;
use crate::fault::{Fault, Verdict, nearest};

/// Writes a trace in another format.
pub fn export(args: &ExportArgs) -> Result<Verdict, Fault> {
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
    let trace = commands::open(args.trace.as_deref())?;
    write(&trace, format, &args.output)?;
    super::written(&args.output, &trace);
    Ok(Verdict::Passed)
}

/// Writes a part of a trace.
pub fn slice(args: &SliceArgs) -> Result<Verdict, Fault> {
    let sequences: Vec<usize> = args.sequences.iter().flat_map(Clone::clone).collect();
    let slice = Slice {
        sequences: (!args.sequences.is_empty()).then_some(sequences),
        tokens: args.tokens.clone(),
        phase: args.phase.map(Into::into),
    };
    let part = commands::open(args.trace.as_deref())?.slice(&slice)?;
    write_hst(&part, &args.output, args.zstd.map_or(Codec::Raw, Codec::Zstd))?;
    super::written(&args.output, &part);
    Ok(Verdict::Passed)
}

/// Writes a trace with the steps of a batch.
pub fn compose(args: &ComposeArgs) -> Result<Verdict, Fault> {
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
    write_hst(&composed, &args.output, args.zstd.map_or(Codec::Raw, Codec::Zstd))?;
    eprintln!("{} steps of up to {} requests", steps.len(), args.concurrency);
    super::written(&args.output, &composed);
    Ok(Verdict::Passed)
}
