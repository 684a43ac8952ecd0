//! A logarithm that is the same on every machine.
//!
//! The system's own may differ in the last digit from one platform to another; this one uses only
//! the four operations, which IEEE 754 rounds the same everywhere.

/// Natural logarithm of a positive, finite, normal number; right to about 1 part in 10^15.
pub(crate) fn ln(x: f64) -> f64 {
    // x = m * 2^e with m in [1, 2); ln m = 2 artanh((m - 1) / (m + 1)), whose argument is at most
    // 1/3, so that each further term of the series is at most a ninth of the one before.
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let mut term = t;
    let mut sum = 0.0;
    for n in 0..20 {
        sum += term / f64::from(2 * n + 1);
        term *= t * t;
    }
    2.0 * sum + exponent as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::ln;

    #[test]
    fn agrees_with_the_systems_own() {
        for x in [1.0, 2.0, 3.0, 0.1, 1.999_999, 64.0, 1e-9, 65_536.0, 1e300] {
            assert!((ln(x) - f64::ln(x)).abs() <= 1e-14 * f64::ln(x).abs().max(1.0), "{x}");
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
