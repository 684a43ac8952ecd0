//! `hotset trace info | validate | shuffle`; the other commands on traces have files of their own.

mod cut;
mod histogram;
mod import;

use std::path::Path;

use hotset::reports::{Cell, Column, Output, Sheet};
use hotset::traces::{
    Codec, Detected, HistogramFormat, ImportOptions, Imported, Stats, Trace, import_files,
    input_bytes, recognise_with, write_hst_watched,
};
use serde::Serialize;

pub use cut::{compose, composed, export, slice, sliced};
pub use import::{import, read};

use crate::cli::{InfoArgs, ShuffleArgs, TraceArgs};
use crate::fault::{Ending, Fault};
use crate::input::refuse_pipe;
use crate::output::Stoppable;
use crate::progress::Bytes;
use crate::{commands, output, session};

/// Writes a trace that Ctrl-C may stop, and says what was written.
fn write(trace: &Trace, path: &Path, zstd: Option<i32>, stop: &Stoppable) -> Result<(), Fault> {
    write_hst_watched(trace, path, zstd.map_or(Codec::Raw, Codec::Zstd), stop)?;
    written(path, trace);
    Ok(())
}

/// Says what was written.
fn written(path: &Path, trace: &Trace) {
    session::note(format!(
        "{}: {} tokens in {} sequences, {} layers, digest {}",
        path.display(),
        trace.tokens(),
        trace.sequences().len(),
        trace.shape().layers().len(),
        trace.digest(),
    ));
}

/// Writes the trace with the order of its tokens permuted.
pub fn shuffle(args: &ShuffleArgs) -> Result<Ending, Fault> {
    let stop = Stoppable::begin();
    let trace = shuffled(args)?;
    write(&trace, &args.output, args.zstd, &stop)?;
    Ok(Ending::Passed)
}

/// The trace with the order of its tokens permuted.
pub fn shuffled(args: &ShuffleArgs) -> Result<Trace, Fault> {
    Ok(commands::open(args.trace.as_deref())?.shuffle_tokens(args.seed)?)
}

/// Describes a trace, or a histogram, whatever format it has.
pub fn info(args: &InfoArgs) -> Result<Ending, Fault> {
    args.trace.as_deref().map_or(Ok(()), refuse_pipe)?;
    let options = args.read.options()?;
    let said = args.read.from.is_some() || options != ImportOptions::default();
    let detected = match (&args.trace, &args.read.from) {
        (None, _) if said => return Err(Fault::Usage(NOTHING_TO_SAY.to_owned())),
        (Some(_), Some(name)) => Some(match HistogramFormat::from_name(name) {
            Some(format) => Detected::Histogram(format),
            None => Detected::Trace(import::named(name)?),
        }),
        (Some(path), None) => match recognise_with(path, &options) {
            Ok(detected) => detected,
            Err(fault @ hotset::traces::Error::Import { .. }) => return Err(fault.into()),
            // The reader of traces says what is wrong.
            Err(_) => None,
        },
        (None, _) => None,
    };
    let (trace, warnings) = match (&args.trace, detected) {
        (Some(path), Some(Detected::Histogram(format))) => {
            return histogram::show(path, format, &args.output);
        }
        (Some(path), Some(Detected::Trace(format))) => {
            let paths = [path.clone()];
            let bar = Bytes::new(input_bytes(format, &paths)?);
            let Imported { trace, notes } = import_files(format, &paths, &options, &bar)?;
            session::note(format!("format: {}", format.info().name));
            (trace, notes)
        }
        (Some(_), _) if said => return Err(Fault::Usage(NOTHING_TO_SAY.to_owned())),
        (path, _) => (commands::open(path.as_deref())?, Vec::new()),
    };
    let stats = Stats::of(&trace);
    let mut output = Output::new(&stats, sheets(&stats))?;
    output.warnings.extend(warnings);
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}

const NOTHING_TO_SAY: &str = "an .hst trace says everything of itself: --from and what goes with it are for \
                              files of other formats";

