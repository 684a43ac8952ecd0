//! A measured cost over transfer size and burst length.
//!
//! The knots are medians of measurements; between them the curve is linear in bytes and in transfers. A copy's time is a
//! fixed cost plus a rate, so straight lines in bytes between log-spaced knots are exact for an ideal link, where lines
//! in log size would overshoot by tens of percent in the middle of each octave.

use serde::{Deserialize, Serialize};

use crate::error::ProfileError;
use crate::picos::mul_div_round;

/// Time of a burst of equal transfers, in picoseconds, over transfer size and burst length.
///
/// Outside the knots: a transfer smaller than the smallest costs what the smallest costs (a fixed cost does not
/// shrink), a larger one goes at the rate of the largest, and a longer burst grows by [`BurstCurve::queued_ps`] a
/// transfer. Zero bytes or transfers cost nothing.
///
/// What bounds rely on: for any size, `n` times [`BurstCurve::queued_ps`] <= a burst of `n` <= `n` transfers alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstCurve {
    /// Bytes a transfer at each knot, strictly ascending.
    pub bytes: Vec<u64>,
    /// Transfers in a burst at each knot, strictly ascending, starting with 1.
    pub transfers: Vec<u32>,
    /// `ps[size][burst]`: time of the whole burst, never falling with size or length, and never more a transfer than
    /// a shorter burst takes.
    pub ps: Vec<Vec<u64>>,
}

impl BurstCurve {
    /// Checks the shape and that no cost falls with size or length; `origin` and `field` name the place in errors.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] naming the first knot that breaks a rule.
    pub fn validate(&self, origin: &str, field: &str) -> Result<(), ProfileError> {
        let bad = |why: String| Err(ProfileError::invalid(origin, field, why));
        if self.bytes.len() < 2 {
            return bad(format!("has {} sizes, a curve needs at least 2", self.bytes.len()));
        }
        if self.bytes[0] == 0 || self.bytes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return bad("sizes must be positive and strictly ascending".into());
        }
        if self.transfers.first() != Some(&1)
            || self.transfers.windows(2).any(|pair| pair[0] >= pair[1])
        {
            return bad("burst lengths must start with 1 and ascend strictly".into());
        }
        if self.ps.len() != self.bytes.len() {
            return bad(format!("has {} rows for {} sizes", self.ps.len(), self.bytes.len()));
        }
        for (row, bytes) in self.ps.iter().zip(&self.bytes) {
            if row.len() != self.transfers.len() {
                return bad(format!(
                    "row of {bytes} bytes has {} times for {} burst lengths",
                    row.len(),
                    self.transfers.len()
                ));
            }
            if row[0] == 0 || row.windows(2).any(|pair| pair[0] > pair[1]) {
                return bad(format!("times at {bytes} bytes must be positive and not fall"));
            }
            if self.transfers.windows(2).zip(row.windows(2)).any(|(n, ps)| {
                u128::from(ps[1]) * u128::from(n[0]) > u128::from(ps[0]) * u128::from(n[1])
            }) {
                let why = "must not cost more a transfer in a longer burst";
                return bad(format!("times at {bytes} bytes {why}"));
            }
        }
        for (index, pair) in self.ps.windows(2).enumerate() {
            if pair[0].iter().zip(&pair[1]).any(|(small, large)| small > large) {
                return bad(format!("times fall from {} bytes on", self.bytes[index]));
            }
        }
        Ok(())
    }

    /// Time of `transfers` transfers of `bytes` each, queued back to back, in picoseconds.
    pub fn burst_ps(&self, bytes: u64, transfers: u32) -> u64 {
        if bytes == 0 || transfers == 0 {
            return 0;
        }
        let last = self.transfers.len() - 1;
        if transfers >= self.transfers[last] {
            let further = u64::from(transfers - self.transfers[last]);
            return self
                .at_size(bytes, last)
                .saturating_add(self.queued_ps(bytes).saturating_mul(further));
        }
        let (low, high) = segment(&self.transfers, transfers);
        lerp(
            Knot { x: u64::from(self.transfers[low]), y: self.at_size(bytes, low) },
            Knot { x: u64::from(self.transfers[high]), y: self.at_size(bytes, high) },
            u64::from(transfers),
        )
    }

    /// One more transfer behind others that keep the link busy, in picoseconds: the mean of what each transfer after
    /// the first added, over the longest burst that was measured.
    pub fn queued_ps(&self, bytes: u64) -> u64 {
        let last = self.transfers.len() - 1;
        if bytes == 0 {
            0
        } else if last == 0 {
            self.at_size(bytes, 0)
        } else {
            let added = self.at_size(bytes, last).saturating_sub(self.at_size(bytes, 0));
            // Rounded down, so that a queue never costs more than a burst.
            added / u64::from(self.transfers[last] - 1)
        }
    }

    fn at_size(&self, bytes: u64, burst: usize) -> u64 {
        let bytes = bytes.max(self.bytes[0]);
        let last = self.bytes.len() - 1;
        if bytes > self.bytes[last] {
            return mul_div_round(self.ps[last][burst], bytes, self.bytes[last]);
        }
        let (low, high) = segment(&self.bytes, bytes);
        lerp(
            Knot { x: self.bytes[low], y: self.ps[low][burst] },
            Knot { x: self.bytes[high], y: self.ps[high][burst] },
            bytes,
        )
    }
}

