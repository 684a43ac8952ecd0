//! Which layers have experts, and what an expert is.
//!
//! Architectures agree on neither the names nor the rule: the first layers may be dense, or every other one, or a
//! list says which.

use super::fields::Fields;
use super::names::{
    COUNT, DENSE_WIDTH, DRAFTS, FIRST_DENSE, HIDDEN, SHARED_COUNT, SHARED_WIDTH, TOP_K, WIDTH,
};
use crate::format::ExpertShape;
use crate::model::ModelError;
use crate::model::layer::{DenseMlp, Experts, SharedExperts};

/// Refuses a model without routed experts before any other field is missed.
pub fn refuse_dense(fields: &Fields<'_>) -> Result<(), ModelError> {
    match fields.at(0).count(COUNT)? {
        Some(0) if fields.count(COUNT).is_ok() => Err(dense_model(fields)),
        None if HIDDEN.iter().any(|name| fields.has(name)) => Err(dense_model(fields)),
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
    if let Some(kinds) = fields.words("mlp_layer_types", layers)? {
        return Ok(kinds.iter().map(|kind| *kind != "dense").collect());
    }
    for name in ["moe_layer_freq", "is_moe_layer", "moe_layer_layout"] {
        if let Some(flags) = fields.flags(name, layers)? {
            // Exaone says it a second time.
            let _ = fields.has("first_last_k_dense_replace");
            return Ok(flags);
        }
    }
    for name in ["moe_layers", "moe_layers_enum"] {
        if let Some(listed) = fields.list(name)? {
            return Ok((0..layers).map(|layer| listed.contains(&layer)).collect());
        }
    }
    if let Some(period @ 1..) = fields.count(&["expert_layer_period"])? {
        let offset = fields.count(&["expert_layer_offset"])?.unwrap_or(0);
        return Ok((0..layers).map(|layer| layer % period == offset).collect());
    }
    by_steps(fields, layers)
}

/// The first few are dense, and of the rest every so many has experts.
fn by_steps(fields: &Fields<'_>, layers: u64) -> Result<Vec<bool>, ModelError> {
    let first = fields.count(FIRST_DENSE)?.unwrap_or(0);
    let last = fields.count(&["moe_layer_end_index"])?.unwrap_or(layers);
    let every = |names: &[&str]| -> Result<u64, ModelError> {
        match fields.count(names)? {
            Some(0) => Err(fields.invalid(names[0], "is 0: give 1 for every layer")),
            step => Ok(step.unwrap_or(1)),
        }
    };
    let frequency = every(&["moe_layer_freq"])?;
    let sparse_step = every(&["decoder_sparse_step", "moe_layer_interval", "moe_layer_frequency"])?;
    let interleave = every(&["interleave_moe_layer_step", "moe_every_n_layers"])?;
    let dense = fields.list("mlp_only_layers")?.unwrap_or_default();
    let has = |layer: u64| {
        (first..=last).contains(&layer)
            && layer.is_multiple_of(frequency)
            && (layer + 1).is_multiple_of(sparse_step)
            && (layer + 1).is_multiple_of(interleave)
            && !dense.contains(&layer)
    };
    Ok((0..layers).map(has).collect())
}

/// Whether feed-forward parts have a gate: three matrices, else two.
fn gated(fields: &Fields<'_>) -> bool {
    fields.architecture != "nemotron_h" && fields.text("mlp_hidden_act") != Some("relu2")
}

/// The expert part of a layer that has one.
pub fn experts(fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<Experts, ModelError> {
    let hidden = fields.need_width(HIDDEN)?;
    let count = fields.need_count(COUNT)?;
    let top_k = fields.need_count(TOP_K)?;
    // Experts that do nothing have a row of the router and may be chosen.
    let empty = fields.count(&["zero_expert_num"])?.unwrap_or(0);
    if empty > 0 && notes.is_empty() {
        notes.push(format!(
            "{empty} experts do nothing: of the {top_k} that a token chooses some are these, and fewer parameters active \
             than counted"
        ));
    }
    if top_k > count {
        return Err(fields.invalid(TOP_K[0], format!("chooses {top_k} of {count} experts")));
    }
    let inner = fields.need_width(WIDTH)?;
    let latent = fields.width(&["moe_latent_size", "moe_hidden_size"])?;
    let latent = latent.filter(|latent| *latent != hidden);
    let routed_width = fields.width(&["routed_expert_hidden_size"])?;
    if routed_width.is_some() && notes.is_empty() {
        notes.push("projections into the routed experts' own width are not counted".into());
    }
    let io = latent.or(routed_width).unwrap_or(hidden);
    let gpt_oss = fields.architecture == "gpt_oss";
    // Bounded far below 2^32 by the fields.
    let shape = ExpertShape {
        matrices: if gated(fields) { 3 } else { 2 },
        io_width: io as u32,
        inner_width: inner as u32,
        biases: gpt_oss,
    };
    let router_extra = match fields.architecture {
        "gpt_oss" => count,
        // A scale for each element of its input, and one for each expert.
        "gemma4_text" => hidden + count,
        // Biases that balance the load are among the published parameters of these.
        "afmoe" | "laguna" | "lfm2_moe" | "bailing_moe" | "bailing_moe_linear" | "minimax_m2" => {
            if fields.architecture == "minimax_m2" {
                0
            } else {
                count
            }
        }
        _ => 0,
    };
    Ok(Experts {
        count: count as u32,
        top_k: top_k as u32,
        shape,
        shared: shared(fields, inner)?,
        router_extra: router_extra + empty * hidden,
        latent_projections: latent.map_or(0, |latent| 2 * hidden * latent),
    })
}

/// The shared experts.
fn shared(fields: &Fields<'_>, inner: u64) -> Result<SharedExperts, ModelError> {
    let count = fields.count(SHARED_COUNT)?;
    let matrices = if gated(fields) { 3 } else { 2 };
    let plain = |inner| SharedExperts { matrices, inner, gated: false };
    // Zero where there is none.
    if let Some(width) = fields.count(SHARED_WIDTH)? {
        if width == 0 || count == Some(0) {
            return Ok(SharedExperts::default());
        }
        let gate = ["qwen", "hunyuan_vl"].iter().any(|name| fields.architecture.starts_with(name));
        return Ok(SharedExperts { gated: gate, ..plain(width * count.unwrap_or(1)) });
    }
    if fields.architecture == "llama4_text" {
        return Ok(plain(inner));
    }
    match count.unwrap_or(0) {
        0 => Ok(SharedExperts::default()),
        count => Ok(plain(inner * count)),
    }
}

/// The dense feed-forward part of layers that have one, where its width is given.
pub fn dense(fields: &Fields<'_>) -> Result<Option<DenseMlp>, ModelError> {
    let matrices = if gated(fields) { 3 } else { 2 };
    Ok(fields.width(DENSE_WIDTH)?.map(|inner| DenseMlp { matrices, inner }))
}

/// A dense part beside the experts of a layer that has them.
pub fn beside_experts(fields: &Fields<'_>) -> Result<Option<DenseMlp>, ModelError> {
    if fields.architecture == "gemma4_text" || fields.flag("residual_moe")? {
        return dense(fields)?.ok_or_else(|| no_dense(fields)).map(Some);
    }
    // Arctic's is as wide as the hidden state.
    if fields.flag("parallel_attn_mlp_res")? || fields.architecture == "arctic" {
        let inner = fields.need_width(HIDDEN)?;
        return Ok(Some(DenseMlp { matrices: 3, inner }));
    }
    Ok(None)
}

/// Draft layers of multi-token prediction.
pub fn mtp_layers(fields: &Fields<'_>) -> Result<u32, ModelError> {
    // At most 2^16 here; the model's own check refuses more than it can have.
    Ok(fields.count(DRAFTS)?.unwrap_or(0) as u32)
}

/// Whether draft layers come with copies of embedding and head: DeepSeek-V3 and GLM are published so.
pub fn mtp_copies_embedding(fields: &Fields<'_>) -> Result<bool, ModelError> {
    let published = ["deepseek_v3", "deepseek_v32", "glm4_moe"].contains(&fields.architecture);
    let name = "mtp_use_dedicated_embeddings";
    if fields.has(name) { fields.flag(name) } else { Ok(published) }
}
