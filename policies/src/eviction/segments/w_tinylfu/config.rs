//! What people are told of W-TinyLFU, and its parameters.

use serde::{Deserialize, Serialize};

use crate::registry::share;
use crate::{Config, Need, Parameter, PolicyInfo};

/// What people are told of it.
pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "w-tinylfu",
    summary: "a small LRU window; the main cache takes what is used more",
    definition: "An LRU window of max(1, floor(slots x window)), a main cache of the other slots in two LRU segments, at most floor(main x protected) keys protected. A hit in the window or among the protected makes the key the most recent there; one on probation protects it, and the least recent protected that is too much goes to the front of probation. When full, a miss sets the window's least recent against the main cache's victim (the least recent on probation, else of the protected): the one with the higher count is in the main cache afterwards, at the front of probation if it came from the window; the other leaves; of equals the window's. Keys that may not leave are passed over; if the window has no other, the main victim leaves. The missed key enters the window. counts=exact: every hit and miss counts 1 for its key, before the judgement; after sample x slots uses all counts are halved, rounding down, and half the sample counts as passed; what is too much in the window goes to the front of probation. counts=sketch, libCacheSim's rules: a count is the least of a key's ten counters in a counting Bloom filter of 14.38 counters a slot that the main cache has when made; each gains 1 when the key comes in, is hit in the main cache, or leaves the window, judged or not; all are halved, rounding down, after main_hits hits a slot of the main cache. The window grows until the cache is full; when the main cache has a free slot, the window's least recent goes there unjudged: to probation if that has fewer than floor(main x (1 - protected)), else to the protected if they have a place, else to probation. When a hit cools a key into probation and that has more than its number then, the least recent on probation leaves, unjudged, at the next miss that needs room.",
    source: "G. Einziger, R. Friedman and B. Manes, TinyLFU, ACM Transactions on Storage 13(4), 2017; counts=sketch: libCacheSim 0.3.5's WTinyLFU",
    needs: Need::Nothing,
    parameters: &[
        Parameter { name: "window", default: "0.01", meaning: "the window's share, 0 to 1" },
        Parameter {
            name: "protected",
            default: "0.8",
            meaning: "share of the main cache for keys hit there, 0 to 1",
        },
        Parameter {
            name: "sample",
            default: "10",
            meaning: "exact counts are halved every sample x slots uses, 1 to 1e6",
        },
        Parameter {
            name: "counts",
            default: "sketch",
            meaning: "sketch, with libCacheSim's rules, or exact, with the paper's",
        },
        Parameter {
            name: "main_hits",
            default: "32",
            meaning: "a sketch is halved every main_hits hits a slot of the main cache, 1 to 1e6",
        },
    ],
};

/// What uses are counted in, and whose rules go with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UseCounter {
    /// A counting Bloom filter, and libCacheSim's rules.
    #[default]
    Sketch,
    /// A counter for each key, and the paper's rules.
    Exact,
}

/// Parameters of [`WTinyLfu`](super::WTinyLfu).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WTinyLfuConfig {
    /// Share of the slots for the window, 0 to 1; it has one slot at least.
    pub window: f64,
    /// Share of the main cache for its protected segment, 0 to 1.
    pub protected: f64,
    /// Exact counts are halved after this many uses a slot, 1 to 1e6.
    pub sample: f64,
    /// What counts, by whose rules.
    pub counts: UseCounter,
    /// A sketch is halved after this many hits a slot of the main cache, 1 to 1e6.
    pub main_hits: f64,
}

impl Default for WTinyLfuConfig {
    fn default() -> Self {
        Self {
            window: 0.01,
            protected: 0.8,
            sample: 10.0,
            counts: UseCounter::Sketch,
            main_hits: 32.0,
        }
    }
}

impl Config for WTinyLfuConfig {
    fn check(&self) -> Result<(), String> {
        share("window", self.window, 0.0..=1.0)?;
        share("protected", self.protected, 0.0..=1.0)?;
        share("sample", self.sample, 1.0..=1e6)?;
        share("main_hits", self.main_hits, 1.0..=1e6)
    }
}
