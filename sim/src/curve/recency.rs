//! Which uses are still the latest of their key, in order of time: the LRU stack as bits.
//!
//! Each use takes a place; a set bit is the latest use of some key. The LRU stack distance of a
//! place is the number of bits at or behind it, found in constant time: bits of its word, a sum
//! over the bytes that count its block's other words, one count for all blocks before it. All
//! three are kept in words of the size in which they are read (a processor that reads over a
//! smaller write just made has to wait for it), and in loops of one length.

/// Places in a word of bits, words in a block.
const WORD: u32 = 64;
const BLOCK: u32 = 16 * WORD;

/// Lanes that are updated together.
const LANES: usize = 8;

/// Bytes of a block's word counts that belong to the words before word `w`.
const BEFORE: [[u64; 2]; 16] = {
    let mut masks = [[0; 2]; 16];
    let mut word = 0;
    while word < 16 {
        let mut below = 0;
        while below < word {
            masks[word][below / 8] |= 0xff << (8 * (below % 8));
            below += 1;
        }
        word += 1;
    }
    masks
};

/// Places with a bit each.
#[derive(Debug, Clone)]
pub(super) struct Recency {
    bits: Vec<[u64; 16]>,
    /// Set bits of each word, a byte each, the first lowest.
    words: Vec<[u64; 2]>,
    /// Set bits in all blocks before each; valid up to the block of the newest place.
    before: Vec<[u32; LANES]>,
    now: u32,
    live: u32,
}

impl Recency {
    /// Room for the latest uses of `keys` keys. Four places a key: putting them together when the
    /// places run out then costs a third of a step for each use.
    pub fn new(keys: u32) -> Self {
        let blocks = (4 * keys).div_ceil(BLOCK).max(1) as usize;
        Self {
            bits: vec![[0; 16]; blocks],
            words: vec![[0; 2]; blocks],
            before: vec![[0; LANES]; blocks.div_ceil(LANES)],
            now: 0,
            live: 0,
        }
    }

    /// Places in all.
    pub fn places(&self) -> u32 {
        self.bits.len() as u32 * BLOCK
    }

    /// Places that are left before [`compact`](Self::compact) is due.
    #[inline(always)]
    pub fn left(&self) -> u32 {
        self.places() - self.now
    }

    /// Set bits: keys that were used.
    #[inline(always)]
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Takes the next place for a use; there must be one [`left`](Self::left).
    #[inline(always)]
    pub fn push(&mut self) -> u32 {
        let place = self.now;
        let (block, word, bit) = split(place);
        if place.is_multiple_of(BLOCK) {
            self.before[block / LANES][block % LANES] = self.live;
        }
        self.bits[block][word] |= 1 << bit;
        self.words[block][word / 8] += 1 << (8 * (word % 8));
        self.live += 1;
        self.now += 1;
        place
    }

    /// Takes back the bit of a place.
    #[inline(always)]
    pub fn remove(&mut self, place: u32) {
        let (block, word, bit) = split(place);
        debug_assert!(self.bits[block][word] >> bit & 1 == 1);
        self.bits[block][word] &= !(1 << bit);
        self.words[block][word / 8] -= 1 << (8 * (word % 8));
        self.live -= 1;
        let mut first = 0;
        for lanes in &mut self.before {
            for (lane, before) in lanes.iter_mut().enumerate() {
                *before = before.wrapping_sub(u32::from(first + lane as i32 > block as i32));
            }
            first += LANES as i32;
        }
    }

    /// Set bits behind `place`, newer than it.
    #[inline(always)]
    pub fn newer(&self, place: u32) -> u32 {
        let (block, word, bit) = split(place);
        let (counts, keep) = (&self.words[block], &BEFORE[word]);
        // Bytes of at most 64: two of them fit a byte, all of them 16 bits.
        let pairs = (counts[0] & keep[0]) + (counts[1] & keep[1]);
        let even = 0x00ff_00ff_00ff_00ff;
        let sums = (pairs & even) + (pairs >> 8 & even);
        let words = (sums.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32;
        let in_word = (self.bits[block][word] << (63 - bit)).count_ones();
        self.live - self.before[block / LANES][block % LANES] - words - in_word
    }

    /// The set places among `length` places from `start` on, oldest first.
    #[inline(always)]
    pub fn set_among(&self, start: u32, length: u32, mut found: impl FnMut(u32)) {
        let end = start + length;
        let mut place = start;
        while place < end {
            let (block, word, bit) = split(place);
            let mut bits = self.bits[block][word] >> bit;
            let room = (WORD - bit).min(end - place);
            if room < WORD {
                bits &= (1 << room) - 1;
            }
            while bits != 0 {
                found(place + bits.trailing_zeros());
                bits &= bits - 1;
            }
            place += room;
        }
    }

    /// Moves all set places, in order, to the front. `moved(from, to)` is told of each, oldest
    /// first; `to` is never beyond `from`.
    #[cold]
    pub fn compact(&mut self, mut moved: impl FnMut(u32, u32)) {
        let mut to = 0;
        self.set_among(0, self.now, |from| {
            moved(from, to);
            to += 1;
        });
        debug_assert_eq!(to, self.live);
        self.bits.fill([0; 16]);
        self.words.fill([0; 2]);
        (self.now, self.live) = (0, 0);
        for _ in 0..to {
            self.push();
        }
    }
}

/// Block, word in it, bit in that.
#[inline(always)]
fn split(place: u32) -> (usize, usize, u32) {
    ((place / BLOCK) as usize, (place / WORD % 16) as usize, place % WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list of places: counts, members, and compaction in the middle.
        #[test]
        fn agrees_with_a_list(
            keys in 1u32..700,
            uses in prop::collection::vec(any::<u32>(), 1..6000),
        ) {
            let mut recency = Recency::new(keys);
            let mut last = vec![None; keys as usize];
            for (step, raw) in uses.into_iter().enumerate() {
                if recency.left() == 0 {
                    let mut owner = std::collections::BTreeMap::new();
                    for (key, place) in last.iter().enumerate() {
                        place.map(|place| owner.insert(place, key));
                    }
                    recency.compact(|from, to| last[owner[&from]] = Some(to));
                }
                let key = (raw % keys) as usize;
                if let Some(place) = last[key] {
                    if step % 7 == 0 {
                        let newer = last.iter().flatten().filter(|&&other| other > place).count();
                        prop_assert_eq!(recency.newer(place), newer as u32);
                        let (mut found, mut expected) = (Vec::new(), Vec::<u32>::new());
                        recency.set_among(place, 70.min(recency.places() - place), |p| found.push(p));
                        expected.extend(
                            last.iter().flatten().filter(|&&p| (place..place + 70).contains(&p)),
                        );
                        expected.sort_unstable();
                        prop_assert_eq!(found, expected);
                    }
                    recency.remove(place);
                }
                last[key] = Some(recency.push());
                prop_assert_eq!(recency.live() as usize, last.iter().flatten().count());
            }
        }
    }
}
