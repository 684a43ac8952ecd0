//! `hotset link price`: what a token costs over links at a given hit rate, by arithmetic alone.

use hotset::cost_models::price::{Copies, host_share, hybrid_pays};
use hotset::cost_models::{ComputeSource, Link, Picos, TokenShape};
use hotset::reports::{Cell, Column, Output, Sheet};
use serde::Serialize;

use crate::cli::PriceArgs;
use crate::fault::{Ending, Fault};
use crate::{output, parse};

/// A token over several links.
#[derive(Serialize)]
struct Report {
    layers: u32,
    top_k: u32,
    expert_bytes: u64,
    hit_rate: f64,
    copied_per_needed: f64,
    experts_per_token: u64,
    streamed_gib_per_token: f64,
    links: Vec<Row>,
}

/// A token over one link, times in milliseconds.
#[derive(Serialize)]
struct Row {
    link: String,
    expert_ms: f64,
    gib_per_s: f64,
    compute_ms: f64,
    compute_from: ComputeSource,
    misses_ms: f64,
    predicted_ms: f64,
    predicted_exposed_ms: f64,
    serial_ms: f64,
    prefetch_hidden_ms: f64,
    perfect_ms: f64,
    moving_share: f64,
    hit_rate_point_ms: f64,
    serial_tokens_per_s: Option<f64>,
    host_share_of_misses: Option<f64>,
    host_share_by_rates_alone: Option<f64>,
    host_pays: Option<bool>,
}

/// Prices a token over each link.
pub fn run(args: &PriceArgs) -> Result<Ending, Fault> {
    let token =
        TokenShape { layers: args.layers, top_k: args.top_k, expert_bytes: args.expert_size };
    let misses = 1.0 - args.hit_rate;
    let copies = Copies { misses, all: args.copied.unwrap_or(misses) };
    if copies.all < misses {
        return Err(Fault::Usage(format!(
            "--copied {} is less than the {misses} that miss: it counts them too",
            copies.all
        )));
    }
    let mut rows = Vec::new();
    for link in links(&args.links)? {
        rows.push(row(args, &token, &copies, &link));
    }
    let report = Report {
        layers: args.layers,
        top_k: args.top_k,
        expert_bytes: args.expert_size,
        hit_rate: args.hit_rate,
        copied_per_needed: copies.all,
        experts_per_token: token.experts(),
        streamed_gib_per_token: token.streamed_gib(),
        links: rows,
    };
    let mut output = Output::new(&report, vec![side_by_side(&report)])?;
    output.flat = Some(flat(&report));
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}

/// Links by name, of profiles, or of a nominal rate.
fn links(texts: &[String]) -> Result<Vec<Link>, Fault> {
    let mut links = Vec::new();
    for text in texts {
        match text.ends_with("B/s") {
            true => links.push(Link::of_rate(text, parse::rate(text).map_err(Fault::Usage)?)),
            false => links.extend(parse::links(std::slice::from_ref(text), None)?),
        }
    }
    Ok(links)
}

fn row(args: &PriceArgs, token: &TokenShape, copies: &Copies, link: &Link) -> Row {
    let compute = link.token_compute(args.compute_ms.map(Picos::from_ms_f64));
    let times = token.times(copies, link, compute.time);
    let alone_ps = link.transfer_ps(token.expert_bytes);
    // Rates are the inverse of the times of one expert.
    let host_rate = match args.host_rate {
        Some(bytes_per_second) => Some(bytes_per_second),
        None => link
            .host_kernel_ps(token.expert_bytes)
            .map(|ps| token.expert_bytes as f64 / (ps as f64 * 1e-12)),
    };
    let link_rate = token.expert_bytes as f64 / (alone_ps as f64 * 1e-12);
    Row {
        link: link.name.clone(),
        expert_ms: Picos(alone_ps).as_ms_f64(),
        gib_per_s: link.rate_gib_s(token.expert_bytes),
        compute_ms: compute.time.as_ms_f64(),
        compute_from: compute.source,
        misses_ms: times.demand.as_ms_f64(),
        predicted_ms: times.prefetch.as_ms_f64(),
        predicted_exposed_ms: times.prefetch_exposed().as_ms_f64(),
        serial_ms: times.serial().as_ms_f64(),
        prefetch_hidden_ms: times.prefetch_hidden().as_ms_f64(),
        perfect_ms: times.perfect().as_ms_f64(),
        moving_share: times.moving_share(),
        hit_rate_point_ms: token.point_value_ms(link),
        serial_tokens_per_s: (times.serial() > Picos::ZERO)
            .then(|| 1e3 / times.serial().as_ms_f64()),
        host_share_of_misses: host_rate.map(|host| host_share(host, link_rate)),
        host_share_by_rates_alone: host_rate.map(|host| 1.0 - (link_rate / host).min(1.0)),
        host_pays: host_rate.map(|host| hybrid_pays(host, link_rate)),
    }
}

