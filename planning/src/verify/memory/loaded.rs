//! Weights of GGUF files: the file, and what of it is on accelerators and on the host.

use hotset_cost_models::model::Basis;

use super::super::settings::Placement;
use super::super::{Prediction, WhyNot};
use super::EXACT;
use super::case::{Case, Stored};

/// A file whose mix is somebody's own is known to its range alone.
pub(super) fn file(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let stored = case.stored(false)?;
    let predicted = stored.bytes.total() as f64;
    let low = (stored.bytes.low as f64).min(predicted * (1.0 - EXACT / 2.0));
    let high = (stored.bytes.high as f64).max(predicted * (1.0 + EXACT / 2.0));
    Ok(Prediction { predicted, low, high })
}

/// What is loaded: bytes of parts, draft layers left out.
pub(super) struct Parts {
    /// All but embedding and experts, the head among them.
    pub dense: f64,
    /// The embedding.
    pub embedding: f64,
    /// Experts of all layers.
    pub experts: f64,
    /// Layers with experts.
    pub layers: f64,
    /// How far the parts are known.
    pub range: f64,
    /// Only the whole is known, by its size.
    whole_alone: bool,
    stored: Stored,
}

impl Parts {
    pub(super) fn of(case: &Case<'_>) -> Result<Self, WhyNot> {
        let stored = case.stored(true)?;
        let bytes = &stored.bytes;
        // A head that is the embedding is on the accelerator beside the host's copy.
        let tied = if bytes.head() == 0 { bytes.embedding() } else { 0 };
        let range = match bytes.basis {
            Basis::Rules | Basis::Counts => EXACT,
            Basis::Guess => 0.06,
        };
        Ok(Self {
            dense: (bytes.dense_gpu() + tied) as f64 * stored.factor,
            embedding: bytes.embedding() as f64 * stored.factor,
            experts: bytes.experts() as f64 * stored.factor,
            layers: case.model.moe_layers().count().max(1) as f64,
            range: if case.told.about { range + 0.05 } else { range },
            whole_alone: !stored.known,
            stored,
        })
    }

    /// Bytes on accelerators.
    pub(super) fn on_accelerators(&self, placement: Placement) -> f64 {
        let of_layers = |layers: f64| self.experts * (layers / self.layers).clamp(0.0, 1.0);
        match placement {
            Placement::Accelerator => self.dense + self.experts,
            Placement::Host => 0.0,
            Placement::ExpertsOnHost => self.dense,
            Placement::ExpertLayersOnAccelerator(layers) => self.dense + of_layers(layers),
            Placement::ExpertLayersOnHost(layers) => self.dense + self.experts - of_layers(layers),
            Placement::LayersOnAccelerator(layers) => self.last_layers(layers),
        }
    }

    /// The head counts as one layer and goes first, then the last layers.
    fn last_layers(&self, given: f64) -> f64 {
        let bytes = &self.stored.bytes;
        let count = (given.max(0.0) as usize).saturating_sub(1).min(bytes.layers.len());
        let first = bytes.layers.len() - count;
        let dense: u64 = bytes.layers[first..].iter().sum();
        let experts = bytes.weights.experts.iter().filter(|layer| layer.layer as usize >= first);
        let experts: u64 = experts.map(|l| u64::from(l.count).saturating_mul(l.stored)).sum();
        let head = if given >= 1.0 { self.head() } else { 0.0 };
        head + (dense + experts) as f64 * self.stored.factor
    }

    fn head(&self) -> f64 {
        let bytes = &self.stored.bytes;
        let head = if bytes.head() == 0 { bytes.embedding() } else { bytes.head() };
        (head + bytes.outside) as f64 * self.stored.factor
    }

    /// Bytes on the host; a file that is mapped shows the range from its first to its last tensor there.
    fn on_host(&self, placement: Placement, mapped: bool) -> f64 {
        let whole = self.dense + self.embedding + self.experts - self.tied();
        let on_host = match placement {
            Placement::Host => return whole,
            other => whole - (self.on_accelerators(other) - self.tied()),
        };
        match (mapped, placement) {
            // Attention lies between the experts of the host's layers, and is passed over with them.
            (true, Placement::LayersOnAccelerator(_) | Placement::Accelerator) => on_host,
            (true, _) => {
                let experts = (on_host - self.embedding).max(0.0);
                let layers = (self.dense - self.head()).max(0.0);
                on_host + layers * (experts / self.experts.max(1.0)).clamp(0.0, 1.0)
            }
            (false, _) => on_host,
        }
    }

    fn tied(&self) -> f64 {
        let bytes = &self.stored.bytes;
        if bytes.head() == 0 { self.embedding } else { 0.0 }
    }

    /// One matrix of all experts of the largest layer.
    pub(super) fn expert_matrix(&self) -> u64 {
        let layers = self.stored.bytes.weights.experts.iter();
        let largest = layers.map(|l| u64::from(l.count).saturating_mul(l.stored)).max();
        (largest.unwrap_or(0) as f64 * self.stored.factor / 3.0) as u64
    }
}

fn placed(case: &Case<'_>) -> Result<Placement, WhyNot> {
    let unknown = "the row does not say where experts are: -ncmoe, -cmoe, -ot, -ngl, or a note";
    case.placement().ok_or_else(|| WhyNot::new(unknown))
}

pub(super) fn on_accelerators(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.buffers()?;
    let parts = Parts::of(case)?;
    let placement = placed(case)?;
    if parts.whole_alone && placement != Placement::Accelerator {
        return Err(WhyNot::new("the file's mix is not known: which tensors have more bits?"));
    }
    let mut bytes = parts.on_accelerators(placement);
    if !case.memory.embedding_on_host {
        bytes += parts.embedding;
    }
    Ok(Prediction::within(bytes, parts.range))
}

pub(super) fn on_host(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.buffers()?;
    let parts = Parts::of(case)?;
    let mapped = case.told.has(&["mapped", "range"]);
    let bytes = parts.on_host(placed(case)?, mapped);
    // Where a range begins and ends depends on the order of tensors and shards.
    Ok(Prediction::within(bytes, if mapped { parts.range + 0.04 } else { parts.range }))
}