fn sheets(stats: &Stats) -> Vec<Sheet> {
    let spread = |spread: &hotset::traces::Spread| {
        let same = spread.min == spread.max;
        let text = format!("{:.1} ({} to {})", spread.mean, spread.min, spread.max);
        Cell::Text(if same { spread.min.to_string() } else { text })
    };
    let percent = |share: Option<f64>| match share {
        Some(share) => Cell::Text(format!("{:.1} %", share * 100.0)),
        None => Cell::Empty,
    };
    let gib = |bytes: u64| Cell::Text(format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30)));
    let distance = |distance: Option<u64>| {
        distance.map_or(Cell::Empty, |distance| Cell::Text(format!("{distance} experts")))
    };
    let shape = vec![
        ("layers", Cell::Count(stats.layers as u64)),
        ("experts a layer", spread(&stats.experts)),
        ("top-k", spread(&stats.top_k)),
        ("experts in all", Cell::Count(u64::from(stats.total_experts))),
        ("experts a token", Cell::Count(u64::from(stats.experts_per_token))),
        ("size of all experts", stats.total_expert_bytes.map_or(Cell::Empty, gib)),
        ("sequences", Cell::Count(stats.sequences as u64)),
        ("tokens a sequence", spread(&stats.sequence_tokens)),
        ("tokens: prefill", Cell::Count(stats.tokens_by_phase.prefill as u64)),
        ("tokens: decode", Cell::Count(stats.tokens_by_phase.decode as u64)),
        ("tokens: verify", Cell::Count(stats.tokens_by_phase.verify as u64)),
        ("accesses", Cell::Count(stats.accesses)),
        ("digest (routing)", stats.digest.as_str().into()),
        ("digest (everything)", stats.content_digest.as_str().into()),
    ];
    let locality = vec![
        ("shared with the previous token", percent(stats.locality)),
        ("distinct experts a layer", spread(&stats.distinct_experts)),
        ("distinct in one sequence", spread(&stats.distinct_experts_in_sequence)),
        ("selections of the top 10%", percent(Some(stats.popularity.top_10_percent))),
        ("selections of the top 25%", percent(Some(stats.popularity.top_25_percent))),
        ("evenness (entropy, 100 % is even)", percent(Some(stats.popularity.normalised_entropy))),
        ("reuse distance p50", distance(stats.reuse.p50)),
        ("reuse distance p90", distance(stats.reuse.p90)),
        ("reuse distance p99", distance(stats.reuse.p99)),
        ("first uses", percent(Some(stats.reuse.cold_share))),
    ];
    let mut columns = Sheet::new(
        "columns",
        vec![
            Column::left("column", "column"),
            Column::left("recorded as", "recorded_as"),
            Column::left("given by", "importers"),
        ],
    );
    columns.rows = stats
        .columns
        .iter()
        .map(|column| {
            let detail = if column.present { column.detail.as_str() } else { "-" };
            vec![column.name.into(), detail.into(), few(&column.importers).into()]
        })
        .collect();
    let mut locality = Sheet::facts("locality", locality);
    locality.note = "reuse distance: distinct experts asked for between two uses of one".to_owned();
    vec![Sheet::facts(stats.name.as_str(), shape), locality, columns]
}

/// The first names of a list, and how many more there are.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", {} more", names.len() - SHOWN));
    }
    text
}

#[derive(Serialize)]
struct Validation {
    trace: String,
    sound: bool,
    fault: Option<String>,
}

/// Checks a trace in full; a file that cannot even be opened is not sound either.
pub fn validate(args: &TraceArgs) -> Result<Ending, Fault> {
    let name = args.trace.as_ref().map_or("bundled".to_owned(), |path| path.display().to_string());
    let checked = match commands::open(args.trace.as_deref()) {
        Ok(trace) => trace.validate().map_err(|error| error.to_string()),
        Err(Fault::Trace(error @ hotset::traces::Error::Io { .. })) => return Err(error.into()),
        Err(fault) => Err(fault.to_string()),
    };
    let validation = Validation { trace: name, sound: checked.is_ok(), fault: checked.err() };
    let sheet = Sheet::facts(
        "",
        vec![
            ("trace", validation.trace.as_str().into()),
            ("sound", if validation.sound { "yes" } else { "no" }.into()),
            ("fault", validation.fault.clone().map_or(Cell::Empty, Cell::Text)),
        ],
    );
    output::give(&Output::new(&validation, vec![sheet])?, &args.output)?;
    Ok(if validation.sound { Ending::Passed } else { Ending::Failed })
}
