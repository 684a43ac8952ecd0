//! Which experts of a layer follow which, from visit to visit: the strongest feature that online
//! policies have found on recorded traces.
//!
//! Memory: 4 bytes for each pair of experts of a layer (3 MB for 48 layers of 128), so a plain
//! cache trace of n keys, all in one layer, takes 4 n^2 bytes.

use crate::policy::{Key, PoolShape};
use crate::structures::memory::{array, sum};

/// Learned transition counts of a pool's layers.
#[derive(Debug, Clone)]
pub struct Transitions {
    /// First key of each layer, and the number of keys behind the last.
    bases: Vec<Key>,
    /// Where each layer's square of counts begins; rows are the earlier experts.
    squares: Vec<usize>,
    counts: Vec<u32>,
    /// Visits that followed a use of each key.
    followed: Vec<u32>,
    /// The latest set of each layer, at the layer's keys' places.
    latest: Vec<Key>,
    latest_len: Vec<u32>,
}

/// Added to a row's visits, so that a young row promises little.
const PRIOR: f64 = 4.0;

impl Transitions {
    /// No transitions yet.
    #[must_use]
    pub fn new(pool: &PoolShape) -> Self {
        let mut bases = pool.layer_bases.clone();
        bases.push(pool.keys);
        let mut squares = Vec::with_capacity(bases.len());
        let mut total = 0;
        for pair in bases.windows(2) {
            squares.push(total);
            let experts = (pair[1] - pair[0]) as usize;
            total += experts * experts;
        }
        Self {
            counts: vec![0; total],
            followed: vec![0; pool.keys as usize],
            latest: vec![0; pool.keys as usize],
            latest_len: vec![0; pool.layers() as usize],
            bases,
            squares,
        }
    }

    /// Bytes that the counts of such a pool allocate: four for each pair of a layer's experts, and
    /// some for each key and layer.
    pub(crate) fn memory(pool: &PoolShape) -> u64 {
        let ends = pool.layer_bases.iter().skip(1).copied().chain([pool.keys]);
        let pairs = pool.layer_bases.iter().zip(ends).map(|(&base, end)| {
            let experts = u64::from(end - base);
            array::<u32>(experts * experts)
        });
        let layers = pool.layers();
        sum(pairs.chain([
            array::<u32>(pool.keys),
            array::<Key>(pool.keys),
            array::<Key>(u64::from(layers) + 1),
            array::<usize>(u64::from(layers) + 1),
            array::<u32>(layers),
        ]))
    }

    /// The keys of a layer.
    #[must_use]
    #[inline(always)]
    pub fn keys(&self, layer: u32) -> std::ops::Range<usize> {
        self.bases[layer as usize] as usize..self.bases[layer as usize + 1] as usize
    }

    /// Learns that `set` came after the layer's set before.
    #[inline(always)]
    pub fn visit(&mut self, layer: u32, set: &[Key]) {
        let keys = self.keys(layer);
        let (base, experts) = (keys.start, keys.len());
        let square = self.squares[layer as usize];
        let square = &mut self.counts[square..square + experts * experts];
        let latest = &mut self.latest[keys];
        let latest_len = &mut self.latest_len[layer as usize];
        for &before in &latest[..*latest_len as usize] {
            self.followed[before as usize] += 1;
            let row = &mut square[(before as usize - base) * experts..][..experts];
            for &key in set {
                row[key as usize - base] += 1;
            }
        }
        latest[..set.len()].copy_from_slice(set);
        *latest_len = set.len() as u32;
    }

    /// The row of each member of the layer's latest set, with the visits that it is divided by.
    #[inline(always)]
    fn rows(&self, layer: u32) -> impl Iterator<Item = (&[u32], f64)> {
        let keys = self.keys(layer);
        let (base, experts) = (keys.start, keys.len());
        let square = &self.counts[self.squares[layer as usize]..][..experts * experts];
        let set = &self.latest[keys][..self.latest_len[layer as usize] as usize];
        set.iter().map(move |&key| {
            let row = &square[(key as usize - base) * experts..][..experts];
            (row, f64::from(self.followed[key as usize]) + PRIOR)
        })
    }

