//! What of the misses comes from disk, where host memory holds a part of the experts only.

use std::collections::BTreeMap;

use hotset_policies::{PolicySpec, Slots, TierMode};
use hotset_sim::{
    Futures, HostSetting, PhaseFilter, ReplayProgress, Semantics, Setting, Window, replay_until,
};
use hotset_traces::{Phase, Trace};

use super::counted::lock;
use super::measured::{arranged, warmup_tokens};
use super::need::StepKind;
use super::{Routing, Source};
use crate::PlanError;

/// How host memory keeps what it does not hold all of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostCache {
    /// The engine's own cache, read past the operating system's: LRU, without what has a slot.
    Direct,
    /// The operating system's page cache under mapped files: what has a slot lies there too.
    Pages,
}

/// Sizes that were replayed: the kind of step, slots, host slots, and how.
pub(super) type Replayed = BTreeMap<(StepKind, u32, u32, HostCache), f64>;

impl Routing<'_> {
    /// Share of the misses that host memory does not have, with `share` of the experts in slots and
    /// `host` of them in host memory. Of a trace of the model it is replayed, both caches as they
    /// are; else misses that a cache as large as both together would have, over those of the slots.
    ///
    /// # Errors
    /// [`PlanError::Users`]; a cache that cannot be.
    pub(crate) fn read_share(
        &self,
        kind: StepKind,
        (share, host): (f64, f64),
        how: HostCache,
    ) -> Result<f64, PlanError> {
        if let Source::Trace { trace, stand_in: false, replayed, .. } = &self.source {
            let total = f64::from(trace.shape().total_experts());
            let slots = |share: f64| (share * total).round().clamp(1.0, total) as u32;
            let key = (kind, slots(share), slots(host), how);
            if let Some(&known) = lock(replayed).get(&key) {
                return Ok(known);
            }
            let read = replay_tiers((trace, self.watch.0), kind, (key.1, key.2), how)?;
            lock(replayed).insert(key, read);
            return Ok(read);
        }
        // Under mapped files too: what has a slot is not asked of host memory again, and ages out.
        let all = self.need(kind, share)?.misses;
        let read = self.need(kind, (share + host).min(1.0))?.misses;
        Ok(if all > 0.0 { (read / all).clamp(0.0, 1.0) } else { 0.0 })
    }

    /// Whether [`read_share`](Self::read_share) replays.
    pub(crate) fn replays_tiers(&self) -> bool {
        matches!(&self.source, Source::Trace { stand_in: false, .. })
    }
}

fn replay_tiers(
    (trace, progress): (&Trace, &dyn ReplayProgress),
    kind: StepKind,
    (slots, host): (u32, u32),
    how: HostCache,
) -> Result<f64, PlanError> {
    let steps = arranged(trace, kind)?;
    let (policy, mode) = match how {
        HostCache::Direct => (PolicySpec::Lru(Default::default()), TierMode::Exclusive),
        HostCache::Pages => (PolicySpec::PageCache(Default::default()), TierMode::Inclusive),
    };
    let setting = Setting {
        phase: PhaseFilter::Decode,
        warmup: Some(warmup_tokens(&steps, kind)),
        host: Some(HostSetting { mode, ..HostSetting::new(policy, host) }),
        ..Setting::new(PolicySpec::Lru(Default::default()), Slots::Global(slots))
    };
    let futures = Futures::new(trace, &steps, Semantics::Event, PhaseFilter::Decode);
    let counts =
        replay_until(trace, (&steps, progress), &futures, &setting).map_err(PlanError::replay)?;
    let bucket = counts.bucket(Phase::Decode, Window::Steady);
    let misses = bucket.misses();
    Ok(if misses > 0 { bucket.tiers.misses() as f64 / misses as f64 } else { 0.0 })
}
