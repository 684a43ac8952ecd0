//! Arithmetic on rows of numbers, in an order that is the same on every machine.

/// Adds `times` a row to the sums.
#[inline]
pub(super) fn add<T: Copy + Into<f64>>(sums: &mut [f64], row: &[T], times: f64) {
    for (sum, &value) in sums.iter_mut().zip(row) {
        *sum += times * value.into();
    }
}

/// The product of two vectors, in eight sums that are added up last, which wide registers do fast.
pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest = ones.remainder().iter().zip(others.remainder());
    let rest = rest.fold(0.0, |sum, (one, other)| sum + one * other);
    for (one, other) in ones.zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    sums.iter().fold(rest, |sum, part| sum + part)
}

/// One over the length of a vector of this sum of squares; 0 where it has none.
#[inline]
pub(super) fn inverse_norm(square: f64) -> f64 {
    if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 }
}

/// The largest number and where it is, the first of equal ones; what is not a number is passed
/// over. Of nothing, place 0 and minus infinity.
#[inline]
pub(super) fn first_of_largest(numbers: impl IntoIterator<Item = f64>) -> (usize, f64) {
    let mut first = (0, f64::NEG_INFINITY);
    for (place, number) in numbers.into_iter().enumerate() {
        if number > first.1 {
            first = (place, number);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_hand() {
        let mut sums = [1.0, 2.0];
        add(&mut sums, &[3u32, 4], 0.5);
        add(&mut sums, &[1.0f32, -1.0], -1.0);
        assert_eq!(sums, [1.5, 5.0]);
        let count: Vec<f64> = (0..19).map(f64::from).collect();
        assert_eq!(dot(&count, &count), f64::from(18 * 19 * 37 / 6));
        assert_eq!(
            (inverse_norm(16.0), inverse_norm(0.0), inverse_norm(f64::NAN)),
            (0.25, 0.0, 0.0)
        );
        assert_eq!(first_of_largest([f64::NAN, -1.0, 3.0, 3.0, 2.0]), (2, 3.0));
        assert_eq!(first_of_largest([]), (0, f64::NEG_INFINITY));
    }
}
