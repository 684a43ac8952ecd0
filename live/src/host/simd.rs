//! The same arithmetic for what the processor at hand can do.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::weights::{Input, Sums, compute};

/// Computes some rows of an expert as fast as this processor does.
pub fn rows(weights: &[u16], rows: Range<usize>, x: &Input) -> Sums {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both.
        return unsafe { with_avx2(weights, rows, x) };
    }
    compute::<false>(weights, rows, x)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2(weights: &[u16], rows: Range<usize>, x: &Input) -> Sums {
    compute::<true>(weights, rows, x)
}
