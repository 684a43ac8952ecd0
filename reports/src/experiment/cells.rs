//! Cells of experiments' tables: names that break over lines, figures with a sign, intervals.

use hotset_experiments::Interval;

use crate::Cell;

/// An arm's name over several lines where it is long: a table is 80 columns wide.
pub(super) fn name(arm: &str) -> Cell {
    let mut lines: Vec<String> = Vec::new();
    for part in arm.split_inclusive(['/', ',']) {
        match part.split_once(':') {
            Some((name, parameters)) if part.len() > 16 => {
                lines.push(format!("{name}:"));
                lines.push(format!("  {parameters}"));
            }
            _ if lines.last().is_some_and(|line| line.ends_with(',')) => {
                lines.push(format!("  {part}"));
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines.join("\n").into()
}

/// `+1.23`, in this many decimals.
fn signed(value: f64, decimals: usize) -> String {
    match value.is_nan() {
        true => "-".to_owned(),
        false => format!("{value:+.decimals$}"),
    }
}

/// What an interval is around.
pub(super) fn estimate(interval: &Interval, scale: f64, decimals: usize) -> Cell {
    signed(interval.estimate * scale, decimals).into()
}

/// Its two ends.
pub(super) fn ends(interval: &Interval, scale: f64, decimals: usize) -> Cell {
    let [low, high] = [interval.low, interval.high].map(|end| signed(end * scale, decimals));
    format!("{low} {high}").into()
}

/// The two ends of an interval of a ratio, which has no sign.
pub(super) fn ends_of_ratio(interval: &Interval) -> Cell {
    match interval.low.is_nan() {
        true => "- -".into(),
        false => format!("{:.2} {:.2}", interval.low, interval.high).into(),
    }
}

/// Lines of at most `width` characters, broken at spaces.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
