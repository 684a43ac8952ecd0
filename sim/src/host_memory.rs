//! The cache in host memory under the accelerator's, over disk, as a request has it and as a replay
//! takes it.

use hotset_policies::miss::MissHandler;
use hotset_policies::{AnyPolicy, HostTier, Need, PolicySpec, Slots, TierMode};
use hotset_traces::Shape;
use serde::{Serialize, Serializer};

use crate::capacity::dimensions;
use crate::{Bucket, Capacity, Named, Prefill, Scope, SimError, TierCounts};

/// Host memory that holds some of the experts; the others are read from disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostMemory {
    /// Its slots, over all layers.
    #[serde(serialize_with = "text")]
    pub capacity: Named<Capacity>,
    /// Its policy.
    #[serde(serialize_with = "text")]
    pub policy: Named<PolicySpec>,
    /// Whether what goes up stays.
    pub mode: TierMode,
    /// Experts of a layer that are read along behind each one that is read.
    #[serde(skip_serializing_if = "is_zero")]
    pub read_ahead: u32,
    /// Whether what is predicted is brought here instead of to the accelerator.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prefetches: bool,
}

fn text<T, S: Serializer>(named: &Named<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&named.text)
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A cache in host memory, sized for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSetting {
    /// Its slots.
    pub slots: Slots,
    /// Its policy.
    pub policy: PolicySpec,
    /// Whether what goes up stays.
    pub mode: TierMode,
    /// Experts of a layer that are read along behind each one that is read.
    pub read_ahead: u32,
    /// Whether what is predicted is brought here instead of to the accelerator.
    pub prefetches: bool,
}

impl HostSetting {
    /// Inclusive, without read-ahead.
    #[must_use]
    pub fn new(policy: PolicySpec, slots: u32) -> Self {
        let (slots, mode) = (Slots::Global(slots), TierMode::Inclusive);
        Self { slots, policy, mode, read_ahead: 0, prefetches: false }
    }

    /// Refuses a prefill that goes past the cache above: it makes no plans to follow.
    pub(crate) fn check_prefill(&self, prefill: Prefill) -> Result<(), SimError> {
        match prefill {
            Prefill::OnDemand => Ok(()),
            mode => Err(SimError::HostPrefill { mode: mode.name() }),
        }
    }

    /// Refuses smaller copies, of which nobody says where they lie.
    pub(crate) fn check_misses(&self, misses: MissHandler) -> Result<(), SimError> {
        match misses.low_size_ppm() {
            0 => Ok(()),
            _ => Err(SimError::HostMisses { handler: misses.info().name }),
        }
    }

    /// The tier for a model of this shape: empty, but where it holds every expert: then all were
    /// loaded before the first step, as where nobody speaks of host memory.
    ///
    /// # Errors
    /// [`SimError::HostPolicy`]; an impossible cache.
    pub(crate) fn tier(&self, shape: &Shape) -> Result<HostTier<AnyPolicy>, SimError> {
        let (experts, top_k) = dimensions(shape);
        if !runs_below(&self.policy) {
            return Err(SimError::HostPolicy { policy: self.policy.info().name.to_owned() });
        }
        let build = |_: usize, pool: &_| {
            self.policy.build(pool).unwrap_or_else(|| unreachable!("it learns as it runs"))
        };
        let tier = HostTier::new(&experts, &top_k, &self.slots, self.mode, build)?;
        let mut tier = tier.with_read_ahead(self.read_ahead);
        if self.slots.total() == shape.total_experts() {
            tier.cache_mut().place(0..shape.total_experts());
        }
        Ok(tier)
    }
}

/// Whether a policy needs nothing but the experts that it is asked for: host memory hears of no more.
fn runs_below(policy: &PolicySpec) -> bool {
    policy.needs() == Need::Nothing
}

impl HostMemory {
    /// What it means for a model. More bytes than all experts take hold them all.
    ///
    /// # Errors
    /// An impossible capacity, a policy that needs the future or training, a prefill that goes past
    /// the cache.
    pub(crate) fn setting(&self, shape: &Shape, prefill: Prefill) -> Result<HostSetting, SimError> {
        let policy = self.policy.value.clone();
        if !runs_below(&policy) {
            return Err(SimError::HostPolicy { policy: self.policy.text.clone() });
        }
        let capacity = self.capacity.value;
        let slots = match (capacity, capacity.slots(shape, Scope::Global)) {
            (Capacity::Bytes(_), Err(SimError::CapacityOver { .. })) => {
                Slots::Global(shape.total_experts())
            }
            (_, slots) => slots?,
        };
        let (mode, read_ahead, prefetches) = (self.mode, self.read_ahead, self.prefetches);
        let setting = HostSetting { slots, policy, mode, read_ahead, prefetches };
        setting.check_prefill(prefill)?;
        Ok(setting)
    }
}

/// What the tiers under the accelerator's memory did, in results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tiered {
    /// Slots in host memory, over all layers.
    pub host_slots: u32,
    /// Those over all experts, 0 to 1.
    pub host_share: f64,
    /// Experts that were to be copied up, or computed by the host, and lay in host memory.
    pub host_hits: u64,
    /// host_hits / (host_hits + disk_reads); absent where nothing was asked of host memory.
    pub host_hit_rate: Option<f64>,
    /// Experts read from disk because they were asked for: the host's misses.
    pub disk_reads: u64,
    /// Experts read from disk because they were predicted, or lay behind one that was read.
    pub disk_reads_ahead: u64,
    /// MiB read from disk a token; absent where the experts' size is unknown.
    pub disk_mib_per_token: Option<f64>,
    /// Experts that left the accelerator and took a slot in host memory: copies downwards, which
    /// no price has.
    pub kept: u64,
}

impl Tiered {
    /// `None` without a cache in host memory.
    pub(crate) fn of(host: Option<&HostSetting>, shape: &Shape, bucket: &Bucket) -> Option<Self> {
        let (host, tiers) = (host?, &bucket.tiers);
        let (hits, reads) = (tiers.host_hits, tiers.misses());
        let bytes: u128 = disk_reads(tiers, shape).map(|(n, bytes)| n * u128::from(bytes)).sum();
        let sized = shape.layers().iter().all(|layer| layer.expert_bytes > 0);
        let slots = host.slots.total();
        Some(Self {
            host_slots: slots,
            host_share: f64::from(slots) / f64::from(shape.total_experts()),
            host_hits: hits,
            host_hit_rate: (hits + reads > 0).then(|| hits as f64 / (hits + reads) as f64),
            disk_reads: reads,
            disk_reads_ahead: tiers.ahead(),
            disk_mib_per_token: sized
                .then(|| bytes as f64 / f64::from(1 << 20) / bucket.tokens.max(1) as f64),
            kept: tiers.kept,
        })
    }
}

/// Reads of each layer, asked for or not, and the bytes of one.
pub(crate) fn disk_reads<'a>(
    tiers: &'a TierCounts,
    shape: &'a Shape,
) -> impl Iterator<Item = (u128, u64)> + 'a {
    let reads = tiers.reads.iter().zip(&tiers.reads_ahead).zip(shape.layers());
    reads.map(|((&asked, &ahead), layer)| (u128::from(asked + ahead), layer.expert_bytes))
}
