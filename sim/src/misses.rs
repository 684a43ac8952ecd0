//! Which of a layer's misses are fetched, and which the host's cores serve where they lie.

use serde::{Deserialize, Serialize};

/// What becomes of misses. Those that the host serves are not shown to the cache: they take no
/// slot and evict nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misses {
    /// All are fetched.
    #[default]
    Fetch,
    /// The host serves all; the cache keeps what it has.
    Host,
    /// Of a layer's misses this share is fetched, rounded so that link and host finish as close
    /// together as they can, those asked for most recently first (FreeToken's rule); the host
    /// serves the rest. [`Link::fetch_share`](hotset_cost_models::Link::fetch_share) gives it.
    Balanced {
        /// The share in per mille, 0 to 1000.
        fetch_permille: u32,
    },
}

impl Misses {
    /// How many of `misses` are fetched.
    #[must_use]
    pub fn fetched(self, misses: u32) -> u32 {
        let Self::Balanced { fetch_permille } = self else {
            return if self == Self::Fetch { misses } else { 0 };
        };
        let share = u64::from(fetch_permille.min(1000));
        let low = (u64::from(misses) * share / 1000) as u32;
        // Link and host work in units of each other's rate; the longer of both decides.
        let cost = |fetched: u32| {
            let (link, host) = (u64::from(fetched), u64::from(misses - fetched));
            (link * (1000 - share)).max(host * share)
        };
        if low < misses && cost(low + 1) < cost(low) { low + 1 } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_balanced_share_is_freetokens() {
        // Its own test: 0.415 of 3 is 1, of 4 is 2.
        let balanced = Misses::Balanced { fetch_permille: 415 };
        assert_eq!([0, 1, 3, 4].map(|misses| balanced.fetched(misses)), [0, 0, 1, 2]);
        for (permille, all) in [(0, 0), (1000, 7)] {
            assert_eq!(Misses::Balanced { fetch_permille: permille }.fetched(7), all);
        }
        assert_eq!((Misses::Fetch.fetched(7), Misses::Host.fetched(7)), (7, 0));
        for misses in 0..200 {
            let fetched = f64::from(balanced.fetched(misses));
            assert!((fetched - 0.415 * f64::from(misses)).abs() <= 1.0);
        }
    }
}
