//! What a [`Guide`](super::Guide) goes by: whose profile, alike by what, over how much.

use serde::{Deserialize, Serialize};

use crate::registry::{Config, Parameter};

/// The parameters of everything that is guided by conversations.
pub const GUIDE_PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "from",
        default: "nearest",
        meaning: "nearest, clusters; controls: mean, shuffled; prompt; ceiling: own (the future)",
    },
    Parameter { name: "by", default: "in", meaning: "likeness: in, out (embeddings), routes" },
    Parameter { name: "k", default: "8", meaning: "conversations that are looked at" },
    Parameter { name: "store", default: "1000", meaning: "conversations that are kept" },
    Parameter { name: "clusters", default: "8", meaning: "clusters (k-means)" },
    Parameter {
        name: "after",
        default: "32",
        meaning: "tokens that tell by their routes, where the prompt's are unknown",
    },
    Parameter { name: "seed", default: "1", meaning: "seed of clusters and of `shuffled`" },
];

/// Whose profile a conversation is expected to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileFrom {
    /// The mean of the earlier conversations nearest by embedding, weighted by cosine.
    #[default]
    Nearest,
    /// The mean of the conversations of the nearest cluster.
    Clusters,
    /// Control: the plain mean of all earlier conversations.
    Mean,
    /// Control: that of earlier conversations drawn at random, as many as would be nearest.
    Shuffled,
    /// The conversation's own prompt, or its first tokens where the prompt's routes are unknown.
    Prompt,
    /// Ceiling: its own, the future included.
    Own,
}

/// What conversations are alike by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Likeness {
    /// The prompt's mean input embedding.
    #[default]
    In,
    /// The prompt's mean final hidden state.
    Out,
    /// The experts that the prompt used, or the first tokens where the prompt's are unknown.
    Routes,
}

/// Parameters of a [`Guide`](super::Guide).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuideConfig {
    /// Whose profile.
    pub from: ProfileFrom,
    /// What conversations are alike by.
    pub by: Likeness,
    /// Earlier conversations that are looked at, at least 1.
    pub k: usize,
    /// Conversations that are stored at most, at least 1.
    pub store: usize,
    /// Clusters; fitted once there are as many conversations, again when they have doubled.
    pub clusters: usize,
    /// Tokens of the run after which routes tell, where those of the prompt are unknown.
    pub after: u32,
    /// Seed of clusters and of the random control.
    pub seed: u64,
}

impl Default for GuideConfig {
    fn default() -> Self {
        Self {
            from: ProfileFrom::Nearest,
            by: Likeness::In,
            k: 8,
            store: 1000,
            clusters: 8,
            after: 32,
            seed: 1,
        }
    }
}

impl Config for GuideConfig {
    fn check(&self) -> Result<(), String> {
        for (name, value) in [("k", self.k), ("store", self.store), ("clusters", self.clusters)] {
            if !(1..=1 << 20).contains(&value) {
                return Err(format!("{name} = {value} is not within 1 to 1048576"));
            }
        }
        if self.after == 0 {
            return Err("after is at least 1 token".to_owned());
        }
        Ok(())
    }
}

impl GuideConfig {
    /// Whether it looks at the prompts' embeddings.
    #[must_use]
    pub fn needs_embeddings(&self) -> bool {
        matches!(self.from, ProfileFrom::Nearest | ProfileFrom::Clusters)
            && self.by != Likeness::Routes
    }

    /// Whether it goes by what it stores of earlier conversations, by vectors of at most
    /// [`MAX_DIMENSION`](super::MAX_DIMENSION) numbers.
    #[must_use]
    pub fn needs_store(&self) -> bool {
        !matches!(self.from, ProfileFrom::Prompt | ProfileFrom::Own)
    }

    /// Whether it looks at what a conversation is going to use: a ceiling, no policy.
    #[must_use]
    pub fn needs_future(&self) -> bool {
        self.from == ProfileFrom::Own
    }
}
