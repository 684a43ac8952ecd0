//! What an experiment is run under.

use hotset_cost_models::Link;
use hotset_sim::{Capacity, Named, Scope, SimError, TimeModel};
use hotset_traces::{Phase, Shape, Trace, Workload};
use serde::Serialize;

use crate::{Arm, ExperimentError, Parts};

/// What an experiment is run under.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// Slots of the cache, with the text that gave them.
    pub capacity: Named<Capacity>,
    /// One pool, or one a layer.
    pub scope: Scope,
    /// Links to charge over.
    pub links: Vec<Link>,
    /// Compute, and how copies run beside it.
    pub time: TimeModel,
    /// Bytes of an expert in every layer; `None`: as the trace records them.
    pub expert_bytes: Option<u64>,
    /// Training and test.
    pub parts: Parts,
    /// The order in which the tested sequences arrive; `None`: as they lie.
    pub workload: Option<Workload>,
    /// Draws of the bootstrap.
    pub resamples: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// What is compared with LRU; empty: the experiment's own choice.
    pub arms: Vec<Arm>,
    /// What else all arms are compared with.
    pub against: Vec<Arm>,
}

/// The protocol in results: with the trace, enough to run it again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProtocolSummary {
    /// hotset's version.
    pub hotset: &'static str,
    /// Slots as given.
    pub capacity: String,
    /// Slots over all layers.
    pub capacity_slots: u32,
    /// Scope.
    pub scope: Scope,
    /// Links.
    pub links: Vec<String>,
    /// Bytes of an expert by layer.
    pub expert_bytes: Vec<u64>,
    /// Kernels, ms a token, copies and waiting aside.
    pub compute_ms_per_token: f64,
    /// Training and test.
    pub parts: Parts,
    /// Draws of the bootstrap over sequences; intervals hold 95% of them.
    pub resamples: usize,
    /// Seed.
    pub seed: u64,
    /// Only decode steps are replayed.
    pub phase: &'static str,
    /// What all arms are compared with.
    pub against: Vec<String>,
    /// How answers are corrected for the number of arms.
    pub correction: &'static str,
}

impl Protocol {
    /// The trace's shape with the size that was asked for.
    ///
    /// # Errors
    /// [`ExperimentError::ExpertSizeUnknown`], [`ExperimentError::NoLink`].
    pub(crate) fn shape(&self, trace: &Trace) -> Result<Shape, ExperimentError> {
        if self.links.is_empty() {
            return Err(ExperimentError::NoLink);
        }
        for (index, link) in self.links.iter().enumerate() {
            if self.links[..index].iter().any(|other| other.name == link.name) {
                return Err(ExperimentError::Twice { what: "link", name: link.name.clone() });
            }
        }
        let shape = match self.expert_bytes {
            Some(bytes) => trace.shape().with_expert_bytes(bytes),
            None => trace.shape().clone(),
        };
        if shape.layers().iter().any(|layer| layer.expert_bytes == 0) {
            return Err(ExperimentError::ExpertSizeUnknown);
        }
        if !trace.phases().contains(&(Phase::Decode as u8)) {
            return Err(SimError::NoTokens { phase: "decode" }.into());
        }
        // A workload may run sequences again, as many as there are.
        self.time.check_clock(2 * trace.tokens(), &shape, &self.links)?;
        Ok(shape)
    }

    pub(crate) fn summary(&self, shape: &Shape) -> Result<ProtocolSummary, ExperimentError> {
        Ok(ProtocolSummary {
            hotset: env!("CARGO_PKG_VERSION"),
            capacity: self.capacity.text.clone(),
            capacity_slots: self.capacity.value.slots(shape, self.scope)?.total(),
            scope: self.scope,
            links: self.links.iter().map(|link| link.name.clone()).collect(),
            expert_bytes: shape.layers().iter().map(|layer| layer.expert_bytes).collect(),
            compute_ms_per_token: self.time.compute.token_ps(shape) as f64 / 1e9,
            parts: self.parts,
            resamples: self.resamples,
            seed: self.seed,
            phase: "decode",
            against: references(&self.against).into_iter().map(|arm| arm.name).collect(),
            correction: "holm",
        })
    }
}

/// LRU, and what else arms are compared with, each once.
pub(crate) fn references(against: &[Arm]) -> Vec<Arm> {
    let mut references = vec![Arm::lru()];
    for arm in against {
        if !references.iter().any(|known| known.name == arm.name) {
            references.push(arm.clone());
        }
    }
    references
}

/// Refuses an arm that is there twice, and puts the baseline first.
pub(crate) fn with_baseline(arms: Vec<Arm>) -> Result<Vec<Arm>, ExperimentError> {
    let mut all = vec![Arm::lru()];
    for arm in arms {
        if arm == all[0] {
            continue;
        }
        if all.iter().any(|known| known.name == arm.name) {
            return Err(ExperimentError::Twice { what: "arm", name: arm.name });
        }
        all.push(arm);
    }
    Ok(all)
}
