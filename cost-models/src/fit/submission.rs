//! What copies cost that a layer waits for, from rounds of kernel, copies, kernel.
//!
//! A round is a kernel, an event, n copies with an event each, a wait for them all, and another kernel. What it takes
//! beyond two kernels in a chain and the burst of copies is the hand-off between the streams and what copies pay that
//! come one by one, by size and number.

use super::grid;
use super::line::theil_sen;
use super::residuals::{Errors, Residual};
use super::table::{Points, Table};
use crate::curve::BurstCurve;
use crate::link::{Link, Submission, TransferCost};
use crate::machine::HbmModel;

/// Rounds, the nearest to a cache's own first: copies from and to random places of a pool as large as all experts, and
/// copies from wherever the program took them.
pub(super) const ROUND_MODES: [&str; 2] = ["scattered-chain", "chain"];

/// Kernels in a round.
const KERNELS: u64 = 2;

/// How far the fitted rounds are from the measured ones.
pub(super) struct Rounds {
    pub residual: Residual,
    /// By how much copies in rounds were slower than in bursts, as a share of their time: drift between sessions.
    pub drift: f64,
}

/// Fits the rounds of `measured` (the link's name in the file) for a link whose curve is fitted already: its
/// `submission` and its `rounds`, and bursts that were disturbed. `None`, and the link as it was, where there are no
/// such rows or no row without copies.
pub(super) fn fit_rounds(
    table: &Table,
    measured: &str,
    link: &mut Link,
    hbm: &HbmModel,
) -> Option<Rounds> {
    let (mode, rounds) =
        ROUND_MODES.iter().find_map(|mode| Some((mode, table.points(measured, mode)?)))?;
    let (&(kernel_bytes, _), _) =
        table.points("hbm", "chain")?.iter().find(|(key, _)| key.1 == 0)?;
    let kernels = hbm.kernel_ps(kernel_bytes, 1).saturating_mul(KERNELS);
    let (&(smallest, _), _) = rounds.iter().next()?;
    let spacing = least_spacing(rounds, smallest)?;
    lower_bursts(link, rounds, kernels);
    // Never more than a copy alone: a queue must not cost more than its copies one by one.
    let copy_ps = spacing.min(link.transfer_ps(smallest));
    link.submission = Submission { handoff_ps: 0, copy_ps };
    // The burst and what the round takes beyond it and its kernels. The intercept is the hand-off: what is paid however
    // long the burst. The slope is how much slower the link was that day, and no cost of submitting.
    let beyond: Vec<(f64, f64)> = rounds
        .iter()
        .map(|(&(bytes, copies), &ps)| {
            let burst = link.demand_ps(bytes, copies) as f64;
            (burst, ps as f64 - kernels as f64 - burst)
        })
        .collect();
    let (drift, handoff) = theil_sen(&beyond)?;
    link.submission.handoff_ps = handoff.max(0.0).round() as u64;
    link.rounds = round_curve(link, rounds, kernels, drift);
    let errors = rounds.iter().map(|(&(bytes, copies), &ps)| {
        let predicted = link.demand_ps(bytes, copies).saturating_add(kernels);
        (predicted as f64 - ps as f64).abs() / ps as f64
    });
    let residual = Residual {
        link: measured.into(),
        mode: (*mode).into(),
        points: rounds.len(),
        at_points: Errors::of(errors.collect()),
        left_out: None,
    };
    Some(Rounds { residual, drift })
}

/// A round contains its burst: a burst that took longer than the whole round was disturbed, and is lowered to it.
fn lower_bursts(link: &mut Link, rounds: &Points, kernels: u64) {
    let TransferCost::Curve(curve) = &mut link.cost else { return };
    for (&(bytes, copies), &ps) in rounds {
        let found = (curve.bytes.binary_search(&bytes), curve.transfers.binary_search(&copies));
        if let (Ok(size), Ok(burst)) = found {
            let most = ps.saturating_sub(kernels).max(1);
            curve.ps[size][burst] = curve.ps[size][burst].min(most);
        }
    }
    grid::lower_disturbed(&mut curve.ps, &curve.transfers);
}

