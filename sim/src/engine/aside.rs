//! What of an event goes past the cache.

use hotset_policies::miss::Dispatched;

use crate::Bucket;
use crate::timeline::LayerDemand;

/// The part of an event that is not demanded of the cache, and who of what is stands in for others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Aside {
    pub host: u32,
    pub substituted: u32,
    deferred: u32,
    dropped: u32,
    /// Share of the event's router weight that is lost, in billionths.
    lost: u64,
}

impl Aside {
    pub fn of<E>(event: &Dispatched<'_, E>) -> Self {
        Self {
            host: event.host,
            substituted: event.substituted,
            deferred: event.deferred,
            dropped: event.dropped,
            lost: event.lost_ppb,
        }
    }

    /// Experts asked for that the cache does not hear of.
    pub fn experts(&self) -> u32 {
        self.host + self.dropped + self.substituted
    }

    /// Adds it to the counts of a step of so many tokens.
    #[inline(always)]
    pub fn count(&self, bucket: &mut Bucket, tokens: u32) {
        if self.deferred == 0 && self.lost == 0 && self.dropped == 0 && self.substituted == 0 {
            return;
        }
        bucket.deferred += u64::from(self.deferred);
        bucket.dropped += u64::from(self.dropped);
        bucket.substituted += u64::from(self.substituted);
        let lost = self.lost.saturating_mul(u64::from(tokens));
        bucket.lost_weight = bucket.lost_weight.saturating_add(lost);
    }

    /// A demand with it: whoever stands in is part of it already.
    pub fn added_to<'a>(&self, demand: LayerDemand<'a>) -> LayerDemand<'a> {
        LayerDemand {
            distinct: demand.distinct + self.host + self.dropped,
            host: self.host,
            deferred: self.deferred,
            dropped: self.dropped,
            ..demand
        }
    }
}
