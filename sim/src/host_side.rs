//! The tier under the cache: what its plans ask of host memory, counted.

use hotset_policies::miss::MissDispatcher;
use hotset_policies::{AnyPolicy, ExpertCache, HostTier, Key, Plan, TierPlan};
use hotset_traces::Shape;

use crate::timeline::TierDemand;
use crate::{Bucket, HostSetting, SimError};

/// Host memory in one run.
pub(crate) struct HostSide {
    tier: HostTier<AnyPolicy>,
    /// Whether what is predicted is brought here.
    prefetches: bool,
    /// Experts that host cores compute in the running event.
    computed: Vec<u32>,
    /// Experts that a prefetch reads.
    predicted: Vec<u32>,
}

impl HostSide {
    /// # Errors
    /// An impossible cache, or a policy that cannot run here.
    pub fn new(setting: &HostSetting, shape: &Shape) -> Result<Self, SimError> {
        let list = || Vec::with_capacity(shape.max_experts() as usize);
        Ok(Self {
            tier: setting.tier(shape)?,
            prefetches: setting.prefetches,
            computed: list(),
            predicted: list(),
        })
    }

    /// The accelerator begins with these experts, by dense key.
    pub fn begin_below(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.tier.begin_below(keys);
    }

    pub fn begin_step(&mut self, tokens: u32) {
        self.tier.begin_step(tokens);
        self.computed.clear();
    }

    /// The cache that predictions are brought to, if it is this one.
    pub fn prefetched_cache(&mut self) -> Option<&mut ExpertCache<AnyPolicy>> {
        self.prefetches.then(|| self.tier.cache_mut())
    }

    /// Learns which experts of the event host cores compute.
    pub fn computes(&mut self, dispatcher: Option<&MissDispatcher<u16>>) {
        self.computed.clear();
        self.computed.extend(dispatcher.into_iter().flat_map(MissDispatcher::on_host));
    }

    /// Serves a demand's plan, and what the host's cores compute beside it.
    pub fn serve(&mut self, layer: usize, plan: &Plan<'_>, bucket: &mut Bucket) -> TierDemand<'_> {
        let Self { tier, computed, .. } = self;
        let served = tier.serve(layer, plan, computed);
        count(layer, &served, bucket);
        TierDemand { reads: served.reads, ahead: served.ahead, computed }
    }

    /// Serves what the host's cores compute of an event that the cache never heard of.
    pub fn serve_past(&mut self, layer: usize, bucket: &mut Bucket) -> TierDemand<'_> {
        let Self { tier, computed, .. } = self;
        let served = tier.serve_past(layer, computed);
        count(layer, &served, bucket);
        TierDemand { reads: served.reads, ahead: served.ahead, computed }
    }

    /// Takes what the accelerator gave up outside of any plan.
    pub fn come_down(&mut self, keys: &[Key], bucket: &mut Bucket) {
        bucket.tiers.kept += u64::from(self.tier.come_down(keys));
    }

    /// Takes back experts whose copies up were taken back.
    pub fn keep_back(&mut self, layer: usize, experts: &[u32]) {
        self.tier.come_down_of(layer, experts);
    }

    /// Serves a prefetch's plan: its reads are nobody's demand.
    pub fn serve_ahead(&mut self, layer: usize, plan: &Plan<'_>, bucket: &mut Bucket) -> &[u32] {
        let Self { tier, predicted, .. } = self;
        let served = tier.serve_ahead(layer, plan);
        bucket.tiers.kept += u64::from(served.kept);
        predicted.clear();
        predicted.extend_from_slice(served.reads);
        predicted.extend_from_slice(served.ahead);
        bucket.tiers.reads_ahead[layer] += predicted.len() as u64;
        predicted
    }
}

fn count(layer: usize, served: &TierPlan<'_>, bucket: &mut Bucket) {
    let tiers = &mut bucket.tiers;
    tiers.host_hits += u64::from(served.hits);
    tiers.reads[layer] += served.reads.len() as u64;
    tiers.reads_ahead[layer] += served.ahead.len() as u64;
    tiers.kept += u64::from(served.kept);
}
