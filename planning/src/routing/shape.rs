//! Layers of a model and of a trace in one form: the trace's own.

use hotset_cost_models::Model;
use hotset_traces::LayerShape;

/// A model's layers with experts, as a trace of it would have them.
pub(super) fn layers_of(model: &Model) -> Vec<LayerShape> {
    let layer = |(number, experts): (u32, &hotset_cost_models::model::Experts)| LayerShape {
        number,
        experts: experts.count,
        top_k: experts.top_k,
        expert_bytes: 0,
    };
    model.moe_layers().map(layer).collect()
}

/// Whether both have as many layers, and each as many experts and as large a top-k.
pub(super) fn alike(these: &[LayerShape], those: &[LayerShape]) -> bool {
    let of = |layer: &LayerShape| (layer.experts, layer.top_k);
    these.iter().map(of).eq(those.iter().map(of))
}

/// Layers, experts and top-k for a person.
pub(super) fn in_words(layers: &[LayerShape]) -> String {
    let (experts, top_k) = layers.first().map_or((0, 0), |layer| (layer.experts, layer.top_k));
    let differs = |layer: &LayerShape| (layer.experts, layer.top_k) != (experts, top_k);
    let mixed = if layers.iter().any(differs) { ", mixed" } else { "" };
    format!("{} layers x {experts} experts, top-{top_k}{mixed}", layers.len())
}

/// The mean layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeanLayer {
    /// Its experts.
    pub(super) experts: f64,
    /// Those that a token uses.
    pub(super) top_k: f64,
}

impl MeanLayer {
    pub(super) fn of(layers: &[LayerShape]) -> Self {
        let mean = |of: fn(&LayerShape) -> u32| {
            layers.iter().map(|layer| f64::from(of(layer))).sum::<f64>()
                / layers.len().max(1) as f64
        };
        Self { experts: mean(|layer| layer.experts), top_k: mean(|layer| layer.top_k) }
    }
}
