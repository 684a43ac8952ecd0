//! W-TinyLFU: a small LRU window, and a main cache that it enters only by being used more.
//!
//! Source: G. Einziger, R. Friedman and B. Manes, "TinyLFU: a highly efficient cache admission
//! policy", ACM Transactions on Storage 13(4), 2017. With exact counts the rules are the paper's.
//! With a sketch, the default, they are those that people have measured, libCacheSim 0.3.5's, which
//! differ from the paper's by more than the sketch:
//!
//! - The sketch is a plain counting Bloom filter for as many keys as the main cache has slots, though
//!   it counts all that come; in the paper only the smallest counters of a key are raised, and there
//!   are enough for the sample.
//! - Counted are admissions (after the judgement), hits in the main cache, and once more each key that
//!   leaves the window; the paper counts every use, once.
//! - UseCounter are halved after 32 hits a slot of the main cache; in the paper after a sample of uses.
//! - The window grows until the cache is full, and then fills the main cache, its protected segment
//!   too; in the paper the window always has its size.
//! - Probation has a size too. Where the two segments' sizes, both rounded down, leave a slot of the
//!   main cache over, a hit that cools a key into full probation evicts probation's oldest, and the
//!   slot takes the window's next without judgement.
//!
//! Our own are two: the window has one slot at least (libCacheSim's may have none, and then nothing
//! is ever admitted), and what a hit evicts there leaves at the next miss that needs room.

mod config;
mod counting_bloom;
mod filter;
#[cfg(test)]
mod tests;

use config::INFO;
pub use config::{UseCounter, WTinyLfuConfig};
use counting_bloom::CountingBloom;
use filter::Filter;

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::memory::{array, sum};
use crate::structures::queues::Queues;
use crate::{Key, Occupancy, Policy, PolicyInfo, PoolShape, Room};

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// Window TinyLFU.
#[derive(Debug, Clone)]
pub struct WTinyLfu {
    queues: Queues<3>,
    filter: Filter,
    /// Uses, or hits in the main cache, until the counts are halved, and in all.
    until_halving: u64,
    period: u64,
    /// A hit has made probation too long: its oldest leaves next.
    too_long: bool,
    most_window: u32,
    most_main: u32,
    most_probation: u32,
    most_protected: u32,
    config: WTinyLfuConfig,
    slots: Occupancy,
}

impl WTinyLfu {
    /// An empty pool.
    #[must_use]
    pub fn configured(pool: &PoolShape, config: &WTinyLfuConfig) -> Self {
        let mut this = Self {
            queues: Queues::new(pool.keys),
            filter: Filter::Exact(Vec::new()),
            until_halving: u64::MAX,
            period: 0,
            too_long: false,
            most_window: 0,
            most_main: 0,
            most_probation: 0,
            most_protected: 0,
            config: *config,
            slots: Occupancy::new(0),
        };
        this.set_capacity(pool.capacity);
        this.filter = match config.counts {
            UseCounter::Exact => Filter::Exact(vec![0; pool.keys as usize]),
            UseCounter::Sketch => Filter::Sketch(CountingBloom::new(this.most_main)),
        };
        this
    }

    #[inline(always)]
    fn sketched(&self) -> bool {
        self.config.counts == UseCounter::Sketch
    }

