//! What mixes tokens in each layer, by the many ways in which configurations say so.
//!
//! Windows and recurrences save most of a long context's memory, and a layer taken for full attention is the error
//! that overstates it four times; so a kind that is not known is refused, never billed as something else.

use super::fields::Fields;
use super::names::{CONTEXT, WINDOW};
use crate::model::ModelError;

/// What mixes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: the layer is a feed-forward part.
    None,
    /// Attention to every token.
    Full,
    /// Attention to every token, chosen by an indexer.
    Sparse,
    /// Attention to a window.
    Sliding,
    /// Attention within a chunk.
    Chunked,
    /// A linear recurrence; which one, other fields say.
    Linear,
    /// A state-space recurrence.
    Mamba,
    /// A short convolution.
    Conv,
}

/// The kinds of layers of single parts (Nemotron-H), and whether each has experts or is dense.
pub struct SingleParts {
    /// What mixes tokens.
    pub kinds: Vec<Kind>,
    /// Routed experts.
    pub moe: Vec<bool>,
    /// A dense feed-forward part.
    pub dense: Vec<bool>,
}

/// Layers of one part each, where the configuration lists such.
pub fn single_parts(fields: &Fields<'_>, layers: u64) -> Result<Option<SingleParts>, ModelError> {
    let letters: Vec<char> = if let Some(pattern) = fields.text("hybrid_override_pattern") {
        pattern.chars().collect()
    } else {
        let Some(words) = fields.words("layers_block_type", layers)? else { return Ok(None) };
        if !words.iter().any(|word| ["moe", "mlp"].contains(word)) {
            return Ok(None);
        }
        let letter = |word: &&str| match *word {
            "mamba" => 'M',
            "attention" => '*',
            "moe" => 'E',
            "mlp" => '-',
            _ => '?',
        };
        words.iter().map(letter).collect()
    };
    if letters.len() as u64 != layers || !letters.iter().all(|letter| "M*E-".contains(*letter)) {
        let why = format!("is not {layers} letters of M, *, E and -");
        return Err(fields.invalid("hybrid_override_pattern", why));
    }
    let kind = |letter: &char| match letter {
        'M' => Kind::Mamba,
        '*' => Kind::Full,
        _ => Kind::None,
    };
    Ok(Some(SingleParts {
        kinds: letters.iter().map(kind).collect(),
        moe: letters.iter().map(|letter| *letter == 'E').collect(),
        dense: letters.iter().map(|letter| *letter == '-').collect(),
    }))
}

/// The kind of every layer.
pub fn kinds(fields: &Fields<'_>, layers: u64) -> Result<Vec<Kind>, ModelError> {
    for list in ["layer_types", "layers_block_type"] {
        if let Some(words) = fields.words(list, layers)? {
            return words.into_iter().map(|word| by_word(fields, word)).collect();
        }
    }
    if let Some(found) = by_numbers(fields, layers)? {
        return Ok(found);
    }
    (0..layers).map(|layer| implied(fields, layer, layers)).collect()
}

fn by_word(fields: &Fields<'_>, word: &str) -> Result<Kind, ModelError> {
    Ok(match word {
        "full_attention" | "attention" | "full" | "global" | "global_attention" | "hybrid" => {
            Kind::Full
        }
        "hybrid_sliding" | "sliding_attention" | "sliding" | "local" | "local_attention"
        | "sliding_window" => Kind::Sliding,
        "chunked_attention" => Kind::Chunked,
        "linear_attention" | "lightning_attention" | "gated_deltanet" | "kda" => Kind::Linear,
        "mamba" | "mamba1" | "mamba2" => Kind::Mamba,
        "conv" | "short_conv" => Kind::Conv,
        "qwen_sparse_attention" | "sparse_attention" => Kind::Sparse,
        other => return Err(fields.unknown(format!("it has layers of the kind `{other}`"))),
    })
}

