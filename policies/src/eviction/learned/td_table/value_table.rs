//! td-table's table: what an expert is worth, by age, frequency and transition chance.

use crate::structures::memory::{array, sum};

const AGES: usize = 20;
const FREQUENCIES: usize = 14;
const CHANCES: usize = 12;
/// Visits after which a use counts half.
const HALF_LIFE: f64 = 32.0;
/// Ages that differ in anything: the age bucket is the last from 544 on, and 2^(-a/32) is below
/// what a bucket tells apart from 960 on.
pub(super) const OLDEST: usize = 1023;

/// The learned part, which knows nothing of slots.
#[derive(Debug, Clone)]
pub(super) struct ValueTable {
    pub(super) values: Vec<f32>,
    counts: Vec<u32>,
    ages: Vec<u32>,
    pub(super) decay: Vec<f64>,
    frequency_floors: [f64; FREQUENCIES],
    chance_floors: [f64; CHANCES],
}

impl ValueTable {
    pub(super) fn new() -> Self {
        let start = |cell: usize| {
            let (age, frequency) = (cell / (FREQUENCIES * CHANCES), cell / CHANCES % FREQUENCIES);
            0.6 / (1.0 + 0.3 * age as f64) * libm::exp2((frequency as f64 - 13.0) / 4.0)
        };
        let of_age = |age: usize| match age {
            0..=6 => age as u32,
            _ => (6 + (2.0 * libm::log2(age as f64 / 6.0)) as u32).min(AGES as u32 - 1),
        };
        Self {
            values: (0..AGES * FREQUENCIES * CHANCES).map(|cell| start(cell) as f32).collect(),
            counts: vec![0; AGES * FREQUENCIES * CHANCES],
            ages: (0..=OLDEST).map(of_age).collect(),
            decay: (0..=OLDEST).map(|age| libm::exp2(-(age as f64) / HALF_LIFE)).collect(),
            frequency_floors: floors(),
            chance_floors: floors(),
        }
    }

    /// Bytes that a table allocates.
    pub(super) fn memory() -> u64 {
        sum([
            array::<(f32, u32)>((AGES * FREQUENCIES * CHANCES) as u64),
            array::<(u32, f64)>(OLDEST as u64 + 1),
        ])
    }

    /// The cell of an expert: its age in visits, the share of visits that used it as of its last
    /// use, and its transition chance.
    #[inline(always)]
    pub(super) fn cell(&self, age: u32, share: f64, chance: f64) -> u32 {
        let age = (age as usize).min(OLDEST);
        let frequency = bucket(&self.frequency_floors, share * self.decay[age]);
        (self.ages[age] * FREQUENCIES as u32 + frequency) * CHANCES as u32
            + bucket(&self.chance_floors, chance)
    }

    /// Moves what a cell is worth towards `target`.
    #[inline(always)]
    pub(super) fn learn(&mut self, cell: u32, target: f64) {
        let count = &mut self.counts[cell as usize];
        *count = count.saturating_add(1);
        let rate = (1.0 / (f64::from(*count) + 1.0)).max(0.001);
        let value = &mut self.values[cell as usize];
        *value = (f64::from(*value) + rate * (target - f64::from(*value))) as f32;
    }
}

/// Where each bucket begins; the first takes everything below the second.
fn floors<const N: usize>() -> [f64; N] {
    std::array::from_fn(|bucket| match bucket {
        0 => f64::NEG_INFINITY,
        _ => 0.7 * libm::exp2((bucket as f64 - N as f64 + 0.5) / 1.5),
    })
}

#[inline(always)]
fn bucket<const N: usize>(floors: &[f64; N], value: f64) -> u32 {
    floors.iter().map(|&floor| u32::from(value >= floor)).sum::<u32>() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_the_logarithm_says() {
        let table = ValueTable::new();
        // Solved for b: 13.5 + 1.5 log2(x / 0.7), which is 12 for 0.35, above 13 for 0.9 and
        // below 0 for 0.7 / 1024.
        assert_eq!(bucket(&table.frequency_floors, 0.35), 12);
        assert_eq!(bucket(&table.frequency_floors, 0.349), 11);
        assert_eq!(bucket(&table.frequency_floors, 0.9), 13);
        assert_eq!(bucket(&table.frequency_floors, 0.7 / 1024.0), 0);
        assert_eq!(bucket(&table.chance_floors, 0.0), 0);
        assert_eq!([0, 6, 7, 9, 12, 543, 1023].map(|age| table.ages[age]), [0, 6, 6, 7, 8, 18, 19]);
    }
}
