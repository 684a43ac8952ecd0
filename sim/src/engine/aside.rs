//! What of an event goes past the cache.

use hotset_policies::miss::{Dispatched, MissDispatcher};
use hotset_policies::{Key, Placement};

use crate::timeline::LayerDemand;
use crate::{Bucket, Device, DeviceEvent};

/// The part of an event that is not demanded of the cache, and who of what is stands in for others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Aside {
    pub host: u32,
    host_further: u32,
    miss_further: u32,
    pub substituted: u32,
    deferred: u32,
    dropped: u32,
    low: u32,
    low_size_ppm: u32,
    /// Share of the event's router weight that is lost, in billionths.
    lost: u64,
}

impl Aside {
    pub fn of<E>(event: &Dispatched<'_, E>) -> Self {
        Self {
            host: event.host,
            host_further: event.host_further,
            miss_further: event.miss_further,
            substituted: event.substituted,
            deferred: event.deferred,
            dropped: event.dropped,
            low: event.low,
            low_size_ppm: event.low_size_ppm,
            lost: event.lost_ppb,
        }
    }

    /// Experts asked for that the cache does not hear of.
    pub fn experts(&self) -> u32 {
        self.host + self.dropped + self.substituted + self.low
    }

    /// Adds it to the counts of a step of so many tokens.
    #[inline(always)]
    pub fn count(&self, bucket: &mut Bucket, layer: usize, tokens: u32) {
        let others = self.deferred + self.dropped + self.substituted + self.low;
        if others == 0 && self.lost == 0 {
            return;
        }
        bucket.low_precision[layer] += u64::from(self.low);
        bucket.low_size_ppm = self.low_size_ppm;
        bucket.deferred += u64::from(self.deferred);
        bucket.dropped += u64::from(self.dropped);
        bucket.substituted += u64::from(self.substituted);
        let lost = self.lost.saturating_mul(u64::from(tokens));
        bucket.lost_weight = bucket.lost_weight.saturating_add(lost);
    }

    /// Tells a device of the event, with what the cache placed of it.
    #[cold]
    pub fn tell(
        &self,
        device: &mut Option<&mut dyn Device>,
        misses: Option<&MissDispatcher<u16>>,
        layer: usize,
        (placements, dropped): (&[Placement], &[Key]),
    ) {
        let Some(device) = device else { return };
        let on_host: Vec<u32> = match misses {
            Some(misses) if self.host > 0 => misses.on_host().collect(),
            _ => Vec::new(),
        };
        let left_out = self.dropped + self.substituted + self.low;
        device.demand(&DeviceEvent { layer, placements, dropped, on_host: &on_host, left_out });
    }

    /// A demand with it: whoever stands in is part of it already.
    pub fn added_to<'a>(&self, demand: LayerDemand<'a>) -> LayerDemand<'a> {
        LayerDemand {
            distinct: demand.distinct + self.host + self.dropped + self.low,
            low: self.low,
            host: self.host,
            host_further: self.host_further,
            miss_further: self.miss_further,
            deferred: self.deferred,
            dropped: self.dropped,
            ..demand
        }
    }
}
