//! Places, times and threads.

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
pub fn measured_step(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("'{text}' is not MS:MS, as in 28.67:5.95");
    let (first, more) = text.split_once(':').ok_or_else(wrong)?;
    Ok((milliseconds(first).map_err(|_| wrong())?, milliseconds(more).map_err(|_| wrong())?))
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
    fn a_measured_step_has_two_times() {
        assert_eq!(measured_step("28.67:5.95"), Ok((28.67, 5.95)));
        assert!(measured_step("28.67").unwrap_err().contains("28.67:5.95"));
    }
}
