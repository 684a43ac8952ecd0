//! Experts' weights made from their numbers, and what their gated MLPs must give.
//!
//! An expert is rows of 512 gate, 512 up and 512 down weights in bf16, each an eighth-bit number of
//! 128ths that a hash of the expert's key and the weight's place gives. Two numbers of an output `y`
//! are kept and compared: `y . x` and the sum of `y`. An expert of another key, or one of which a
//! part has not arrived, gives others.

use std::ops::Range;

/// Columns of a projection.
pub const WIDTH: usize = 512;
/// Bytes of a row: three projections of bf16.
pub const ROW_BYTES: usize = 3 * WIDTH * 2;
/// How far a kernel's sum may be off, as a share of what a sum of so many rows varies by.
const TOLERANCE: f32 = 2e-3;

/// The input of a layer's experts.
pub type Input = [f32; WIDTH];

/// Rows that an expert of so many bytes has; what is left over is copied and not computed.
#[must_use]
pub fn rows(bytes: u64) -> u32 {
    u32::try_from(bytes / ROW_BYTES as u64).unwrap_or(u32::MAX)
}

fn hashed(seed: u32, index: u32) -> u32 {
    let mixed = index.wrapping_mul(0x9e37_79b1) ^ seed;
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca77);
    (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae3d)
}

fn seed(key: u32) -> u32 {
    hashed(0x5bd1_e995, key.wrapping_add(1))
}

/// Writes the weights of the expert with this key.
pub fn fill(key: u32, weights: &mut [u16]) {
    let seed = seed(key);
    for (index, weight) in (0u32..).zip(weights) {
        let signed = (hashed(seed, index) >> 24) as u8 as i8;
        // Exact: bf16 has eight bits of precision.
        *weight = ((f32::from(signed) / 128.0).to_bits() >> 16) as u16;
    }
}

/// The input of the experts of a layer: plus and minus a sixteenth.
#[must_use]
pub fn input(layer: usize) -> Input {
    let seed = hashed(0x1b87_3593, layer as u32);
    std::array::from_fn(
        |at| {
            if hashed(seed, at as u32) >> 31 == 0 { 1.0 / 16.0 } else { -1.0 / 16.0 }
        },
    )
}

/// What is kept of an expert's output: `y . x`, and the sum of `y`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// `y . x`.
    pub on_input: f32,
    /// The sum of `y`.
    pub plain: f32,
}

/// What an expert must give, and how far it may be off.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reference {
    sums: Sums,
    allowed: Sums,
}

impl Reference {
    /// Computes all rows of an expert.
    #[must_use]
    pub fn of(weights: &[u16], x: &Input) -> Self {
        let (mut sums, mut squares) = ([0f64; 2], [0f64; 2]);
        for row in weights.chunks_exact(ROW_BYTES / 2) {
            let parts = row_parts::<false>(row, x).map(f64::from);
            for ((sum, square), part) in sums.iter_mut().zip(&mut squares).zip(parts) {
                *sum += part;
                *square += part * part;
            }
        }
        let allowed = squares.map(|square| square.sqrt() as f32 * TOLERANCE);
        Self {
            sums: Sums { on_input: sums[0] as f32, plain: sums[1] as f32 },
            allowed: Sums { on_input: allowed[0], plain: allowed[1] },
        }
    }

    /// Whether computed sums are this expert's.
    #[must_use]
    pub fn fits(&self, sums: Sums) -> bool {
        let near = |a: f32, b: f32, allowed: f32| (a - b).abs() <= allowed;
        near(sums.on_input, self.sums.on_input, self.allowed.on_input)
            && near(sums.plain, self.sums.plain, self.allowed.plain)
    }

    /// What it must give.
    #[must_use]
    pub fn sums(&self) -> Sums {
        self.sums
    }
}

