//! A robust straight line.
//!
//! Theil and Sen: the slope is the median slope of all pairs of points, the intercept the median of what is left. A
//! few disturbed points do not move it, and it has no parameter to choose.

/// Slope and intercept through `(x, y)` points; `None` with fewer than two different `x`.
pub(super) fn theil_sen(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (index, (x1, y1)) in points.iter().enumerate() {
        for (x0, y0) in &points[..index] {
            if x0 != x1 {
                slopes.push((y1 - y0) / (x1 - x0));
            }
        }
    }
    let slope = median(&mut slopes)?;
    let mut rests: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    Some((slope, median(&mut rests)?))
}

pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_does_not_move_the_line() {
        // y = 3 + 2 x, but for one point.
        let points = [(0.0, 3.0), (1.0, 5.0), (2.0, 7.0), (3.0, 90.0), (4.0, 11.0)];
        assert_eq!(theil_sen(&points), Some((2.0, 3.0)));
    }

    #[test]
    fn one_place_makes_no_line() {
        assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(theil_sen(&[]), None);
    }
}
