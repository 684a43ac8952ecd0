//! DALI: LRU that spares the experts which take a large share of the last accesses.
//!
//! Source: DALI, "dynamic workload-aware expert caching", in the form of tinyserve's port: a
//! window of the latest accesses, hot experts by their share of it, LRU among the cold.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Need, Occupancy, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
    name: "dali",
    summary: "LRU among the experts that are not hot in a window",
    definition: "A window holds the keys of the latest accesses, of the pool or of each layer, hits and admissions alike in the order in which they happen; a key is hot if it has at least hot * window entries in it. The victim is the least recent key that is not hot; if all that may leave are hot, the least recent of them.",
    source: "DALI; the port in tinyserve",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "window", default: "256", meaning: "accesses in the window; 1 to 65536" },
        Parameter {
            name: "hot",
            default: "0.1",
            meaning: "share of the window from which a key is hot; above 0, at most 1",
        },
        Parameter {
            name: "each_layer",
            default: "false",
            meaning: "whether each layer of a global pool has a window of its own",
        },
    ],
};

/// An unused entry of a window.
const NOBODY: Key = Key::MAX;

/// Parameters of [`Dali`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaliConfig {
    /// Accesses in the window.
    pub window: u32,
    /// Share of the window from which a key is hot.
    pub hot: f64,
    /// Whether each layer of a global pool has a window of its own.
    pub each_layer: bool,
}

impl Default for DaliConfig {
    fn default() -> Self {
        Self { window: 256, hot: 0.1, each_layer: false }
    }
}

impl Config for DaliConfig {
    fn check(&self) -> Result<(), String> {
        if !(1..=65536).contains(&self.window) {
            return Err(format!("window is {}, but must be 1 to 65536 accesses", self.window));
        }
        if !(self.hot > 0.0 && self.hot <= 1.0) {
            return Err(format!("hot is {}, but must be above 0 and at most 1", self.hot));
        }
        Ok(())
    }
}

/// LRU with windowed hot keys.
#[derive(Debug, Clone)]
pub struct Dali {
    links: Links,
    order: List,
    /// Entries of each key in its window.
    counts: Vec<u32>,
    /// The windows, one behind the other.
    accesses: Vec<Key>,
    /// The oldest entry of each window.
    oldest: Vec<u32>,
    /// The window that each key belongs to.
    windows: Vec<u32>,
    window: u32,
    hot: u32,
    slots: Occupancy,
}

impl Dali {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &DaliConfig) -> Self {
        let windows = if config.each_layer { pool.layers() } else { 1 };
        let links = Links::new(pool.keys, 1);
        Self {
            order: links.list(0),
            links,
            counts: vec![0; pool.keys as usize],
            accesses: vec![NOBODY; (windows * config.window) as usize],
            oldest: vec![0; windows as usize],
            windows: if windows > 1 { pool.layer_of_keys() } else { vec![0; pool.keys as usize] },
            window: config.window,
            hot: (config.hot * f64::from(config.window)).ceil() as u32,
            slots: Occupancy::new(pool.capacity),
        }
    }

    #[inline(always)]
    fn record(&mut self, key: Key) {
        let window = self.windows[key as usize];
        let oldest = &mut self.oldest[window as usize];
        let entry = &mut self.accesses[(window * self.window + *oldest) as usize];
        *oldest = if *oldest + 1 == self.window { 0 } else { *oldest + 1 };
        let forgotten = std::mem::replace(entry, key);
        if forgotten != NOBODY {
            self.counts[forgotten as usize] -= 1;
        }
        self.counts[key as usize] += 1;
    }

    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let cold = |key: Key| self.counts[key as usize] < self.hot && may_leave(key);
        self.links
            .find_from_back(self.order, cold)
            .or_else(|| self.links.find_from_back(self.order, &may_leave))
    }
}

impl Listed for Dali {
    type Config = DaliConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &DaliConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, config: &DaliConfig) -> u64 {
        {
            let windows = if config.each_layer { pool.layers() } else { 1 };
            let accesses = u64::from(windows) * u64::from(config.window);
            sum([
                Links::memory(pool.keys, 1),
                array::<[u32; 2]>(pool.keys),
                array::<Key>(accesses),
                array::<u32>(windows),
            ])
        }
    }
}

impl Policy for Dali {
    counted_in!(slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.record(key);
        self.links.move_to_front(self.order, key);
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        self.record(key);
        self.free_a_slot(room)
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.links.push_front(self.order, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.links.unlink(victim);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.links.unlink(key);
    }

    fn validate(&self) -> Result<(), String> {
        let length = self.links.validate(self.order)?;
        self.slots.agree_with(length)?;
        let recorded = self.accesses.iter().filter(|&&key| key != NOBODY).count() as u32;
        if self.counts.iter().sum::<u32>() != recorded {
            return Err(format!("{recorded} accesses recorded, but counted otherwise"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_sequential;

    /// Two slots, a window of 4, hot from 2 entries. After 0 0 1 the window is 0 0 1: key 0 is hot
    /// and the least recent, so 2 evicts 1 (window 0 0 1 2). After 3 the window is 0 1 2 3: key 0
    /// has cooled, and it is the least recent, so 3 evicts 0.
    #[test]
    fn a_hot_key_stays_until_the_window_has_passed_it() {
        let config = DaliConfig { window: 4, hot: 0.5, each_layer: false };
        let mut dali = Dali::new(&PoolShape::flat(2, 4), &config);
        assert_eq!(run_sequential(&mut dali, &[0, 0, 1, 2]), 3);
        assert!(dali.contains(0) && !dali.contains(1));
        assert_eq!(run_sequential(&mut dali, &[3]), 1);
        assert_eq!(dali.links.iter(dali.order).collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn ranges_are_checked() {
        for wrong in ["dali:window=0", "dali:hot=0", "dali:hot=1.5"] {
            assert!(wrong.parse::<crate::PolicySpec>().is_err(), "{wrong}");
        }
    }
}
