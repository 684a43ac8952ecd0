//! The page of a check against live runs: predicted against measured, with the diagonal.

use hotset_sim::{LiveReport, LiveRow};

use super::{Data, Figure, Page, Shape, positive};
use crate::{Cell, Columns, Field, one_line};

const COLUMNS: &[Field<LiveRow>] = &[
    Field::left("point", "point", |row| {
        format!(
            "{} {} {:.2} MiB {} {}",
            one_line(&row.trace),
            one_line(&row.link),
            row.expert_bytes as f64 / f64::from(1 << 20),
            row.slots,
            one_line(&row.prefetch)
        )
        .into()
    }),
    Field::left("link, prefetch", "series", |row| {
        format!("{}, {}", one_line(&row.link), one_line(&row.prefetch)).into()
    }),
    Field::right("live ms", "measured_ms", |row| Cell::Number(row.measured_ms, 4)),
    Field::right("predicted ms", "predicted_ms", |row| Cell::Number(row.predicted_ms, 4)),
    Field::right("error %", "error_percent", |row| Cell::percent(Some(row.error))),
    Field::right("compute ms", "compute_ms", |row| Cell::Number(row.spent.compute, 4)),
    Field::right("slowed ms", "slowed_ms", |row| Cell::Number(row.spent.slowed, 4)),
    Field::right("demand ms", "exposed_demand_ms", |row| Cell::Number(row.spent.exposed_demand, 4)),
    Field::right("prefetch ms", "exposed_prefetch_ms", |row| {
        Cell::Number(row.spent.exposed_prefetch, 4)
    }),
];

/// The page; `passed`: whether no check failed.
pub(crate) fn live(report: &LiveReport, passed: bool) -> Page {
    let sheet = Columns::of(COLUMNS).sheet("", &report.rows);
    let figure = |name, title: &str, reading: &str, shape| Figure {
        name,
        title: title.to_owned(),
        reading: reading.to_owned(),
        data: "points",
        switches: vec![],
        shape,
    };
    let all = ["compute_ms", "slowed_ms", "exposed_demand_ms", "exposed_prefetch_ms"];
    let parts = positive(&sheet, &all);
    Page {
        title: format!("Predicted against live runs: {}", one_line(&report.machine)),
        verdict: format!(
            "The check {}: {} live points are predicted with an error of {:.2}% at most and {:.2}% in the \
             median. Misses and prefetches of every token are {}.",
            if passed { "passes" } else { "FAILS" },
            report.rows.len(),
            report.max_error * 100.0,
            report.median_error * 100.0,
            if report.counts_exact { "those of the runs" } else { "NOT all those of the runs" },
        ),
        data: vec![Data { name: "points", sheet, switches: vec![], shown: false }],
        figures: vec![
            figure(
                "diagonal",
                "Predicted against measured, ms a token",
                "A point a live run: on the line, the prediction is right; above it, too slow.",
                Shape::Points {
                    x: "measured_ms",
                    y: "predicted_ms",
                    series: "series",
                    diagonal: true,
                },
            ),
            figure(
                "spent",
                "Where each predicted millisecond goes",
                "A bar a run, ms a token: compute, what copies slow it by, and the waiting that nothing hides.",
                Shape::Stacked { label: "point", parts, limit: None },
            ),
        ],
        sheets: None,
    }
}
