//! What a layer of a step asks of a timeline.

use hotset_policies::{Placement, Plan};

/// What a layer of a step asks of the machine.
#[derive(Debug, Clone, Copy)]
pub struct LayerDemand<'a> {
    /// The layer.
    pub layer: usize,
    /// Distinct experts that it needs.
    pub distinct: u32,
    /// Of those, to be copied now.
    pub copies: u32,
    /// Of those, served by the host's cores where they lie.
    pub host: u32,
    /// Tokens that want what the host serves, beyond one for each expert.
    pub host_further: u32,
    /// The same of all that is copied or served by the host.
    pub miss_further: u32,
    /// Of those on the host, whose output the next layer adds: the layer does not wait for them.
    pub deferred: u32,
    /// Distinct experts that are not computed at all, of `distinct` too.
    pub dropped: u32,
    /// Of those, copied now in a smaller form, which is not among `copies`.
    pub low: u32,
    /// Distinct experts brought by a prefetch and asked for the first time.
    pub prefetched: u32,
    /// Where each goes; looked at only for experts that were prefetched, or come from disk.
    pub placements: &'a [Placement],
    /// What of it comes from disk.
    pub tier: TierDemand<'a>,
}

/// What a layer asks of the tiers under the accelerator's memory; nothing where everything lies in
/// host memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct TierDemand<'a> {
    /// Experts to read from disk before they are copied or computed.
    pub reads: &'a [u32],
    /// Experts read behind them that nobody waits for.
    pub ahead: &'a [u32],
    /// Experts that host cores compute, whether they are read or not.
    pub computed: &'a [u32],
}

impl<'a> LayerDemand<'a> {
    /// What a cache's plan says.
    #[must_use]
    #[inline(always)]
    pub fn of(layer: usize, plan: &Plan<'a>) -> Self {
        Self {
            layer,
            distinct: plan.distinct(),
            copies: plan.fetches + plan.unplaced,
            host: 0,
            host_further: 0,
            miss_further: 0,
            deferred: 0,
            dropped: 0,
            low: 0,
            prefetched: plan.prefetch_hits,
            placements: plan.placements,
            tier: TierDemand::default(),
        }
    }

    /// A demand that no cache planned: `copies` of its experts are copied, `host` served by the
    /// host's cores.
    #[must_use]
    pub fn unplanned(layer: usize, distinct: u32, copies: u32, host: u32) -> Self {
        Self {
            layer,
            distinct,
            copies,
            host,
            host_further: 0,
            miss_further: 0,
            deferred: 0,
            dropped: 0,
            low: 0,
            prefetched: 0,
            placements: &[],
            tier: TierDemand::default(),
        }
    }
}
