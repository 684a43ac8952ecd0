//! The unit of time.
//!
//! Whole picoseconds in a `u64` hold 213 days, finer than any clock that measured a link, and add up to the same
//! digits on every machine. All arithmetic saturates: a cost that does not fit is "longer than anything", never small.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Bytes in a MiB, the size that rates are quoted over.
pub const MIB: u64 = 1 << 20;
/// Picoseconds in a millisecond.
pub(crate) const PS_PER_MS: f64 = 1e9;

/// A span of time in whole picoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Picos(pub u64);

impl Picos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From milliseconds, rounded to the nearest picosecond. Negative and NaN become zero, what is too long the longest.
    pub fn from_ms_f64(ms: f64) -> Self {
        // A float to integer cast saturates and sends NaN to zero.
        Self((ms * PS_PER_MS).round() as u64)
    }

    /// In milliseconds.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / PS_PER_MS
    }

    /// In microseconds.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or zero when `other` is the longer.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * factor`.
    pub fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// `self * permille / 1000`, rounded to nearest: how slowdowns are applied.
    pub fn scale_permille(self, permille: u32) -> Self {
        Self(mul_div_round(self.0, u64::from(permille), 1000))
    }
}

/// `a * b / d` rounded to nearest through 128 bits; saturates. `d` is never zero here.
pub(crate) fn mul_div_round(a: u64, b: u64, d: u64) -> u64 {
    let wide = (u128::from(a) * u128::from(b) + u128::from(d) / 2) / u128::from(d);
    u64::try_from(wide).unwrap_or(u64::MAX)
}

impl Add for Picos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Picos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Picos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Picos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$} ms", self.as_ms_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_convert_both_ways() {
        assert_eq!(Picos::from_ms_f64(0.065625), Picos(65_625_000));
        assert_eq!(Picos(2_687_500).as_ms_f64(), 0.0026875);
        assert_eq!(Picos(4_000_000).as_us_f64(), 4.0);
        assert_eq!(Picos::from_ms_f64(f64::NAN), Picos::ZERO);
        assert_eq!(Picos::from_ms_f64(-1.0), Picos::ZERO);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Picos(u64::MAX) + Picos(1), Picos(u64::MAX));
        assert_eq!(Picos(5).saturating_sub(Picos(7)), Picos::ZERO);
        assert_eq!(Picos(u64::MAX).scale_permille(2000), Picos(u64::MAX));
        assert_eq!([Picos(1), Picos(2), Picos(3)].into_iter().sum::<Picos>(), Picos(6));
    }

    #[test]
    fn scaling_rounds_to_nearest() {
        assert_eq!(Picos(1001).scale_permille(1500), Picos(1502)); // 1501.5
        assert_eq!(Picos(3).scale_permille(1100), Picos(3)); // 3.3
    }
}
