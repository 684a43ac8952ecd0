//! What an engine allocates beside weights, keys and values.

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
    /// Activations of a step: bytes for each token and element of the hidden width.
    pub activation_bytes: Fitted,
    /// What else a rank takes, GiB.
    pub fixed_gib: Fitted,
    /// Graph capture, GiB.
    pub graphs_gib: Fitted,
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
