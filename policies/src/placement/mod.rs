//! Placed before the run: experts that are resident from the first step, chosen by counts.
//!
//! [`Pinned`] keeps a share of a pool's slots for the experts used most and leaves the others to
//! any policy; a seeded pool begins with its slots full. [`PolicySpec::placed`] says which keys to
//! bring in before anything is asked for, [`ExpertCache::place`](crate::ExpertCache::place) does.

mod pinned;
mod spec;

pub use pinned::Pinned;
pub use spec::{PLACEMENTS, PlacementInfo, PlacementSpec};

use std::cmp::Reverse;

use crate::{Key, PolicySpec, PoolShape};

/// All keys, those with the largest counts first, ties to the lower key. A key without a count has
/// none.
fn by_count(keys: u32, counts: &[u64]) -> Vec<Key> {
    let mut all: Vec<Key> = (0..keys).collect();
    let count = |key: Key| counts.get(key as usize).copied().unwrap_or(0);
    all.sort_by_key(|&key| (Reverse(count(key)), key));
    all
}

impl PolicySpec {
    /// The keys of a pool that are in its slots before anything is asked for, in the order in which
    /// they are to be brought in: for `static` those with the largest of `counts` (one a key), for
    /// `+pin` and `+seeded` as they say. Within each group the one used least comes first, so that
    /// a policy that goes by recency keeps the others longer. Empty for every other policy.
    ///
    /// ```
    /// use hotset_policies::{PolicySpec, PoolShape};
    ///
    /// let (pool, counts) = (PoolShape::flat(4, 6), [1, 9, 0, 5, 7, 3]);
    /// let placed = |text: &str| text.parse().map(|spec: PolicySpec| spec.placed(&pool, &counts));
    /// assert_eq!(placed("static")?, [5, 3, 4, 1]);
    /// assert_eq!(placed("lru+pin:50%")?, [4, 1]);
    /// assert_eq!(placed("lru+seeded+pin:50%")?, [4, 1, 5, 3]);
    /// assert_eq!(placed("lru")?, []);
    /// # Ok::<(), hotset_policies::PolicyError>(())
    /// ```
    #[must_use]
    pub fn placed(&self, pool: &PoolShape, counts: &[u64]) -> Vec<Key> {
        let (pins, seeded) = match self {
            Self::Static => (pool.capacity, false),
            Self::Placed(_, placement) => (placement.pins(pool.capacity), placement.seeded),
            _ => return Vec::new(),
        };
        let ranked = by_count(pool.keys, counts);
        let (pinned, others) = ranked.split_at((pins as usize).min(ranked.len()));
        let rest = if seeded { pool.capacity - pins } else { 0 };
        let others = &others[..(rest as usize).min(others.len())];
        pinned.iter().rev().chain(others.iter().rev()).copied().collect()
    }
}
