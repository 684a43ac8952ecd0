//! What checked rows come to, by kind and engine.

use serde::Serialize;

use super::CheckedRow;
use super::numbers::median;

/// Rows of one kind, of one engine or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummaryRow {
    /// The kind.
    pub kind: String,
    /// The engine; `all` over all of them.
    pub engine: String,
    /// Rows.
    pub rows: usize,
    /// Of them, those that were predicted.
    pub answered: usize,
    /// Of those, the reports inside the range.
    pub inside: usize,
    /// Of those, the predictions within a tenth of the report.
    pub within_tenth: usize,
    /// The ranges' upper over lower ends, median; absent where all lower ends are 0.
    pub median_width: Option<f64>,
    /// Absolute error of the middle over the report, median.
    pub median_error: Option<f64>,
}

/// By kind in the order of their first row: each engine, then all.
pub(super) fn summary(rows: &[CheckedRow]) -> Vec<SummaryRow> {
    let mut summary = Vec::new();
    for kind in distinct(rows.iter().map(|row| row.kind.as_str())) {
        let of_kind: Vec<&CheckedRow> = rows.iter().filter(|row| row.kind == kind).collect();
        let engines = distinct(of_kind.iter().map(|row| row.engine.as_str()));
        for engine in &engines {
            let of_engine = of_kind.iter().copied().filter(|row| row.engine == *engine);
            summary.push(one(kind, engine, &of_engine.collect::<Vec<_>>()));
        }
        if engines.len() > 1 {
            summary.push(one(kind, "all", &of_kind));
        }
    }
    summary
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = std::collections::HashSet::new();
    names.filter(|name| known.insert(*name)).collect()
}

fn one(kind: &str, engine: &str, rows: &[&CheckedRow]) -> SummaryRow {
    let errors: Vec<f64> = rows.iter().filter_map(|row| row.error.map(f64::abs)).collect();
    let width = |row: &&CheckedRow| Some(row.high? / row.low.filter(|low| *low > 0.0)?);
    SummaryRow {
        kind: kind.to_owned(),
        engine: engine.to_owned(),
        rows: rows.len(),
        answered: errors.len(),
        inside: rows.iter().filter(|row| row.inside == Some(true)).count(),
        within_tenth: errors.iter().filter(|error| **error <= 0.1).count(),
        median_width: median(rows.iter().filter_map(width).collect()),
        median_error: median(errors),
    }
}
