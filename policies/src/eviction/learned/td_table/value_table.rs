//! td-table's table: what an expert is worth, by age, frequency and transition chance.

use super::trail::{AGES, FREQUENCIES, floors};
use crate::structures::memory::{array, sum};

pub(super) const CHANCES: usize = 12;
/// Cells that mean something.
pub(super) const CELLS: usize = AGES * FREQUENCIES * CHANCES;
/// Places for cells, a power of two, so that no place needs a check.
const PLACES: usize = CELLS.next_power_of_two();
/// Visits of a cell after which it learns at the lowest rate.
const SLOWEST: usize = 999;

/// What an expert in it is worth.
#[derive(Debug, Clone, Copy)]
struct Cell {
    value: f32,
    /// Visits, of which those from `SLOWEST` on are not told apart.
    count: u32,
}

/// The learned part, which knows nothing of slots.
#[derive(Debug, Clone)]
pub(super) struct ValueTable {
    cells: Box<[Cell; PLACES]>,
    /// max(0.001, 1 / (count + 1)), by count.
    rates: Vec<f64>,
    chance_floors: [f64; CHANCES],
    gamma: f64,
}

/// Experts whose doubts are settled together.
const PART: usize = 64;
/// Bits of an estimate that its bucket does not depend on, unless it is beside an edge.
const FINE: u32 = 12;
/// Estimates below it are all in the first bucket; above 1 there are none.
const LEAST: f32 = 1.0 / 256.0;
/// Members of a set up to which estimates are close enough: 2^-24 for each and some, to 2^-14.
const CLOSE: usize = 512;

impl ValueTable {
    pub(super) fn new(gamma: f64) -> Self {
        let start = |cell: usize| {
            let (age, frequency) = (cell / (FREQUENCIES * CHANCES), cell / CHANCES % FREQUENCIES);
            0.6 / (1.0 + 0.3 * age as f64) * libm::exp2((frequency as f64 - 13.0) / 4.0)
        };
        let cell = |cell| Cell { value: start(cell) as f32, count: 0 };
        Self {
            cells: Box::new(std::array::from_fn(cell)),
            rates: (0..=SLOWEST).map(|count| f64::max(0.001, 1.0 / (count as f64 + 1.0))).collect(),
            chance_floors: floors(),
            gamma,
        }
    }

    /// Bytes that a table allocates.
    pub(super) fn memory() -> u64 {
        sum([array::<Cell>(PLACES as u64), array::<f64>(SLOWEST as u64 + 1)])
    }

    /// What an expert in the cell is worth.
    #[inline(always)]
    pub(super) fn value(&self, cell: u16) -> f32 {
        self.cells[usize::from(cell) % PLACES].value
    }

    /// Turns the `estimates` of chances into cells, by the places of the experts' first cells.
    /// `exactly` gives the chance of one whose estimate does not say enough.
    #[inline(always)]
    pub(super) fn cells(
        &self,
        firsts: &[u16],
        estimates: &[f32],
        exactly: impl Fn(usize) -> f64,
        cells: &mut [u16],
    ) {
        let parts = cells.chunks_mut(PART).zip(firsts.chunks(PART)).zip(estimates.chunks(PART));
        for (part, ((cells, firsts), estimates)) in parts.enumerate() {
            for (cell, &estimate) in cells.iter_mut().zip(estimates) {
                *cell = place_of(estimate);
            }
            let mut unsure = 0;
            for (cell, &first) in cells.iter_mut().zip(firsts) {
                let (perhaps, surely) = buckets(*cell);
                unsure |= perhaps ^ surely;
                *cell = first + surely;
            }
            if unsure != 0 {
                let wanted = |place: usize| is_unsure(estimates[place]);
                self.make_sure(firsts, wanted, |place| exactly(part * PART + place), cells);
            }
        }
    }

    /// Whether estimates of chances after a set of so many say anything.
    pub(super) fn estimates_suffice(set: usize) -> bool {
        set <= CLOSE
    }

    /// Replaces cells that no estimate could tell.
    #[cold]
    pub(super) fn make_sure(
        &self,
        firsts: &[u16],
        unsure: impl Fn(usize) -> bool,
        exactly: impl Fn(usize) -> f64,
        cells: &mut [u16],
    ) {
        for (place, (cell, first)) in cells.iter_mut().zip(firsts).enumerate() {
            if unsure(place) {
                let chance = exactly(place);
                let bucket = self.chance_floors.iter().filter(|&&floor| chance >= floor).count();
                *cell = first + bucket as u16 - 1;
            }
        }
    }

