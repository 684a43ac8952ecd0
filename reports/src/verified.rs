//! Reports beside predictions laid out: every row, then what they come to.

use hotset_planning::verify::{CheckedRow, SummaryRow, VerifyReport};

use crate::experiment::cells::wrap;
use crate::{Cell, Field, Output, RenderError, Sheet};

/// Reports held against plans, in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn verified(report: &VerifyReport) -> Result<Output, RenderError> {
    let answered = || report.rows.iter().filter(|row| row.why_not.is_none());
    let open: Vec<&CheckedRow> = report.rows.iter().filter(|row| row.why_not.is_some()).collect();
    let rows = Sheet::of("predicted beside reported", ROWS, answered());
    let mut summary = Sheet::of("by kind and engine", SUMMARY, &report.summary);
    summary.note =
        "in 10%: predicted within a tenth of the report; width: a range's upper over its\n\
                    lower end; error: of the middle, without its sign"
            .to_owned();
    if report.faulty > 0 {
        summary.note += &format!("\n{} rows left out: column faulty is 1", report.faulty);
    }
    let mut sheets = vec![rows];
    if !open.is_empty() {
        sheets.push(Sheet::of("not answered", OPEN, open));
    }
    sheets.push(summary);
    let mut output = Output::new(report, sheets)?;
    output.flat = Some(Sheet::of("", FLAT, &report.rows));
    Ok(output)
}

/// Figures of four digits or more need none behind the point.
fn figure(value: Option<f64>) -> Cell {
    let places = match value {
        Some(value) if value.abs() >= 1000.0 => 0,
        Some(value) if value.abs() >= 100.0 => 1,
        _ => 2,
    };
    Cell::number(value, places)
}

/// A text of a report, as long as a column of the terminal bears.
fn short(text: &str, most: usize) -> Cell {
    let cut: String = text.chars().take(most).collect();
    cut.as_str().into()
}

const ROWS: &[Field<CheckedRow>] = &[
    Field::left("id", "id", |row| short(&row.id, 12)),
    Field::left("kind", "kind", |row| short(&row.kind, 19)),
    Field::right("reported", "reported", |row| figure(Some(row.reported))),
    Field::right("predicted", "predicted", |row| figure(row.predicted)),
    Field::right("low", "low", |row| figure(row.low)),
    Field::right("high", "high", |row| figure(row.high)),
    Field::left("", "inside", |row| if row.inside == Some(true) { "in" } else { "OUT" }.into()),
    Field::right("error\n%", "error_percent", |row| match row.error {
        Some(error) => Cell::Text(format!("{:+.1}", error * 100.0)),
        None => Cell::percent(None),
    }),
];

const OPEN: &[Field<CheckedRow>] = &[
    Field::left("id", "id", |row| short(&row.id, 12)),
    Field::left("kind", "kind", |row| short(&row.kind, 19)),
    Field::left("why not", "why_not", |row| {
        wrap(row.why_not.as_deref().unwrap_or_default(), 44).join("\n").as_str().into()
    }),
];

const SUMMARY: &[Field<SummaryRow>] = &[
    Field::left("kind", "kind", |row| short(&row.kind, 19)),
    Field::left("engine", "engine", |row| short(&row.engine, 14)),
    Field::right("rows", "rows", |row| Cell::Count(row.rows as u64)),
    Field::right("answered", "answered", |row| Cell::Count(row.answered as u64)),
    Field::right("inside", "inside", |row| Cell::Count(row.inside as u64)),
    Field::right("in\n10%", "within_tenth", |row| Cell::Count(row.within_tenth as u64)),
    Field::right("width", "median_width", |row| Cell::number(row.median_width, 2)),
    Field::right("error\n%", "median_error_percent", |row| Cell::percent(row.median_error)),
];

const FLAT: &[Field<CheckedRow>] = &[
    Field::left("id", "id", |row| row.id.as_str().into()),
    Field::left("kind", "kind", |row| row.kind.as_str().into()),
    Field::left("engine", "engine", |row| row.engine.as_str().into()),
    Field::left("model", "model", |row| row.model.as_str().into()),
    Field::left("unit", "unit", |row| row.unit.as_str().into()),
    Field::right("reported", "reported", |row| Cell::Number(row.reported, 4)),
    Field::right("predicted", "predicted", |row| Cell::number(row.predicted, 4)),
    Field::right("low", "low", |row| Cell::number(row.low, 4)),
    Field::right("high", "high", |row| Cell::number(row.high, 4)),
    Field::left("inside", "inside", |row| match row.inside {
        Some(inside) => if inside { "yes" } else { "no" }.into(),
        None => "".into(),
    }),
    Field::right("error", "error", |row| Cell::number(row.error, 6)),
    Field::left("why_not", "why_not", |row| row.why_not.as_deref().unwrap_or_default().into()),
];