    /// UseCounter a use that brings the next halving nearer.
    #[inline(always)]
    fn count(&mut self, key: Key) {
        self.filter.add(key);
        self.until_halving -= 1;
        if self.until_halving == 0 {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.until_halving = self.period;
        let counts = match &mut self.filter {
            Filter::Exact(counts) => {
                // As in the paper, halved counts stand for half a sample.
                self.until_halving -= self.period / 2;
                counts
            }
            Filter::Sketch(sketch) => sketch.counters_mut(),
        };
        for count in counts {
            *count /= 2;
        }
    }

    /// The least recent of a list that may leave.
    #[inline(always)]
    fn oldest(&self, list: u8, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.queues.find_from_back(list, &may_leave)
    }

    /// Sends what is too much in the window or among the protected to probation.
    #[inline(always)]
    fn overflow(&mut self, list: u8, longest: u32) {
        while self.queues.len(list) > longest
            && let Some(key) = self.queues.back(list)
        {
            self.queues.transfer(list, PROBATION, key);
        }
    }

    fn enter_main(&mut self, key: Key) {
        let probation_is_full = self.queues.len(PROBATION) >= self.most_probation;
        let place = self.queues.len(PROTECTED) < self.most_protected;
        let to = if self.sketched() && probation_is_full && place { PROTECTED } else { PROBATION };
        self.queues.transfer(WINDOW, to, key);
    }

    /// Who leaves, and who enters the main cache for it.
    #[inline(always)]
    fn judge(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<(Key, Option<Key>)> {
        let candidate = self.oldest(WINDOW, &may_leave);
        let main =
            self.oldest(PROBATION, &may_leave).or_else(|| self.oldest(PROTECTED, &may_leave));
        let (Some(candidate), Some(main)) = (candidate, main) else {
            return Some((candidate.or(main)?, None));
        };
        if !self.sketched() && self.queues.len(WINDOW) < self.most_window {
            return Some((main, None));
        }
        let wins = self.filter.count(candidate) > self.filter.count(main);
        if self.sketched() {
            self.filter.add(candidate);
        }
        Some(if wins { (main, Some(candidate)) } else { (candidate, None) })
    }

    /// libCacheSim's cases in which nobody is judged; gives who leaves.
    #[inline(always)]
    fn unjudged(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        if self.too_long
            && let Some(key) = self.oldest(PROBATION, &may_leave)
        {
            self.too_long = false;
            return Some(key);
        }
        while self.slots.taken - self.queues.len(WINDOW) < self.most_main
            && let Some(key) = self.queues.back(WINDOW)
        {
            self.enter_main(key);
            self.filter.add(key);
        }
        None
    }
}

impl Listed for WTinyLfu {
    type Config = WTinyLfuConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &WTinyLfuConfig) -> Self {
        WTinyLfu::configured(pool, config)
    }

    fn memory(pool: &PoolShape, config: &WTinyLfuConfig) -> u64 {
        {
            let counts = match config.counts {
                UseCounter::Exact => array::<u32>(pool.keys),
                UseCounter::Sketch => CountingBloom::memory(pool.capacity),
            };
            sum([Queues::<3>::memory(pool.keys), counts])
        }
    }
}

impl Policy for WTinyLfu {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.queues.of(key) <= PROTECTED
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let list = self.queues.of(key);
        if list == PROBATION {
            self.queues.transfer(PROBATION, PROTECTED, key);
            if self.queues.len(PROTECTED) > self.most_protected {
                self.overflow(PROTECTED, self.most_protected);
                self.too_long |=
                    self.sketched() && self.queues.len(PROBATION) > self.most_probation;
            }
        } else {
            self.queues.refresh(list, key);
        }
        if list != WINDOW || !self.sketched() {
            self.count(key);
        }
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if !self.sketched() {
            self.count(key);
        }
        self.free_a_slot(room)
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.queues.push_front(WINDOW, key);
        if self.sketched() {
            self.filter.add(key);
        } else {
            self.overflow(WINDOW, self.most_window);
        }
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let unjudged = if self.sketched() { self.unjudged(&may_leave) } else { None };
        let judged = unjudged.map(|victim| (victim, None)).or_else(|| self.judge(&may_leave));
        let (victim, winner) = judged?;
        self.queues.unlink(victim);
        if let Some(winner) = winner {
            self.enter_main(winner);
        }
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.too_long &= self.queues.of(key) == WINDOW;
        self.queues.unlink(key);
        // A sketch cannot tell whose its counts are.
        if let Filter::Exact(counts) = &mut self.filter {
            counts[key as usize] = 0;
        }
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.slots.capacity = capacity;
        self.most_window = ((f64::from(capacity) * self.config.window) as u32).max(1);
        self.most_main = capacity.saturating_sub(self.most_window);
        let protected = f64::from(self.most_main) * self.config.protected;
        self.most_protected = protected as u32;
        self.most_probation = self.most_main - protected.ceil() as u32;
        self.too_long = false;
        let period = match self.config.counts {
            UseCounter::Exact => f64::from(capacity) * self.config.sample,
            UseCounter::Sketch => f64::from(self.most_main) * self.config.main_hits,
        };
        self.period = (period as u64).max(1);
        self.until_halving = self.until_halving.min(self.period);
        self.overflow(PROTECTED, self.most_protected);
        if !self.sketched() {
            self.overflow(WINDOW, self.most_window);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queues.validate()?;
        let lengths = [WINDOW, PROBATION, PROTECTED].map(|list| self.queues.len(list));
        let wide = lengths[0] > self.most_window && !self.sketched();
        let over = wide || lengths[2] > self.most_protected;
        if over {
            return Err(format!("window, probation, protected of {lengths:?}"));
        }
        self.slots.agree_with(lengths.iter().sum())
    }
}
