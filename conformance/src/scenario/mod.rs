//! Unit tests for cache policies as data: calls in, expected plans out.
//!
//! An engine runs the files of `tests/scenarios` against its own cache; the format is in
//! `docs/scenarios.md`. They are made by the reference policies, one file a policy
//! (`cargo run --example scenarios`), and beside them one for each mistake that a real engine
//! made.

mod calls;
mod engines;
mod policies;
mod run;
mod text;

use hotset_policies::Slots;
use serde::{Deserialize, Serialize};

use crate::decision::{Expert, Fetched, Held};

pub use run::Mismatch;

/// The format's name and version.
pub const SCHEMA: &str = "hotset-scenario/1";

/// A file of scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// [`SCHEMA`].
    pub schema: String,
    /// What they test.
    pub about: String,
    /// The mistake that an engine made, if they are about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<String>,
    /// Each starts with a cache of its own.
    pub scenarios: Vec<Scenario>,
}

/// One cache and the calls that it gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    pub name: String,
    /// Policy, with parameters and admission as on the command line.
    pub policy: String,
    /// Experts of each MoE layer.
    pub experts: Vec<u32>,
    /// Experts that a token uses in each.
    pub top_k: Vec<u32>,
    /// The cache's slots.
    pub slots: SlotCounts,
    /// Whether copies are ordered before every later use of their slots, so that nothing is ever
    /// in flight and no call says `complete`.
    #[serde(default)]
    pub ordered_copies: bool,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// How many slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotCounts {
    /// One pool over all layers.
    Global(u32),
    /// A pool a layer.
    Layer(Vec<u32>),
}

impl SlotCounts {
    fn slots(&self) -> Slots {
        match self {
            Self::Global(slots) => Slots::Global(*slots),
            Self::Layer(each) => Slots::Layer(each.clone()),
        }
    }
}

/// One call, with the answer that is expected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// A step begins.
    BeginStep {
        /// Its tokens.
        tokens: u32,
    },
    /// A layer needs experts.
    Demand {
        /// MoE layer, from 0.
        layer: u32,
        /// The experts, best rank first; duplicates are one demand.
        experts: Vec<u32>,
        /// Router weight of each; absent where the policy needs none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        weights: Vec<f32>,
        /// The answer.
        plan: Planned,
        /// Who holds a slot afterwards, by layer, ascending.
        residents: Vec<Vec<u32>>,
    },
    /// Experts are predicted.
    Prefetch {
        /// MoE layer, from 0.
        layer: u32,
        /// The experts, likeliest first.
        experts: Vec<u32>,
        /// The answer.
        plan: Planned,
        /// Who holds a slot afterwards, by layer, ascending.
        residents: Vec<Vec<u32>>,
    },
    /// The copy of an expert is complete.
    Complete {
        /// MoE layer, from 0.
        layer: u32,
        /// The expert.
        expert: u32,
        /// Whether it was in flight.
        was_pending: bool,
    },
    /// A layer's experts have been used.
    Release {
        /// MoE layer, from 0.
        layer: u32,
    },
    /// In which slot may the engine read an expert?
    SlotOf {
        /// MoE layer, from 0.
        layer: u32,
        /// The expert.
        expert: u32,
        /// The slot; null: none, or its copy is in flight.
        slot: Option<u32>,
    },
    /// The number of slots changes.
    Resize {
        /// Slots from now on.
        slots: SlotCounts,
        /// Whether that is refused, because a slot is in use.
        refused: bool,
        /// Who left.
        evicted: Vec<Expert>,
        /// Who went to another slot.
        moved: Vec<Moved>,
        /// Who holds a slot afterwards, by layer, ascending.
        residents: Vec<Vec<u32>>,
    },
    /// The contents of slots were overwritten.
    Invalidate {
        /// 0 in global scope, else the layer.
        pool: u32,
        /// The first slot.
        first: u32,
        /// The slot behind the last.
        end: u32,
        /// Whether that is refused, because a slot is in use.
        refused: bool,
        /// Who is no longer resident.
        left: Vec<Expert>,
        /// Who holds a slot afterwards, by layer, ascending.
        residents: Vec<Vec<u32>>,
    },
}

/// The answer to a demand or a prefetch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// Resident and usable at once, in the order asked.
    pub hits: Vec<Held>,
    /// Of these, the ones that a prefetch brought in and nobody had asked for yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefetch_hits: Vec<u32>,
    /// Resident, but the copy is in flight: wait. No hits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Held>,
    /// To be copied, in the order in which they take victims.
    pub fetches: Vec<Fetched>,
    /// Without a slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplaced: Vec<u32>,
    /// Who left without another taking the slot at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Expert>,
    /// Prefetched experts that left before anybody asked for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wasted: u32,
    /// Whether the event needs more experts than its pool has slots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overflow: bool,
}

/// An expert that went to another slot of its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    /// MoE layer, from 0.
    pub layer: u32,
    /// The expert.
    pub expert: u32,
    /// Its slot before.
    pub from: u32,
    /// Its slot now.
    pub to: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Every file with its name, as the reference policies answer: one for each policy that an engine
/// can run, one for admission, one for each mistake.
///
/// # Errors
/// [`Mismatch::Setup`] if a policy cannot run the calls.
pub fn reference_files() -> Result<Vec<(String, ScenarioFile)>, Mismatch> {
    let mut files = policies::files();
    files.extend(engines::files());
    for (_, file) in &mut files {
        for scenario in &mut file.scenarios {
            *scenario = scenario.clone().answered()?;
        }
    }
    Ok(files)
}
