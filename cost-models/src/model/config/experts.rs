//! Which layers have experts, and what an expert is.
//!
//! Architectures agree on neither the names nor the rule: the first layers may be dense, or every other one, or a
//! list says which.

use super::Dense;
use super::fields::Fields;
use crate::format::ExpertShape;
use crate::model::ModelError;
use crate::model::layer::{DenseMlp, Experts, SharedExperts};

/// Names of the number of experts.
pub const COUNT: [&str; 4] =
    ["num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"];
/// Names of the experts chosen for a token.
pub const TOP_K: [&str; 5] = [
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_top_k",
];
/// Names of an expert's width.
pub const WIDTH: [&str; 2] = ["moe_intermediate_size", "intermediate_size"];

/// Refuses a model without routed experts before any other field is missed.
pub fn refuse_dense(fields: &Fields<'_>) -> Result<(), ModelError> {
    match fields.count(&COUNT)? {
        Some(0) => Err(dense_model(fields)),
        None if fields.has("hidden_size") => Err(dense_model(fields)),
        _ => Ok(()),
    }
}

/// The error for a model without routed experts.
pub fn dense_model(fields: &Fields<'_>) -> ModelError {
    ModelError::Dense { origin: fields.origin.into(), architecture: fields.architecture.into() }
}

/// The error for dense layers of unknown width.
pub fn no_dense(fields: &Fields<'_>) -> ModelError {
    fields.missing(&["intermediate_size"])
}

/// Whether each layer has experts.
pub fn moe_layers(fields: &Fields<'_>, layers: u64) -> Result<Vec<bool>, ModelError> {
    if let Some(pattern) = fields.text("hybrid_override_pattern") {
        if pattern.len() as u64 != layers || !pattern.bytes().all(|part| b"M*E-".contains(&part)) {
            let why = format!("is not {layers} letters of M, *, E and -");
            return Err(fields.invalid("hybrid_override_pattern", why));
        }
        return Ok(pattern.bytes().map(|part| part == b'E').collect());
    }
    if let Some(kinds) = fields.words("mlp_layer_types", layers)? {
        return Ok(kinds.iter().map(|kind| *kind != "dense").collect());
    }
    if let Some(flags) = fields.flags("moe_layer_freq", layers)? {
        return Ok(flags);
    }
    if let Some(listed) = fields.list("moe_layers")? {
        return Ok((0..layers).map(|layer| listed.contains(&layer)).collect());
    }
    let first = fields.count(&["first_k_dense_replace"])?.unwrap_or(0);
    let every = |name: &str| -> Result<u64, ModelError> {
        match fields.count(&[name])? {
            Some(0) => Err(fields.invalid(name, "is 0: give 1 for every layer")),
            step => Ok(step.unwrap_or(1)),
        }
    };
    let frequency = every("moe_layer_freq")?;
    let sparse_step = every("decoder_sparse_step")?;
    let interleave = every("interleave_moe_layer_step")?;
    let dense = fields.list("mlp_only_layers")?.unwrap_or_default();
    let has = |layer: u64| {
        layer >= first
            && layer.is_multiple_of(frequency)
            && (layer + 1).is_multiple_of(sparse_step)
            && (layer + 1).is_multiple_of(interleave)
            && !dense.contains(&layer)
    };
    Ok((0..layers).map(has).collect())
}

/// The expert part of a layer that has one.
pub fn experts(fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<Experts, ModelError> {
    let hidden = fields.need_width(&["hidden_size"])?;
    let count = fields.need_count(&COUNT)?;
    let top_k = fields.need_count(&TOP_K)?;
    if top_k > count {
        return Err(fields.invalid(TOP_K[0], format!("chooses {top_k} of {count} experts")));
    }
    let inner = fields.need_width(&WIDTH)?;
    let latent = fields.width(&["moe_latent_size"])?;
    let routed_width = fields.width(&["routed_expert_hidden_size"])?;
    if routed_width.is_some() {
        notes.push("projections into the routed experts' own width are not counted".into());
    }
    let io = latent.or(routed_width).unwrap_or(hidden);
    let gated = fields.architecture != "nemotron_h";
    let gpt_oss = fields.architecture == "gpt_oss";
    // Bounded far below 2^32 by the fields.
    let shape = ExpertShape {
        matrices: if gated { 3 } else { 2 },
        io_width: io as u32,
        inner_width: inner as u32,
        biases: gpt_oss,
    };
    let router_extra = match fields.architecture {
        "gpt_oss" => count,
        // A scale for each element of its input, and one for each expert.
        "gemma4_text" => hidden + count,
        _ => 0,
    };
    Ok(Experts {
        count: count as u32,
        top_k: top_k as u32,
        shape,
        shared: shared(fields, inner)?,
        router_extra,
        latent_projections: latent.map_or(0, |latent| 2 * hidden * latent),
    })
}

/// The shared experts.
fn shared(fields: &Fields<'_>, inner: u64) -> Result<SharedExperts, ModelError> {
    let count = fields.count(&["n_shared_experts", "num_shared_experts"])?.unwrap_or(0);
    let plain = |inner| SharedExperts { matrices: 3, inner, gated: false };
    if let Some(width) = fields.width(&["moe_shared_expert_intermediate_size"])? {
        return Ok(SharedExperts { matrices: 2, inner: width * count.max(1), gated: false });
    }
    // Qwen writes 0 where there is none, and gates the one there is.
    if let Some(width) = fields.count(&["shared_expert_intermediate_size"])? {
        return Ok(SharedExperts { gated: width > 0, ..plain(width) });
    }
    if fields.architecture == "llama4_text" {
        return Ok(plain(inner));
    }
    Ok(plain(inner * count))
}

/// The dense feed-forward part of layers that have one, where its width is given.
pub fn dense(fields: &Fields<'_>) -> Result<Dense, ModelError> {
    let names = ["intermediate_size_mlp", "dense_intermediate_size", "intermediate_size"];
    let matrices = if fields.architecture == "nemotron_h" { 2 } else { 3 };
    Ok(fields.width(&names)?.map(|inner| DenseMlp { matrices, inner }))
}

/// Draft layers of multi-token prediction.
pub fn mtp_layers(fields: &Fields<'_>) -> Result<u32, ModelError> {
    let names = ["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"];
    // At most 2^16 here; the model's own check refuses more than it can have.
    Ok(fields.count(&names)?.unwrap_or(0) as u32)
}

/// Whether draft layers come with copies of embedding and head: DeepSeek-V3 and GLM are published so.
pub fn mtp_copies_embedding(fields: &Fields<'_>) -> Result<bool, ModelError> {
    let published = ["deepseek_v3", "deepseek_v32", "glm4_moe", "glm_moe_dsa"];
    Ok(published.contains(&fields.architecture) || fields.flag("mtp_use_dedicated_embeddings")?)
}
