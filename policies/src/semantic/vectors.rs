//! Unit vectors and their cosines, with the same bits on every machine.
//!
//! Only the four operations and the square root are used, in an order that is written down, so
//! that no compiler may change a rounding.

use super::SemanticError;

/// Sums that a dot product keeps side by side, so that it runs on whole vector registers.
const LANES: usize = 16;

/// Writes `vector` scaled to length 1 into `out`, of the same length; a zero vector stays zero.
///
/// # Errors
/// [`SemanticError::Embedding`] for a number that is not finite; `out` is then untouched.
pub(super) fn unit_into(vector: &[f32], out: &mut [f32]) -> Result<(), SemanticError> {
    if let Some(at) = vector.iter().position(|value| !value.is_finite()) {
        return Err(SemanticError::Embedding { at, value: vector[at] });
    }
    // Squares of any f32 neither overflow nor vanish in f64.
    let squares: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    let norm = squares.sqrt();
    for (out, &value) in out.iter_mut().zip(vector) {
        *out = if norm > 0.0 { (f64::from(value) / norm) as f32 } else { 0.0 };
    }
    Ok(())
}

/// The dot product of two vectors of one length: of unit vectors, their cosine; with a zero
/// vector, 0. Number i is added to sum i mod 16; the sums are then added in order.
#[inline]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (a_whole, b_whole) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_whole.remainder().iter().zip(b_whole.remainder());
    for (a, b) in a_whole.zip(b_whole) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(rest) {
        *sum += a * b;
    }
    sums.iter().sum()
}

/// How far [`dot`] of unit vectors may lie from the true dot product: at most one rounding of
/// 2^-24 a product and an addition, each of a partial sum of at most 1; doubled to be safe.
pub(super) fn dot_error(dimension: usize) -> f64 {
    (dimension + LANES) as f64 * f64::from(f32::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_any_size_become_unit_vectors() {
        let mut out = [0.0; 2];
        for scale in [1e-45f32, 1e-20, 1.0, 1e37] {
            unit_into(&[3.0 * scale, 4.0 * scale], &mut out).unwrap();
            assert!((out[0] - 0.6).abs() < 1e-7 && (out[1] - 0.8).abs() < 1e-7, "{scale}: {out:?}");
        }
        unit_into(&[0.0, -0.0], &mut out).unwrap();
        assert_eq!(out, [0.0, 0.0]);
    }

    #[test]
    fn what_is_not_finite_is_named() {
        let told = |vector: &[f32]| unit_into(vector, &mut [0.0; 2]).unwrap_err().to_string();
        assert_eq!(told(&[0.0, f32::NAN]), "embedding: number 1 is NaN; embeddings must be finite");
        assert!(told(&[f32::INFINITY, 1.0]).starts_with("embedding: number 0 is inf"));
    }

    #[test]
    fn a_dot_product_takes_whole_lanes_and_the_rest() {
        let ones = [1.0; 35];
        let counted: Vec<f32> = (0..35u8).map(f32::from).collect();
        assert_eq!(dot(&ones, &counted), 595.0);
        assert_eq!(dot(&ones[..3], &counted[..3]), 3.0);
        assert_eq!(dot(&[], &[]), 0.0);
    }
}
