//! Reports of people: the goals that predictions of speed keep on those at hand.

use hotset_planning::verify::{Known, Reports, SummaryRow, VerifyReport, verify};
use hotset_traces::testing::shared;

fn reported() -> Option<VerifyReport> {
    let path = shared("reported/speeds.csv")?;
    let mut reports = Reports::default();
    reports.add(&std::fs::read(path).unwrap(), "speeds.csv").unwrap();
    Some(verify(&reports, &Known::builtin()))
}

fn all<'a>(report: &'a VerifyReport, kind: &str) -> &'a SummaryRow {
    report.summary.iter().find(|row| row.kind == kind && row.engine == "all").unwrap()
}

#[test]
fn speeds_as_people_measured_them() {
    let Some(report) = reported() else { return };
    for row in &report.rows {
        match (row.predicted, &row.why_not) {
            (Some(predicted), _) => println!(
                "{} {} {} {} reported {:.1} predicted {predicted:.1} {:+.0}% {}",
                row.id,
                row.engine,
                row.kind,
                row.model,
                row.reported,
                row.error.unwrap_or(0.0) * 100.0,
                if row.inside == Some(true) { "" } else { "OUT" }
            ),
            (None, why) => {
                println!("{} {} {} {}: {why:?}", row.id, row.engine, row.kind, row.model)
            }
        }
    }
    for row in &report.summary {
        println!("{row:?}");
    }
    assert!(report.faulty > 0, "faulty set-ups are left out");
    let decode = all(&report, "decode");
    assert!(decode.answered * 10 >= decode.rows * 6, "{decode:?}");
    assert!(decode.inside * 10 >= decode.answered * 8, "{decode:?}");
    assert!(decode.median_width.unwrap() <= 1.8, "{decode:?}");
    assert!(decode.median_error.unwrap() <= 0.2, "{decode:?}");
    let prefill = all(&report, "prefill");
    assert!(prefill.answered * 10 >= prefill.rows * 5, "{prefill:?}");
    assert!(prefill.inside * 10 >= prefill.answered * 8, "{prefill:?}");
    assert!(prefill.median_error.unwrap() <= 0.3, "{prefill:?}");
}

#[test]
fn what_is_not_answered_says_why() {
    let Some(report) = reported() else { return };
    for row in report.rows.iter().filter(|row| row.predicted.is_none()) {
        assert!(row.why_not.as_ref().is_some_and(|why| why.len() > 20), "{row:?}");
    }
}