/// Computes some rows of an expert, as host cores do that serve it. Inlined, so that it is compiled
/// for what its caller may use of the processor.
#[must_use]
#[inline(always)]
pub fn compute<const FUSED: bool>(weights: &[u16], rows: Range<usize>, x: &Input) -> Sums {
    let row = ROW_BYTES / 2;
    let mut sums = [0f32; 2];
    for row in weights[rows.start * row..rows.end * row].chunks_exact(row) {
        let parts = row_parts::<FUSED>(row, x);
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    Sums { on_input: sums[0], plain: sums[1] }
}

/// What a row adds to both sums.
#[inline(always)]
fn row_parts<const FUSED: bool>(row: &[u16], x: &Input) -> [f32; 2] {
    let (gate, rest) = row.split_at(WIDTH);
    let (up, down) = rest.split_at(WIDTH);
    let (g, u) = (dot::<FUSED>(gate, x), dot::<FUSED>(up, x));
    let h = g / (1.0 + (-g).exp()) * u;
    [h * dot::<FUSED>(down, x), h * dot::<FUSED>(down, &[1.0; WIDTH])]
}

/// A product of a row's columns with an input, in sums side by side.
#[inline(always)]
fn dot<const FUSED: bool>(weights: &[u16], x: &Input) -> f32 {
    const SIDE_BY_SIDE: usize = 32;
    let mut sums = [0f32; SIDE_BY_SIDE];
    let (weights, _) = weights.as_chunks::<SIDE_BY_SIDE>();
    let (x, _) = x.as_chunks::<SIDE_BY_SIDE>();
    for (weights, x) in weights.iter().zip(x) {
        for place in 0..SIDE_BY_SIDE {
            let weight = f32::from_bits(u32::from(weights[place]) << 16);
            let sum = sums[place];
            sums[place] =
                if FUSED { weight.mul_add(x[place], sum) } else { sum + weight * x[place] };
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expert(key: u32, rows: usize) -> Vec<u16> {
        let mut weights = vec![0; rows * ROW_BYTES / 2];
        fill(key, &mut weights);
        weights
    }

    #[test]
    fn an_expert_fits_its_own_reference_and_nobody_elses() {
        let x = input(3);
        let references: Vec<Reference> =
            (0..40).map(|key| Reference::of(&expert(key, 8), &x)).collect();
        for (key, reference) in (0u32..).zip(&references) {
            let sums = compute::<true>(&expert(key, 8), 0..8, &x);
            let fitting = references.iter().filter(|other| other.fits(sums)).count();
            assert!(reference.fits(sums) && fitting == 1, "expert {key}: {fitting} fit");
        }
    }

    #[test]
    fn one_row_that_did_not_arrive_is_seen() {
        let x = input(0);
        let (mut here, there) = (expert(1, 256), expert(2, 256));
        let reference = Reference::of(&here, &x);
        let last = here.len() - ROW_BYTES / 2;
        here[last..].copy_from_slice(&there[last..]);
        assert!(!reference.fits(compute::<false>(&here, 0..256, &x)));
    }

    #[test]
    fn rows_are_computed_in_any_shares() {
        let (weights, x) = (expert(7, 10), input(1));
        let parts = [0..3, 3..4, 4..10].map(|rows| compute::<false>(&weights, rows, &x));
        let sums = parts.iter().fold(Sums::default(), |sum, part| Sums {
            on_input: sum.on_input + part.on_input,
            plain: sum.plain + part.plain,
        });
        assert!(Reference::of(&weights, &x).fits(sums));
        assert_eq!((rows(3071), rows(3072), rows(13_221_888)), (0, 1, 4304));
    }

    #[test]
    fn a_row_by_hand() {
        // Gate and up are 1/16 along x's first column, which is +-1/16; down is 1 there.
        let (mut row, x) = (vec![0u16; ROW_BYTES / 2], input(0));
        let bf16 = |value: f32| (value.to_bits() >> 16) as u16;
        (row[0], row[WIDTH], row[2 * WIDTH]) = (bf16(0.0625), bf16(0.0625), bf16(1.0));
        let g = 0.0625 * x[0];
        let h = g / (1.0 + (-g).exp()) * g;
        let sums = compute::<false>(&row, 0..1, &x);
        assert_eq!((sums.on_input, sums.plain), (h * x[0], h));
    }
}
