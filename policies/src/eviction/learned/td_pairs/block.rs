//! td-pairs' arithmetic, eight experts at a time.
//!
//! Plain loops over arrays of eight, which compilers turn into wide instructions on every processor;
//! sums are taken in one fixed order and nothing is fused, so that all of them agree.

use super::pairs::{LANES, Row};

pub(super) type Lanes = [f32; LANES];

pub(super) const HALF_LIVES: [f32; 2] = [6.0, 32.0];
pub(super) const FEATURES: usize = 1 + HALF_LIVES.len();
/// A share never falls below this, so that its logarithm has an end.
const FLOOR: f32 = 0.003;
/// 0.25 ln(2): the features are natural logarithms.
const PER_OCTAVE: f32 = 0.173_286_8;
/// Numbers of a pair's weight in one of a logit.
pub(super) const SCALE: f32 = 2048.0;
/// Added to the worth of an expert in use.
pub(super) const IN_USE: f32 = 1024.0;
/// 1.5 * 2^23: added to a small number, it rounds it to a whole one in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;
/// Nobody of a block is in use.
pub(super) const IDLE: Lanes = [0.0; LANES];

/// Eight experts of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Decayed shares of the layer's visits that used them, by half-life, floor included.
    shares: [Lanes; 2],
    /// The estimates p.
    chances: Lanes,
    /// log2 of them.
    pub worths: Lanes,
    /// The same for residents; infinity for the absent.
    pub held: Lanes,
}

impl Block {
    pub const UNUSED: Self = Self {
        shares: [[FLOOR; LANES]; 2],
        chances: [0.02; LANES],
        worths: [-5.643_856; LANES],
        held: [f32::INFINITY; LANES],
    };
}

/// The lowest worth of those of a block that are not in use.
#[inline(always)]
pub(super) fn lowest(held: &Lanes, used: &Lanes) -> f32 {
    let lower = |a: f32, b: f32| if b < a { b } else { a };
    // Nothing is worth more than log2(1) = 0.
    let mut four = [0.0; LANES / 2];
    for (lane, least) in four.iter_mut().enumerate() {
        let other = lane + LANES / 2;
        *least = lower(held[lane] + used[lane] * IN_USE, held[other] + used[other] * IN_USE);
    }
    lower(lower(four[0], four[2]), lower(four[1], four[3]))
}

/// What one event's blocks have in common.
#[derive(Clone, Copy)]
pub(super) struct Common {
    pub weights: [f32; FEATURES],
    /// Share that a visit without use leaves, and that a use adds.
    pub decays: [(f32, f32); 2],
    pub gamma: f32,
    /// A logit in one of a sum's numbers.
    pub per_number: f32,
    /// Numbers that a pair moves for an error of 1.
    pub rate: f32,
    pub dither: Lanes,
}

/// What is added to steps before they are rounded, so that small ones are not lost: spread evenly
/// over the lanes and, from event to event, by the golden ratio.
pub(super) fn dither(event: u32) -> Lanes {
    let turn = (event.wrapping_mul(0x9e37_79b9) >> 16) as f32 / 65536.0;
    let mut dither = [0.0; LANES];
    for (lane, dither) in dither.iter_mut().enumerate() {
        let place = turn + lane as f32 / LANES as f32;
        *dither = if place >= 1.0 { place - 1.5 } else { place - 0.5 };
    }
    dither
}

/// About log2 of a positive number: exact at powers of two, straight between them.
#[inline(always)]
fn log2(x: f32) -> f32 {
    x.to_bits() as i32 as f32 * (1.0 / 8_388_608.0) - 127.0
}

/// 1 / (1 + e^-z), to a thousandth of itself.
#[inline(always)]
fn sigma(z: f32) -> f32 {
    let power = z * -std::f32::consts::LOG2_E;
    let power = if power > -30.0 { power } else { -30.0 };
    let power = if power < 30.0 { power } else { 30.0 };
    let rounded = power + (ROUNDER + 127.0);
    let rest = power - (rounded - (ROUNDER + 127.0));
    let whole = f32::from_bits(rounded.to_bits() << 23);
    1.0 / (1.0
        + whole
            * (1.0 + rest * (std::f32::consts::LN_2 + rest * (0.240_226_5 + rest * 0.055_504_1))))
}

impl Common {
    /// Takes eight experts over an event: returns how far their pairs move, and adds the products
    /// of the errors of what was estimated before with the features of then to `gradient`. Only
    /// `lanes` of the experts exist.
    #[inline(always)]
    pub fn renew(
        &self,
        block: &mut Block,
        (used, sums): (&Lanes, &Row),
        lanes: usize,
        gradient: &mut [Lanes; FEATURES],
    ) -> Row {
        let mut z = IDLE;
        for i in 0..LANES {
            z[i] = self.weights[0] + f32::from(sums[i]) * self.per_number;
        }
        let mut features = [IDLE; 2];
        for (j, shares) in block.shares.iter_mut().enumerate() {
            let (left, added) = self.decays[j];
            for i in 0..LANES {
                features[j][i] = log2(shares[i]) * PER_OCTAVE + 1.0;
                shares[i] = shares[i] * left + added * (used[i] + FLOOR);
                z[i] += self.weights[j + 1] * (log2(shares[i]) * PER_OCTAVE + 1.0);
            }
        }
        let mut errors = IDLE;
        for i in 0..LANES {
            let chance = sigma(z[i]);
            let later = self.gamma * chance;
            errors[i] = later + used[i] * (1.0 - later) - block.chances[i];
            block.chances[i] = chance;
            block.worths[i] = log2(chance);
            let absent = block.held[i] == f32::INFINITY;
            block.held[i] = if absent { f32::INFINITY } else { block.worths[i] };
        }
        if lanes < LANES {
            for error in errors.iter_mut().skip(lanes) {
                *error = 0.0;
            }
        }
        for i in 0..LANES {
            gradient[0][i] += errors[i];
            gradient[1][i] += errors[i] * features[0][i];
            gradient[2][i] += errors[i] * features[1][i];
        }
        let mut steps = [0; LANES];
        for i in 0..LANES {
            let rounded = errors[i] * self.rate + self.dither[i] + ROUNDER;
            steps[i] = (rounded.to_bits() as i32 - ROUNDER.to_bits() as i32) as i16;
        }
        steps
    }
}
