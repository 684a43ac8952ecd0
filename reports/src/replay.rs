//! One setting in full laid out: phases, prices, step times, where the time went, layers.

use hotset_sim::{Breakdown, LayerRow, ReplayReport, Row, StepTimes, Window};

use crate::compare::{flat_rows, headline, title};
use crate::{Cell, Column, Output, RenderError, Sheet};

/// A replay in full in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn in_full(report: &ReplayReport) -> Result<Output, RenderError> {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.window == Window::All).collect();
    let mut sheets = vec![counts(report), prices(&rows), steps(&report.step_times), spent(&rows)];
    for row in &rows {
        let of_phase: Vec<&LayerRow> =
            report.layers.iter().filter(|layer| layer.phase == row.phase).collect();
        sheets.push(layers(row, &of_phase));
    }
    if let Some(last) = sheets.last_mut() {
        last.note = "definitions: docs/metrics.md".to_owned();
    }
    let mut output = Output::new(report, sheets)?;
    output.flat = Some(flat_rows(&report.settings, &report.rows));
    output.warnings.clone_from(&report.warnings);
    Ok(output)
}

fn counts(report: &ReplayReport) -> Sheet {
    let mut sheet = Sheet::new(
        "",
        vec![
            Column::left("phase", "phase"),
            Column::left("window", "window"),
            Column::right("tokens", "tokens"),
            Column::right("hit\n%", "hit_percent"),
            Column::right("demand\n/token", "demand_per_token"),
            Column::right("prefetch\n/token", "prefetch_per_token"),
            Column::right("used\n%", "prefetches_used_percent"),
            Column::right("host\n/token", "host_served_per_token"),
            Column::right("MiB\n/token", "mib_per_token"),
            Column::right("x\nBelady", "belady_ratio"),
        ],
    );
    let row = |row: &Row| {
        let per_token = |count: u64| Cell::Number(count as f64 / row.tokens as f64, 2);
        let used = row.prefetches_used as f64 / row.prefetches as f64;
        vec![
            row.phase.name().into(),
            row.window.name().into(),
            Cell::Count(row.tokens),
            Cell::percent(row.hit_rate),
            per_token(row.demand_fetches),
            per_token(row.prefetches),
            Cell::percent((row.prefetches > 0).then_some(used)),
            per_token(row.host_served),
            Cell::number(row.mib_per_token, 1),
            Cell::number(row.belady_ratio, 3),
        ]
    };
    sheet.rows = report.rows.iter().map(row).collect();
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

fn prices(rows: &[&Row]) -> Sheet {
    let mut sheet = Sheet::new(
        "ms a token",
        vec![
            Column::left("phase", "phase"),
            Column::left("link", "link"),
            Column::right("serial", "serial_ms_per_token"),
            Column::right("timeline", "timeline_ms_per_token"),
            Column::right("prefetch hidden", "prefetch_hidden_ms_per_token"),
            Column::right("perfect", "perfect_ms_per_token"),
        ],
    );
    for row in rows {
        sheet.rows.extend(row.links.iter().map(|link| {
            vec![
                row.phase.name().into(),
                link.link.as_str().into(),
                Cell::Number(link.serial_ms_per_token, 4),
                Cell::number(link.timeline_ms_per_token, 4),
                Cell::Number(link.prefetch_hidden_ms_per_token, 4),
                Cell::Number(link.perfect_ms_per_token, 4),
            ]
        }));
    }
    sheet
}

fn steps(times: &[StepTimes]) -> Sheet {
    let mut sheet = Sheet::new(
        "ms a step on the timeline (a decode step of one request is a token)",
        vec![
            Column::left("phase", "phase"),
            Column::left("window", "window"),
            Column::left("link", "link"),
            Column::right("steps", "steps"),
            Column::right("mean", "mean_ms"),
            Column::right("p50", "p50_ms"),
            Column::right("p90", "p90_ms"),
            Column::right("p99", "p99_ms"),
            Column::right("max", "max_ms"),
        ],
    );
    let row = |times: &StepTimes| {
        vec![
            times.phase.name().into(),
            times.window.name().into(),
            times.link.as_str().into(),
            Cell::Count(times.steps),
            Cell::Number(times.mean_ms, 3),
            Cell::Number(times.p50_ms, 3),
            Cell::Number(times.p90_ms, 3),
            Cell::Number(times.p99_ms, 3),
            Cell::Number(times.max_ms, 3),
        ]
    };
    sheet.rows = times.iter().map(row).collect();
    sheet
}

fn spent(rows: &[&Row]) -> Sheet {
    let mut sheet = Sheet::new(
        "where the timeline's time went, ms a token",
        vec![
            Column::left("phase", "phase"),
            Column::left("link", "link"),
            Column::right("compute", "compute_ms"),
            Column::right("slowed", "slowed_ms"),
            Column::right("exposed\ndemand", "exposed_demand_ms"),
            Column::right("exposed\nprefetch", "exposed_prefetch_ms"),
            Column::right("exposed\nhost", "exposed_host_ms"),
            Column::right("drained", "drained_ms"),
            Column::right("link\nidle", "idle_link_ms"),
        ],
    );
    for row in rows {
        sheet.rows.extend(row.links.iter().filter_map(|link| {
            let time = link.time?;
            let mut cells = vec![row.phase.name().into(), link.link.as_str().into()];
            cells.extend(parts(&time).map(|ms| Cell::Number(ms, 3)));
            Some(cells)
        }));
    }
    sheet
}

fn parts(time: &Breakdown) -> [f64; 7] {
    [
        time.compute_ms,
        time.slowed_ms,
        time.exposed_demand_ms,
        time.exposed_prefetch_ms,
        time.exposed_host_ms,
        time.drained_ms,
        time.idle_link_ms,
    ]
}

fn layers(row: &Row, layers: &[&LayerRow]) -> Sheet {
    let mut columns = vec![
        Column::right("layer", "layer"),
        Column::right("experts\n/step", "experts_per_step"),
        Column::right("hit\n%", "hit_percent"),
        Column::right("demand\n/token", "demand_per_token"),
        Column::right("prefetch\n/token", "prefetch_per_token"),
    ];
    columns.extend(row.links.iter().map(|link| {
        let heading = link.link.replacen('-', "-\n", 1);
        Column::right(&heading, &format!("ms_per_token:{}", link.link))
    }));
    let mut sheet =
        Sheet::new(format!("{} by layer; links: ms a token", row.phase.name()), columns);
    let cells = |layer: &&LayerRow| {
        let per_token = |count: u64| Cell::Number(count as f64 / row.tokens as f64, 3);
        let mut cells = vec![
            Cell::Count(layer.layer.into()),
            Cell::Number(layer.experts_per_step, 2),
            Cell::percent(layer.hit_rate),
            per_token(layer.demand_fetches),
            per_token(layer.prefetches),
        ];
        cells.extend(layer.links.iter().map(|link| Cell::Number(link.ms_per_token, 4)));
        cells
    };
    sheet.rows = layers.iter().map(cells).collect();
    sheet
}
