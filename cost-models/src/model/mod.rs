//! Models: what they are made of, what they weigh, and what a sequence keeps of them.
//!
//! A [`Model`] is read from a `config.json`, a safetensors or GGUF header, or by a built-in name ([`Model::open`]).
//! One place holds each formula: [`parameters`] counts, [`bytes`] and [`stored`] weigh, [`kv`] and [`layout`] size what sequences
//! keep, [`ranks`] shares it out. Whatever plans, prints or converts calls them.

mod builtin;
pub mod bytes;
pub mod config;
mod error;
pub mod gguf;
mod gguf_bytes;
pub mod kv;
pub mod layer;
pub mod layout;
mod open;
pub mod parameters;
pub mod ranks;
pub mod safetensors;
pub mod stored;
mod tensors;

pub use builtin::{BuiltinModel, builtin_models};
pub use bytes::{Formats, LayerExperts, RestFormat, WeightBytes};
pub use config::UnknownKeys;
pub use error::ModelError;
pub use gguf_bytes::{Basis, GgufBytes};
pub use kv::{KvBytes, KvFormat};
pub use layer::{AttentionSpan, Experts, Layer, Mixer};
pub use layout::EngineLayout;
pub use parameters::Parameters;
pub use ranks::Parallel;
pub use stored::Stored;

use crate::format::WeightFormat;

/// A mixture-of-experts model.
///
/// ```
/// use hotset_cost_models::Model;
/// use hotset_cost_models::model::KvFormat;
///
/// let config = r#"{
///     "model_type": "olmoe", "num_hidden_layers": 16, "hidden_size": 2048, "vocab_size": 50304,
///     "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 1024,
///     "num_experts": 64, "num_experts_per_tok": 8, "torch_dtype": "bfloat16"
/// }"#;
/// let model = Model::from_config_str(config, "config.json")?;
/// assert_eq!(model.expert_count(), 16 * 64);
/// // 64 experts of three 2048 x 1024 matrices in each of 16 layers.
/// assert_eq!(model.parameters().routed, 16 * 64 * 3 * 2048 * 1024);
/// // Keys and values of 16 heads of 128 in two bytes.
/// assert_eq!(model.kv(1, KvFormat::Bf16, 1).total(), 16 * 2 * 16 * 128 * 2);
/// # Ok::<(), hotset_cost_models::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The name given, or the file's.
    pub name: String,
    /// The `model_type`, or GGUF's architecture.
    pub architecture: String,
    /// Width of the hidden state.
    pub hidden: u64,
    /// Rows of the embedding.
    pub vocab: u64,
    /// The output head is the embedding.
    pub tied: bool,
    /// The longest context that the model was made for, where it says so.
    pub max_context: Option<u64>,
    /// Elements of tables of n-grams beside the embedding.
    pub tables: u64,
    /// Its layers, in order; draft layers are not among them.
    pub layers: Vec<Layer>,
    /// Draft layers of multi-token prediction.
    pub mtp_layers: u32,
    /// Each draft layer comes with copies of embedding and head.
    pub mtp_copies_embedding: bool,
    /// Formats of experts and of the rest in the published checkpoint, where the configuration gives them.
    pub native: Option<(WeightFormat, RestFormat)>,
    /// Exact bytes, where a header was read.
    pub stored: Option<Stored>,
    /// What was assumed or left out, for a person.
    pub notes: Vec<String>,
}

/// More parameters than this, 2^53, are not a model but a broken file; below it no sum here overflows.
pub const MAX_PARAMETERS: u64 = 1 << 53;

/// More draft layers than this are a broken file.
const MAX_DRAFTS: u32 = 64;

impl Model {
    /// Layers with routed experts: their numbers from 0, and the experts.
    pub fn moe_layers(&self) -> impl Iterator<Item = (u32, &Experts)> {
        // Layers are at most 4,096.
        (0u32..)
            .zip(&self.layers)
            .filter_map(|(number, layer)| layer.experts.as_ref().map(|experts| (number, experts)))
    }

    /// Parameters, draft layers left out: from the header where it counts them, else from the formulas.
    pub fn parameters(&self) -> Parameters {
        if let Some(counted) = self.stored.as_ref().and_then(|stored| stored.parameters) {
            return counted;
        }
        let streams = self.layers.iter().map(|layer| layer.streams).max().unwrap_or(1);
        let last = self.hidden + parameters::stream_head(streams, self.hidden);
        let mut sum: Parameters =
            self.layers.iter().map(|layer| layer.parameters(self.hidden)).sum();
        sum.embed = self.vocab * self.hidden;
        sum.lm_head = if self.tied { 0 } else { sum.embed };
        sum.tables = self.tables;
        sum.other += last;
        sum.copied += last;
        sum
    }

    /// Parameters of one token's way through the model, embedding and head included.
    pub fn active_parameters(&self) -> u64 {
        let chosen: u64 = self
            .moe_layers()
            .map(|(_, experts)| {
                let one = experts.shape.weights() + experts.shape.bias_elements();
                u64::from(experts.top_k) * one
            })
            .sum();
        self.parameters().always() + chosen
    }

    /// Routed experts over all layers.
    pub fn expert_count(&self) -> u64 {
        self.moe_layers().map(|(_, experts)| u64::from(experts.count)).sum()
    }

    /// Layers by what mixes tokens in them, as `36 gated-delta + 12 full`.
    pub fn mixers(&self) -> String {
        let mut kinds: Vec<(&str, u32)> = Vec::new();
        for layer in &self.layers {
            let kind = layer.mixer.kind();
            match kinds.iter_mut().find(|known| known.0 == kind) {
                Some(known) => known.1 += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let words: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        words.join(" + ")
    }

    /// Refuses what is too large to be a model, so that no later sum overflows.
    fn check(self, origin: &str) -> Result<Self, ModelError> {
        let sum = self
            .layers
            .iter()
            .map(|layer| {
                let parameters = layer.parameters(self.hidden);
                u128::from(parameters.total())
            })
            .sum::<u128>()
            + 2 * u128::from(self.vocab) * u128::from(self.hidden)
            + u128::from(self.tables);
        if sum > u128::from(MAX_PARAMETERS) {
            let why = format!("give {sum} parameters, more than 2^53: no model is so large");
            return Err(ModelError::invalid(origin, "its sizes", why));
        }
        if self.mtp_layers > MAX_DRAFTS {
            let why = format!("are {}: no model has more than {MAX_DRAFTS}", self.mtp_layers);
            return Err(ModelError::invalid(origin, "draft layers", why));
        }
        Ok(self)
    }
}