/// The two neighbouring knots whose line gives the value at `at`, which lies within them.
fn segment<T: Ord>(knots: &[T], at: T) -> (usize, usize) {
    let high = knots.partition_point(|knot| *knot < at).clamp(1, knots.len() - 1);
    (high - 1, high)
}

/// A measured point of a curve.
#[derive(Clone, Copy)]
struct Knot {
    x: u64,
    y: u64,
}

/// The line through two points, the higher one to the right and not lower, at `x >= low.x`, rounded to nearest; saturates.
fn lerp(low: Knot, high: Knot, x: u64) -> u64 {
    let rise = mul_div_round(high.y.saturating_sub(low.y), x - low.x, high.x - low.x);
    low.y.saturating_add(rise)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn two_by_two() -> BurstCurve {
        BurstCurve {
            bytes: vec![1000, 3000],
            transfers: vec![1, 4],
            ps: vec![vec![100, 310], vec![200, 700]],
        }
    }

    #[test]
    fn knots_come_back_exactly() {
        let curve = two_by_two();
        assert_eq!(curve.burst_ps(1000, 1), 100);
        assert_eq!(curve.burst_ps(3000, 4), 700);
    }

    #[test]
    fn between_knots_it_is_linear_in_bytes_and_transfers() {
        let curve = two_by_two();
        assert_eq!(curve.burst_ps(2000, 1), 150);
        // At 2000 bytes: 150 for one, 505 for four; two lie a third of the way: 150 + 355/3 = 268.3.
        assert_eq!(curve.burst_ps(2000, 2), 268);
    }

    #[test]
    fn outside_the_knots() {
        let curve = two_by_two();
        assert_eq!(curve.burst_ps(1, 1), 100, "the fixed cost does not shrink");
        assert_eq!(curve.burst_ps(6000, 1), 400, "the last rate goes on");
        assert_eq!(curve.burst_ps(1000, 7), 520, "70 a transfer more");
        assert_eq!(curve.burst_ps(0, 3), 0);
        assert_eq!(curve.burst_ps(3000, 0), 0);
        assert_eq!(curve.burst_ps(u64::MAX, u32::MAX), u64::MAX, "saturates");
    }

    #[test]
    fn one_more_behind_others_costs_the_mean_of_those_after_the_first() {
        assert_eq!(two_by_two().queued_ps(1000), 70);
        assert_eq!(two_by_two().queued_ps(2000), 118, "355 / 3, rounded down");
        assert_eq!(two_by_two().queued_ps(0), 0);
    }

    #[test]
    fn a_single_burst_length_multiplies() {
        let curve =
            BurstCurve { bytes: vec![10, 20], transfers: vec![1], ps: vec![vec![5], vec![7]] };
        assert_eq!(curve.burst_ps(15, 3), 18);
    }

    fn message(curve: &BurstCurve) -> String {
        curve.validate("p", "cost.curve").unwrap_err().to_string()
    }

    #[test]
    fn broken_curves_are_refused_with_the_reason() {
        let mut curve = two_by_two();
        curve.bytes = vec![3000, 1000];
        assert!(message(&curve).contains("strictly ascending"));
        let mut curve = two_by_two();
        curve.ps[1] = vec![90, 310];
        assert_eq!(message(&curve), "profile p: cost.curve times fall from 1000 bytes on");
        let mut curve = two_by_two();
        curve.ps[0] = vec![100];
        assert!(message(&curve).contains("1 times for 2 burst lengths"));
        let mut curve = two_by_two();
        curve.transfers = vec![2, 4];
        assert!(message(&curve).contains("start with 1"));
        let mut curve = two_by_two();
        curve.ps.pop();
        assert!(message(&curve).contains("1 rows for 2 sizes"));
        let mut curve = two_by_two();
        curve.bytes.truncate(1);
        assert!(message(&curve).contains("at least 2"));
        let mut curve = two_by_two();
        curve.ps[1][1] = 801;
        assert!(message(&curve).contains("3000 bytes must not cost more a transfer in a longer"));
        let mut curve = two_by_two();
        curve.ps[0][0] = 0;
        assert!(message(&curve).contains("positive"));
    }

    proptest! {
        #[test]
        fn never_falls_with_size_or_length(a in 0u64..10_000, b in 0u64..10_000, m in 0u32..20, n in 0u32..20) {
            let curve = two_by_two();
            let (small, large) = (a.min(b), a.max(b));
            let (short, long) = (m.min(n), m.max(n));
            prop_assert!(curve.burst_ps(small, short) <= curve.burst_ps(large, long));
        }
    }
}
