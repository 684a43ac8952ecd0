//! td-pairs' shadow: what LRU of the same size would hold, and who has missed more.
//!
//! What LRU would hold and what the policy holds lies in one list by recency. LRU's residents are
//! its first `capacity` keys, so the shadow costs a move in a list for each use and no search; and
//! whoever is behind them is the policy's, so LRU's choice of a victim is close to the end.
//!
//! The bound: were LRU to choose from now on, the policy would miss at most each key once more that
//! the shadow holds and it does not, its `debt`; for LRU evicts those first that the shadow does not
//! hold. So the debt is kept at or below what is saved and one of `MISS` of the shadow's misses: then
//! the policy never misses more than LRU and that one of so many, whatever is asked for. Victims that
//! LRU does not hold, or lets go at the same moment, owe nothing; others only where enough is saved.
//! What learning is good at it soon does often, for what it saves lets it differ in more.

use crate::policy::Key;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};

/// A miss in units of the credit: for each of LRU's, one of so many may be added.
const MISS: i64 = 128;
/// Keys among which the policy chooses where nothing more may be owed.
const CHOICES: usize = 16;

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
    /// Misses that LRU had and the policy had not, in 128ths; each of LRU's gives one in addition.
    credit: i64,
    /// Keys that the shadow holds and the policy does not.
    debt: u32,
}

impl Guard {
    pub(super) fn new(keys: u32, capacity: u32) -> Self {
        let recency = Links::new(keys, 1);
        Self {
            list: recency.list(0),
            recency,
            holders: vec![Holders::default(); keys as usize],
            edge: None,
            held: 0,
            capacity,
            credit: 0,
            debt: 0,
        }
    }

    /// Bytes that a shadow over so many keys allocates.
    pub(super) fn memory(keys: u32) -> u64 {
        sum([Links::memory(keys, 1), array::<Holders>(keys)])
    }

    /// Whether LRU lets its last go for `incoming`.
    #[inline(always)]
    fn leaves(&self, incoming: Option<Key>) -> Option<Key> {
        let both_miss = incoming.is_some_and(|key| !self.holders[key as usize].shadow);
        self.edge.filter(|_| both_miss && self.held == self.capacity)
    }

    /// Whether the policy may let a key go for `incoming`: nothing more is owed, or enough is saved.
    #[inline(always)]
    pub(super) fn may_spare(&self, key: Key, incoming: Option<Key>) -> bool {
        if !self.holders[key as usize].shadow || self.credit >= MISS * (i64::from(self.debt) + 1) {
            return true;
        }
        // A debt that is forgiven at the same moment makes room for another.
        let leaves = self.leaves(incoming);
        leaves.is_some_and(|edge| edge == key || !self.holders[edge as usize].policy)
    }

    /// Keys that may go without anything more being owed: the least recent that LRU does not hold,
    /// some of them, and the one that it lets go for `incoming`.
    #[inline(always)]
    pub(super) fn spared(&self, incoming: Option<Key>) -> impl Iterator<Item = Key> {
        let last = self.recency.back(self.list);
        let ahead = std::iter::successors(last, |&key| self.recency.toward_front(key));
        let kept = ahead.take_while(|&key| !self.holders[key as usize].shadow).take(CHOICES);
        kept.chain(self.leaves(incoming).filter(|&edge| self.holders[edge as usize].policy))
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
        let holders = &mut self.holders[key as usize];
        holders.policy = true;
        self.debt -= u32::from(holders.shadow);
        self.used(key);
    }

    /// The policy's key leaves.
    #[inline(always)]
    pub(super) fn left(&mut self, key: Key) {
        let holders = &mut self.holders[key as usize];
        holders.policy = false;
        if holders.shadow {
            self.debt += 1;
        } else {
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
                self.debt -= 1;
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
        let owed = count(|h| h.shadow && !h.policy);
        if owed != self.debt as usize {
            return Err(format!("{owed} keys are owed, {} counted", self.debt));
        }
        if shadowed != self.held as usize || self.held > self.capacity || held != listed as usize {
            return Err(format!(
                "{shadowed} of {held} shadowed; {} of {listed} counted",
                self.held
            ));
        }
        Ok(())
    }
}