/// A figure of a row: its name for people and for programs, and its value.
type Figure = (&'static str, &'static str, fn(&Row) -> Cell);

const FIGURES: [Figure; 16] = [
    ("one expert alone, ms", "expert_ms", |row| Cell::Number(row.expert_ms, 6)),
    ("GiB/s for it", "gib_per_s", |row| Cell::Number(row.gib_per_s, 2)),
    ("compute, ms a token", "compute_ms", |row| match row.compute_from {
        ComputeSource::Unknown => Cell::Empty,
        _ => Cell::Number(row.compute_ms, 3),
    }),
    ("misses, ms a token", "misses_ms", |row| Cell::Number(row.misses_ms, 3)),
    ("predicted copies, ms a token", "predicted_ms", |row| Cell::Number(row.predicted_ms, 3)),
    ("of them not hidden by compute", "predicted_exposed_ms", |row| {
        Cell::Number(row.predicted_exposed_ms, 3)
    }),
    ("serial, ms a token", "serial_ms", |row| Cell::Number(row.serial_ms, 3)),
    ("prefetch hidden, ms a token", "prefetch_hidden_ms", |row| {
        Cell::Number(row.prefetch_hidden_ms, 3)
    }),
    ("perfect, ms a token", "perfect_ms", |row| Cell::Number(row.perfect_ms, 3)),
    ("serial time spent moving, %", "moving_share_percent", |row| {
        Cell::percent(Some(row.moving_share))
    }),
    ("a point of hit rate, ms a token", "hit_rate_point_ms", |row| {
        Cell::Number(row.hit_rate_point_ms, 4)
    }),
    ("tokens a second, serial", "serial_tokens_per_s", |row| {
        Cell::number(row.serial_tokens_per_s, 1)
    }),
    ("misses for the host's cores, %", "host_share_percent", |row| {
        Cell::percent(row.host_share_of_misses)
    }),
    ("the same by 1 - link / host, %", "host_share_by_rates_alone_percent", |row| {
        Cell::percent(row.host_share_by_rates_alone)
    }),
    ("host's cores pay (over twice the link)", "host_pays", |row| match row.host_pays {
        Some(true) => "yes".into(),
        Some(false) => "no".into(),
        None => Cell::Empty,
    }),
    ("compute from", "compute_from", |row| match row.compute_from {
        ComputeSource::Given => "--compute-ms".into(),
        ComputeSource::Profile => "the profile".into(),
        ComputeSource::Unknown => "nobody: left out".into(),
    }),
];

/// For people: a column a link.
fn side_by_side(report: &Report) -> Sheet {
    let mib = report.expert_bytes as f64 / f64::from(1 << 20);
    let title = format!(
        "{} experts of {mib:.4} MiB a token, {:.3} GiB; {:.1}% resident, {:.4} copied for each needed",
        report.experts_per_token,
        report.streamed_gib_per_token,
        report.hit_rate * 100.0,
        report.copied_per_needed
    );
    let mut columns = vec![Column::left("", "figure")];
    columns.extend(report.links.iter().map(|row| Column::right(&row.link, &row.link)));
    let mut sheet = Sheet::new(super::wrap_to(&title, 78), columns);
    sheet.rows = FIGURES
        .iter()
        .map(|(name, _, value)| {
            let mut cells: Vec<Cell> = vec![(*name).into()];
            cells.extend(report.links.iter().map(value));
            cells
        })
        .collect();
    sheet
}

/// For programs: a row a link.
fn flat(report: &Report) -> Sheet {
    let mut columns = vec![Column::left("link", "link")];
    columns.extend(FIGURES.iter().map(|(heading, name, _)| Column::right(heading, name)));
    let mut sheet = Sheet::new("", columns);
    sheet.rows = report
        .links
        .iter()
        .map(|row| {
            let mut cells: Vec<Cell> = vec![row.link.as_str().into()];
            cells.extend(FIGURES.iter().map(|(_, _, value)| value(row)));
            cells
        })
        .collect();
    sheet
}
