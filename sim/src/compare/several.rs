//! Several ways to handle misses beside each other.

use hotset_traces::Trace;

use super::compare;
use crate::{Compare, Named, ReplayProgress, Report, SimError};

/// A comparison under each of several ways to handle misses, each named by what gave it: one report,
/// whose rows say which way they are of. They share all else; one alone is a plain comparison.
///
/// # Errors
/// As [`compare()`]; [`SimError::NoMisses`] without any.
pub fn compare_misses(
    trace: &Trace,
    requests: &[Named<Compare>],
    progress: &impl ReplayProgress,
) -> Result<Report, SimError> {
    let Some((first, others)) = requests.split_first() else { return Err(SimError::NoMisses) };
    let mut report = compare(trace, &first.value, progress)?;
    if others.is_empty() {
        return Ok(report);
    }
    let told = |named: &Named<Compare>| (named.text.clone(), named.value.serving.misses);
    report.settings.misses = requests.iter().map(told).collect();
    report.rows.iter_mut().for_each(|row| row.miss = Some(first.text.clone()));
    for named in others {
        let mut more = compare(trace, &named.value, progress)?;
        more.rows.iter_mut().for_each(|row| row.miss = Some(named.text.clone()));
        report.rows.append(&mut more.rows);
        let new = more.warnings.into_iter().filter(|told| !report.warnings.contains(told));
        let new: Vec<String> = new.collect();
        report.warnings.extend(new);
    }
    Ok(report)
}
