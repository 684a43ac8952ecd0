//! Does it run out of memory, and what does a process take in all.

use hotset_cost_models::WeightFormat;
use hotset_cost_models::model::RestFormat;

use super::super::settings::Placement;
use super::super::{Prediction, WhyNot};
use super::case::Case;
use super::loaded::Parts;
use super::{kept, paged, planned};

const MIB: f64 = (1u64 << 20) as f64;
const GIB: f64 = (1u64 << 30) as f64;
/// What a system keeps of a memory that it shares with the accelerator.
const SYSTEM: f64 = 8e9;

/// Words of notes that say capacity does not decide.
const QUIRKS: [&str; 4] = ["engine quirk", "engine-side", "pipeline copies", "not capacity"];

pub(super) fn runs_out(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let texts = [&case.row.notes, &case.row.settings];
    if QUIRKS.iter().any(|quirk| texts.iter().any(|text| text.contains(quirk))) {
        return Err(WhyNot::new(
            "capacity does not decide: the engine asks for more than it needs",
        ));
    }
    if case.memory.profile.is_some() {
        return paged::runs_out(case);
    }
    let full = case.memory.full_share.as_ref().map_or(1.0, |share| share.value);
    let has = case.row.gpu_mem_gib;
    let mut has = has.ok_or_else(|| WhyNot::new("the memory of a device is not stated"))? * GIB;
    if unified(case) {
        has -= SYSTEM;
    }
    let out = fullest(case)? > has * full;
    Ok(Prediction::within(f64::from(u8::from(out)), 0.0))
}

fn unified(case: &Case<'_>) -> bool {
    paged::shared_memory(&case.row.gpu) || case.row.settings.contains("unified machine")
}

/// Bytes of the fullest device of a planned graph: layers are whole, so that one may have one more than others.
fn fullest(case: &Case<'_>) -> Result<f64, WhyNot> {
    let rules = case.buffers()?;
    let parts = Parts::of(case)?;
    let placement = case.placement().unwrap_or(Placement::Accelerator);
    let graph = planned::graph(case)?;
    let layers = case.model.layers.len().max(1) as f64;
    let devices = case.devices().max(1) as f64;
    let share = ((layers + 1.0) / devices).ceil().min(layers) / layers;
    let kv = kept::bytes(case, case.context()?, case.sequences())?.total() as f64;
    let process = case.memory.process_mib.as_ref().map_or(0.0, |mib| mib.value * MIB);
    let spread = parts.on_accelerators(placement) + kv;
    let each = rules.device(&graph) as f64 + rules.pool(&graph) as f64 + process;
    Ok(spread * share + each)
}

/// All that a process takes of a unified memory.
pub(super) fn used(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let peak = case.memory.peak.as_ref();
    let peak = peak.ok_or_else(|| WhyNot::new("no peak of this engine is known"))?;
    let kv = kept::bytes(case, case.row.context.unwrap_or(0), case.sequences())?.total() as f64;
    let weights = match case.memory.buffers {
        Some(_) => {
            let parts = Parts::of(case)?;
            parts.on_accelerators(Placement::Accelerator)
        }
        None => own_bits(case)?,
    };
    let bytes = weights + kv;
    Ok(Prediction {
        predicted: bytes * peak.value,
        low: bytes * peak.low(),
        high: bytes * peak.high(),
    })
}

/// MLX's formats: so many bits and a scale and a bias of 16 bits for each 64 weights, embedding and head too.
fn own_bits(case: &Case<'_>) -> Result<f64, WhyNot> {
    let text = case.row.format.to_lowercase();
    let parameters = case.model.parameters();
    if text.contains("mxfp4") {
        let experts = WeightFormat::Mxfp4;
        let formats = hotset_cost_models::model::Formats::new(
            experts,
            RestFormat::Matrices(WeightFormat::Bf16),
        );
        let rest = 8.5 / 8.0 * parameters.always() as f64;
        let routed = case.model.weights(&formats, case.parallel()).routed() as f64;
        return Ok(routed + rest);
    }
    let bits = (2..=8).find(|bits| {
        [format!("{bits}bit"), format!("{bits}-bit")].iter().any(|name| text.contains(name))
    });
    match bits {
        Some(bits) => Ok((f64::from(bits) + 0.5) / 8.0 * parameters.total() as f64),
        None if text.contains("bf16") || text.contains("fp16") => {
            Ok(2.0 * parameters.total() as f64)
        }
        None => Err(WhyNot::new(format!("format '{}' is not known", case.row.format))),
    }
}
