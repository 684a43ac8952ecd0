//! FreeToken's split of a layer's misses between link and host, to the integer.
//!
//! Source: FreeToken 0.1.2, `ensure_hybrid`: a share in units of 1/65536, a rule that rounds it so
//! that the longer of both sides is shortest, and a fixed cap where no share is known.

use serde::{Deserialize, Serialize};

/// The share of everything.
const WHOLE: u32 = 1 << 16;

/// Which misses are fetched where not all are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FetchOrder {
    /// Those asked for most recently, ties to the lower id: one that comes back and was not fetched
    /// the last time is fetched the next.
    #[default]
    Recent,
    /// The lowest ids.
    Lowest,
}

/// How a layer's misses are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The share that is fetched, in 1/65536; 0: none is known, and `max_fetch` are. `None`: whoever
    /// knows the rates says ([`MissHandler::with_rates`](super::MissHandler::with_rates)); until
    /// then it is as 0.
    pub fetch_q16: Option<u32>,
    /// Misses that are fetched where no share is known.
    pub max_fetch: u32,
    /// Which.
    pub order: FetchOrder,
}

impl Default for Split {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Split {
    /// As the rates will say, and one until they are known.
    pub(super) const UNKNOWN: Self =
        Self { fetch_q16: None, max_fetch: 1, order: FetchOrder::Recent };

    /// A share, clamped to 0 to 1 and rounded to 1/65536.
    #[must_use]
    pub fn of_share(share: f64) -> Self {
        Self { fetch_q16: Some(q16(share)), ..Self::default() }
    }

    /// How many of `misses` are fetched.
    #[must_use]
    pub fn fetched(&self, misses: u32) -> u32 {
        match self.fetch_q16 {
            Some(share) if share > 0 => balanced_fetch(misses, share),
            _ => misses.min(self.max_fetch),
        }
    }
}

/// `clamp(round(share x 65536), 0, 65536)`; 0 for what is no number.
pub(super) fn q16(share: f64) -> u32 {
    (share * f64::from(WHOLE)).round().clamp(0.0, f64::from(WHOLE)) as u32
}

/// How many of `misses` are fetched at a share of `fetch_q16`/65536: the share rounded down, or one
/// more where the longer of `F (1 - f)` (the link) and `(M - F) f` (the host) is then shorter.
///
/// ```
/// use hotset_policies::miss::balanced_fetch;
///
/// let f = (0.415_f64 * 65536.0).round() as u32;
/// assert_eq!([3, 4].map(|misses| balanced_fetch(misses, f)), [1, 2]);
/// ```
#[must_use]
pub fn balanced_fetch(misses: u32, fetch_q16: u32) -> u32 {
    let share = u64::from(fetch_q16.min(WHOLE));
    let low = ((u64::from(misses) * share) >> 16) as u32;
    let cost = |fetched: u32| {
        let host = u64::from(misses.saturating_sub(fetched));
        (u64::from(fetched) * (u64::from(WHOLE) - share)).max(host * share)
    };
    let fetched = if cost(low) <= cost(low.saturating_add(1)) { low } else { low + 1 };
    fetched.min(misses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_freetokens() {
        // Its own tests: 0.415 of 3 is 1, of 4 is 2; never further than one from the share.
        let f = q16(0.415);
        assert_eq!(f, 27_197);
        assert_eq!([0, 1, 3, 4].map(|misses| balanced_fetch(misses, f)), [0, 0, 1, 2]);
        for misses in 0..300 {
            let fetched = f64::from(balanced_fetch(misses, f));
            assert!((fetched - f64::from(f) / 65536.0 * f64::from(misses)).abs() <= 1.0);
        }
        // A tie stays below: half of 1 is 0.5, and both sides cost the same.
        assert_eq!(balanced_fetch(1, WHOLE / 2), 0);
        assert_eq!(balanced_fetch(7, WHOLE), 7);
        assert_eq!(balanced_fetch(u32::MAX, u32::MAX), u32::MAX);
    }

    #[test]
    fn a_per_mille_would_round_otherwise() {
        // 3/7 of 7 is 3 exactly; 0.428 and 0.429 of it are not. In 1/65536 it is 28087, which is
        // over 3/7 by 2/7 of a unit: floor is 3 still.
        assert_eq!(balanced_fetch(7, q16(3.0 / 7.0)), 3);
    }

    #[test]
    fn without_a_share_a_fixed_number_is_fetched() {
        let fixed = |max_fetch| Split { fetch_q16: Some(0), max_fetch, ..Split::default() };
        assert_eq!([0, 1, 5].map(|misses| fixed(1).fetched(misses)), [0, 1, 1]);
        assert_eq!([0, 2, 5].map(|misses| fixed(3).fetched(misses)), [0, 2, 3]);
        assert_eq!(Split::default().fetched(4), 1, "no profile: one");
    }

    #[test]
    fn shares_are_clamped() {
        assert_eq!(
            [-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN].map(q16),
            [0, 0, 32_768, 65_536, 65_536, 0]
        );
    }
}
