//! Models from a Hugging Face `config.json`.
//!
//! Architectures name the same things differently and imply what they do not say: which layers have experts, which
//! attend to a window, where biases are. Fields are read by their meaning, whatever the architecture; what a few imply
//! is written where it is used, and was checked against the parameter counts of 62 models. An architecture that is not
//! known is read all the same, unless it has a key that nothing here understands and that may stand for weights.

mod experts;
mod fields;
mod heads;
mod json;
mod keys;
mod kinds;
mod layers;
mod mixers;
mod names;
mod native;
mod states;

use std::path::Path;

use serde_json::Value;

use super::{Model, ModelError};
use crate::bounded::read_text;
use fields::Fields;
use names::{COUNT, HEADS, HIDDEN, KV_HEADS, TOP_K, WIDTH, with_synonyms};

/// What a mixture of experts with plain attention is read from, with the synonyms of each field.
pub fn needed() -> Vec<String> {
    let names: [&[&str]; 8] = [
        &["num_hidden_layers"],
        &HIDDEN[..1],
        &["vocab_size"],
        &["num_attention_heads"],
        &["num_key_value_heads"],
        COUNT,
        TOP_K,
        &["moe_intermediate_size", "intermediate_size"],
    ];
    names.map(with_synonyms).to_vec()
}

/// Architectures whose counts were checked, or whose geometry was read, model by model.
const KNOWN: [&str; 55] = [
    "afmoe",
    "arctic",
    "aria_text",
    "axk1",
    "bailing_hybrid",
    "bailing_moe",
    "bailing_moe_linear",
    "dbrx",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "deepseek_v4",
    "dots1",
    "ernie4_5_moe",
    "flex_olmo",
    "gemma4_text",
    "glm4_moe",
    "glm4_moe_lite",
    "glm_moe_dsa",
    "gpt_oss",
    "granitemoe",
    "granitemoehybrid",
    "hunyuan_v1_moe",
    "hy_v3",
    "inkling_text",
    "jamba",
    "kimi_k2",
    "kimi_linear",
    "laguna",
    "lfm2_moe",
    "llama4",
    "llama4_text",
    "longcat_flash",
    "mellum",
    "mimo_v2_flash",
    "minimax",
    "minimax_m2",
    "minimax_m3",
    "mixtral",
    "muse_spark_text",
    "nemotron_h",
    "olmoe",
    "phimoe",
    "qwen2_moe",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_omni_moe_text",
    "qwen3_vl_moe_text",
    "qwen4_exp_text",
    "smallthinker",
    "step3_text",
    "step3p5",
    "step3p7",
];

/// The same by the class that loads them, where `model_type` says nothing of use.
const KNOWN_CLASSES: [&str; 1] = ["Grok1ForCausalLM"];

/// Architectures with parts that no field tells: what stands in the way.
const REFUSED: [(&str, &str); 4] = [
    ("jetmoe", "its attention is a mixture of experts too"),
    ("switch_transformers", "it has an encoder"),
    ("nllb-moe", "it has an encoder"),
    ("grovemoe", "its experts share small experts of their own"),
];

/// What to do with keys that may stand for weights and that nothing understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnknownKeys {
    /// Name them and refuse the file.
    #[default]
    Refuse,
    /// Read the rest, and name them in a note.
    Allow,
}

/// The most that a configuration may take, in MiB; those that are published take kilobytes.
const MOST_MIB: u64 = 16;

impl Model {
    /// From the text of a `config.json`.
    ///
    /// # Errors
    /// [`ModelError`]: not JSON, a dense model, an unknown architecture with parts that cannot be guessed, fields that
    /// are absent (all at once) or hold what no model has.
    pub fn from_config_str(text: &str, origin: &str) -> Result<Self, ModelError> {
        Self::from_config_str_with(text, origin, UnknownKeys::Refuse)
    }

    /// From the text of a `config.json`, with a choice of what becomes of keys that nothing understands.
    ///
    /// # Errors
    /// As [`from_config_str`](Self::from_config_str).
    pub fn from_config_str_with(
        text: &str,
        origin: &str,
        unknown: UnknownKeys,
    ) -> Result<Self, ModelError> {
        let root = json::parse(text)
            .map_err(|source| ModelError::Json { origin: origin.into(), source })?;
        Self::from_config(&root, origin, unknown)
    }

