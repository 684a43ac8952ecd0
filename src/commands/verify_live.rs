//! `hotset verify-live`: exit code 1 where the timeline is off.

use hotset::cost_models::{FitLabel, fit_links};
use hotset::sim::{LiveReport, LiveRow, verify_live};

use crate::cli::VerifyLiveArgs;
use crate::fault::{Ending, Fault};
use crate::input::{MOST_MEASUREMENT_BYTES, read_bytes};
use crate::output;

/// A point's time may be off by so much.
const MOST_ERROR: f64 = 0.03;
/// And half of the points by so much.
const MOST_MEDIAN: f64 = 0.01;

/// Fits the links, predicts every point and gives the table.
pub fn run(args: &VerifyLiveArgs) -> Result<Ending, Fault> {
    let path = args.links.display().to_string();
    let measurements = read_bytes(&args.links, MOST_MEASUREMENT_BYTES)?;
    let label = FitLabel { name: None, source: path.clone(), date: "undated".to_owned() };
    let fitted =
        fit_links(measurements.as_slice(), &label).map_err(|reason| Fault::Fit { path, reason })?;
    let report = verify_live(&args.points, &fitted.profile, &args.traces)?;
    let checks = hotset::reports::LiveChecks { times: times(&report), counts: counts(&report) };
    let mut output = hotset::reports::live(&report, &checks)?;
    output.warnings = fitted.warnings;
    output::give(&output, &args.output)?;
    for failure in checks.failures() {
        eprintln!("check failed: {failure}");
    }
    Ok(if checks.passed() { Ending::Passed } else { Ending::Failed })
}

fn name(row: &LiveRow) -> String {
    format!(
        "{} over {}, {} bytes, {} slots, prefetch {}",
        row.trace, row.link, row.expert_bytes, row.slots, row.prefetch
    )
}

/// Times that are off by more than they may, each in a sentence.
fn times(report: &LiveReport) -> Vec<String> {
    let mut failures = Vec::new();
    let percent = |share: f64| format!("{:.2}%", share * 100.0);
    for row in report.rows.iter().filter(|row| row.error > MOST_ERROR) {
        let error = percent(row.error);
        failures.push(format!("{}: off by {error}, at most 3% is allowed", name(row)));
    }
    if report.median_error > MOST_MEDIAN {
        let error = percent(report.median_error);
        failures.push(format!("the median error is {error}, at most 1% is allowed"));
    }
    failures
}

/// Points whose misses or prefetches are not the run's, each in a sentence.
fn counts(report: &LiveReport) -> Vec<String> {
    let differ = report.rows.iter().filter(|row| !row.counts_match || row.tokens_miscounted > 0);
    let sentence = |row: &LiveRow| {
        format!(
            "{}: {:.4} misses and {:.4} prefetches a token, the run had {:.4} and {:.4} \
             ({} tokens differ)",
            name(row),
            row.predicted_misses_per_token,
            row.predicted_prefetches_per_token,
            row.measured_misses_per_token,
            row.measured_prefetches_per_token,
            row.tokens_miscounted
        )
    };
    differ.map(sentence).collect()
}
