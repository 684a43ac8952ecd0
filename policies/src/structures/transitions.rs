//! Which experts of a layer follow which, from visit to visit: the strongest feature that online
//! policies have found on recorded traces.
//!
//! Memory: 4 bytes for each pair of experts of a layer (3 MB for 48 layers of 128), so a plain
//! cache trace of n keys, all in one layer, takes 4 n^2 bytes.

use crate::policy::{Key, PoolShape};
use crate::structures::memory::{array, sum};

/// Learned transition counts of a pool's layers, and the chances that they give.
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
    chances: Vec<f64>,
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
            chances: vec![0.0; pool.keys as usize],
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
            array::<f64>(pool.keys),
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

    /// Learns that `set` came after the layer's set before, and draws the chances from it:
    /// T_j = (1 / |set|) * sum over a in the set of c\[a\]\[j\] / (n\[a\] + 4).
    #[inline(always)]
    pub fn visit(&mut self, layer: u32, set: &[Key]) {
        let keys = self.keys(layer);
        let (base, experts) = (keys.start, keys.len());
        let square = self.squares[layer as usize];
        let square = &mut self.counts[square..square + experts * experts];
        let latest = &mut self.latest[keys.clone()];
        let latest_len = &mut self.latest_len[layer as usize];
        for &before in &latest[..*latest_len as usize] {
            self.followed[before as usize] += 1;
            let row = (before as usize - base) * experts;
            for &key in set {
                square[row + key as usize - base] += 1;
            }
        }
        latest[..set.len()].copy_from_slice(set);
        *latest_len = set.len() as u32;

        let chances = &mut self.chances[keys];
        chances.fill(0.0);
        for &key in set {
            let row = (key as usize - base) * experts;
            let visits = f64::from(self.followed[key as usize]) + PRIOR;
            for (chance, &count) in chances.iter_mut().zip(&square[row..row + experts]) {
                *chance += f64::from(count) / visits;
            }
        }
        for chance in chances {
            *chance /= set.len() as f64;
        }
    }

    /// The chance of each key of the pool to be in its layer's next set, as of the latest.
    #[must_use]
    #[inline(always)]
    pub fn chances(&self) -> &[f64] {
        &self.chances
    }
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
        transitions.visit(1, &[2, 3]);
        assert_eq!(transitions.chances(), [0.0; 5]);
        transitions.visit(1, &[4]);
        transitions.visit(1, &[2, 3]);
        assert_eq!(transitions.chances(), [0.0, 0.0, 0.0, 0.0, 0.2]);
        transitions.visit(1, &[4]);
        assert_eq!(transitions.chances(), [0.0, 0.0, 0.2, 0.2, 0.0]);
    }
}
