//! A comparison laid out: for people a table a size and phase, for CSV one flat table.

use hotset_sim::{Report, Row, Window};

use crate::{Cell, Column, Output, RenderError, Sheet};

/// A comparison in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn comparison(report: &Report) -> Result<Output, RenderError> {
    let mut output = Output::new(report, sheets(report))?;
    output.flat = Some(flat(report));
    output.warnings = report.warnings.clone();
    Ok(output)
}

fn sheets(report: &Report) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = Vec::new();
    let mut of_last = None;
    for row in report.rows.iter().filter(|row| row.window == Window::All) {
        let group = (row.phase, row.scope, row.capacity_slots);
        if of_last != Some(group) {
            of_last = Some(group);
            sheets.push(Sheet::new(title(report, row), columns(report)));
        }
        if let Some(sheet) = sheets.last_mut() {
            sheet.rows.push(cells(report, row));
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
    if let Some(first) = merged.first_mut() {
        first.title = format!("{}\n\n{}", headline(report), first.title);
    }
    if let Some(last) = merged.last_mut() {
        last.note = NOTE.to_owned();
    }
    merged
}

const NOTE: &str = "
hit: share of distinct experts found resident; cold: until the cache was full;
moved, MiB: experts and MiB copied a token; links: serial ms a token, which is
without overlap; x Belady: misses over those of Belady's MIN at the same size.
Definitions: docs/metrics.md";

fn headline(report: &Report) -> String {
    let trace = &report.trace;
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

fn title(report: &Report, row: &Row) -> String {
    let bytes = report.settings.expert_bytes.iter().max().copied().unwrap_or(0);
    let gib = bytes as f64 * f64::from(row.capacity_slots) / f64::from(1 << 30);
    let size = if bytes == 0 { String::new() } else { format!(", {gib:.2} GiB") };
    format!(
        "{} · {} scope · {} of {} slots ({:.1}%{size}) · {} semantics",
        row.phase.name(),
        row.scope.name(),
        crate::sheet::thousands(u64::from(row.capacity_slots)),
        crate::sheet::thousands(u64::from(report.trace.total_experts)),
        row.capacity_share * 100.0,
        row.semantics.name(),
    )
}

fn columns(report: &Report) -> Vec<Column> {
    let mut columns = vec![
        Column::left("policy", "policy"),
        Column::right("hit\n%", "hit"),
        Column::right("cold\n%", "cold"),
        Column::right("steady\n%", "steady"),
        Column::right("moved\n/token", "moved"),
        Column::right("MiB\n/token", "mib"),
    ];
    if has_prices(report) {
        columns.extend(report.settings.links.iter().map(|link| {
            // A long name breaks behind its first hyphen.
            let heading = link.replacen('-', "-\n", 1);
            Column::right(&heading, link)
        }));
    }
    columns.push(Column::right("x\nBelady", "x_belady"));
    columns
}

fn has_prices(report: &Report) -> bool {
    report.rows.iter().any(|row| !row.links.is_empty())
}

fn cells(report: &Report, row: &Row) -> Vec<Cell> {
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
    cells.extend(row.links.iter().map(|link| Cell::Number(link.serial_ms_per_token, 3)));
    cells.push(Cell::number(row.belady_ratio, 3));
    cells
}

fn flat(report: &Report) -> Sheet {
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
        "moved_per_token",
        "mib_per_token",
        "belady_misses",
        "belady_ratio",
    ];
    let mut columns: Vec<Column> = names.iter().map(|name| Column::right(name, name)).collect();
    if has_prices(report) {
        let links = report.settings.links.iter();
        columns.extend(links.map(|link| {
            let name = format!("serial_ms_per_token:{link}");
            Column::right(&name, &name)
        }));
    }
    let mut sheet = Sheet::new("", columns);
    for row in &report.rows {
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
            Cell::Number(row.moved_per_token, 4),
            Cell::number(row.mib_per_token, 4),
            Cell::Count(row.belady_misses),
            Cell::number(row.belady_ratio, 6),
        ];
        cells.extend(row.links.iter().map(|link| Cell::Number(link.serial_ms_per_token, 6)));
        sheet.rows.push(cells);
    }
    sheet
}
