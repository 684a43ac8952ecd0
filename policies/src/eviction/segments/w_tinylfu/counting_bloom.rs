//! A counting Bloom filter: how often each of many keys was added, in fewer counters than keys ask
//! for, never too low and too high when keys share all their counters with others.
//!
//! Source: L. Fan and others, "Summary cache", IEEE/ACM Transactions on Networking 8(3), 2000, with
//! two hashes for all places (A. Kirsch and M. Mitzenmacher, "Less hashing, same performance", ESA
//! 2006). These are XXH64 of the key plus 1 with the seeds that libCacheSim has, so that the filter is
//! wrong about the same keys: with other hashes the golden counts of loopscan at 500 slots, where it is
//! overfull, come out 2.5 to 2.9% lower.

use crate::Key;
use crate::structures::memory::array;

/// Counters a key for one wrong answer in a thousand when full: -ln(0.001) / ln(2)^2.
const COUNTERS_A_KEY: f64 = 14.377_587_566_051_17;
/// Places of a key: counters a key x ln(2), rounded up.
const PLACES: u32 = 10;
const SEEDS: [u64; 2] = [0x1234_5678, 0x1234_4321];

/// Counts of keys, each in [`PLACES`] counters.
#[derive(Debug, Clone)]
pub struct CountingBloom {
    counters: Vec<u32>,
}

impl CountingBloom {
    /// A filter that is full with this many keys.
    pub fn new(keys: u32) -> Self {
        Self { counters: vec![0; Self::counters(keys) as usize] }
    }

    fn counters(keys: u32) -> u64 {
        ((COUNTERS_A_KEY * f64::from(keys)).ceil() as u64).max(2 * u64::from(PLACES))
    }

    /// Bytes that such a filter allocates.
    pub fn memory(keys: u32) -> u64 {
        array::<u32>(Self::counters(keys))
    }

    #[inline(always)]
    fn places(&self, key: Key) -> impl Iterator<Item = usize> + use<> {
        let [first, step] = SEEDS.map(|seed| xxh64(u64::from(key) + 1, seed) as u32);
        let counters = self.counters.len() as u32;
        (0..PLACES).map(move |i| (first.wrapping_add(step.wrapping_mul(i)) % counters) as usize)
    }

    /// How often `key` was added, or more.
    #[inline(always)]
    pub fn estimate(&self, key: Key) -> u32 {
        self.places(key).map(|place| self.counters[place]).min().unwrap_or(0)
    }

    /// Adds 1 in every place of `key`, twice where two of them are one.
    #[inline(always)]
    pub fn add(&mut self, key: Key) {
        for place in self.places(key) {
            self.counters[place] = self.counters[place].saturating_add(1);
        }
    }

    /// The counters, to halve them.
    pub fn counters_mut(&mut self) -> &mut [u32] {
        &mut self.counters
    }
}

/// XXH64 of the eight bytes of `value`, lowest first, as its specification has it.
#[inline(always)]
fn xxh64(value: u64, seed: u64) -> u64 {
    const PRIMES: [u64; 5] = [
        0x9e37_79b1_85eb_ca87,
        0xc2b2_ae3d_27d4_eb4f,
        0x1656_67b1_9e37_79f9,
        0x85eb_ca77_c2b2_ae63,
        0x27d4_eb2f_1656_67c5,
    ];
    let lane = value.wrapping_mul(PRIMES[1]).rotate_left(31).wrapping_mul(PRIMES[0]);
    let hash = seed.wrapping_add(PRIMES[4]).wrapping_add(8) ^ lane;
    let hash = hash.rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_xxh64() {
        for value in [0, 1, 6_144, u64::from(u32::MAX) + 1, u64::MAX] {
            for seed in [0, SEEDS[0], SEEDS[1]] {
                let expected = xxhash_rust::xxh64::xxh64(&value.to_le_bytes(), seed);
                assert_eq!(xxh64(value, seed), expected);
            }
        }
    }

    #[test]
    fn estimates_are_never_low_and_seldom_high_when_not_overfull() {
        let mut filter = CountingBloom::new(1_000);
        assert_eq!(filter.counters.len(), 14_378);
        for key in 0..1_000 {
            (0..=key % 3).for_each(|_| filter.add(key));
        }
        assert!((0..1_000).all(|key| filter.estimate(key) > key % 3));
        let wrong = (1_000..11_000).filter(|&key| filter.estimate(key) > 0).count();
        assert!((1..=30).contains(&wrong), "{wrong} of 10,000 that never came; about 10 expected");
    }
}
