//! Embeddings at one byte a number, and how far their cosines may be off.
//!
//! A search reads these 5 MB (10,000 x 512) instead of 20 and multiplies integers; each upper
//! bound is rigorous, so whatever could be among the nearest is then scored exactly. With q~ and
//! x~ for what the codes stand for: |<q,x> - <q~,x~>| <= |q - q~| |x| + |q~| |x - x~|.

use std::collections::TryReserveError;

use super::vectors::dot_error;

/// The most numbers that an embedding may have; a query then still has codes of 8 bits.
pub const MAX_DIMENSION: usize = 65_536;

/// Covers the roundings of the bounds themselves: a few of 2^-24 near 1 for the f32 they end as.
const SLACK: f64 = 1e-6;
/// The length of a unit vector that was rounded to f32 is below this.
const UNIT: f64 = 1.0 + 1e-6;

/// Codes that are multiplied as one piece: compilers unroll it whole, with all lanes in use.
const PIECE: usize = 32;

/// The codes of the store's unit vectors: number = code x step of its vector.
#[derive(Debug, Clone)]
pub(super) struct Codes {
    /// Codes of a vector, filled up to whole pieces with zeros.
    width: usize,
    /// `[vectors][width]`, -127 to 127.
    codes: Vec<i8>,
    steps: Vec<f64>,
    /// Distance of each vector from what its codes stand for.
    distances: Vec<f64>,
}

/// A query's codes, finer than the store's: multiplying i16 costs what multiplying i8 does.
#[derive(Debug, Clone)]
pub(super) struct QueryCodes {
    codes: Vec<i16>,
    step: f64,
    /// The part of the error that is the same for every vector.
    error: f64,
    /// The length of what the codes stand for, at most.
    norm: f64,
}

impl Codes {
    /// None yet, but room for `capacity` vectors.
    pub(super) fn with_capacity(
        capacity: usize,
        dimension: usize,
    ) -> Result<Self, TryReserveError> {
        let (mut codes, mut steps, mut distances) = (Vec::new(), Vec::new(), Vec::new());
        let width = dimension.next_multiple_of(PIECE);
        codes.try_reserve_exact(capacity.saturating_mul(width))?;
        steps.try_reserve_exact(capacity)?;
        distances.try_reserve_exact(capacity)?;
        Ok(Self { width, codes, steps, distances })
    }

    /// Bytes of each vector.
    pub(super) fn bytes(dimension: usize) -> usize {
        dimension.next_multiple_of(PIECE) + 2 * size_of::<f64>()
    }

    /// Codes a unit vector in place of number `at`, or as the next one.
    pub(super) fn set(&mut self, at: usize, unit: &[f32]) {
        if at == self.steps.len() {
            self.codes.resize((at + 1) * self.width, 0);
            self.steps.push(0.0);
            self.distances.push(0.0);
        }
        let codes = &mut self.codes[at * self.width..][..self.width];
        let (step, distance) = encode(unit, 127, |place, code| codes[place] = code as i8);
        self.steps[at] = step;
        self.distances[at] = distance;
    }

    /// What each vector's cosine with the query is at most, in order.
    pub(super) fn upper_bounds(&self, query: &QueryCodes) -> impl Iterator<Item = f32> {
        let rows = self.codes.chunks_exact(self.width);
        let scales = self.steps.iter().zip(&self.distances);
        rows.zip(scales).map(|(codes, (step, distance))| {
            let product = f64::from(integer_dot(&query.codes, codes));
            (product * (query.step * step) + query.norm * distance + query.error) as f32
        })
    }
}

impl QueryCodes {
    /// Of a zero vector.
    pub(super) fn for_dimension(dimension: usize) -> Self {
        Self { codes: vec![0; dimension.next_multiple_of(PIECE)], step: 0.0, error: 0.0, norm: 0.0 }
    }

    /// Codes a query, a unit vector.
    pub(super) fn set(&mut self, unit: &[f32]) {
        // So fine that the sum of all products stays within 32 bits.
        let finest = i32::MAX as usize / (128 * unit.len().max(1));
        let limit = finest.min(i16::MAX as usize) as i16;
        self.codes.resize(unit.len().next_multiple_of(PIECE), 0);
        self.codes[unit.len()..].fill(0);
        let codes = &mut self.codes;
        let (step, distance) = encode(unit, limit, |place, code| codes[place] = code);
        self.step = step;
        self.norm = UNIT + distance;
        self.error = UNIT * distance + dot_error(unit.len()) + SLACK;
    }
}

/// Gives each number's code, at most `limit` in size; answers the step and the distance.
fn encode(unit: &[f32], limit: i16, mut put: impl FnMut(usize, i16)) -> (f64, f64) {
    let largest = unit.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let step = f64::from(largest) / f64::from(limit);
    let mut squares = 0.0;
    for (place, &value) in unit.iter().enumerate() {
        let code = if step > 0.0 { (f64::from(value) / step).round() as i16 } else { 0 };
        let error = f64::from(value) - step * f64::from(code);
        squares += error * error;
        put(place, code);
    }
    (step, squares.sqrt() * UNIT)
}

/// The dot product of two lists of whole pieces.
#[inline]
fn integer_dot(query: &[i16], codes: &[i8]) -> i32 {
    let (query, codes) = (query.as_chunks::<PIECE>().0, codes.as_chunks::<PIECE>().0);
    let pieces = query.iter().zip(codes).map(|(query, codes)| {
        // Widened to the query's 16 bits first, so that pairs are multiplied and added at once.
        let codes = codes.map(i16::from);
        query.iter().zip(&codes).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum::<i32>()
    });
    pieces.sum()
}

#[cfg(test)]
mod tests {
    use super::super::vectors::{dot, unit_into};
    use super::*;

    #[test]
    fn codes_by_hand() {
        let mut out = [0; 3];
        // The step is 0.5; 0.2 and 0.3 round to 0 and 1, and are 0.2 off.
        let (step, distance) = encode(&[1.0, 0.2, 0.3], 2, |place, code| out[place] = code);
        assert_eq!((step, out), (0.5, [2, 0, 1]));
        assert!((distance - 0.08f64.sqrt()).abs() < 1e-6);
        assert_eq!(encode(&[0.0, 0.0], 127, |_, code| assert_eq!(code, 0)), (0.0, 0.0));
    }

    /// The largest dimension with every code at its limit: the sum of products does not overflow.
    #[test]
    fn the_largest_products_fit() {
        for dimension in [1, 512, 516, MAX_DIMENSION] {
            let mut unit = vec![0.0; dimension];
            unit_into(&vec![1.0; dimension], &mut unit).unwrap();
            let (mut codes, mut query) =
                (Codes::with_capacity(1, dimension).unwrap(), QueryCodes::for_dimension(dimension));
            codes.set(0, &unit);
            query.set(&unit);
            let (exact, upper) = (dot(&unit, &unit), codes.upper_bounds(&query).next().unwrap());
            assert!(upper >= exact && upper < exact + 0.03, "{dimension}: {upper} {exact}");
        }
    }
}
