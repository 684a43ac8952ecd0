//! What an engine allocates beside weights, keys and values.

use hotset_cost_models::{Model, WeightFormat};
use serde::Deserialize;

use super::figure::{Fitted, Spread};

/// An engine's memory; what it does not have is absent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineMemory {
    /// Share of an accelerator's memory that it plans with unless told otherwise.
    pub usable_share: Option<Fitted>,
    /// What a process takes of an accelerator beside its buffers, MiB.
    pub process_mib: Option<Fitted>,
    /// Share of the memory from which on allocations fail in practice.
    pub full_share: Option<Fitted>,
    /// The token embedding stays on the host.
    #[serde(default)]
    pub embedding_on_host: bool,
    /// Keys of an indexer are not kept.
    #[serde(default)]
    pub no_index_keys: bool,
    /// Buffers by formula, of engines that compute them from the graph.
    pub buffers: Option<BufferRules>,
    /// Memory by a profile run, of engines that give what is left to keys and values.
    pub profile: Option<ProfileRules>,
    /// Formats whose rows are padded.
    #[serde(default)]
    pub padding: Vec<Padding>,
    /// Peak of a process over its weights, keys and values, as a factor.
    pub peak: Option<Fitted>,
}

/// Buffers of an engine that runs a planned graph (ggml).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferRules {
    /// Bytes of a mask's element where everything is on accelerators; 4 where the host computes.
    pub mask_bytes: Fitted,
    /// Rows of the hidden width, f32, beside a micro-batch's logits.
    pub hidden_rows: Fitted,
    /// Matrices of all experts of a layer that are on the accelerator together when the host's are copied.
    pub copied_matrices: Fitted,
    /// Tokens from which on a batch's matrices are copied.
    pub copied_tokens: Fitted,
    /// Tokens an expert from which on experts are copied; below, the host computes them.
    pub copied_tokens_an_expert: Fitted,
    /// How attention over latents is computed where settings do not say.
    pub latent: Latent,
    /// Rows of the hidden width, f32, beside attention over spread latents.
    pub latent_rows: Fitted,
    /// Reports over the formula for the accelerator's largest buffer, as factors.
    pub device: Spread,
    /// The same for the host's.
    pub host: Spread,
}

/// How attention over latents is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Latent {
    /// Keys and values of all heads are kept, not latents.
    Full,
    /// On latents, heads widened to them.
    Absorbed,
    /// One layer's keys and values are spread out of the latents.
    Spread,
}

/// Memory of an engine that measures a run and gives what is left to keys and values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRules {
    /// Tokens of a step unless told otherwise.
    pub tokens: Fitted,
    /// The same on accelerators of less than 70 GiB.
    pub tokens_small: Fitted,
    /// Activations of a step: bytes for each token and element of the hidden width.
    pub activation_bytes: Fitted,
    /// Of it, the share that each of 2 and of 4 or more slices keeps.
    pub sliced: [f64; 2],
    /// What else a rank takes, GiB.
    pub fixed_gib: Fitted,
    /// What a system and its page cache take of memory that it shares with the accelerator, GiB.
    pub system_gib: Fitted,
    /// Graph capture, GiB.
    pub graphs_gib: Fitted,
}

impl EngineMemory {
    /// What padding makes of an expert in this format, as a factor of at least 1.
    #[must_use]
    pub fn padded(&self, format: WeightFormat, model: &Model) -> f64 {
        let padding = self.padding.iter().find(|padding| padding.format == format.name());
        let multiple = padding.map_or(1.0, |padding| padding.multiple.value).max(1.0);
        let inner = model.moe_layers().map(|(_, experts)| f64::from(experts.shape.inner_width));
        let inner = inner.fold(1.0, f64::max);
        (inner / multiple).ceil() * multiple / inner
    }
}

/// From here on an accelerator counts as large.
const LARGE: f64 = 70.0 * (1u64 << 30) as f64;

impl ProfileRules {
    /// Tokens of a step unless told otherwise, on an accelerator of so many bytes.
    #[must_use]
    pub fn tokens_on(&self, memory: Option<f64>) -> f64 {
        let small = memory.is_some_and(|memory| memory < LARGE);
        if small { self.tokens_small.value } else { self.tokens.value }
    }

    /// Elements of a step that activations are counted for, on one of `tensor` slices.
    #[must_use]
    pub fn elements(&self, tokens: f64, model: &Model, tensor: u32) -> f64 {
        let kept = match tensor {
            0 | 1 => 1.0,
            2 | 3 => self.sliced[0],
            _ => self.sliced[1],
        };
        tokens * model.hidden as f64 * kept
    }
}

/// A format whose rows are padded.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Padding {
    /// The format's name.
    pub format: String,
    /// An expert's own width grows to a multiple of this.
    pub multiple: Fitted,
}
