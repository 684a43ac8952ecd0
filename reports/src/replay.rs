//! One setting in full laid out: phases, prices, step times, where the time went, layers.

use hotset_sim::{Breakdown, LayerRow, LinkPrice, ReplayReport, Row, StepTimes, Window};

use crate::compare::{headline, title};
use crate::flat::flat_rows;
use crate::{Cell, Column, Columns, Field, Output, RenderError, Sheet, one_line};

/// A replay in full in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn in_full(report: &ReplayReport) -> Result<Output, RenderError> {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.window == Window::All).collect();
    let mut sheets =
        vec![counts(report), prices(report, &rows), steps(&report.step_times), spent(&rows)];
    sheets.extend(crate::sampled::sheet(&report.settings, &report.rows));
    sheets.extend(crate::misses::sheets(&report.settings, &report.rows));
    sheets.extend(crate::loaded::sheet(&report.settings, &report.rows));
    sheets.extend(crate::tiers::sheet(&report.settings, &report.rows));
    sheets.extend(rows.iter().map(|row| layers(row, report)));
    if let Some(last) = sheets.last_mut() {
        last.note = "definitions: docs/metrics.md".to_owned();
    }
    let mut output = Output::new(report, sheets)?;
    output.flat = Some(flat_rows(&report.settings, &report.rows));
    output.warnings.clone_from(&report.warnings);
    let page = crate::page::in_full(report);
    output.verdict = Some(page.verdict.clone());
    output.page = Some(page);
    Ok(output)
}

fn per_token(count: u64, tokens: u64, decimals: usize) -> Cell {
    Cell::Number(count as f64 / tokens as f64, decimals)
}

const COUNTS: &[Field<Row>] = &[
    Field::left("phase", "phase", |row| row.phase.name().into()),
    Field::left("window", "window", |row| row.window.name().into()),
    Field::right("tokens", "tokens", |row| Cell::Count(row.tokens)),
    Field::right("hit\n%", "hit_percent", |row| Cell::percent(row.hit_rate)),
    Field::right("demand\n/token", "demand_per_token", |row| {
        per_token(row.demand_fetches, row.tokens, 2)
    }),
    Field::right("prefetch\n/token", "prefetch_per_token", |row| {
        per_token(row.prefetches, row.tokens, 2)
    }),
    Field::right("used\n%", "prefetches_used_percent", |row| {
        let used = row.prefetches_used as f64 / row.prefetches as f64;
        Cell::percent((row.prefetches > 0).then_some(used))
    }),
    Field::right("host\n/token", "host_served_per_token", |row| {
        per_token(row.host_served, row.tokens, 2)
    }),
    Field::right("MiB\n/token", "mib_per_token", |row| Cell::number(row.mib_per_token, 1)),
    Field::right("x\nBelady", "belady_ratio", |row| Cell::number(row.belady_ratio, 3)),
];

fn counts(report: &ReplayReport) -> Sheet {
    let mut sheet = Sheet::of("", COUNTS, &report.rows);
    if let Some(first) = report.rows.first() {
        let of = title(&report.settings, report.trace.total_experts, first);
        let (_, of) = of.split_once(" · ").unwrap_or(("", &of));
        sheet.title = format!(
            "{}\n\n{} · {of}\nsteps {}",
            headline(&report.trace),
            first.policy,
            report.settings.steps
        );
    }
    sheet
}

/// A phase's prices over one link.
struct OverLink<'a> {
    row: &'a Row,
    link: &'a LinkPrice,
}

/// Every phase over every link.
fn over_links<'a>(rows: &[&'a Row]) -> Vec<OverLink<'a>> {
    let of_row = |row: &&'a Row| {
        let row = *row;
        row.links.iter().map(move |link| OverLink { row, link })
    };
    rows.iter().flat_map(of_row).collect()
}

impl<'a> OverLink<'a> {
    const PRICES: &'a [Field<Self>] = &[
        Field::left("phase", "phase", |over| over.row.phase.name().into()),
        Field::left("link", "link", |over| one_line(&over.link.link).into()),
        Field::right("serial", "serial_ms_per_token", |over| {
            Cell::Number(over.link.serial_ms_per_token, 4)
        }),
        Field::right("timeline", "timeline_ms_per_token", |over| {
            Cell::number(over.link.timeline_ms_per_token, 4)
        }),
        Field::right("prefetch hidden", "prefetch_hidden_ms_per_token", |over| {
            Cell::Number(over.link.prefetch_hidden_ms_per_token, 4)
        }),
        Field::right("perfect", "perfect_ms_per_token", |over| {
            Cell::Number(over.link.perfect_ms_per_token, 4)
        }),
    ];
}

