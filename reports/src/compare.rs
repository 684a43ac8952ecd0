//! A comparison laid out: for people a table a size and phase, for CSV one flat table.

use hotset_sim::{LinkPrice, Report, Row, Settings, TraceSummary, Window};

use crate::{Cell, Column, Output, RenderError, Sheet};

/// A comparison in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn comparison(report: &Report) -> Result<Output, RenderError> {
    let mut output = Output::new(report, sheets(report, false))?;
    output.wide = Some(sheets(report, true));
    output.flat = Some(flat_rows(&report.settings, &report.rows));
    output.warnings = report.warnings.clone();
    Ok(output)
}

/// A sheet a size and phase; `wide`: with the serial price beside the timeline.
fn sheets(report: &Report, wide: bool) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = Vec::new();
    let mut of_last = None;
    for row in report.rows.iter().filter(|row| row.window == Window::All) {
        let group = (row.phase, row.scope, row.capacity_slots);
        if of_last != Some(group) {
            of_last = Some(group);
            sheets.push(Sheet::new(
                title(&report.settings, report.trace.total_experts, row),
                columns(report, wide),
            ));
        }
        if let Some(sheet) = sheets.last_mut() {
            sheet.rows.push(cells(report, row, wide));
        }
    }
    // Rows come policy by policy, each with its phases: bring a phase's rows together.
    let mut merged: Vec<Sheet> = Vec::new();
    for sheet in sheets {
        match merged.iter_mut().find(|known| known.title == sheet.title) {
            Some(known) => known.rows.extend(sheet.rows),
            None => merged.push(sheet),
        }
    }
    let links = if has_prices(report) { report.settings.links.len() } else { 0 };
    if !wide && links > 0 && merged.iter().any(|sheet| !crate::terminal::fits(sheet)) {
        merged = merged.into_iter().flat_map(|sheet| prices_apart(sheet, links)).collect();
    }
    if let Some(first) = merged.first_mut() {
        first.title = format!("{}\n\n{}", headline(&report.trace), first.title);
    }
    if let Some(last) = merged.last_mut() {
        last.note = note(report, wide);
    }
    merged
}

/// The columns of `links` links, behind [`BEFORE_LINKS`] others, in a table of their own.
fn prices_apart(mut sheet: Sheet, links: usize) -> [Sheet; 2] {
    let place = BEFORE_LINKS..BEFORE_LINKS + links;
    let mut prices = Sheet::new("", vec![sheet.columns[0].clone()]);
    prices.columns.extend(sheet.columns.drain(place.clone()));
    for row in &mut sheet.rows {
        let mut cells = vec![row[0].clone()];
        cells.extend(row.drain(place.clone()));
        prices.rows.push(cells);
    }
    [sheet, prices]
}

/// Columns before those of the links.
const BEFORE_LINKS: usize = 6;

fn note(report: &Report, wide: bool) -> String {
    let mut note = "
hit: share of distinct experts found resident; cold: until the cache was full;
moved, MiB: experts and MiB copied a token; x Belady: misses over those of
Belady's MIN at the same size."
        .to_owned();
    if has_prices(report) {
        note.push_str(match (is_timed(report), wide) {
            (true, false) => "\nLinks: ms a token on the timeline, copies beside compute.",
            (true, true) => {
                "\nLinks: ms a token on the timeline, copies beside compute; serial: one after another."
            }
            (false, _) => "\nLinks: serial ms a token, which is without overlap.",
        });
        let settings = &report.settings;
        if settings.compute_ms_per_token.is_none() && settings.dense_bytes_per_layer.is_none() {
            note.push_str("\nTransfers alone: --machine or --compute-ms adds compute.");
        }
    }
    note.push_str("\nDefinitions: docs/metrics.md");
    note
}

pub(crate) fn headline(trace: &TraceSummary) -> String {
    format!(
        "{}: {} layers x {} experts, top-{}, {} tokens in {} sequences\ndigest {}",
        trace.name,
        trace.layers,
        trace.experts,
        trace.top_k,
        crate::sheet::thousands(trace.tokens as u64),
        trace.sequences,
        trace.digest,
    )
}

pub(crate) fn title(settings: &Settings, total_experts: u32, row: &Row) -> String {
    let bytes = settings.expert_bytes.iter().max().copied().unwrap_or(0);
    let gib = bytes as f64 * f64::from(row.capacity_slots) / f64::from(1 << 30);
    let size = if bytes == 0 { String::new() } else { format!(", {gib:.2} GiB") };
    format!(
        "{} · {} scope · {} of {} slots ({:.1}%{size}) · {} semantics",
        row.phase.name(),
        row.scope.name(),
        crate::sheet::thousands(u64::from(row.capacity_slots)),
        crate::sheet::thousands(u64::from(total_experts)),
        row.capacity_share * 100.0,
        row.semantics.name(),
    )
}

