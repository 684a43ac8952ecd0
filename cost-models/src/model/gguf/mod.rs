//! Models from GGUF headers: exact bytes, layer by layer, whatever mixture of types.
//!
//! A quantised file mixes types between layers and matrices, so an expert's size is what its tensors take, divided by
//! the experts in them, and slots may differ by layer. Only headers are read.

mod keys;
mod mixers;
mod parts;
mod reader;
mod sizes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::bytes::{LayerExperts, WeightBytes};
use super::layer::{Experts, Layer};
use super::{Model, ModelError, Parameters, Stored};
use crate::format::ExpertShape;
use keys::Keys;
use parts::{dense, shared};
pub use reader::{Header, TensorInfo, Value, read_header};
use sizes::{Sized, sized};

impl Model {
    /// From a GGUF file, or any shard of several: the others must lie beside it.
    ///
    /// # Errors
    /// [`ModelError`]: a header that is cut or hostile, a shard that is absent, a dense model, keys that the
    /// architecture needs.
    pub fn from_gguf_path(path: &Path) -> Result<Self, ModelError> {
        let first = read_header(path)?;
        let mut headers = vec![];
        for shard in shards(path, &first)? {
            headers.push(if shard == path { first.clone() } else { read_header(&shard)? });
        }
        if headers.is_empty() {
            headers.push(first);
        }
        from_headers(&headers, path)
    }
}

/// Every shard of a split file, in order; none for a whole one.
fn shards(path: &Path, header: &Header) -> Result<Vec<PathBuf>, ModelError> {
    let origin = path.display().to_string();
    let count = match header.keys.get("split.count") {
        Some(Value::Number(count @ 2..=99_999)) => *count,
        None | Some(Value::Number(0..=1)) => return Ok(vec![]),
        Some(other) => {
            return Err(ModelError::invalid(&origin, "split.count", format!("is {other:?}")));
        }
    };
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let end = format!("-of-{count:05}.gguf");
    let stem = name
        .strip_suffix(&end)
        .filter(|stem| stem.len() > 6 && stem.is_char_boundary(stem.len() - 6));
    let Some(stem) = stem else {
        let why =
            format!("is {count}, but the name does not end in -00001{end}: keep the shards' names");
        return Err(ModelError::invalid(&origin, "split.count", why));
    };
    let base = &stem[..stem.len() - 6];
    Ok((1..=count).map(|shard| path.with_file_name(format!("{base}-{shard:05}{end}"))).collect())
}

fn from_headers(headers: &[Header], path: &Path) -> Result<Model, ModelError> {
    let origin = path.display().to_string();
    let keys = Keys::new(&origin, headers)?;
    let mut notes = Vec::new();
    let tensors = headers
        .iter()
        .map(|header| sized(header, &origin, &mut notes))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let blocks = keys.layers()?;
    let by_layer = by_layer(&tensors, blocks);
    let mut parts = Parts::default();
    for tensor in &tensors {
        parts.add(tensor, blocks, &by_layer);
    }
    let mut layers = Vec::new();
    let mut mtp_layers = 0;
    let mut experts_of_layers = Vec::new();
    let mut types: BTreeMap<String, u32> = BTreeMap::new();
    for (number, tensors) in by_layer.iter().enumerate() {
        if is_draft(tensors) {
            mtp_layers += 1;
            continue;
        }
        let experts = experts(&keys, tensors, number, &mut notes)?;
        if let Some((experts, stored)) = experts {
            // Layers are at most 4,096.
            experts_of_layers.push(LayerExperts {
                layer: layers.len() as u32,
                count: experts.count,
                top_k: experts.top_k,
                stored,
                slot: stored,
            });
            *types.entry(expert_types(tensors)).or_default() += 1;
        }
        let mixer = mixers::mixer(&keys, tensors, number as u64, blocks)?;
        layers.push(Layer {
            mixer,
            experts: experts.map(|(experts, _)| experts),
            dense: dense(tensors),
            norm_after_mixer: 0,
            other_norms: 0,
            streams: 1,
            stream_rank: None,
        });
    }
    if experts_of_layers.is_empty() {
        let architecture = keys.architecture.into();
        return Err(ModelError::Dense { origin: origin.clone(), architecture });
    }
    parts.weights.experts = experts_of_layers;
    let vocab = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let vocab = vocab.and_then(|tensor| tensor.dimensions.get(1).copied());
    let model = Model {
        name: path.file_stem().map_or_else(|| origin.clone(), |stem| stem.to_string_lossy().into()),
        architecture: keys.architecture.into(),
        hidden: keys.need_width("embedding_length")?,
        vocab: keys.vocab(vocab)?,
        tied: parts.weights.lm_head == 0,
        tables: 0,
        max_context: keys.tokens("context_length")?,
        layers,
        mtp_layers,
        mtp_copies_embedding: false,
        native: None,
        stored: Some(Stored {
            source: format!("GGUF header of {origin}"),
            weights: parts.weights,
            parameters: Some(parts.parameters),
            skipped: 0,
            by_rules: false,
            expert_types: types.iter().map(|(kind, count)| format!("{count} x {kind}")).collect(),
        }),
        notes,
    };
    model.check(&origin)
}

type LayerTensors<'a> = BTreeMap<&'a str, &'a Sized>;

/// Tensors of each block, by what follows `blk.N.`.
fn by_layer(tensors: &[Sized], blocks: u64) -> Vec<LayerTensors<'_>> {
    // At most 4,096.
    let mut layers = vec![BTreeMap::new(); blocks as usize];
    for tensor in tensors {
        if let Some((layer, rest)) = block_of(&tensor.name)
            && let Some(layer) = layers.get_mut(layer)
        {
            layer.insert(rest, tensor);
        }
    }
    layers
}

