//! Places, times and threads.

use hotset::planning::MeasuredStep;

/// A stretch of places: `3`, or `0..10`, which leaves 10 out.
pub fn span(text: &str) -> Result<std::ops::Range<usize>, String> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)),
        None => number(text).map(|place| (place, place.saturating_add(1))),
    };
    match range {
        Some((from, to)) if from < to => Ok(from..to),
        _ => Err(format!("'{text}' is no place and no range: give 3, or 0..10")),
    }
}

/// A measured step: milliseconds of one token and of each further one, `28.67:5.95`.
pub fn measured_step(text: &str) -> Result<MeasuredStep, String> {
    let wrong = || format!("'{text}' is not MS:MS, as in 28.67:5.95");
    let (first, further) = text.split_once(':').ok_or_else(wrong)?;
    Ok(MeasuredStep {
        first_ms: milliseconds(first).map_err(|_| wrong())?,
        further_ms: milliseconds(further).map_err(|_| wrong())?,
    })
}

/// A rate in bytes a second: `57GB/s`, `21.5GiB/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 2] = [("GiB/s", (1u64 << 30) as f64), ("GB/s", 1e9)];
    let rate = UNITS.iter().find_map(|(unit, bytes)| {
        Some(text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()? * bytes)
    });
    match rate {
        Some(rate) if (1e3..=1e15).contains(&rate) => Ok(rate),
        _ => Err(format!("'{text}' is not a rate: give 57GB/s or 21.5GiB/s")),
    }
}

/// Experts copied for each one needed.
pub fn copies(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(copies) if (0.0..=1e6).contains(&copies) => Ok(copies),
        _ => Err("give how many experts are copied for each one needed, as 2.0".to_owned()),
    }
}

/// A number of threads that makes sense.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("give 1 to 1024 threads".to_owned()),
    }
}

/// A positive time in milliseconds.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ms) if (0.0..=1e9).contains(&ms) => Ok(ms),
        _ => Err("give milliseconds, 0 to 1,000,000,000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_in_both_units() {
        assert_eq!(rate("57GB/s"), Ok(57e9));
        assert_eq!(rate("0.5 GiB/s"), Ok(536_870_912.0));
        for wrong in ["57", "57GB", "-1GB/s", "nanGB/s", "0GB/s", "1e30GB/s"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_measured_step_has_two_times() {
        let step = MeasuredStep { first_ms: 28.67, further_ms: 5.95 };
        assert_eq!(measured_step("28.67:5.95"), Ok(step));
        assert!(measured_step("28.67").unwrap_err().contains("28.67:5.95"));
    }
}
