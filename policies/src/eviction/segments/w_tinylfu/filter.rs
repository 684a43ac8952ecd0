//! What uses are counted in: a counter a key, or a sketch.

use super::counting_bloom::CountingBloom;
use crate::policy::Key;

/// Counts of uses.
#[derive(Debug, Clone)]
pub(super) enum Filter {
    Exact(Vec<u32>),
    Sketch(CountingBloom),
}

impl Filter {
    /// Counts a use of `key`.
    #[inline(always)]
    pub(super) fn add(&mut self, key: Key) {
        match self {
            Self::Exact(counts) => counts[key as usize] += 1,
            Self::Sketch(sketch) => sketch.add(key),
        }
    }

    /// How often `key` was used, or for a sketch, more.
    #[inline(always)]
    pub(super) fn count(&self, key: Key) -> u32 {
        match self {
            Self::Exact(counts) => counts[key as usize],
            Self::Sketch(sketch) => sketch.estimate(key),
        }
    }
}
