//! How long work took, where and when.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Seconds that a piece of work took this thread.
pub fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (begun, before) = (Instant::now(), on_processor());
    let result = std::hint::black_box(work());
    match (before, on_processor()) {
        (Some(before), Some(after)) => (after - before, result),
        _ => (begun.elapsed().as_secs_f64(), result),
    }
}

/// Seconds that this thread has run on a processor, where the system tells it.
fn on_processor() -> Option<f64> {
    // The account is brought up to date when a thread yields.
    std::thread::yield_now();
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = account.split(' ').next()?.parse().ok()?;
    (nanoseconds > 0.0).then_some(nanoseconds / 1e9)
}

/// Processor and date.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let days =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86400);
    let (year, month, day) = date(days as i64);
    format!(
        "Measured {year}-{month:02}-{day:02} on {}, {cores} processors.\n",
        model.trim_start_matches([' ', '\t', ':']),
    )
}

/// The date of a day since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
