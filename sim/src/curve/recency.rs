//! Which uses are still the latest of their key, in order of time: the LRU stack as bits.
//!
//! Each use takes a place; a set bit is the latest use of some key. The LRU stack distance of a
//! place is the number of bits at or behind it, found in constant time: bits of its word, a sum
//! over the bytes that count its block's other words, one count for all blocks before it.

/// Places in a word of bits, words in a block.
const WORD: u32 = 64;
const BLOCK: u32 = 16 * WORD;

/// Bytes to keep of a block's word counts: those before word `w`.
const BEFORE: [[u8; 16]; 16] = {
    let mut masks = [[0; 16]; 16];
    let mut word = 0;
    while word < 16 {
        let mut below = 0;
        while below < word {
            masks[word][below] = 0xff;
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
    /// Set bits of each word.
    words: Vec<[u8; 16]>,
    /// Set bits in all blocks before each; valid up to the block of the newest place.
    before: Vec<u32>,
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
            words: vec![[0; 16]; blocks],
            before: vec![0; blocks],
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
            self.before[block] = self.live;
        }
        self.bits[block][word] |= 1 << bit;
        self.words[block][word] += 1;
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
        self.words[block][word] -= 1;
        self.live -= 1;
        for before in &mut self.before[block + 1..] {
            *before = before.wrapping_sub(1);
        }
    }

    /// Set bits behind `place`, newer than it.
    #[inline(always)]
    pub fn newer(&self, place: u32) -> u32 {
        let (block, word, bit) = split(place);
        let counts = &self.words[block];
        let keep = &BEFORE[word];
        let mut up_to = 0;
        for index in 0..16 {
            up_to += u32::from(counts[index] & keep[index]);
        }
        up_to += (self.bits[block][word] << (63 - bit)).count_ones();
        self.live - self.before[block] - up_to
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
        self.words.fill([0; 16]);
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