    #[inline(always)]
    fn set_len(&self, layer: u32) -> f64 {
        f64::from(self.latest_len[layer as usize])
    }

    /// The chance of each of the layer's keys to be in its next set, as of the latest:
    /// T_j = (1 / |set|) * sum over a in the set of c\[a\]\[j\] / (n\[a\] + 4).
    #[inline(always)]
    pub fn chances(&self, layer: u32, chances: &mut [f64]) {
        chances.fill(0.0);
        for (row, visits) in self.rows(layer) {
            for (chance, &count) in chances.iter_mut().zip(row) {
                *chance += f64::from(count) / visits;
            }
        }
        let len = self.set_len(layer);
        for chance in chances {
            *chance /= len;
        }
    }

    /// The same for the layer's key `place` alone, to the bit.
    #[cold]
    pub fn chance(&self, layer: u32, place: usize) -> f64 {
        let of_row = |(row, visits): (&[u32], f64)| f64::from(row[place]) / visits;
        self.rows(layer).fold(0.0, |sum, row| sum + of_row(row)) / self.set_len(layer)
    }

    /// The same for all to about 2^-22 of itself for each member of the set, without divisions.
    #[inline(always)]
    pub fn estimates(&self, layer: u32, estimates: &mut [f32]) {
        estimates.fill(0.0);
        let len = self.set_len(layer);
        let mut rows = self.rows(layer);
        let part = |(row, visits): (_, f64)| (row, (1.0 / (visits * len)) as f32);
        let none: (&[u32], f32) = (&[0; 0], 0.0);
        // Four rows in one pass.
        while let Some(first) = rows.next().map(part) {
            let next: [_; 3] = std::array::from_fn(|_| rows.next().map_or(none, part));
            let [(b, of_b), (c, of_c), (d, of_d)] = next;
            let (a, of_a) = first;
            if d.len() < a.len() {
                for (row, share) in [first].into_iter().chain(next) {
                    for (estimate, &count) in estimates.iter_mut().zip(row) {
                        *estimate += share_of(count, share);
                    }
                }
                continue;
            }
            let four = a.iter().zip(b).zip(c).zip(d);
            for (estimate, (((&a, &b), &c), &d)) in estimates.iter_mut().zip(four) {
                *estimate += (share_of(a, of_a) + share_of(b, of_b))
                    + (share_of(c, of_c) + share_of(d, of_d));
            }
        }
    }
}

/// Signed, for which processors have an instruction; 2^31 visits are not reached.
#[inline(always)]
fn share_of(count: u32, share: f32) -> f32 {
    count as i32 as f32 * share
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers of 2 and 3 experts. In the second layer (keys 2 3 4) the sets {2 3}, {4}, {2 3}:
    /// 4 followed 2 and 3 once each, 2 and 3 followed 4 once each. After the third set the chance
    /// of 4 is (1/5 + 1/5) / 2, that of 2 and 3 is 0, for neither ever followed 2 or 3.
    #[test]
    fn chances_come_from_what_followed_the_present_set() {
        let pool = PoolShape { capacity: 2, keys: 5, layer_bases: vec![0, 2], keys_per_token: 2 };
        let mut transitions = Transitions::new(&pool);
        let mut after = |set: &[Key]| {
            transitions.visit(1, set);
            let (mut chances, mut estimates) = ([0.0; 3], [0.0; 3]);
            transitions.chances(1, &mut chances);
            transitions.estimates(1, &mut estimates);
            for place in 0..3 {
                assert_eq!(transitions.chance(1, place), chances[place]);
                assert!((f64::from(estimates[place]) - chances[place]).abs() < 1e-7);
            }
            chances
        };
        assert_eq!(after(&[2, 3]), [0.0; 3]);
        after(&[4]);
        assert_eq!(after(&[2, 3]), [0.0, 0.0, 0.2]);
        assert_eq!(after(&[4]), [0.2, 0.2, 0.0]);
    }
}
