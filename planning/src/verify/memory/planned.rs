//! Buffers of engines that plan a graph.

use super::super::settings::Placement;
use super::super::{Prediction, WhyNot};
use super::EXACT;
use super::case::Case;
use super::kept;
use super::loaded::Parts;
use crate::engine::Spread;
use crate::engine::buffers::{Graph, Placed};

/// The graph that a row's settings mean.
pub(super) fn graph<'a>(case: &'a Case<'_>) -> Result<Graph<'a>, WhyNot> {
    let layers = case.model.layers.len() as f64;
    let experts = match case.placement() {
        Some(Placement::Host) => Placed::NoAccelerator,
        Some(Placement::LayersOnAccelerator(given)) if given < layers => Placed::LayersOnHost,
        Some(Placement::ExpertLayersOnHost(_) | Placement::ExpertsOnHost) => Placed::Host,
        Some(Placement::ExpertLayersOnAccelerator(_)) => Placed::Host,
        Some(Placement::Accelerator | Placement::LayersOnAccelerator(_)) => Placed::Accelerator,
        None if case.told.has(&["partly", "on", "cpu"]) => Placed::Host,
        None => Placed::Accelerator,
    };
    // A format that is not known copies nothing that could be larger than logits.
    let expert_matrix = match experts {
        Placed::Host => Parts::of(case).map_or(0, |parts| parts.expert_matrix()),
        _ => 0,
    };
    Ok(Graph {
        model: &case.model,
        micro_batch: case.micro_batch(),
        cells: case.context()?.next_multiple_of(256),
        flash: case.told.flash,
        latent: case.latent(),
        most_spread: case.told.most_spread.map(|mib| (mib * f64::from(1 << 20)) as u64),
        kv_bytes: kept::format(&case.row.kv_type)?.element(),
        experts,
        expert_matrix,
    })
}

fn between(bytes: u64, spread: Spread) -> Prediction {
    Prediction::between(bytes as f64, spread.low, spread.high)
}

pub(super) fn device(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let rules = case.buffers()?;
    let graph = graph(case)?;
    if graph.experts == Placed::NoAccelerator {
        return Err(WhyNot::new("nothing runs on an accelerator"));
    }
    Ok(between(rules.device(&graph), rules.device))
}

pub(super) fn host(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let rules = case.buffers()?;
    Ok(between(rules.host(&graph(case)?), rules.host))
}

/// Logits of one token of each sequence, f32.
pub(super) fn output(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.buffers()?;
    let bytes = case.model.vocab.saturating_mul(4).saturating_mul(case.sequences());
    Ok(Prediction::within(bytes as f64, EXACT))
}