fn prices(report: &ReplayReport, rows: &[&Row]) -> Sheet {
    let mut sheet = Sheet::of("ms a token", OverLink::PRICES, over_links(rows));
    let settings = &report.settings;
    if settings.compute_ms_per_token.is_none() && settings.dense_bytes_per_layer.is_none() {
        sheet.note =
            "transfers alone: `Settings::machine` or `Settings::compute_ms_per_token` adds compute"
                .to_owned();
    }
    sheet
}

const STEPS: &[Field<StepTimes>] = &[
    Field::left("phase", "phase", |times| times.phase.name().into()),
    Field::left("window", "window", |times| times.window.name().into()),
    Field::left("link", "link", |times| one_line(&times.link).into()),
    Field::right("steps", "steps", |times| Cell::Count(times.steps)),
    Field::right("mean", "mean_ms", |times| Cell::Number(times.mean_ms, 3)),
    Field::right("p50", "p50_ms", |times| Cell::Number(times.p50_ms, 3)),
    Field::right("p90", "p90_ms", |times| Cell::Number(times.p90_ms, 3)),
    Field::right("p99", "p99_ms", |times| Cell::Number(times.p99_ms, 3)),
    Field::right("max", "max_ms", |times| Cell::Number(times.max_ms, 3)),
];

fn steps(times: &[StepTimes]) -> Sheet {
    Sheet::of("ms a step on the timeline (a decode step of one request is a token)", STEPS, times)
}

/// Where the time of a phase over one link went.
struct Spent<'a> {
    over: &'a OverLink<'a>,
    time: Breakdown,
}

impl<'a> Spent<'a> {
    const PARTS: &'a [Field<Self>] = &[
        Field::left("phase", "phase", |spent| spent.over.row.phase.name().into()),
        Field::left("link", "link", |spent| one_line(&spent.over.link.link).into()),
        Field::right("compute", "compute_ms", |spent| Cell::Number(spent.time.compute_ms, 3)),
        Field::right("slowed", "slowed_ms", |spent| Cell::Number(spent.time.slowed_ms, 3)),
        Field::right("demand", "exposed_demand_ms", |spent| {
            Cell::Number(spent.time.exposed_demand_ms, 3)
        }),
        Field::right("pre-\nfetch", "exposed_prefetch_ms", |spent| {
            Cell::Number(spent.time.exposed_prefetch_ms, 3)
        }),
        Field::right("host", "exposed_host_ms", |spent| {
            Cell::Number(spent.time.exposed_host_ms, 3)
        }),
        Field::right("drained", "drained_ms", |spent| Cell::Number(spent.time.drained_ms, 3)),
        Field::right("link\nidle", "idle_link_ms", |spent| {
            Cell::Number(spent.time.idle_link_ms, 3)
        }),
    ];
}

fn spent(rows: &[&Row]) -> Sheet {
    let over = over_links(rows);
    let timed = over.iter().filter_map(|over| Some(Spent { over, time: over.link.time? }));
    let title = "where the timeline's time went, ms a token (demand, prefetch, host: exposed)";
    let mut columns = Columns::of(Spent::PARTS);
    if over.iter().any(|over| over.link.time.is_some_and(|time| time.exposed_disk_ms.is_some())) {
        columns.add(Column::right("disk", "exposed_disk_ms"), |spent: &Spent<'_>| {
            Cell::number(spent.time.exposed_disk_ms, 3)
        });
    }
    columns.sheet(title, timed)
}

/// A layer, and the tokens of its phase.
struct Layer<'a> {
    row: &'a LayerRow,
    tokens: u64,
}

impl<'a> Layer<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::right("layer", "layer", |layer| Cell::Count(layer.row.layer.into())),
        Field::right("experts\n/step", "experts_per_step", |layer| {
            Cell::Number(layer.row.experts_per_step, 2)
        }),
        Field::right("hit\n%", "hit_percent", |layer| Cell::percent(layer.row.hit_rate)),
        Field::right("demand\n/token", "demand_per_token", |layer| {
            per_token(layer.row.demand_fetches, layer.tokens, 3)
        }),
        Field::right("prefetch\n/token", "prefetch_per_token", |layer| {
            per_token(layer.row.prefetches, layer.tokens, 3)
        }),
    ];
}

/// The layers of a phase.
fn layers(phase: &Row, report: &ReplayReport) -> Sheet {
    let mut columns = Columns::of(Layer::COLUMNS);
    for (index, link) in phase.links.iter().enumerate() {
        let heading = one_line(&link.link).replacen('-', "-\n", 1);
        let name = format!("ms_per_token:{}", link.link);
        columns.add(Column::right(&heading, &name), move |layer: &Layer<'_>| {
            Cell::number(layer.row.links.get(index).map(|link| link.ms_per_token), 4)
        });
    }
    let of_phase = report.layers.iter().filter(|layer| layer.phase == phase.phase);
    let rows = of_phase.map(|row| Layer { row, tokens: phase.tokens });
    columns.sheet(format!("{} by layer; links: ms a token", phase.phase.name()), rows)
}
