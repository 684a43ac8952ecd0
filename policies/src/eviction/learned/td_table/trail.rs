//! Where an expert that is not used goes in td-table's table: its age rises and its decayed share
//! of uses falls, in steps that are known when it was used.

use crate::structures::memory::{array, sum};

pub(super) const AGES: usize = 20;
pub(super) const FREQUENCIES: usize = 14;
/// Visits after which a use counts half.
const HALF_LIFE: f64 = 32.0;
/// Visits in which a share falls by a bucket: 32 / 1.5.
const BUCKET: u32 = 21;
/// Ages that differ in anything: the age bucket is the last from 544 on, and 2^(-a/32) is below
/// what a bucket tells apart from 960 on.
const OLDEST: usize = 1023;
/// An age that is not reached.
const NEVER: u32 = u32::MAX;

/// What is kept of an expert.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expert {
    /// Share of the layer's visits that used it, as of the last use.
    share: f64,
    /// Visits of its layer up to and with the last use.
    last: u32,
    /// The age at which its share falls into the bucket below.
    falls: u32,
    /// The bucket of its share.
    frequency: u16,
}

impl Expert {
    pub(super) const NEW: Self = Self { share: 0.0, last: 0, falls: NEVER, frequency: 0 };
    /// The visit at which a new one changes its place.
    pub(super) const NEW_DUE: u32 = 1;
}

/// What depends on ages alone.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    buckets: Vec<u16>,
    /// The next age at which the bucket is another.
    next: Vec<u32>,
    decay: Vec<f64>,
    floors: [f64; FREQUENCIES],
}

impl Trail {
    pub(super) fn new() -> Self {
        let bucket = |age: usize| match age {
            0..=6 => age as u16,
            _ => (6 + (2.0 * libm::log2(age as f64 / 6.0)) as u16).min(AGES as u16 - 1),
        };
        let buckets: Vec<u16> = (0..=OLDEST).map(bucket).collect();
        let next = |age: usize| {
            let ahead = buckets[age..].iter().position(|&bucket| bucket != buckets[age]);
            ahead.map_or(NEVER, |ahead| (age + ahead) as u32)
        };
        Self {
            next: (0..=OLDEST).map(next).collect(),
            buckets,
            decay: (0..=OLDEST).map(|age| libm::exp2(-(age as f64) / HALF_LIFE)).collect(),
            floors: floors(),
        }
    }

    /// Bytes that it allocates.
    pub(super) fn memory() -> u64 {
        sum([array::<u16>(OLDEST as u64 + 1), array::<(u32, u32, f64)>(OLDEST as u64 + 1)])
    }

    /// The expert is used at the layer's visit `visits`. Returns its place among ages and
    /// frequencies, and the visit at which that changes.
    #[inline(always)]
    pub(super) fn used(&self, expert: &mut Expert, visits: u32) -> (u16, u32) {
        let age = ((visits - expert.last) as usize).min(OLDEST);
        expert.share = expert.share * self.decay[age] + 1.0 - self.decay[1];
        expert.last = visits;
        let above = self.floors.iter().map(|&floor| u16::from(expert.share >= floor)).sum::<u16>();
        expert.frequency = above - 1;
        expert.falls = self.next_fall(expert, 0);
        (expert.frequency, visits.saturating_add(self.next[0].min(expert.falls)))
    }

    /// The same for an expert that reaches the visit at which its place changes.
    #[inline(always)]
    pub(super) fn moved(&self, expert: &mut Expert, visits: u32) -> (u16, u32) {
        let age = visits - expert.last;
        if age >= expert.falls {
            expert.frequency -= 1;
            expert.falls = self.next_fall(expert, age);
        }
        let known = (age as usize).min(OLDEST);
        let due = expert.last.saturating_add(self.next[known].min(expert.falls));
        (self.buckets[known] * FREQUENCIES as u16 + expert.frequency, due)
    }

    /// The first age after `age` at which the share is below its bucket.
    #[inline(always)]
    fn next_fall(&self, expert: &Expert, age: u32) -> u32 {
        if expert.frequency == 0 {
            return NEVER;
        }
        let floor = self.floors[usize::from(expert.frequency) % FREQUENCIES];
        let below = |age: u32| match self.decay.get(age as usize) {
            Some(decay) => expert.share * decay < floor,
            None => true,
        };
        // From the second bucket on it is a bucket's length away, but for one visit.
        let mut fall = age + if age == 0 { 1 + fall_of(expert.share, floor) } else { BUCKET };
        while !below(fall) {
            fall += 1;
        }
        while fall > age + 1 && below(fall - 1) {
            fall -= 1;
        }
        fall
    }

    #[cfg(test)]
    pub(super) fn buckets(&self) -> &[u16] {
        &self.buckets
    }
}

/// About how many visits it takes a share to fall to a floor, by the numbers' bits: straight
/// between powers of two, at most 3 off either way.
#[inline(always)]
fn fall_of(share: f64, floor: f64) -> u32 {
    let octaves = |x: f64| (x as f32).to_bits() >> 18;
    octaves(share).saturating_sub(octaves(floor))
}

/// Where each bucket begins; the first takes everything below the second.
pub(super) fn floors<const N: usize>() -> [f64; N] {
    std::array::from_fn(|bucket| match bucket {
        0 => f64::NEG_INFINITY,
        _ => 0.7 * libm::exp2((bucket as f64 - N as f64 + 0.5) / 1.5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_the_logarithm_says() {
        let trail = Trail::new();
        // Solved for b: 13.5 + 1.5 log2(x / 0.7), which is 12 for 0.35, above 13 for 0.9 and
        // below 0 for 0.7 / 1024.
        let bucket = |x: f64| trail.floors.iter().filter(|&&floor| x >= floor).count() - 1;
        assert_eq!([0.35, 0.349, 0.9, 0.7 / 1024.0].map(bucket), [12, 11, 13, 0]);
        assert_eq!(
            [0, 6, 7, 9, 12, 543, 1023].map(|age| trail.buckets()[age]),
            [0, 6, 6, 7, 8, 18, 19]
        );
    }

    /// Against the definition, visit by visit, for shares of all sizes.
    #[test]
    fn places_change_when_they_are_due() {
        let trail = Trail::new();
        for uses in [1, 2, 3, 5, 9, 40, 400] {
            let (mut expert, mut place) = (Expert::NEW, (0, 0));
            for visit in 1..=uses {
                place = trail.used(&mut expert, visit);
            }
            for visit in uses + 1..uses + 1100 {
                let age = (visit - uses) as usize;
                if visit == place.1 {
                    place = trail.moved(&mut expert, visit);
                }
                let decayed = expert.share * trail.decay[age.min(OLDEST)];
                let bucket = trail.floors.iter().filter(|&&floor| decayed >= floor).count() - 1;
                let expected = trail.buckets[age.min(OLDEST)] * FREQUENCIES as u16 + bucket as u16;
                assert_eq!(place.0, expected, "{uses} uses, age {age}");
                assert!(place.1 > visit, "{uses} uses, age {age}");
            }
        }
    }
}
