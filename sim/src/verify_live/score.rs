//! How far predictions lie from measurements.

/// The middle of the values, the mean of both middles of an even number; `None` without any.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => Some(values[middle]),
        _ => values.get(middle).map(|high| (values[middle - 1] + high) / 2.0),
    }
}

/// The value that `percent` of them do not exceed (nearest rank); 0 without any.
pub(super) fn percentile(mut values: Vec<f64>, percent: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.clamp(1, values.len().max(1)) - 1).copied().unwrap_or(0.0)
}

/// Share of the measured times' variance that the predictions explain: one minus the squared
/// differences over the squared deviations from the mean. 1 is perfect, 0 no better than the mean;
/// `None` where the measured times do not vary.
pub(super) fn r_squared(predicted: &[f64], measured: &[f64]) -> Option<f64> {
    let mean = measured.iter().sum::<f64>() / measured.len() as f64;
    let spread: f64 = measured.iter().map(|value| (value - mean).powi(2)).sum();
    let missed: f64 = predicted.iter().zip(measured).map(|(p, m)| (p - m).powi(2)).sum();
    (spread > 0.0).then(|| 1.0 - missed / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_hand() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
        assert_eq!(percentile(vec![5.0, 1.0, 3.0], 50.0), 3.0);
        // Deviations 1, 0, 1; differences 0, 1, 0.
        assert_eq!(r_squared(&[1.0, 3.0, 3.0], &[1.0, 2.0, 3.0]), Some(0.5));
        assert_eq!(r_squared(&[1.0], &[1.0]), None);
    }
}
