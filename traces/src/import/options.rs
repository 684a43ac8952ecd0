//! What only the person who imports knows, and a model's `config.json`, which knows much of it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::sequence::Phase;

/// What only the caller knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Experts in each layer. Default: what the file states, else the highest id plus one.
    pub experts: Option<u32>,
    /// Experts chosen for each token; where the file has it, it must agree.
    pub top_k: Option<u32>,
    /// Layers that the file has a slot for; where the file has it, it must agree.
    pub layers: Option<u32>,
    /// Numbers of layers that have no router although the file has a slot for them. `Some` of an
    /// empty list: there are none, so a layer that is all zeros is expert 0.
    pub dense_layers: Option<Vec<u32>>,
    /// Numbers of layers to leave out, routed or not.
    pub skip_layers: Vec<u32>,
    /// The model's Hugging Face `config.json`: layers, dense layers, experts and top-k.
    pub config: Option<PathBuf>,
    /// Prompt tokens of each request, in the order of the inputs; one number stands for all.
    pub prompt_tokens: Vec<u32>,
    /// Bytes of one expert. Default: not recorded (0).
    pub expert_bytes: Option<u64>,
    /// The trace's name. Default: the model that the file names, else the file's own name.
    pub name: Option<String>,
    /// The phase of all tokens, where the file has no phases (it wins where it has).
    pub phase: Option<Phase>,
    /// Where columns that outgrow memory are kept meanwhile. Default: the system's folder for
    /// temporary files.
    pub temporary: Option<PathBuf>,
    /// Names of columns that the table of names does not know.
    pub columns: Vec<ColumnName>,
}

/// What a column of a file means, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnName {
    /// `token`, `layer`, `experts`, ...
    pub meaning: String,
    /// Its name in the file.
    pub name: String,
}

/// What a `config.json` says of the router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelConfig {
    pub(super) layers: u32,
    pub(super) dense: Vec<u32>,
    pub(super) experts: Option<u32>,
    pub(super) top_k: Option<u32>,
}

/// The most that a config may take.
const MAX_CONFIG: u64 = 1 << 20;
/// No model comes near it.
const MAX_LAYERS: u32 = 1 << 16;

impl ModelConfig {
    /// Reads the file; vision and speech models keep what is asked for in `text_config`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let io = |e| Error::io("read", path, e);
        let mut text = Vec::new();
        let file = std::fs::File::open(path).map_err(io)?;
        file.take(MAX_CONFIG + 1).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > MAX_CONFIG {
            return Err(Error::import(path, "file", "over 1 MiB: no model's config.json is"));
        }
        let whole: Value = serde_json::from_slice(&text)
            .map_err(|e| Error::import(path, "file", format!("not JSON: {e}")))?;
        let config = whole.get("text_config").filter(|text| text.is_object()).unwrap_or(&whole);
        Self::of(config).map_err(|problem| Error::import(path, "config", problem))
    }

    fn of(config: &Value) -> Result<Self, String> {
        let number = |names: &[&str]| {
            let found = names.iter().filter_map(|name| config.get(name)).find_map(Value::as_u64);
            found.and_then(|n| u32::try_from(n).ok())
        };
        let layers = number(&["num_hidden_layers", "n_layer", "num_layers"])
            .filter(|&layers| (1..=MAX_LAYERS).contains(&layers))
            .ok_or("num_hidden_layers is missing or absurd")?;
        let dense = (0..layers).filter(|&layer| !routed(config, layer)).collect();
        let experts = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];
        let top_k = ["num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts"];
        Ok(Self { layers, dense, experts: number(&experts), top_k: number(&top_k) })
    }
}

/// Whether a layer has a router, by each of the ways in which models say so.
fn routed(config: &Value, layer: u32) -> bool {
    let number = |name: &str| config.get(name).and_then(Value::as_u64);
    let listed = |name: &str| {
        let list = config.get(name)?.as_array()?;
        Some(list.iter().any(|entry| entry.as_u64() == Some(u64::from(layer))))
    };
    let at = |name: &str| config.get(name)?.as_array()?.get(layer as usize);
    let layer = u64::from(layer);
    // DeepSeek, Kimi, GLM: the first layers are dense, then every so many is routed.
    if number("first_k_dense_replace").is_some_and(|first| layer < first) {
        return false;
    }
    match (number("moe_layer_freq"), at("moe_layer_freq").and_then(Value::as_u64)) {
        (Some(every), _) if every > 1 && !layer.is_multiple_of(every) => return false,
        (_, Some(0)) => return false,
        _ => {}
    }
    // Qwen: a step, and layers named dense.
    if listed("mlp_only_layers") == Some(true) {
        return false;
    }
    if number("decoder_sparse_step")
        .is_some_and(|step| step > 1 && !(layer + 1).is_multiple_of(step))
    {
        return false;
    }
    // Llama 4: layers named routed; newer configs: a kind for each layer.
    if listed("moe_layers") == Some(false) {
        return false;
    }
    at("mlp_layer_types").and_then(Value::as_str) != Some("dense")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dense(config: Value) -> Vec<u32> {
        ModelConfig::of(&config).unwrap().dense
    }

    #[test]
    fn every_way_to_say_dense() {
        assert_eq!(dense(json!({ "num_hidden_layers": 3 })), [0; 0]);
        assert_eq!(dense(json!({ "num_hidden_layers": 4, "first_k_dense_replace": 2 })), [0, 1]);
        let freq = json!({ "num_hidden_layers": 4, "moe_layer_freq": [0, 1, 0, 1] });
        assert_eq!(dense(freq), [0, 2]);
        let every = json!({ "num_hidden_layers": 4, "moe_layer_freq": 2 });
        assert_eq!(dense(every), [1, 3]);
        let qwen =
            json!({ "num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [3] });
        assert_eq!(dense(qwen), [0, 2, 3]);
        assert_eq!(dense(json!({ "num_hidden_layers": 4, "moe_layers": [1, 3] })), [0, 2]);
        let kinds = json!({ "num_hidden_layers": 2, "mlp_layer_types": ["dense", "sparse"] });
        assert_eq!(dense(kinds), [0]);
    }

    #[test]
    fn counts_and_faults() {
        let config = json!({
            "num_hidden_layers": 2, "n_routed_experts": 64, "num_experts_per_tok": 6,
        });
        let config = ModelConfig::of(&config).unwrap();
        assert_eq!((config.layers, config.experts, config.top_k), (2, Some(64), Some(6)));
        assert!(ModelConfig::of(&json!({})).unwrap_err().contains("num_hidden_layers"));
        assert!(ModelConfig::of(&json!({ "num_hidden_layers": 4e9 })).is_err());
    }
}
