//! Reports of people: the goals that predictions of memory keep on those at hand.

use hotset_planning::verify::{CheckedRow, Known, Reports, VerifyReport, verify};
use hotset_traces::testing::shared;

fn reported() -> Option<VerifyReport> {
    let path = shared("reported/memory.csv")?;
    let mut reports = Reports::default();
    reports.add(&std::fs::read(path).unwrap(), "memory.csv").unwrap();
    Some(verify(&reports, &Known::builtin()))
}

fn told(report: &VerifyReport) {
    for row in &report.rows {
        let error = row.error.map_or("-".into(), |error| format!("{:+.1}%", error * 100.0));
        println!(
            "{} {} {} | {} {} | {:.2} {:.2} [{:.2} {:.2}] {error} {}",
            row.id,
            row.engine,
            row.model,
            row.kind,
            row.unit,
            row.reported,
            row.predicted.unwrap_or(f64::NAN),
            row.low.unwrap_or(f64::NAN),
            row.high.unwrap_or(f64::NAN),
            row.why_not.as_deref().unwrap_or_default()
        );
    }
    for row in &report.summary {
        println!(
            "{:20} {:14} rows {:3} answered {:3} inside {:3} in 10% {:3} width {:?} error {:?}",
            row.kind,
            row.engine,
            row.rows,
            row.answered,
            row.inside,
            row.within_tenth,
            row.median_width.map(|w| (w * 100.0).round() / 100.0),
            row.median_error.map(|e| (e * 1000.0).round() / 10.0)
        );
    }
}

#[test]
fn memory_as_people_measured_it() {
    let Some(report) = reported() else { return };
    told(&report);
    let _: Vec<&CheckedRow> = report.rows.iter().collect();
}