/// The rounds without their kernels, at every size of the link's own curve: the burst and what the rounds of that many
/// copies took beyond it, between measured sizes on a line.
///
/// A link that was slower in rounds (`drift` above zero) had a worse hour, and that share of the burst is left out, the
/// hand-off never. One that was faster shows what the bursts could have taken: noise only ever adds time.
fn round_curve(link: &Link, rounds: &Points, kernels: u64, drift: f64) -> Option<BurstCurve> {
    let TransferCost::Curve(bursts) = &link.cost else { return None };
    let mut transfers: Vec<u32> = rounds.keys().map(|(_, copies)| *copies).collect();
    transfers.sort_unstable();
    transfers.dedup();
    let beyond: Vec<Vec<(u64, f64)>> = transfers
        .iter()
        .map(|&copies| {
            let same = rounds.iter().filter(|((_, n), _)| *n == copies);
            let beyond = |(&(bytes, n), &ps): (&(u64, u32), &u64)| {
                let burst = link.burst_ps(bytes, n) as f64;
                let whole = (ps as f64 - kernels as f64 - burst).max(0.0);
                let least = whole.min(link.submission.handoff_ps as f64);
                (bytes, (whole - drift.max(0.0) * burst).max(least))
            };
            same.map(beyond).collect()
        })
        .collect();
    let row = |&bytes: &u64| {
        let round = |(copies, beyond): (&u32, &Vec<(u64, f64)>)| {
            link.burst_ps(bytes, *copies).saturating_add(between(beyond, bytes).round() as u64)
        };
        transfers.iter().zip(&beyond).map(round).collect()
    };
    let mut ps: Vec<Vec<u64>> = bursts.bytes.iter().map(row).collect();
    grid::lower_disturbed(&mut ps, &transfers);
    let alone = transfers.first() == Some(&1);
    alone.then(|| BurstCurve { bytes: bursts.bytes.clone(), transfers, ps })
}

/// The line between the two ascending points around `at`; the first's or the last's value outside. `points` is not
/// empty.
fn between(points: &[(u64, f64)], at: u64) -> f64 {
    let above = points.partition_point(|(x, _)| *x < at);
    match (above.checked_sub(1).and_then(|below| points.get(below)), points.get(above)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (at - x0) as f64 / (x1 - x0) as f64,
        (Some((_, y)), None) | (None, Some((_, y))) => *y,
        (None, None) => 0.0,
    }
}

