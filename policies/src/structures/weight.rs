//! Router weights as the policies that read them add and multiply them.

/// A weight in 255ths, to 20 significant bits.
///
/// Weights recorded as u8 (of 255), bf16 or f16 come out exact, so that experts whose weights are
/// tied stay tied. Kept as fractions, u / 255 would be told apart from its equals by rounding
/// alone: a few victims in a million. What compares weights does not mind the scale.
#[inline(always)]
pub(crate) fn in_255ths(weight: f32) -> f64 {
    const DROPPED: u64 = 1 << 33;
    let bits = (f64::from(weight) * 255.0).to_bits();
    f64::from_bits((bits + DROPPED / 2) & !(DROPPED - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recorders_write_comes_out_exact() {
        for code in 0..=255u8 {
            assert_eq!(in_255ths(f32::from(code) / 255.0), f64::from(code));
        }
        // bf16 and f16 have at most 11 significant bits, 255 has 8.
        for bits in [1u32, 3, 1029, 2047] {
            let weight = bits as f32 / 65536.0;
            assert_eq!(in_255ths(weight), f64::from(bits) * 255.0 / 65536.0);
        }
    }
}
