//! A cap on uploads: at most so many experts a layer a step get a slot, the rest wait.
//!
//! Source: llama.cpp #27861 (`--inserts`): uploads cost time on the critical path, and a working
//! set that shifts slowly needs few of them.

use serde::{Deserialize, Serialize};

use super::{Admission, AdmissionInfo};
use crate::registry::NoNeeds;
use crate::structures::memory::{array, sum};
use crate::{Config, Key, Parameter, PoolShape};

/// What people are told of it.
pub const INFO: AdmissionInfo = AdmissionInfo {
    name: "upload-cap",
    summary: "at most n experts a layer a step get a slot",
    definition: "Of the experts that a layer's events and prefetches would bring in during one step, the first n in the order of admission (an event's misses in ascending id) get a slot, free slots included; the others are served without one.",
    source: "llama.cpp #27861, --inserts",
    needs: NoNeeds,
    parameters: &[Parameter {
        name: "n",
        default: "2",
        meaning: "admissions a layer a step, at least 1",
    }],
};

/// Parameters of [`UploadCap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UploadCapConfig {
    /// Admissions a layer a step, at least 1.
    pub n: u32,
}

impl Default for UploadCapConfig {
    fn default() -> Self {
        Self { n: 2 }
    }
}

impl Config for UploadCapConfig {
    fn check(&self) -> Result<(), String> {
        if self.n == 0 {
            return Err("n = 0 admits nothing: give at least 1".to_owned());
        }
        Ok(())
    }
}

/// Counts each layer's admissions of the running step. An engine must say when steps begin.
#[derive(Debug, Clone)]
pub struct UploadCap {
    cap: u32,
    layer_of: Box<[u32]>,
    used: Box<[u32]>,
}

impl UploadCap {
    /// No admission so far.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &UploadCapConfig) -> Self {
        Self {
            cap: config.n,
            layer_of: pool.layer_of_keys().into_boxed_slice(),
            used: vec![0; pool.layers() as usize].into_boxed_slice(),
        }
    }

    pub(super) fn memory(pool: &PoolShape) -> u64 {
        sum([array::<u32>(pool.keys), array::<u32>(pool.layers())])
    }

    fn layer(&self, key: Key) -> usize {
        self.layer_of[key as usize] as usize
    }
}

impl Admission for UploadCap {
    fn begin_step(&mut self) {
        self.used.fill(0);
    }

    fn wants(&mut self, key: Key, _: bool) -> bool {
        self.used[self.layer(key)] < self.cap
    }

    fn entered(&mut self, key: Key) {
        self.used[self.layer(key)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admitted, ExpertCache, Lru, Slots};

    /// Two layers of four experts, one pool of four slots, one upload a layer a step.
    #[test]
    fn each_layer_has_its_own_cap_in_each_step() {
        let mut cache = ExpertCache::new(&[4, 4], &[2, 2], &Slots::Global(4), |_, pool| {
            let cap = UploadCap::new(pool, &UploadCapConfig { n: 1 });
            Admitted::new(Lru::new(pool), cap)
        })
        .unwrap()
        .with_ordered_copies();
        let mut serve = |layer: usize, experts: &[u32]| {
            let plan = cache.demand(layer, experts);
            let counts = (plan.hits, plan.fetches, plan.unplaced);
            cache.release(layer);
            assert_eq!(cache.validate(), Ok(()));
            counts
        };
        // No step was begun: the first one counts from here. Expert 1 comes before 3.
        assert_eq!(serve(0, &[3, 1]), (0, 1, 1));
        assert_eq!(serve(1, &[0, 2]), (0, 1, 1));
        // The layer's one upload of this step is spent.
        assert_eq!(serve(0, &[1, 3]), (1, 0, 1));
        cache.begin_step(1);
        let plan = cache.demand(0, &[1u32, 3]);
        assert_eq!((plan.hits, plan.fetches, plan.unplaced), (1, 1, 0));
        cache.release(0);
        // A prefetch is an upload, too.
        assert_eq!(cache.prefetch(1, &[1u32, 3]).fetches, 1);
        assert_eq!(cache.demand(1, &[2u32]).unplaced, 1);
    }
}
