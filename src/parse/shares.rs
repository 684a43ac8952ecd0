//! Shares, as `95%` or `0.95`.

/// A share as a number from 0 to 1: `25%` and `0.25` are the same.
pub fn share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let share = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse().map(|percent: f64| percent / 100.0),
        None => trimmed.parse(),
    };
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("'{text}' is not a share: give a share from 0% to 100%, as 95% or 0.95")),
    }
}

/// How far something may be off: a share above nothing.
#[cfg(feature = "cuda")]
pub fn error_share(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| match share > 0.0 {
        true => Ok(share),
        false => Err("nothing is never off: give a share above 0%".to_owned()),
    })
}

/// A share of the sequences in percent, neither none nor all: `50%`, `0.5`, and the plain number
/// `50`, which has always meant percent here.
pub fn training_share(text: &str) -> Result<f64, String> {
    match percent(text) {
        Some(percent) if 0.0 < percent && percent < 100.0 => Ok(percent),
        _ => Err(format!(
            "'{text}' is not a share to train on: give a share of the sequences between 0% and \
             100%, as 50% or 0.5"
        )),
    }
}

/// A share of the sequences in percent, above none and up to all: `10%` or `0.1`.
pub fn sample_share(text: &str) -> Result<f64, String> {
    match percent(text) {
        Some(percent) if 0.0 < percent && percent <= 100.0 => Ok(percent),
        _ => Err(format!(
            "'{text}' is not a share of the sequences: give one above 0% and up to 100%, as 10% or 0.1"
        )),
    }
}

/// Percent, as `10%`, `0.1` or, above 1, the plain number.
fn percent(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok(),
        None => match trimmed.parse::<f64>() {
            // Moved by two decimal places in the text, so that 0.07 is 7 and not 7.000000000000001.
            Ok(share) if share <= 1.0 => format!("{trimmed}e2").parse().ok(),
            percent => percent.ok(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_and_fractions_are_the_same() {
        for (percent, fraction, value) in
            [("95%", "0.95", 0.95), ("0%", "0", 0.0), ("100 %", "1", 1.0), ("12.5%", ".125", 0.125)]
        {
            assert_eq!(share(percent), Ok(value), "{percent}");
            assert_eq!(share(fraction), Ok(value), "{fraction}");
        }
        for wrong in ["", "%", "1.5", "95", "-0.1", "-1%", "101%", "nan", "NaN%", "inf", "x"] {
            let told = share(wrong).unwrap_err();
            assert!(told.contains(&format!("'{wrong}'")) && told.contains("0.95"), "{told}");
        }
    }

    #[test]
    fn a_sample_is_above_nothing_and_up_to_all() {
        for (text, percent) in [
            ("10%", 10.0),
            ("0.1", 10.0),
            ("100%", 100.0),
            ("1", 100.0),
            ("12.5", 12.5),
            ("0.07", 7.0),
        ] {
            assert_eq!(sample_share(text), Ok(percent), "{text}");
        }
        for wrong in ["0%", "0", "101%", "-5%", "nan", "inf", "x", "", "%"] {
            let told = sample_share(wrong).unwrap_err();
            assert!(told.contains(&format!("'{wrong}'")) && told.contains("as 10%"), "{told}");
        }
    }

    #[test]
    fn training_keeps_plain_percent() {
        for (text, percent) in
            [("50%", 50.0), ("50", 50.0), ("0.5", 50.0), ("0.07", 7.0), ("2", 2.0)]
        {
            assert_eq!(training_share(text), Ok(percent), "{text}");
        }
        for wrong in ["0%", "100%", "0", "1", "100", "-5", "nan", "1e-1e2", "x", ""] {
            assert!(training_share(wrong).unwrap_err().contains("between 0% and 100%"), "{wrong}");
        }
    }
}
