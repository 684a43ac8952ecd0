//! Reuse distances: how large a plain LRU cache must be to hit.
//!
//! Every access (one expert in one layer for one token, in the order in which the model ran) has
//! an exact LRU stack distance, found with one bit for each expert's last use and a Fenwick tree
//! over the words of bits.

use serde::Serialize;

use crate::column::IdColumn;
use crate::trace::Trace;

/// How many accesses have each reuse distance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReuseHistogram {
    /// Accesses to an expert that was never used before.
    pub cold: u64,
    /// `counts[d - 1]`: accesses at distance `d`, the least capacity in slots of an LRU cache that
    /// hits them (distinct experts used since, this one included). One entry for each expert.
    pub counts: Vec<u64>,
}

impl ReuseHistogram {
    /// The distances of a trace: all layers in one pool, in the order token, layer, rank.
    pub fn of(trace: &Trace) -> Self {
        let shape = trace.shape();
        let bases: Vec<u32> = shape
            .layers()
            .iter()
            .enumerate()
            .flat_map(|(index, layer)| (0..layer.top_k).map(move |_| shape.key_base(index)))
            .collect();
        let mut stack = Stack::new(shape.total_experts() as usize);
        match trace.ids() {
            IdColumn::U8(ids) => stack.run(ids, &bases),
            IdColumn::U16(ids) => stack.run(ids, &bases),
        }
        Self { cold: stack.cold, counts: stack.counts }
    }

    /// Accesses in all.
    pub fn accesses(&self) -> u64 {
        self.cold + self.counts.iter().sum::<u64>()
    }

    /// Hits of an LRU cache of `capacity` slots over all layers, one access at a time, cold start.
    pub fn lru_hits(&self, capacity: usize) -> u64 {
        self.counts.iter().take(capacity).sum()
    }

    /// The least distance that at least the share `percent`/100 of all reuses do not exceed; `None`
    /// where nothing was reused.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let reuses: u64 = self.counts.iter().sum();
        let wanted = (u128::from(reuses) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0u128;
        let found = self.counts.iter().position(|&count| {
            seen += u128::from(count);
            seen >= wanted
        });
        found.map(|index| index as u64 + 1)
    }
}

/// No use yet.
const NEVER: u32 = u32::MAX;

/// The LRU stack as bits over time: a set bit is some expert's last use.
struct Stack {
    /// Each expert's last use, as a place in `bits`.
    last: Vec<u32>,
    /// Which expert's use each place was.
    owner: Vec<u32>,
    bits: Vec<u64>,
    /// Fenwick tree over the number of set bits of each word.
    tree: Vec<u32>,
    now: usize,
    live: u64,
    cold: u64,
    counts: Vec<u64>,
}

impl Stack {
    fn new(experts: usize) -> Self {
        // Four times the experts: compaction then costs a third of a step for each access.
        let places = (4 * experts).next_multiple_of(64).max(1 << 12);
        Self {
            last: vec![NEVER; experts],
            owner: vec![0; places],
            bits: vec![0; places / 64],
            tree: vec![0; places / 64 + 1],
            now: 0,
            live: 0,
            cold: 0,
            counts: vec![0; experts],
        }
    }

    fn run<T: Copy + Into<u32>>(&mut self, ids: &[T], bases: &[u32]) {
        for row in ids.chunks_exact(bases.len()) {
            for (&id, &base) in row.iter().zip(bases) {
                self.access(base + id.into());
            }
        }
    }

    fn access(&mut self, key: u32) {
        if self.now == self.owner.len() {
            self.compact();
        }
        let last = self.last[key as usize];
        if last == NEVER {
            self.cold += 1;
            self.live += 1;
        } else {
            let (word, bit) = (last as usize / 64, last % 64);
            // Bits after `last` are the experts used since; with this one itself, the distance.
            let up_to = self.before(word) + u64::from((self.bits[word] << (63 - bit)).count_ones());
            self.counts[(self.live - up_to) as usize] += 1;
            self.bits[word] &= !(1 << bit);
            self.add(word, u32::MAX);
        }
        self.bits[self.now / 64] |= 1 << (self.now % 64);
        self.add(self.now / 64, 1);
        self.owner[self.now] = key;
        self.last[key as usize] = self.now as u32;
        self.now += 1;
    }

    /// Set bits in all words before `word`.
    fn before(&self, mut word: usize) -> u64 {
        let mut sum = 0;
        while word > 0 {
            sum += u64::from(self.tree[word]);
            word &= word - 1;
        }
        sum
    }

    /// Adds to a word's count; `u32::MAX` takes one away.
    fn add(&mut self, word: usize, by: u32) {
        let mut at = word + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Moves all last uses, in order, to the front.
    fn compact(&mut self) {
        let mut to = 0;
        for from in 0..self.now {
            if self.bits[from / 64] >> (from % 64) & 1 == 1 {
                let key = self.owner[from];
                self.owner[to] = key;
                self.last[key as usize] = to as u32;
                to += 1;
            }
        }
        self.bits.fill(0);
        self.tree.fill(0);
        for place in 0..to {
            self.bits[place / 64] |= 1 << (place % 64);
        }
        for word in 0..to.div_ceil(64) {
            self.add(word, self.bits[word].count_ones());
        }
        self.now = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ids, Shape, TraceBuilder};

    fn histogram(ids: Vec<u16>, experts: u32) -> ReuseHistogram {
        let shape = Shape::uniform(1, experts, 1).unwrap();
        ReuseHistogram::of(&TraceBuilder::new("t", shape, Ids::U16(ids)).build().unwrap())
    }

    #[test]
    fn a_hand_worked_case() {
        // a b a a c b: a again after {b}: 2; a at once: 1; b after {a, c}: 3.
        let found = histogram(vec![0, 1, 0, 0, 2, 1], 4);
        assert_eq!(found, ReuseHistogram { cold: 3, counts: vec![1, 1, 1, 0] });
        assert_eq!((found.lru_hits(1), found.lru_hits(2), found.lru_hits(9)), (1, 2, 3));
        assert_eq!((found.percentile(50), found.percentile(100)), (Some(2), Some(3)));
        assert_eq!(histogram(vec![0, 1], 2).percentile(50), None);
    }

    #[test]
    fn agrees_with_a_list_across_compactions() {
        // 300 experts in 12,288 places at most: 40,000 accesses compact many times.
        let mut state = 1u64;
        let ids: Vec<u16> = (0..40_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let uniform = (state >> 40) as f64 / (1u64 << 24) as f64;
                (300.0 * uniform * uniform) as u16
            })
            .collect();
        let mut expected = ReuseHistogram { cold: 0, counts: vec![0; 300] };
        let mut list: Vec<u16> = Vec::new();
        for &id in &ids {
            match list.iter().position(|&other| other == id) {
                Some(depth) => {
                    expected.counts[depth] += 1;
                    list.remove(depth);
                }
                None => expected.cold += 1,
            }
            list.insert(0, id);
        }
        assert_eq!(histogram(ids, 300), expected);
    }
}
