//! Which part of a model a tensor belongs to, by its name.
//!
//! Checkpoints agree on `layers.N`, on `experts` for routed ones and on `shared` in the names of shared ones; draft
//! layers follow the last layer or stand under `mtp`. Whatever is none of these is read for every token.

/// A part of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Routed experts of a layer.
    Expert(u64),
    /// Shared experts.
    Shared,
    /// The token embedding.
    Embedding,
    /// The output head.
    Head,
    /// A draft layer, all but its routed experts.
    Draft,
    /// Routed experts of a draft layer.
    DraftExpert,
    /// A tower for images or sound.
    Tower,
    /// All else.
    Dense,
}

/// Words that begin the names of towers for images and sound and of what joins them to the model.
const TOWERS: [&str; 9] = [
    "visual",
    "vision_tower",
    "vision_model",
    "vision_embedder",
    "audio_tower",
    "embed_vision",
    "embed_audio",
    "mm_projector",
    "multi_modal_projector",
];

/// The part that a tensor of a model with so many layers belongs to.
pub fn part_of(name: &str, layers: u64) -> Part {
    let words: Vec<&str> = name.split('.').collect();
    if words.iter().any(|word| TOWERS.contains(word)) {
        return Part::Tower;
    }
    let layer = layer_of(&words);
    let draft = words.contains(&"mtp") || layer.is_some_and(|layer| layer >= layers);
    let routed = words.contains(&"experts");
    match layer {
        _ if draft && routed => Part::DraftExpert,
        _ if draft => Part::Draft,
        Some(layer) if routed => Part::Expert(layer),
        Some(_) if words.iter().any(|word| word.starts_with("shared_expert")) => Part::Shared,
        Some(_) => Part::Dense,
        None if words
            .iter()
            .any(|word| ["embed_tokens", "embeddings", "wte", "embed"].contains(word)) =>
        {
            Part::Embedding
        }
        None if words.iter().any(|word| ["lm_head", "head", "output"].contains(word)) => Part::Head,
        None => Part::Dense,
    }
}

fn layer_of(words: &[&str]) -> Option<u64> {
    let place = words.iter().position(|word| ["layers", "h", "blocks"].contains(word))?;
    words.get(place + 1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_published_checkpoints() {
        let part = |name| part_of(name, 61);
        assert_eq!(
            part("model.layers.3.mlp.experts.255.down_proj.weight_scale_inv"),
            Part::Expert(3)
        );
        assert_eq!(part("model.layers.0.mlp.experts.gate_up_proj_blocks"), Part::Expert(0));
        assert_eq!(part("model.layers.3.mlp.gate.weight"), Part::Dense);
        assert_eq!(part("model.layers.3.mlp.shared_experts.up_proj.weight"), Part::Shared);
        assert_eq!(part("model.layers.3.mlp.shared_expert_gate.weight"), Part::Shared);
        assert_eq!(part("model.layers.61.mlp.experts.0.up_proj.weight"), Part::DraftExpert);
        assert_eq!(part("model.layers.61.embed_tokens.weight"), Part::Draft);
        assert_eq!(part("mtp.layers.0.mlp.experts.3.up_proj.weight"), Part::DraftExpert);
        assert_eq!(part("model.embed_tokens.weight"), Part::Embedding);
        assert_eq!(part("backbone.embeddings.weight"), Part::Embedding);
        assert_eq!(part("lm_head.weight"), Part::Head);
        assert_eq!(part("model.norm.weight"), Part::Dense);
        assert_eq!(part("visual.blocks.0.attn.qkv.weight"), Part::Tower);
        assert_eq!(
            part("language_model.model.layers.7.feed_forward.experts.down_proj"),
            Part::Expert(7)
        );
    }
}
