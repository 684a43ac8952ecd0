//! td-pairs' shadow: what LRU of the same size would hold, and who has missed more.
//!
//! What LRU would hold and what the policy holds lies in one list by recency. LRU's residents are
//! its first `capacity` keys, so the shadow costs a move in a list for each use and no search; and
//! whoever is behind them is the policy's, so LRU's choice of a victim is close to the end.

use crate::policy::Key;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};

/// A miss in units of the credit.
const MISS: i64 = 192;
/// Visits of every layer that LRU serves at first, while the model learns.
const LESSONS: u64 = 32;

/// Misses that learning may cost beyond LRU's before LRU takes over, beside one of `MISS`: few
/// where few experts are absent, for then few are missed at all.
fn slack(keys: u32, capacity: u32) -> i64 {
    let (keys, capacity) = (i64::from(keys.max(1)), i64::from(capacity.min(keys)));
    2 + capacity * (keys - capacity) / (48 * keys)
}

/// Who holds a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Holders {
    shadow: bool,
    policy: bool,
}

/// A shadow LRU.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    recency: Links,
    list: List,
    /// Whether LRU would hold a key, and whether the policy does.
    holders: Vec<Holders>,
    /// The last in the list that LRU would hold.
    edge: Option<Key>,
    held: u32,
    capacity: u32,
    /// Misses that LRU had and the policy had not, in 192ths; each of LRU's gives one in addition.
    credit: i64,
    /// Events until LRU is no longer asked first.
    lessons: u64,
}

impl Guard {
    pub(super) fn new(keys: u32, layers: u32, capacity: u32) -> Self {
        let recency = Links::new(keys, 1);
        Self {
            list: recency.list(0),
            recency,
            holders: vec![Holders::default(); keys as usize],
            edge: None,
            held: 0,
            capacity,
            credit: slack(keys, capacity) * MISS,
            lessons: LESSONS * u64::from(layers),
        }
    }

    /// Bytes that a shadow over so many keys allocates.
    pub(super) fn memory(keys: u32) -> u64 {
        sum([Links::memory(keys, 1), array::<Holders>(keys)])
    }

    /// Whether the policy has missed so much more than LRU that LRU should choose.
    #[inline(always)]
    pub(super) fn is_worse_than_lru(&self) -> bool {
        self.credit < 0 || self.lessons > 0
    }

    /// An event begins.
    #[inline(always)]
    pub(super) fn begin_event(&mut self) {
        self.lessons = self.lessons.saturating_sub(1);
    }

    /// The least recently used of the policy's keys that are wanted.
    #[inline(always)]
    pub(super) fn least_recent(&self, wanted: impl Fn(Key) -> bool) -> Option<Key> {
        let held = |key: Key| self.holders[key as usize].policy;
        self.recency.find_from_back(self.list, |key| held(key) && wanted(key))
    }

    /// The policy uses a key that it holds.
    #[inline(always)]
    pub(super) fn hit(&mut self, key: Key) {
        self.used(key);
    }

    /// The policy brings in a key.
    #[inline(always)]
    pub(super) fn miss(&mut self, key: Key) {
        self.credit -= MISS;
        self.holders[key as usize].policy = true;
        self.used(key);
    }

    /// The policy's key leaves.
    #[inline(always)]
    pub(super) fn left(&mut self, key: Key) {
        self.holders[key as usize].policy = false;
        if !self.holders[key as usize].shadow {
            self.recency.unlink(key);
        }
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        if self.holders[key as usize].shadow {
            if self.edge == Some(key) {
                // The only key of the shadow stays its last.
                self.edge = self.recency.toward_front(key).or(self.edge);
            }
            self.recency.move_to_front(self.list, key);
            return;
        }
        // What learning has saved is not saved up for longer than the cache remembers.
        let most = MISS * i64::from(self.capacity);
        self.credit = (self.credit + MISS + 1).min(most);
        if self.recency.contains(key) {
            self.recency.unlink(key);
        }
        self.recency.push_front(self.list, key);
        self.holders[key as usize].shadow = true;
        self.held += 1;
        self.edge = self.edge.or(Some(key));
        self.shrink();
    }

    /// Lets the least recent leave the shadow until the rest fits.
    #[inline(always)]
    fn shrink(&mut self) {
        while self.held > self.capacity
            && let Some(edge) = self.edge
        {
            self.edge = self.recency.toward_front(edge);
            self.held -= 1;
            let holders = &mut self.holders[edge as usize];
            holders.shadow = false;
            if !holders.policy {
                self.recency.unlink(edge);
            }
        }
    }

    pub(super) fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.shrink();
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        let listed = self.recency.validate(self.list)?;
        let first: Vec<Key> = self.recency.iter(self.list).take(self.held as usize).collect();
        let shadow = first.iter().all(|&key| self.holders[key as usize].shadow);
        if !shadow || first.last() != self.edge.as_ref() {
            return Err("the shadow is not the head of the recency list".to_owned());
        }
        let count = |holds: fn(&Holders) -> bool| self.holders.iter().filter(|h| holds(h)).count();
        let (shadowed, held) = (count(|h| h.shadow), count(|h| h.shadow || h.policy));
        if shadowed != self.held as usize || self.held > self.capacity || held != listed as usize {
            return Err(format!(
                "{shadowed} of {held} shadowed; {} of {listed} counted",
                self.held
            ));
        }
        Ok(())
    }
}