    /// From a `config.json`.
    ///
    /// # Errors
    /// As [`from_config_str`](Self::from_config_str), or the file cannot be read.
    pub fn from_config_path(path: &Path) -> Result<Self, ModelError> {
        Self::from_config_path_with(path, UnknownKeys::Refuse)
    }

    pub(super) fn from_config_path_with(
        path: &Path,
        unknown: UnknownKeys,
    ) -> Result<Self, ModelError> {
        let text = read_text(path, MOST_MIB, "configuration");
        let text = text.map_err(|source| ModelError::io(path, source))?;
        Self::from_config_str_with(&text, &path.display().to_string(), unknown)
    }

    /// From the parsed fields of a configuration.
    pub(super) fn from_config(
        root: &Value,
        origin: &str,
        unknown: UnknownKeys,
    ) -> Result<Self, ModelError> {
        let fields = Fields::new(origin, root)?;
        if let Some((_, why)) = REFUSED.iter().find(|(name, _)| *name == fields.architecture) {
            return Err(fields.unknown((*why).into()));
        }
        experts::refuse_dense(&fields)?;
        refuse_gaps(&fields)?;
        let mut notes = Vec::new();
        let layers = layers::layers(&fields, &mut notes)?;
        if !layers.iter().any(|layer| layer.experts.is_some()) {
            return Err(experts::dense_model(&fields));
        }
        let mut model = Self {
            name: origin.into(),
            architecture: fields.architecture.into(),
            hidden: fields.need_width(HIDDEN)?,
            vocab: fields.vocab()?,
            tied: fields.flag("tie_word_embeddings")?,
            max_context: fields.tokens(names::CONTEXT)?,
            tables: layers::tables(&fields)?,
            layers,
            mtp_layers: experts::mtp_layers(&fields)?,
            mtp_copies_embedding: experts::mtp_copies_embedding(&fields)?,
            native: native::formats(&fields, &mut notes)?,
            stored: None,
            notes,
        };
        doubt(&fields, unknown, &mut model.notes)?;
        model.check(origin)
    }
}

/// An architecture that is not known is refused where a key of it is not understood.
fn doubt(
    fields: &Fields<'_>,
    unknown: UnknownKeys,
    notes: &mut Vec<String>,
) -> Result<(), ModelError> {
    if KNOWN.contains(&fields.architecture) || KNOWN_CLASSES.contains(&fields.class) {
        return Ok(());
    }
    notes.insert(
        0,
        format!(
            "architecture `{}` is not one that hotset was checked with: read as plain attention; biases and norms may \
             be off by less than 0.1%",
            fields.architecture
        ),
    );
    let keys = keys::not_understood(fields);
    if keys.is_empty() {
        return Ok(());
    }
    if unknown == UnknownKeys::Refuse {
        return Err(ModelError::UnknownKeys {
            origin: fields.origin.into(),
            architecture: fields.architecture.into(),
            keys,
        });
    }
    notes.push(format!(
        "not understood, and so left out if they stand for weights: {}",
        keys.join(", ")
    ));
    Ok(())
}

/// Names every field at once that even a plain mixture of experts needs.
fn refuse_gaps(fields: &Fields<'_>) -> Result<(), ModelError> {
    let keys: Vec<&str> = KV_HEADS.iter().chain(&["kv_lora_rank"]).chain(HEADS).copied().collect();
    let synonyms: [&[&str]; 7] = [HIDDEN, &["vocab_size"], HEADS, &keys, COUNT, TOP_K, WIDTH];
    let given = synonyms.map(|names| fields.value(names).is_some());
    let given = std::iter::once(fields.has_layers()).chain(given);
    let missing: Vec<String> =
        needed().into_iter().zip(given).filter(|(_, given)| !given).map(|(name, _)| name).collect();
    if missing.is_empty() { Ok(()) } else { Err(fields.missing_all(missing)) }
}

#[cfg(test)]
mod tests;
