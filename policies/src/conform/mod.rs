//! Does an engine decide as a policy does? Its decisions, event by event, against the reference.
//!
//! An engine's test hands over what it was asked for and what it did; [`assert_conforms`] fails
//! with the first event in which the engine differs, who was resident before it, and the rule that
//! decides. [`Conformance`] is the same one event at a time, for logs of any length.
//!
//! ```
//! use hotset_policies::Slots;
//! use hotset_policies::conform::{Asked, Decision, Evicted, Model, assert_conforms};
//!
//! // One layer of four experts, two slots. The engine's test ran these two steps:
//! let model = Model { experts: &[4], top_k: &[2] };
//! let asked = [Asked::new(0, 0, &[2, 0]), Asked::new(1, 0, &[0, 3])];
//! // and its cache did this:
//! let decisions = [
//!     Decision::of(0).fetch(0, Evicted::Nobody).fetch(2, Evicted::Nobody),
//!     Decision::of(0).hit(0).fetch(3, Evicted::expert(0, 2)),
//! ];
//! assert_conforms("lru", &model, &Slots::Global(2), &asked, &decisions);
//! ```

mod check;
mod compare;
mod decision;
mod divergence;
mod slot_book;
#[cfg(test)]
mod tests;

pub use check::{Compared, ConformError, Conformance};
pub use decision::{Decision, Evicted, Expert, Fetched, Held};
pub use divergence::{Divergence, EVENT_RULE};

use crate::{PolicySpec, Slots};

/// A model as a cache sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model<'a> {
    /// Experts of each MoE layer.
    pub experts: &'a [u32],
    /// Experts that a token uses in each.
    pub top_k: &'a [u32],
}

/// What one layer of one step asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
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

impl Asked {
    /// What `layer` of a step of one token asked for.
    #[must_use]
    pub fn new(step: u64, layer: usize, experts: &[u32]) -> Self {
        Self { step, tokens: 1, layer, experts: experts.to_vec(), weights: Vec::new() }
    }
}

/// Asserts that `decisions`, one for each of `asked`, are those of `policy` (as on the command
/// line: `slru`, `lru-k:k=2`, `lru+upload-cap:n=2`) over `slots`.
///
/// # Panics
/// With the first divergence, or with what is wrong with the arguments.
pub fn assert_conforms(
    policy: &str,
    model: &Model<'_>,
    slots: &Slots,
    asked: &[Asked],
    decisions: &[Decision],
) {
    let told = |problem: String| -> ! { panic!("{problem}") };
    let spec: PolicySpec = match policy.parse() {
        Ok(spec) => spec,
        Err(error) => told(format!("{error}")),
    };
    let mut conformance = match Conformance::new(&spec, model, slots) {
        Ok(conformance) => conformance,
        Err(error) => told(error.to_string()),
    };
    let mut step = None;
    for (asked, decision) in asked.iter().zip(decisions) {
        if step != Some(asked.step) {
            step = Some(asked.step);
            conformance.begin_step(asked.tokens);
        }
        let checked = conformance.event(asked.layer, &asked.experts, &asked.weights, decision);
        if let Err(error) = checked {
            told(error.to_string());
        }
    }
    if asked.len() != decisions.len() {
        let (asked, decided) = (asked.len(), decisions.len());
        told(format!("{decided} decisions for {asked} events"));
    }
}