/// Lists and steps of numbers.
fn by_numbers(fields: &Fields<'_>, layers: u64) -> Result<Option<Vec<Kind>>, ModelError> {
    let one = |is: bool, then: Kind, other: Kind| if is { then } else { other };
    // One flag a layer: which of two kinds it is.
    let lists = [
        ("attn_type_list", Kind::Full, Kind::Linear),
        ("hybrid_layer_pattern", Kind::Sliding, Kind::Full),
        ("sliding_window_layout", Kind::Sliding, Kind::Full),
    ];
    for (name, then, other) in lists {
        if let Some(flags) = fields.flags(name, layers)? {
            return Ok(Some(flags.into_iter().map(|flag| one(flag, then, other)).collect()));
        }
    }
    if let Some(listed) = fields.list("local_layer_ids")? {
        let kind = |layer| one(listed.contains(&layer), Kind::Sliding, Kind::Full);
        return Ok(Some((0..layers).map(kind).collect()));
    }
    // The layers of full attention, from 0.
    for (name, other) in [("full_attn_idxs", Kind::Conv), ("attn_layer_indices", Kind::Mamba)] {
        if let Some(listed) = fields.list(name)? {
            let kind = |layer| one(listed.contains(&layer), Kind::Full, other);
            return Ok(Some((0..layers).map(kind).collect()));
        }
    }
    if let Some(period @ 1..) = fields.count(&["attn_layer_period"])? {
        let offset = fields.count(&["attn_layer_offset"])?.unwrap_or(0);
        let kind = |layer| one(layer % period == offset, Kind::Full, Kind::Mamba);
        return Ok(Some((0..layers).map(kind).collect()));
    }
    if let Some(group @ 1..) = fields.count(&["layer_group_size"])? {
        // Layers beyond the last whole group are full.
        let whole = layers / group * group;
        let full = |layer: u64| (layer + 1).is_multiple_of(group) || layer >= whole;
        let other = if group == 1 { Kind::Full } else { Kind::Linear };
        return Ok(Some((0..layers).map(|layer| one(full(layer), Kind::Full, other)).collect()));
    }
    Ok(None)
}

/// What an architecture means where it lists no kinds.
fn implied(fields: &Fields<'_>, layer: u64, layers: u64) -> Result<Kind, ModelError> {
    let next = layer + 1;
    if let Some(interval) = fields.count(&["full_attention_interval"])? {
        let full = interval > 0 && next.is_multiple_of(interval);
        return Ok(if full { Kind::Full } else { Kind::Linear });
    }
    let window = fields.tokens(WINDOW)?;
    // A window as long as the context is none.
    let context = fields.tokens(CONTEXT)?;
    let window = window.filter(|window| context.is_none_or(|context| *window < context));
    let every =
        ["global_attn_every_n_layers", "sliding_window_pattern", "global_attention_interval"];
    for name in every {
        if let (Some(every @ 1..), true) = (fields.step(name)?, window.is_some()) {
            return Ok(if next.is_multiple_of(every) { Kind::Full } else { Kind::Sliding });
        }
    }
    // A pattern of letters that repeats: L for local, G for global; the last layer is global.
    if let (Some(pattern), true) = (fields.text("sliding_window_pattern"), window.is_some()) {
        let letters: Vec<char> = pattern.chars().collect();
        if letters.is_empty() || !letters.iter().all(|letter| ['L', 'G'].contains(letter)) {
            return Err(fields.invalid("sliding_window_pattern", "is not letters of L and G"));
        }
        let local = letters[layer as usize % letters.len()] == 'L' && next != layers;
        return Ok(if local { Kind::Sliding } else { Kind::Full });
    }
    let sliding = match fields.architecture {
        "gpt_oss" => !next.is_multiple_of(2),
        "gemma4_text" => !next.is_multiple_of(6),
        "llama4_text" if !next.is_multiple_of(4) => return Ok(Kind::Chunked),
        "llama4_text" => false,
        // Qwen names a window and mostly does not use it.
        _ if fields.has("use_sliding_window") => {
            let from = fields.count(&["max_window_layers"])?.unwrap_or(0);
            fields.flag("use_sliding_window")? && layer >= from && window.is_some()
        }
        "qwen2_moe" | "qwen3_moe" | "ernie4_5_moe" => false,
        _ => window.is_some(),
    };
    Ok(if sliding { Kind::Sliding } else { Kind::Full })
}
