//! Models from a Hugging Face `config.json`.
//!
//! Architectures name the same things differently and imply what they do not say: which layers have experts, which
//! attend to a window, where biases are. What is written here was checked against parameter counts of 36 models.

mod experts;
mod fields;
mod json;
mod mixers;
mod native;

use std::path::Path;

use serde_json::Value;

use super::layer::{DenseMlp, Layer};
use super::{Model, ModelError};
use fields::Fields;

/// What a mixture of experts with plain attention is read from, with the synonyms of each field.
pub const NEEDED: [&str; 8] = [
    "num_hidden_layers",
    "hidden_size",
    "vocab_size",
    "num_attention_heads",
    "num_key_value_heads",
    "num_experts (n_routed_experts, num_local_experts, moe_num_experts)",
    "num_experts_per_tok (num_experts_per_token, experts_per_token, top_k_experts, moe_top_k)",
    "moe_intermediate_size (intermediate_size)",
];

/// Architectures whose counts were checked, or whose geometry was read, model by model.
const KNOWN: [&str; 25] = [
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "deepseek_v4",
    "gemma4_text",
    "glm4_moe",
    "glm_moe_dsa",
    "gpt_oss",
    "granitemoe",
    "kimi_k2",
    "kimi_linear",
    "llama4_text",
    "mimo_v2_flash",
    "minimax_m2",
    "minimax_m3",
    "mixtral",
    "nemotron_h",
    "olmoe",
    "qwen2_moe",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_moe",
    "qwen3_next",
    "step3p7",
    "llama4",
];

impl Model {
    /// From the text of a `config.json`.
    ///
    /// # Errors
    /// [`ModelError`]: not JSON, a dense model, an unknown architecture with parts that cannot be guessed, fields that
    /// are absent (all at once) or hold what no model has.
    pub fn from_config_str(text: &str, origin: &str) -> Result<Self, ModelError> {
        let root = json::parse(text)
            .map_err(|source| ModelError::Json { origin: origin.into(), source })?;
        Self::from_config(&root, origin)
    }

    /// From a `config.json`.
    ///
    /// # Errors
    /// As [`from_config_str`](Self::from_config_str), or the file cannot be read.
    pub fn from_config_path(path: &Path) -> Result<Self, ModelError> {
        let text = std::fs::read_to_string(path).map_err(|source| ModelError::io(path, source))?;
        Self::from_config_str(&text, &path.display().to_string())
    }

    /// From the parsed fields of a configuration.
    pub(super) fn from_config(root: &Value, origin: &str) -> Result<Self, ModelError> {
        let fields = Fields::new(origin, root)?;
        experts::refuse_dense(&fields)?;
        refuse_gaps(&fields)?;
        let count = fields.layers()?;
        let mut notes = Vec::new();
        if !KNOWN.contains(&fields.architecture) {
            notes.push(format!(
                "architecture `{}` is not one that hotset was checked with: read as plain attention; biases and \
                 norms may be off by less than 0.1%",
                fields.architecture
            ));
        }
        let moe = experts::moe_layers(&fields, count)?;
        let mixers = mixers::mixers(&fields, count)?;
        let experts = experts::experts(&fields, &mut notes)?;
        let dense = experts::dense(&fields)?;
        let hidden = fields.need_width(&["hidden_size"])?;
        let streams = fields.count(&["hc_mult"])?.unwrap_or(1);
        if !(1..=256).contains(&streams) {
            return Err(fields.invalid("hc_mult", "is not 1 to 256"));
        }
        let plan = fields.text("hybrid_override_pattern").map(str::as_bytes);
        let parallel_mlp = fields.architecture == "gemma4_text";
        let mut layers = Vec::with_capacity(count as usize);
        for (index, (mixer, moe)) in mixers.into_iter().zip(moe).enumerate() {
            // Nemotron-H: each layer is one part with one norm; elsewhere one norm before each part.
            let (norm_after_mixer, other_norms) = match plan {
                Some(_) => (0, hidden),
                // Gemma: before and after each part, and around the experts beside the dense part.
                None if parallel_mlp => (hidden, 6 * hidden),
                None => (hidden, hidden),
            };
            let has_dense = match plan {
                Some(plan) => plan[index] == b'-',
                None => !moe || parallel_mlp,
            };
            let dense = if has_dense {
                Some(dense.ok_or_else(|| experts::no_dense(&fields))?)
            } else {
                None
            };
            layers.push(Layer {
                mixer,
                experts: moe.then_some(experts),
                dense,
                norm_after_mixer,
                other_norms,
                streams,
            });
        }
        if !layers.iter().any(|layer| layer.experts.is_some()) {
            return Err(experts::dense_model(&fields));
        }
        let model = Self {
            name: origin.into(),
            architecture: fields.architecture.into(),
            hidden,
            vocab: fields.vocab()?,
            tied: fields.flag("tie_word_embeddings")?,
            max_context: fields.tokens(&["max_position_embeddings", "model_max_length"])?,
            layers,
            mtp_layers: experts::mtp_layers(&fields)?,
            mtp_copies_embedding: experts::mtp_copies_embedding(&fields)?,
            native: native::formats(&fields, &mut notes)?,
            stored: None,
            notes,
        };
        model.check(origin)
    }
}

/// Names every field at once that even a plain mixture of experts needs.
fn refuse_gaps(fields: &Fields<'_>) -> Result<(), ModelError> {
    let synonyms: [&[&str]; 8] = [
        &["num_hidden_layers", "n_layer", "num_layers"],
        &["hidden_size"],
        &["vocab_size"],
        &["num_attention_heads"],
        &["num_key_value_heads", "kv_lora_rank", "num_attention_heads"],
        &experts::COUNT,
        &experts::TOP_K,
        &experts::WIDTH,
    ];
    let absent = |(names, _): &(&&[&str], &&str)| fields.value(names).is_none();
    let missing: Vec<String> =
        synonyms.iter().zip(&NEEDED).filter(absent).map(|(_, name)| (*name).to_owned()).collect();
    if missing.is_empty() { Ok(()) } else { Err(fields.missing_all(missing)) }
}

/// The dense part that layers without experts have.
type Dense = Option<DenseMlp>;

#[cfg(test)]
mod tests;
