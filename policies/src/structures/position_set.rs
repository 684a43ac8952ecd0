//! A set of positions in a trace with a fast maximum: a bitmap under a 64-ary hierarchy.
//!
//! Belady's victim is the resident key with the farthest next use, so residents are kept as set
//! bits at their next-use positions. One word of a level tells which words of the level below are
//! not zero; five levels reach a billion positions.

/// A set over `0..size`.
#[derive(Debug, Clone)]
pub struct PositionSet {
    /// All levels behind each other: the bitmap itself first, one word last.
    words: Vec<u64>,
    /// Where each level begins in `words`, lowest first.
    starts: Vec<usize>,
}

impl PositionSet {
    /// An empty set over positions `0..size`.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let (mut starts, mut end, mut words) = (Vec::new(), 0, size.max(1));
        loop {
            words = words.div_ceil(64);
            starts.push(end);
            end += words;
            // At least two levels: see `insert`.
            if words == 1 && starts.len() > 1 {
                return Self { words: vec![0; end], starts };
            }
        }
    }

    /// Adds a position.
    #[inline(always)]
    pub fn insert(&mut self, position: u32) {
        let position = position as usize;
        let words = &mut self.words[..];
        words[position / 64] |= 1 << (position % 64);
        // Whether that word was empty is hard to guess, whether its word was is easy: one level
        // higher the bit is set in any case.
        let word = &mut words[self.starts[1] + position / 64 / 64];
        let was_empty = *word == 0;
        *word |= 1 << (position / 64 % 64);
        if was_empty {
            self.insert_above(position / 64 / 64);
        }
    }

    #[inline(never)]
    fn insert_above(&mut self, mut index: usize) {
        for &start in &self.starts[2..] {
            let word = &mut self.words[start + index / 64];
            let was_empty = *word == 0;
            *word |= 1 << (index % 64);
            if !was_empty {
                return;
            }
            index /= 64;
        }
    }

    /// Removes a position.
    #[inline(always)]
    pub fn remove(&mut self, position: u32) {
        let mut index = position as usize;
        for &start in &self.starts {
            let word = &mut self.words[start + index / 64];
            *word &= !(1 << (index % 64));
            if *word != 0 {
                return;
            }
            index /= 64;
        }
    }

    /// The largest position in the set.
    #[must_use]
    #[inline(always)]
    pub fn max(&self) -> Option<u32> {
        let top = self.words[self.words.len() - 1];
        (top != 0).then(|| self.descend(self.starts.len(), 0))
    }

    /// The largest position below `position`.
    #[must_use]
    pub fn max_below(&self, position: u32) -> Option<u32> {
        let mut index = position as usize;
        for (height, &start) in self.starts.iter().enumerate() {
            let below = self.words[start + index / 64] & ((1 << (index % 64)) - 1);
            if below != 0 {
                let bit = index / 64 * 64 + 63 - below.leading_zeros() as usize;
                return Some(self.descend(height, bit));
            }
            index /= 64;
        }
        None
    }

    /// Follows the highest bits down from word `index` of the level below `height`.
    #[inline(always)]
    fn descend(&self, height: usize, mut index: usize) -> u32 {
        for &start in self.starts[..height].iter().rev() {
            index = index * 64 + 63 - self.words[start + index].leading_zeros() as usize;
        }
        index as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_tree_set(
            size in 1usize..300_000,
            steps in prop::collection::vec((any::<u32>(), any::<bool>()), 1..200),
        ) {
            let (mut set, mut tree) = (PositionSet::new(size), BTreeSet::new());
            for (raw, add) in steps {
                let position = raw % size as u32;
                if add {
                    set.insert(position);
                    tree.insert(position);
                } else {
                    set.remove(position);
                    tree.remove(&position);
                }
                prop_assert_eq!(set.max(), tree.last().copied());
                prop_assert_eq!(set.max_below(position), tree.range(..position).last().copied());
            }
        }
    }
}