fn columns(report: &Report, wide: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::left("policy", "policy"),
        Column::right("hit\n%", "hit"),
        Column::right("cold\n%", "cold"),
        Column::right("steady\n%", "steady"),
        Column::right("moved\n/token", "moved"),
        Column::right("MiB\n/token", "mib"),
    ];
    if has_prices(report) {
        for link in &report.settings.links {
            // A long name breaks behind its first hyphen.
            let heading = link.replacen('-', "-\n", 1);
            columns.push(Column::right(&heading, link));
            if wide && is_timed(report) {
                let name = format!("{link} serial");
                columns.push(Column::right(&name, &name));
            }
        }
    }
    columns.push(Column::right("x\nBelady", "x_belady"));
    columns
}

fn has_prices(report: &Report) -> bool {
    report.rows.iter().any(|row| !row.links.is_empty())
}

/// Whether the links' column is of the timeline.
fn is_timed(report: &Report) -> bool {
    let links = || report.rows.iter().flat_map(|row| &row.links);
    links().next().is_some() && links().all(|link| link.timeline_ms_per_token.is_some())
}

fn cells(report: &Report, row: &Row, wide: bool) -> Vec<Cell> {
    let in_window = |window| {
        let same = |other: &&Row| {
            other.window == window
                && other.policy == row.policy
                && other.phase == row.phase
                && other.scope == row.scope
                && other.capacity_slots == row.capacity_slots
        };
        report.rows.iter().find(same).and_then(|row| row.hit_rate)
    };
    let mut cells = vec![
        Cell::from(row.policy.as_str()),
        Cell::percent(row.hit_rate),
        Cell::percent(in_window(Window::Cold)),
        Cell::percent(in_window(Window::Steady)),
        Cell::Number(row.moved_per_token, 2),
        Cell::number(row.mib_per_token, 1),
    ];
    let timed = is_timed(report);
    for link in &row.links {
        let serial = Cell::Number(link.serial_ms_per_token, 3);
        if timed {
            cells.push(Cell::number(link.timeline_ms_per_token, 3));
        }
        if wide || !timed {
            cells.push(serial);
        }
    }
    cells.push(Cell::number(row.belady_ratio, 3));
    cells
}

/// The prices of a link in CSV.
type Price = (&'static str, fn(&LinkPrice) -> Option<f64>);

const PRICES: [Price; 4] = [
    ("serial_ms_per_token", |link| Some(link.serial_ms_per_token)),
    ("timeline_ms_per_token", |link| link.timeline_ms_per_token),
    ("prefetch_hidden_ms_per_token", |link| Some(link.prefetch_hidden_ms_per_token)),
    ("perfect_ms_per_token", |link| Some(link.perfect_ms_per_token)),
];

/// Every row in one table.
pub(crate) fn flat_rows(settings: &Settings, rows: &[Row]) -> Sheet {
    let names = [
        "policy",
        "scope",
        "capacity_slots",
        "capacity_share",
        "phase",
        "window",
        "semantics",
        "tokens",
        "accesses",
        "hits",
        "misses",
        "hit_rate",
        "demand_fetches",
        "unplaced",
        "overflow_events",
        "prefetches",
        "prefetches_used",
        "prefetches_wasted",
        "prefetches_cancelled",
        "host_served",
        "refetches",
        "moved_per_token",
        "mib_per_token",
        "belady_misses",
        "belady_ratio",
    ];
    let mut columns: Vec<Column> = names.iter().map(|name| Column::right(name, name)).collect();
    if rows.iter().any(|row| !row.links.is_empty()) {
        for link in &settings.links {
            columns.extend(PRICES.iter().map(|(price, _)| {
                let name = format!("{price}:{link}");
                Column::right(&name, &name)
            }));
        }
    }
    let mut sheet = Sheet::new("", columns);
    for row in rows {
        let mut cells = vec![
            Cell::from(row.policy.as_str()),
            row.scope.name().into(),
            Cell::Count(u64::from(row.capacity_slots)),
            Cell::Number(row.capacity_share, 4),
            row.phase.name().into(),
            row.window.name().into(),
            row.semantics.name().into(),
            Cell::Count(row.tokens),
            Cell::Count(row.accesses),
            Cell::Count(row.hits),
            Cell::Count(row.misses),
            Cell::number(row.hit_rate, 6),
            Cell::Count(row.demand_fetches),
            Cell::Count(row.unplaced),
            Cell::Count(row.overflow_events),
            Cell::Count(row.prefetches),
            Cell::Count(row.prefetches_used),
            Cell::Count(row.prefetches_wasted),
            Cell::Count(row.prefetches_cancelled),
            Cell::Count(row.host_served),
            Cell::Count(row.refetches),
            Cell::Number(row.moved_per_token, 4),
            Cell::number(row.mib_per_token, 4),
            Cell::Count(row.belady_misses),
            Cell::number(row.belady_ratio, 6),
        ];
        for link in &row.links {
            cells.extend(PRICES.iter().map(|(_, price)| Cell::number(price(link), 6)));
        }
        sheet.rows.push(cells);
    }
    sheet
}
