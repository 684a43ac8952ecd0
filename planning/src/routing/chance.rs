//! The arithmetic of independent choices: what tokens need that choose on their own.

use super::shape::MeanLayer;

/// `E (1 - (1 - k/E)^T)`.
pub(super) fn union_of_uniform(mean: MeanLayer, tokens: u64) -> f64 {
    let MeanLayer { experts, top_k } = mean;
    if experts <= 0.0 {
        return 0.0;
    }
    experts * (1.0 - power(1.0 - top_k / experts, tokens))
}

/// `base` to a whole power by squaring: multiplications alone, so the same digits everywhere.
pub(super) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}
