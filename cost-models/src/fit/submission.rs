//! What submitting copies costs, from rounds of kernel, copies, kernel.
//!
//! A round of the `chain` mode is a kernel, an event, n copies with an event each, a wait for them all, and another
//! kernel. What it takes beyond two kernels in a chain and the burst of copies is the hand-off between the streams.

use super::line::theil_sen;
use super::residuals::{Errors, Residual};
use super::table::{Points, Table};
use crate::link::{Link, Submission};
use crate::machine::HbmModel;

/// Kernels in a round.
const KERNELS: u64 = 2;

/// Submission costs and how far the whole round is from the measured ones.
pub(super) struct Rounds {
    pub submission: Submission,
    pub residual: Residual,
    /// By how much copies in rounds were slower than in bursts, as a share of their time: drift between sessions.
    pub drift: f64,
}

/// Fits the `chain` rows of `measured` (the link's name in the file) for a link whose curve is fitted already.
/// `None` where there are no such rows or no row without copies.
pub(super) fn fit_rounds(
    table: &Table,
    measured: &str,
    link: &Link,
    hbm: &HbmModel,
) -> Option<Rounds> {
    let rounds = table.points(measured, "chain")?;
    let (&(kernel_bytes, _), _) =
        table.points("hbm", "chain")?.iter().find(|(key, _)| key.1 == 0)?;
    let kernels = hbm.kernel_ps(kernel_bytes, 1).saturating_mul(KERNELS);
    let mut link = link.clone();
    let (&(smallest, _), _) = rounds.iter().next()?;
    // Never more than a copy alone: a queue must not cost more than its copies one by one.
    link.submission.copy_ps = least_spacing(rounds, smallest)?.min(link.transfer_ps(smallest));
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
    let errors = rounds.iter().map(|(&(bytes, copies), &ps)| {
        let predicted = link.demand_ps(bytes, copies).saturating_add(kernels);
        (predicted as f64 - ps as f64).abs() / ps as f64
    });
    let residual = Residual {
        link: measured.into(),
        mode: "chain".into(),
        points: rounds.len(),
        at_points: Errors::of(errors.collect()),
        left_out: None,
    };
    Some(Rounds { submission: link.submission, residual, drift })
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
        let hbm = HbmModel {
            event_pair_ps: 0,
            chain: BurstCurve {
                bytes: vec![64, 128],
                transfers: vec![1],
                ps: vec![vec![5_000_000], vec![5_000_000]],
            },
        };
        let mut link = Link::affine("l", 0, 0);
        link.cost = TransferCost::Curve(BurstCurve {
            bytes: vec![1000, 9000],
            transfers: vec![1, 2, 4],
            ps: vec![
                vec![4_000_000, 6_000_000, 10_000_000],
                vec![12_000_000, 22_000_000, 42_000_000],
            ],
        });
        let rounds = fit_rounds(&table, "l", &link, &hbm).unwrap();
        assert_eq!(rounds.submission, Submission { handoff_ps: 4_000_000, copy_ps: 3_000_000 });
        assert_eq!(rounds.residual.at_points, Errors { median: 0.0, max: 0.0 });
        assert_eq!(rounds.residual.points, 6);
        assert_eq!(rounds.drift, 0.0);
    }
}