    /// Moves what the experts' `old` cells are worth towards gamma times what their `new` ones are,
    /// or towards 1 for those at the ascending places `used`, one expert after another.
    #[inline(always)]
    pub(super) fn learn(&mut self, old: &[u16], new: &[u16], used: &[u32]) {
        let mut start = 0;
        for &place in used {
            let place = place as usize;
            self.learn_unused(&old[start..place], &new[start..place]);
            self.move_towards(old[place], 1.0);
            start = place + 1;
        }
        self.learn_unused(&old[start..], &new[start..]);
    }

    #[inline(always)]
    fn learn_unused(&mut self, old: &[u16], new: &[u16]) {
        for (&old, &new) in old.iter().zip(new) {
            self.move_towards(old, self.gamma * f64::from(self.value(new)));
        }
    }

    #[inline(always)]
    fn move_towards(&mut self, cell: u16, target: f64) {
        let cell = &mut self.cells[usize::from(cell) % PLACES];
        cell.count = (cell.count + 1).min(SLOWEST as u32);
        let value = f64::from(cell.value);
        let rate = self.rates[cell.count as usize];
        cell.value = (value + rate * (target - value)) as f32;
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        let wrong = self.cells[..CELLS].iter().find(|cell| !(0.0..=1.0).contains(&cell.value));
        wrong.map_or(Ok(()), |cell| Err(format!("a worth of {} is learned", cell.value)))
    }
}

/// A number that rises with the estimate, in steps of 2^-11 of itself.
#[inline(always)]
fn place_of(estimate: f32) -> u16 {
    let higher = if estimate > LEAST { estimate } else { LEAST };
    let within = if higher < 1.0 { higher } else { 1.0 };
    ((within.to_bits() >> FINE) - (LEAST.to_bits() >> FINE)) as u16
}

/// Of each bucket but the first, the first place of estimates that may be in it, and the first of
/// those that certainly are (a test makes them of the floors).
const EDGES: [[i16; CHANCES - 1]; 2] = [
    [819, 2275, 3612, 4915, 6371, 7708, 9011, 10467, 11804, 13107, 14563],
    [820, 2276, 3613, 4916, 6372, 7709, 9012, 10468, 11805, 13108, 14564],
];

/// The highest bucket that an estimate's place may belong to, and the lowest.
#[inline(always)]
fn buckets(place: u16) -> (u16, u16) {
    let [first, second] = EDGES;
    let (mut perhaps, mut surely) = (0, 0);
    for bucket in 0..CHANCES - 1 {
        // Signed numbers, which are what narrow instructions compare.
        perhaps += u16::from(place as i16 >= first[bucket]);
        surely += u16::from(place as i16 >= second[bucket]);
    }
    (perhaps, surely)
}

fn is_unsure(estimate: f32) -> bool {
    let (perhaps, surely) = buckets(place_of(estimate));
    perhaps != surely
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_a_little_off_the_floors() {
        let floors: [f64; CHANCES] = floors();
        for (bucket, floor) in floors.into_iter().skip(1).enumerate() {
            let [below, above] = [1.0 - 1.0 / 16384.0, 1.0 + 1.0 / 16384.0];
            let places = [below, above].map(|margin| place_of((floor * margin) as f32) as i16);
            assert_eq!([EDGES[0][bucket], EDGES[1][bucket] - 1], places);
        }
    }

    #[test]
    fn chances_find_their_buckets() {
        let table = ValueTable::new(0.85);
        // 11.5 + 1.5 log2(x / 0.7): 11 from 0.5557 on, 10 from 0.35 on, 1 from 0.00547 on.
        let estimates = [0.0, 0.0054, 0.0055, 0.349, 0.351, 0.55, 0.56, 1.0];
        let mut cells = [0; 8];
        table.cells(&[24; 8], &estimates, |_| unreachable!(), &mut cells);
        assert_eq!(cells, [24, 24, 25, 33, 34, 34, 35, 35]);
        // At an edge the exact chance decides.
        let edge = 0.7 * libm::exp2(-1.0);
        for (chance, bucket) in [(edge, 10), (edge - 1e-12, 9)] {
            let mut cell = [0];
            table.cells(&[0], &[edge as f32], |_| chance, &mut cell);
            assert_eq!(cell, [bucket]);
        }
    }

    #[test]
    fn values_move_one_after_another() {
        let mut table = ValueTable::new(0.5);
        let start = table.value(7);
        // First towards 1 at half the way, then a third of the way towards half of itself.
        table.learn(&[7, 7], &[0, 7], &[0]);
        let first = (f64::from(start) + 0.5 * (1.0 - f64::from(start))) as f32;
        let second = f64::from(first) + 1.0 / 3.0 * (0.5 * f64::from(first) - f64::from(first));
        assert_eq!(table.value(7), second as f32);
    }
}
