//! For an engine's own tests: what it was asked for and what it did, as values.

use hotset_policies::{PolicySpec, Slots};

use crate::check::Conformance;
use crate::decision::Decision;
use crate::shape::ModelShape;

/// What one layer of one step asked a cache for.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerDemand {
    /// The step, counted by the engine; a new number begins a new step.
    pub step: u64,
    /// Tokens of the step.
    pub tokens: u32,
    /// MoE layer, from 0.
    pub layer: usize,
    /// Its experts, best rank first; duplicates are one demand.
    pub experts: Vec<u32>,
    /// Router weight of each; empty where there are none.
    pub weights: Vec<f32>,
}

impl LayerDemand {
    /// What `layer` of a step of one token asked for.
    #[must_use]
    pub fn new(step: u64, layer: usize, experts: &[u32]) -> Self {
        Self { step, tokens: 1, layer, experts: experts.to_vec(), weights: Vec::new() }
    }
}

/// Asserts that `decisions`, one for each of `demands`, are those of `policy` (as on the command
/// line: `slru`, `lru-k:k=2`, `lru+upload-cap:n=2`) over `slots`.
///
/// # Panics
/// With the first divergence, or with what is wrong with the arguments.
pub fn assert_conforms(
    policy: &str,
    model: &ModelShape<'_>,
    slots: &Slots,
    demands: &[LayerDemand],
    decisions: &[Decision],
) {
    let fail = |problem: String| -> ! { panic!("{problem}") };
    let spec: PolicySpec = match policy.parse() {
        Ok(spec) => spec,
        Err(error) => fail(format!("{error}")),
    };
    let mut conformance = match Conformance::new(&spec, model, slots) {
        Ok(conformance) => conformance,
        Err(error) => fail(error.to_string()),
    };
    let mut step = None;
    for (demand, decision) in demands.iter().zip(decisions) {
        if step != Some(demand.step) {
            step = Some(demand.step);
            conformance.begin_step(demand.tokens);
        }
        let checked = conformance.event(demand.layer, &demand.experts, &demand.weights, decision);
        if let Err(error) = checked {
            fail(error.to_string());
        }
    }
    if demands.len() != decisions.len() {
        fail(format!("{} decisions for {} events", decisions.len(), demands.len()));
    }
}
