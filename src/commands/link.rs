//! `hotset link [NAME]`.

use hotset::cost_models::{Link, builtin_links, find_link};
use hotset::reports::{Cell, Column, Output, Sheet};
use serde::Serialize;

use crate::cli::LinkArgs;
use crate::fault::{Fault, Verdict};
use crate::output;

/// One size at which people compare links: 1.6875 MiB, an NVFP4 expert of a 35B-A3B model.
const SMALL: u64 = 1_769_472;
/// And one of 12.61 MiB, an MXFP4 expert of gpt-oss.
const LARGE: u64 = 13_221_888;

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: String,
    description: String,
    source: String,
    date: String,
    ms_per_expert_of_1_6875_mib: f64,
    ms_per_expert_of_12_61_mib: f64,
    gib_per_s_at_12_61_mib: f64,
    compute_ms_per_token: Option<f64>,
}

fn entry(link: &Link) -> Entry {
    Entry {
        name: link.name.clone(),
        kind: link.kind.name().to_owned(),
        description: link.description.clone(),
        source: link.source.clone(),
        date: link.date.clone(),
        ms_per_expert_of_1_6875_mib: link.transfer(SMALL).as_ms_f64(),
        ms_per_expert_of_12_61_mib: link.transfer(LARGE).as_ms_f64(),
        gib_per_s_at_12_61_mib: link.rate_gib_s(LARGE),
        compute_ms_per_token: link.compute_per_token.map(|time| time.as_ms_f64()),
    }
}

/// Lists the links, or shows one.
pub fn run(args: &LinkArgs) -> Result<Verdict, Fault> {
    let output = match &args.name {
        Some(name) => one(&entry(&find_link(name)?))?,
        None => list(&builtin_links().iter().map(entry).collect::<Vec<_>>())?,
    };
    output::give(&output, &args.output)?;
    Ok(Verdict::Passed)
}

fn list(entries: &[Entry]) -> Result<Output, Fault> {
    let mut sheet = Sheet::new(
        "",
        vec![
            Column::left("link", "link"),
            Column::left("kind", "kind"),
            Column::right("1.69 MiB\nms", "ms_per_expert_of_1_6875_mib"),
            Column::right("12.6 MiB\nms", "ms_per_expert_of_12_61_mib"),
            Column::right("GiB/s", "gib_per_s_at_12_61_mib"),
        ],
    );
    sheet.rows = entries
        .iter()
        .map(|entry| {
            vec![
                entry.name.as_str().into(),
                entry.kind.as_str().into(),
                Cell::Number(entry.ms_per_expert_of_1_6875_mib, 4),
                Cell::Number(entry.ms_per_expert_of_12_61_mib, 4),
                Cell::Number(entry.gib_per_s_at_12_61_mib, 1),
            ]
        })
        .collect();
    sheet.note =
        "ms: one expert of that size alone; 'hotset link NAME' gives the source".to_owned();
    Ok(Output::new(&entries, vec![sheet])?)
}

fn one(entry: &Entry) -> Result<Output, Fault> {
    let facts = vec![
        ("link", entry.name.as_str().into()),
        ("kind", entry.kind.as_str().into()),
        ("what", entry.description.as_str().into()),
        ("source", entry.source.as_str().into()),
        ("date", entry.date.as_str().into()),
        ("an expert of 1.6875 MiB, ms", Cell::Number(entry.ms_per_expert_of_1_6875_mib, 6)),
        ("an expert of 12.61 MiB, ms", Cell::Number(entry.ms_per_expert_of_12_61_mib, 6)),
        ("GiB/s at 12.61 MiB", Cell::Number(entry.gib_per_s_at_12_61_mib, 2)),
        ("compute, ms a token", Cell::number(entry.compute_ms_per_token, 3)),
    ];
    Ok(Output::new(entry, vec![Sheet::facts("", facts)])?)
}
