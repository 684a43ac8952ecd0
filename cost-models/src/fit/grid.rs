//! Points to a curve.
//!
//! A curve needs every burst length at every size and may not fall. Lengths that were not measured follow the line
//! through the two before them. Noise only ever adds time: where something larger measured faster, or fewer transfers
//! faster each, the slower point was disturbed and is lowered to what the other one allows.

use super::error::FitError;
use super::residuals::Errors;
use super::table::Points;
use crate::curve::BurstCurve;

/// The curve through a link's points in one mode.
pub(super) fn fit_curve(points: &Points, link: &str, mode: &str) -> Result<BurstCurve, FitError> {
    let too_few =
        |why: String| FitError::TooFewPoints { link: link.into(), mode: mode.into(), why };
    let mut bytes: Vec<u64> = points.keys().map(|(bytes, _)| *bytes).collect();
    bytes.dedup();
    let mut transfers: Vec<u32> = points.keys().map(|(_, transfers)| *transfers).collect();
    transfers.sort_unstable();
    transfers.dedup();
    if bytes.len() < 2 {
        let why = format!("{} transfer size measured, a curve needs at least 2", bytes.len());
        return Err(too_few(why));
    }
    let mut ps = Vec::with_capacity(bytes.len());
    for &size in &bytes {
        if !points.contains_key(&(size, 1)) {
            return Err(too_few(format!("a single transfer of {size} bytes was not measured")));
        }
        ps.push(fill_row(points, size, &transfers));
    }
    if transfers[0] != 1 {
        return Err(too_few("no single transfer was measured".into()));
    }
    lower_disturbed(&mut ps, &transfers);
    Ok(BurstCurve { bytes, transfers, ps })
}

fn fill_row(points: &Points, size: u64, transfers: &[u32]) -> Vec<u64> {
    let mut row: Vec<u64> = Vec::with_capacity(transfers.len());
    for (index, &count) in transfers.iter().enumerate() {
        let measured = points.get(&(size, count)).copied();
        row.push(measured.unwrap_or_else(|| {
            // The single transfer is there, so there is one before.
            let (slope, from) = if index >= 2 {
                let steps = u64::from(transfers[index - 1] - transfers[index - 2]);
                (row[index - 1].saturating_sub(row[index - 2]) / steps, index - 1)
            } else {
                (row[0], 0)
            };
            row[from].saturating_add(slope.saturating_mul(u64::from(count - transfers[from])))
        }));
    }
    row
}

/// Lowers each time to the least of any larger size or longer burst, so that none falls, and to what the next shorter
/// burst takes a transfer, so that none costs more for being longer. Each can undo the other, so until both hold.
pub(super) fn lower_disturbed(ps: &mut [Vec<u64>], transfers: &[u32]) {
    loop {
        let before = ps.to_vec();
        for size in (0..ps.len()).rev() {
            for burst in (0..ps[size].len()).rev() {
                let larger = ps.get(size + 1).map_or(u64::MAX, |row| row[burst]);
                let longer = ps[size].get(burst + 1).copied().unwrap_or(u64::MAX);
                ps[size][burst] = ps[size][burst].min(larger).min(longer);
            }
        }
        for row in &mut *ps {
            for burst in 1..row.len() {
                let (shorter, longer) = (transfers[burst - 1], transfers[burst]);
                let each = u128::from(row[burst - 1]) * u128::from(longer) / u128::from(shorter);
                row[burst] = row[burst].min(u64::try_from(each).unwrap_or(u64::MAX));
            }
        }
        if before == ps {
            return;
        }
    }
}

/// How far the curve is from its own points: what monotony cost.
pub(super) fn at_points(curve: &BurstCurve, points: &Points) -> Errors {
    let errors = points
        .iter()
        .map(|(&(bytes, transfers), &ps)| relative(curve.burst_ps(bytes, transfers), ps));
    Errors::of(errors.collect())
}

/// How far interpolation is: each inner size predicted from its neighbours, without itself.
pub(super) fn left_out(curve: &BurstCurve, points: &Points) -> Option<Errors> {
    let mut errors = Vec::new();
    for inner in 1..curve.bytes.len() - 1 {
        let mut without = curve.clone();
        let size = without.bytes.remove(inner);
        without.ps.remove(inner);
        for (&(_, transfers), &ps) in points.range((size, 0)..=(size, u32::MAX)) {
            errors.push(relative(without.burst_ps(size, transfers), ps));
        }
    }
    (!errors.is_empty()).then(|| Errors::of(errors))
}

fn relative(predicted: u64, measured: u64) -> f64 {
    (predicted as f64 - measured as f64).abs() / measured as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[((u64, u32), u64)]) -> Points {
        of.iter().copied().collect()
    }

    #[test]
    fn unmeasured_bursts_follow_the_line_before_them() {
        let measured = points(&[
            ((10, 1), 5),
            ((10, 2), 8),
            ((20, 1), 9),
            ((20, 2), 15),
            ((20, 4), 27),
            ((30, 1), 13),
        ]);
        let curve = fit_curve(&measured, "l", "copy").unwrap();
        assert_eq!(curve.transfers, [1, 2, 4]);
        // 10 bytes: 8 and 3 for each of two more. 30 bytes: one cost 13, so two cost 26, and four 13 each more.
        assert_eq!(curve.ps, [vec![5, 8, 14], vec![9, 15, 27], vec![13, 26, 52]]);
        curve.validate("l", "copy").unwrap();
    }

    #[test]
    fn a_point_slower_than_a_larger_one_was_disturbed() {
        let measured = points(&[((10, 1), 7), ((20, 1), 6), ((30, 1), 9)]);
        let curve = fit_curve(&measured, "l", "copy").unwrap();
        assert_eq!(curve.ps, [vec![6], vec![6], vec![9]]);
        let errors = at_points(&curve, &measured);
        assert!((errors.max - 1.0 / 7.0).abs() < 1e-12);
        assert_eq!(errors.median, 0.0);
    }

    #[test]
    fn a_burst_slower_than_its_copies_alone_was_disturbed() {
        let measured = points(&[((10, 1), 5), ((10, 2), 11), ((20, 1), 9), ((20, 2), 18)]);
        let curve = fit_curve(&measured, "l", "copy").unwrap();
        assert_eq!(curve.ps, [vec![5, 10], vec![9, 18]]);
        curve.validate("l", "copy").unwrap();
    }

    #[test]
    fn leaving_a_size_out_shows_what_interpolation_costs() {
        let measured = points(&[((10, 1), 10), ((20, 1), 16), ((30, 1), 30)]);
        let curve = fit_curve(&measured, "l", "copy").unwrap();
        // The line from 10 to 30 says 20 at 20 bytes, where 16 was measured.
        assert_eq!(left_out(&curve, &measured), Some(Errors { median: 0.25, max: 0.25 }));
        let two = points(&[((10, 1), 10), ((30, 1), 30)]);
        assert_eq!(left_out(&fit_curve(&two, "l", "copy").unwrap(), &two), None);
    }

    #[test]
    fn too_few_points_are_refused() {
        let message = |of: &[_]| fit_curve(&points(of), "l", "copy").unwrap_err().to_string();
        assert_eq!(
            message(&[((10, 1), 5), ((10, 2), 8)]),
            "l, copy: 1 transfer size measured, a curve needs at least 2"
        );
        assert_eq!(
            message(&[((10, 1), 5), ((20, 2), 8)]),
            "l, copy: a single transfer of 20 bytes was not measured"
        );
    }
}