/// The time from copy to copy at the smallest size, where moving the bytes takes no time: the two longest bursts.
fn least_spacing(rounds: &Points, smallest: u64) -> Option<u64> {
    let mut longest = rounds.range((smallest, 0)..=(smallest, u32::MAX)).rev();
    let (&(_, long), &long_ps) = longest.next()?;
    let (&(_, short), &short_ps) = longest.next()?;
    Some(long_ps.saturating_sub(short_ps) / u64::from(long - short))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::BurstCurve;
    use crate::link::TransferCost;

    #[test]
    fn a_made_up_round_is_taken_apart() {
        // Kernels 5 us each, hand-off 4 us. Bursts of 1, 2, 4 copies: 4, 6, 10 us at 1000 bytes, but copies come 3 us
        // apart, so 4, 7, 13; and 12, 22, 42 us at 9000.
        let rows = "D,hbm,chain,64,0,0.0107
            D,l,chain,1000,1,0.018\nD,l,chain,1000,2,0.021\nD,l,chain,1000,4,0.027
            D,l,chain,9000,1,0.026\nD,l,chain,9000,2,0.036\nD,l,chain,9000,4,0.056\n";
        let text = format!("device,link,mode,bytes,transfers,ms\n{rows}");
        let table = Table::read(text.as_bytes()).unwrap();
        let hbm = HbmModel::new(
            0,
            BurstCurve {
                bytes: vec![64, 128],
                transfers: vec![1],
                ps: vec![vec![5_000_000], vec![5_000_000]],
            },
        );
        let mut link = Link::affine("l", 0, 0);
        link.cost = TransferCost::Curve(BurstCurve {
            bytes: vec![1000, 9000],
            transfers: vec![1, 2, 4],
            ps: vec![
                vec![4_000_000, 6_000_000, 10_000_000],
                vec![12_000_000, 22_000_000, 42_000_000],
            ],
        });
        let rounds = fit_rounds(&table, "l", &mut link, &hbm).unwrap();
        assert_eq!(link.submission, Submission { handoff_ps: 4_000_000, copy_ps: 3_000_000 });
        assert_eq!(rounds.residual.at_points, Errors { median: 0.0, max: 0.0 });
        assert_eq!(rounds.residual.points, 6);
        assert_eq!(rounds.drift, 0.0);
        // The rounds without their 10 us of kernels.
        let curve = link.rounds.unwrap();
        let us = curve.ps.iter().map(|row| row.iter().map(|ps| ps / 1_000_000).collect::<Vec<_>>());
        assert_eq!(us.collect::<Vec<_>>(), [[8, 11, 17], [16, 26, 46]]);
    }

    /// Bursts of 1 and 2 copies take 10 and 18 us at 1000 bytes, 20 and 38 at 2000, 30 and 58 at 3000; kernels nothing.
    fn made_up(rounds: &[((u64, u32), u64)], drift: f64) -> BurstCurve {
        let mut link = Link::affine("l", 0, 0);
        link.cost = TransferCost::Curve(BurstCurve {
            bytes: vec![1000, 2000, 3000],
            transfers: vec![1, 2],
            ps: vec![vec![10_000, 18_000], vec![20_000, 38_000], vec![30_000, 58_000]],
        });
        let points = rounds.iter().copied().collect();
        round_curve(&link, &points, 0, drift).unwrap()
    }

    #[test]
    fn a_hand_off_goes_by_size_and_number() {
        // Beyond the bursts: 2 and 3 ns at 1000 bytes, 4 and 7 at 3000; half-way between at 2000.
        let rounds =
            [((1000, 1), 12_000), ((1000, 2), 21_000), ((3000, 1), 34_000), ((3000, 2), 65_000)];
        let curve = made_up(&rounds, 0.0);
        assert_eq!(curve.ps, [[12_000, 21_000], [23_000, 43_000], [34_000, 65_000]]);
        curve.validate("l", "rounds").unwrap();
        // A tenth slower that hour: 2 - 1 and 3 - 1.8 remain at 1000 bytes, 4 - 3 and 7 - 5.8 at 3000.
        let slower = made_up(&rounds, 0.1);
        assert_eq!(slower.ps, [[11_000, 19_200], [21_000, 39_200], [31_000, 59_200]]);
        // Faster rounds are believed.
        assert_eq!(made_up(&rounds, -0.1), curve);
    }

    #[test]
    fn a_burst_longer_than_its_whole_round_was_disturbed() {
        let mut link = Link::affine("l", 0, 0);
        link.cost = TransferCost::Curve(BurstCurve {
            bytes: vec![1000, 2000],
            transfers: vec![1, 2],
            ps: vec![vec![10, 19], vec![20, 39]],
        });
        // Kernels of 5: the round of two copies of 2000 bytes leaves 36 for the burst, the others more than they took.
        let rounds =
            [((1000, 1), 18), ((1000, 2), 27), ((2000, 1), 28), ((2000, 2), 41), ((3000, 1), 9)];
        lower_bursts(&mut link, &rounds.into_iter().collect(), 5);
        assert_eq!([1, 2].map(|n| link.burst_ps(1000, n)), [10, 19]);
        assert_eq!([1, 2].map(|n| link.burst_ps(2000, n)), [20, 36]);
    }

    #[test]
    fn a_size_that_was_not_measured_in_rounds_takes_the_nearest() {
        let curve = made_up(&[((2000, 1), 23_000), ((2000, 2), 39_000)], 0.0);
        assert_eq!(curve.ps, [[13_000, 19_000], [23_000, 39_000], [33_000, 59_000]]);
    }

    #[test]
    fn scattered_copies_are_nearer_to_a_cache_than_others() {
        // As above with 1 and 2 copies, and the same from random places: a microsecond more.
        let rows = "D,hbm,chain,64,0,0.01
            D,l,chain,1000,1,0.018\nD,l,chain,1000,2,0.021\nD,l,chain,9000,1,0.026
            D,l,scattered-chain,1000,1,0.019\nD,l,scattered-chain,1000,2,0.022
            D,l,scattered-chain,9000,1,0.027\nD,l,scattered-chain,9000,2,0.037\n";
        let text = format!("device,link,mode,bytes,transfers,ms\n{rows}");
        let table = Table::read(text.as_bytes()).unwrap();
        let chain =
            BurstCurve { bytes: vec![64, 128], transfers: vec![1], ps: vec![vec![5_000_000]; 2] };
        let mut link = Link::affine("l", 0, 0);
        link.cost = TransferCost::Curve(BurstCurve {
            bytes: vec![1000, 9000],
            transfers: vec![1, 2],
            ps: vec![vec![4_000_000, 6_000_000], vec![12_000_000, 22_000_000]],
        });
        let hbm = HbmModel::new(0, chain);
        let rounds = fit_rounds(&table, "l", &mut link, &hbm).unwrap();
        assert_eq!(rounds.residual.mode, "scattered-chain");
        assert_eq!(link.rounds.unwrap().ps, [[9_000_000, 12_000_000], [17_000_000, 27_000_000]]);
    }
}
