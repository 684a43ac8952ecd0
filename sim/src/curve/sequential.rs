//! Stack distances of one access at a time: LRU at every capacity, by Mattson's inclusion.

use hotset_policies::Key;

use super::recency::Recency;

const NEVER: u32 = u32::MAX;

/// The LRU stack of one pool.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    recency: Recency,
    /// Place of each key's latest use.
    last: Vec<u32>,
    /// Whose use each place was.
    owner: Vec<Key>,
}

impl Stack {
    pub fn new(keys: u32) -> Self {
        let recency = Recency::new(keys);
        let owner = vec![0; recency.places() as usize];
        Self { last: vec![NEVER; keys as usize], owner, recency }
    }

    /// Distinct keys used.
    #[inline(always)]
    pub fn distinct(&self) -> u32 {
        self.recency.live()
    }

    /// Uses `key` and gives the least capacity that hits; `None` at the first use.
    #[inline(always)]
    pub fn access(&mut self, key: Key) -> Option<u32> {
        if self.recency.left() == 0 {
            self.compact();
        }
        let last = self.last[key as usize];
        let distance = if last == NEVER {
            None
        } else {
            let newer = self.recency.newer(last);
            self.recency.remove(last);
            Some(newer + 1)
        };
        let place = self.recency.push();
        self.last[key as usize] = place;
        self.owner[place as usize] = key;
        distance
    }

    #[cold]
    fn compact(&mut self) {
        let Self { recency, last, owner } = self;
        recency.compact(|from, to| {
            let key = owner[from as usize];
            owner[to as usize] = key;
            last[key as usize] = to;
        });
    }
}