fn block_of(name: &str) -> Option<(usize, &str)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((layer.parse().ok()?, rest))
}

fn is_draft(tensors: &LayerTensors<'_>) -> bool {
    tensors.keys().any(|name| name.starts_with("nextn."))
}

/// Tensors of routed experts: `ffn_{gate,up,down}_exps` or `ffn_gate_up_exps`, weights and biases.
fn is_routed(name: &str) -> bool {
    name.split('.').next().is_some_and(|stem| stem.ends_with("_exps"))
}

/// Sums of bytes and elements by part.
#[derive(Default)]
struct Parts {
    weights: WeightBytes,
    parameters: Parameters,
}

impl Parts {
    fn add(&mut self, tensor: &Sized, blocks: u64, layers: &[LayerTensors<'_>]) {
        let (weights, parameters) = (&mut self.weights, &mut self.parameters);
        let place = block_of(&tensor.name).filter(|(layer, _)| (*layer as u64) < blocks);
        let (bytes, count) = match place {
            Some((layer, name)) if is_draft(&layers[layer]) => {
                let sum =
                    if is_routed(name) { &mut weights.mtp_experts } else { &mut weights.mtp_dense };
                *sum = sum.saturating_add(tensor.bytes);
                return;
            }
            // Their bytes are counted layer by layer.
            Some((_, name)) if is_routed(name) => {
                parameters.routed = parameters.routed.saturating_add(tensor.elements);
                return;
            }
            Some((_, name)) if name.contains("_shexp") => {
                (&mut weights.shared, &mut parameters.shared)
            }
            Some((_, name)) if name.starts_with("ffn_gate_inp") => {
                (&mut weights.dense, &mut parameters.router)
            }
            Some((_, name)) if name.starts_with("ffn_") && !name.starts_with("ffn_norm") => {
                (&mut weights.dense, &mut parameters.dense_mlp)
            }
            Some(_) if tensor.dimensions.len() < 2 => (&mut weights.dense, &mut parameters.other),
            Some(_) => (&mut weights.dense, &mut parameters.attention),
            None if tensor.name == "token_embd.weight" => {
                (&mut weights.embed, &mut parameters.embed)
            }
            None if tensor.name == "output.weight" => {
                (&mut weights.lm_head, &mut parameters.lm_head)
            }
            None => (&mut weights.dense, &mut parameters.other),
        };
        *bytes = bytes.saturating_add(tensor.bytes);
        *count = count.saturating_add(tensor.elements);
        // Vectors, routers and projections down to latents are whole on every rank.
        let name = place.map_or("", |(_, name)| name);
        let whole =
            ["ffn_gate_inp", "attn_q_a", "attn_kv_a"].iter().any(|part| name.starts_with(part));
        if whole || tensor.dimensions.len() < 2 {
            parameters.copied = parameters.copied.saturating_add(tensor.elements);
        }
    }
}

/// The experts of a layer, if it has any, and the exact bytes of one.
fn experts(
    keys: &Keys<'_>,
    tensors: &LayerTensors<'_>,
    number: usize,
    notes: &mut Vec<String>,
) -> Result<Option<(Experts, u64)>, ModelError> {
    let Some(down) = tensors.get("ffn_down_exps.weight") else { return Ok(None) };
    let [inner, io, count] = down.dimensions[..] else {
        return Err(keys.invalid(&down.name, "is not one matrix for each expert"));
    };
    let listed = keys.need_count("expert_count")?;
    if count != listed {
        return Err(
            keys.invalid(&down.name, format!("holds {count} experts, expert_count says {listed}"))
        );
    }
    let routed = tensors.iter().filter(|(name, _)| is_routed(name));
    let bytes = routed.map(|(_, tensor)| tensor.bytes).fold(0, u64::saturating_add);
    if !bytes.is_multiple_of(count) {
        notes.push(format!(
            "layer {number}: {bytes} bytes of {count} experts, rounded up to whole bytes"
        ));
    }
    let gated = ["ffn_gate_exps.weight", "ffn_gate_up_exps.weight"];
    let width = |width: u64| {
        u32::try_from(width).map_err(|_| keys.invalid(&down.name, "is wider than any model"))
    };
    let shape = ExpertShape {
        matrices: if gated.iter().any(|name| tensors.contains_key(name)) { 3 } else { 2 },
        io_width: width(io)?,
        inner_width: width(inner)?,
        biases: tensors.contains_key("ffn_down_exps.bias"),
    };
    let top_k = keys.need_count("expert_used_count")?;
    if top_k > count {
        return Err(keys.invalid("expert_used_count", format!("is {top_k} of {count} experts")));
    }
    let experts = Experts {
        // Bounded by need_count.
        count: count as u32,
        top_k: top_k as u32,
        shape,
        shared: shared(tensors),
        router_extra: 0,
        latent_projections: 0,
    };
    Ok(Some((experts, bytes.div_ceil(count))))
}

/// The types of a layer's expert tensors, as `q4_k + q6_k`.
fn expert_types(tensors: &LayerTensors<'_>) -> String {
    let weights = tensors.iter().filter(|(name, _)| is_routed(name) && name.ends_with(".weight"));
    let mut kinds: Vec<&str> = weights.map(|(_, tensor)| tensor.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(" + ")
}

#[cfg(test)]
mod tests;
