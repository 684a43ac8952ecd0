//! One cache to replay a trace through, and all that an engine does beside evicting.

use std::sync::Arc;

use hotset_policies::miss::MissHandler;
use hotset_policies::predict::AnyPredictor;
use hotset_policies::semantic::Guide;
use hotset_policies::{PolicySpec, Slots};
use serde::{Deserialize, Serialize};

use crate::{Change, HostSetting, PhaseFilter, Prefetch, Prefill, Scope};

/// How accesses reach the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Semantics {
    /// A layer's distinct experts arrive together and none of them may evict another.
    Event,
    /// One access at a time.
    Sequential,
}

impl Semantics {
    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Sequential => "sequential",
        }
    }
}

/// One cache to replay a trace through.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its policy.
    pub policy: PolicySpec,
    /// Its slots, and with them its scope.
    pub slots: Slots,
    /// Event or sequential.
    pub semantics: Semantics,
    /// The steps to replay.
    pub phase: PhaseFilter,
    /// Tokens that count as cold; `None`: all until the cache has first been full.
    pub warmup: Option<u64>,
    /// Uses of each dense key in a part of the trace that is not replayed, for policies that are
    /// trained.
    pub training: Option<Arc<[u64]>>,
    /// What is prefetched, and by which source.
    pub prefetch: Prefetch,
    /// The predictor as training left it; `None`: it begins knowing nothing.
    pub predictor: Option<Arc<AnyPredictor>>,
    /// The guide of a policy that goes by conversation profiles, as training left it; `None`: it
    /// begins knowing no conversation.
    pub guide: Option<Arc<Guide>>,
    /// Bytes of an expert in each layer, for a prefetch budget; empty: unknown.
    pub expert_bytes: Vec<u64>,
    /// How prefill uses the cache.
    pub prefill: Prefill,
    /// What becomes of misses.
    pub misses: MissHandler,
    /// The cache in host memory under it; `None`: everything lies there.
    pub host: Option<HostSetting>,
    /// Slots from given tokens on, ascending, in the cache's scope.
    pub resizes: Vec<Change<Slots>>,
}

impl Setting {
    /// A cache that fetches every miss, in event semantics, over all phases.
    #[must_use]
    pub fn new(policy: PolicySpec, slots: Slots) -> Self {
        Self {
            policy,
            slots,
            semantics: Semantics::Event,
            phase: PhaseFilter::All,
            warmup: None,
            prefetch: Prefetch::None,
            predictor: None,
            guide: None,
            expert_bytes: Vec::new(),
            prefill: Prefill::OnDemand,
            misses: MissHandler::Fetch,
            host: None,
            resizes: Vec::new(),
            training: None,
        }
    }

    /// Whether the cache is only asked for what each layer needs.
    pub(crate) fn is_plain(&self) -> bool {
        self.prefetch == Prefetch::None
            && self.prefill == Prefill::OnDemand
            && self.misses.fetches_all()
            && self.host.is_none()
            && self.resizes.is_empty()
            && self.policy.guide().is_none()
    }

    /// The scope of the slots.
    pub(crate) fn scope(&self) -> Scope {
        match self.slots {
            Slots::Global(_) => Scope::Global,
            Slots::Layer(_) => Scope::Layer,
        }
    }
}
