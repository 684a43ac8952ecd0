//! Expert profiles at two bytes a key: uses a token in 65,535ths.
//!
//! Sums and products are whole numbers, so that a mean which is kept up to date is the same as one
//! made afresh.

use std::collections::TryReserveError;

use super::SemanticError;

/// What stands for one use a token.
const ONE: f64 = 65_535.0;

/// Profiles of `keys` codes each, and the sum of all of them.
#[derive(Debug, Clone)]
pub(super) struct Profiles {
    keys: usize,
    /// `[profiles][keys]`.
    codes: Vec<u16>,
    /// The square of each profile's length.
    squares: Vec<u64>,
    /// Sum over all profiles, by key.
    sums: Vec<u64>,
}

impl Profiles {
    /// None yet, but room for `capacity` of `keys` codes each.
    pub(super) fn with_capacity(capacity: usize, keys: usize) -> Result<Self, TryReserveError> {
        let (mut codes, mut squares, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        codes.try_reserve_exact(capacity.saturating_mul(keys))?;
        squares.try_reserve_exact(capacity)?;
        sums.try_reserve_exact(keys)?;
        sums.resize(keys, 0);
        Ok(Self { keys, codes, squares, sums })
    }

    /// Bytes of each profile.
    pub(super) fn bytes(keys: usize) -> usize {
        keys.saturating_mul(size_of::<u16>()).saturating_add(size_of::<u64>())
    }

    /// The codes of profile `at`.
    pub(super) fn get(&self, at: usize) -> &[u16] {
        &self.codes[at * self.keys..][..self.keys]
    }

    /// Puts codes in place of profile `at`, or as the next one.
    pub(super) fn set(&mut self, at: usize, codes: &[u16]) {
        if at == self.squares.len() {
            self.codes.resize((at + 1) * self.keys, 0);
            self.squares.push(0);
        }
        let old = &mut self.codes[at * self.keys..][..self.keys];
        for ((sum, old), &new) in self.sums.iter_mut().zip(&mut *old).zip(codes) {
            *sum = *sum - u64::from(*old) + u64::from(new);
            *old = new;
        }
        self.squares[at] = product(codes, codes);
    }

    /// Cosine of profile `at` with `codes`, whose product with themselves is `square`; 0 where
    /// either is all zeros.
    pub(super) fn cosine(&self, at: usize, codes: &[u16], square: u64) -> f64 {
        let norms = (self.squares[at] as f64).sqrt() * (square as f64).sqrt();
        if norms > 0.0 { product(self.get(at), codes) as f64 / norms } else { 0.0 }
    }

    /// Adds `weight` times profile `at` to `out`, in uses a token.
    pub(super) fn add_to(&self, at: usize, weight: f64, out: &mut [f32]) {
        let weight = (weight / ONE) as f32;
        for (out, &code) in out.iter_mut().zip(self.get(at)) {
            *out += weight * f32::from(code);
        }
    }

    /// Writes the mean of all profiles; zeros where there is none.
    pub(super) fn mean_into(&self, out: &mut [f32]) {
        let all = (self.squares.len().max(1)) as f64 * ONE;
        for (out, &sum) in out.iter_mut().zip(&self.sums) {
            *out = (sum as f64 / all) as f32;
        }
    }
}

/// Writes the codes of a profile, rounded to the nearest; above one use a token they stay at 1.
///
/// # Errors
/// [`SemanticError::Profile`] for a number that is negative or not finite.
pub(super) fn encode(profile: &[f32], out: &mut [u16]) -> Result<(), SemanticError> {
    if let Some(at) = profile.iter().position(|value| !(0.0..f32::INFINITY).contains(value)) {
        return Err(SemanticError::Profile { at, value: profile[at] });
    }
    for (out, &uses) in out.iter_mut().zip(profile) {
        // A cast of a float to an integer saturates.
        *out = (f64::from(uses) * ONE + 0.5) as u16;
    }
    Ok(())
}

/// Uses a token that a code stands for.
pub(super) fn decode(code: u16) -> f32 {
    (f64::from(code) / ONE) as f32
}

/// Exact for fewer than 2^32 keys.
pub(super) fn product(a: &[u16], b: &[u16]) -> u64 {
    a.iter().zip(b).map(|(&a, &b)| u64::from(u32::from(a) * u32::from(b))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_by_hand() {
        let mut out = [0; 5];
        encode(&[0.0, 1.0, 0.5, 3.0, 1e-9], &mut out).unwrap();
        assert_eq!(out, [0, 65_535, 32_768, 65_535, 0]);
        assert_eq!((decode(0), decode(65_535)), (0.0, 1.0));
        for code in 0..=u16::MAX {
            let mut again = [0];
            encode(&[decode(code)], &mut again).unwrap();
            assert_eq!(again, [code]);
        }
    }

    #[test]
    fn what_is_no_frequency_is_named() {
        let told = |value| encode(&[0.5, value], &mut [0; 2]).unwrap_err();
        assert_eq!(told(-0.5), SemanticError::Profile { at: 1, value: -0.5 });
        assert!(matches!(told(f32::NAN), SemanticError::Profile { at: 1, .. }));
        assert!(told(f32::INFINITY).to_string().starts_with("profile: key 1 is used inf times"));
    }

    #[test]
    fn the_mean_follows_what_is_overwritten() {
        let mut profiles = Profiles::with_capacity(2, 2).unwrap();
        let mut out = [9.0; 2];
        profiles.mean_into(&mut out);
        assert_eq!(out, [0.0, 0.0]);
        profiles.set(0, &[65_535, 0]);
        profiles.set(1, &[65_535, 65_535]);
        profiles.mean_into(&mut out);
        assert_eq!(out, [1.0, 0.5]);
        profiles.set(0, &[0, 0]);
        profiles.mean_into(&mut out);
        assert_eq!(out, [0.5, 0.5]);
        // (1, 1) against (1, 0): 1 / sqrt 2; the overwritten one has no direction.
        let codes = [65_535, 0];
        let square = product(&codes, &codes);
        assert!((profiles.cosine(1, &codes, square) - 0.5f64.sqrt()).abs() < 1e-15);
        assert_eq!(profiles.cosine(0, &codes, square), 0.0);
    }
}
