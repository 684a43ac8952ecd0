//! Keys, values and states.

use hotset_cost_models::Model;
use hotset_cost_models::model::layer::{LatentAttention, Layer, Mixer};
use hotset_cost_models::model::{EngineLayout, KvBytes, KvFormat};

use super::super::{Prediction, WhyNot};
use super::EXACT;
use super::case::Case;
use crate::engine::{Latent, Pages};

/// How keys and values are stored: a format that the formulas know, and the bytes of an element over its own.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub format: KvFormat,
    pub factor: f64,
}

impl Kept {
    /// Bytes of an element.
    pub(super) fn element(self) -> f64 {
        self.format.row(32) as f64 / 32.0 * self.factor
    }
}

/// Bits of an element in ggml's types that the formulas do not know themselves.
const OTHERS: [(&str, f64); 7] = [
    ("f32", 32.0),
    ("q4_1", 5.0),
    ("q5_0", 5.5),
    ("q5_1", 6.0),
    ("q6_0", 6.5),
    ("iq4_nl", 4.5),
    ("q8_kv", 8.0),
];

/// What the row's text means; keys and values that differ (`q8_0/q4_0`) at their mean.
pub(super) fn format(text: &str) -> Result<Kept, WhyNot> {
    let text = text.to_lowercase();
    let one = |name: &str| {
        let name = name.trim().trim_start_matches(['k', 'v', ' ', '=', ':']);
        if let Some(format) = KvFormat::from_name(name) {
            return Some(Kept { format, factor: 1.0 });
        }
        if name.starts_with("fp8") || name == "f8" {
            return Some(Kept { format: KvFormat::Fp8, factor: 1.0 });
        }
        let bits = OTHERS.iter().find(|other| other.0 == name)?.1;
        Some(Kept { format: KvFormat::Bf16, factor: bits / 16.0 })
    };
    if text.is_empty() || text == "auto" {
        return Ok(Kept { format: KvFormat::Bf16, factor: 1.0 });
    }
    if let Some(kept) = one(&text) {
        return Ok(kept);
    }
    let parts: Option<Vec<Kept>> = text.split([',', '/', '+']).map(one).collect();
    match parts.as_deref() {
        Some([keys, values]) => {
            let mean = f64::midpoint(keys.element(), values.element());
            Ok(Kept { format: KvFormat::Bf16, factor: mean / 2.0 })
        }
        _ => Err(WhyNot::new(format!("format '{text}' of keys and values is not known"))),
    }
}

/// The model with what this engine keeps of latents.
pub(super) fn as_kept(case: &Case<'_>) -> Model {
    let mut model = case.model.clone();
    for layer in &mut model.layers {
        if let Mixer::Latent(latent) = &mut layer.mixer {
            if case.memory.no_index_keys {
                latent.indexer = None;
            }
            match case.latent() {
                Some(Latent::Full) => spread_out(latent),
                // Without flash attention values are kept a second time, turned.
                Some(Latent::Absorbed) if case.memory.buffers.is_some() && !case.told.flash => {
                    latent.latent *= 2;
                }
                _ => {}
            }
        }
    }
    model
}

/// Keys and values of all heads in place of the latent.
fn spread_out(latent: &mut LatentAttention) {
    let all = latent.heads * (latent.nope + latent.rope + latent.value);
    latent.latent = all.saturating_sub(latent.rope);
    latent.indexer = None;
}

/// Whose pages, with what the row says of them.
fn pages(case: &Case<'_>) -> EngineLayout {
    match case.engine.pages {
        Pages::Algorithm => EngineLayout::Algorithm,
        Pages::LlamaCpp => EngineLayout::LlamaCpp { micro_batch: case.micro_batch() },
        Pages::Vllm => EngineLayout::Vllm {
            block: case.told.words.after(&["block-size", "block"]).map_or(16, |n| n as u64).max(1),
            in_flight: case.row.batch.unwrap_or(8192),
            state_slots: 1,
        },
    }
}

/// Keys, values and states of so many sequences, on one rank.
pub(super) fn bytes(case: &Case<'_>, context: u64, sequences: u64) -> Result<KvBytes, WhyNot> {
    let compressed = |layer: &Layer| matches!(layer.mixer, Mixer::Compressed(_));
    if case.engine.pages == Pages::Vllm && case.model.layers.iter().any(compressed) {
        let why = "pages of a compressed past differ tenfold between versions of the engine";
        return Err(WhyNot::new(why));
    }
    let kept = format(&case.row.kv_type)?;
    let mut tensor = case.parallel().tensor;
    let mut model = as_kept(case);
    if case.latent() == Some(Latent::Full) {
        // Heads are divided, unlike a latent.
        for layer in &mut model.layers {
            if let Mixer::Latent(latent) = &mut layer.mixer {
                let all = latent.latent + latent.rope;
                latent.latent = all.div_ceil(u64::from(tensor.max(1))).saturating_sub(latent.rope);
            }
        }
        tensor = 1;
    }
    let mut kv = model.kv_in(pages(case), context, sequences, kept.format, tensor);
    if case.drafts() {
        let draft = model.mtp_kv(context, kept.format, tensor);
        kv.tokens = kv.tokens.saturating_add(draft.tokens.saturating_mul(sequences));
    }
    kv.tokens = (kv.tokens as f64 * kept.factor) as u64;
    Ok(kv)
}

pub(super) fn keys_and_values(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.foreign_draft()?;
    let kv = bytes(case, case.context()?, case.sequences())?;
    // ggml's engines print states in a line of their own.
    let states = if case.memory.buffers.is_some() { 0 } else { kv.state };
    Ok(Prediction::within(kv.tokens.saturating_add(states) as f64, EXACT))
}

pub(super) fn states(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let kv = bytes(case, case.row.context.unwrap_or(256), case.sequences())?;
    match kv.state {
        0 => Err(WhyNot::new("the model has no recurrent layers")),
        state => Ok(Prediction::within(state as f64, EXACT)),
    }
}
