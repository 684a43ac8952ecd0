//! Routing of which only counts are known: how often each expert was used, not in which order.
//!
//! What order would tell is assumed away: every token chooses on its own by its layer's counts, and
//! the most used experts over all layers are pinned in the slots, for no policy can be replayed.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hotset_cost_models::Model;
use hotset_traces::{Histogram, LayerShape, Shape};

use super::chance::power;
use super::need::{RoutingNeed, StepKind};
use super::shape::layers_of;
use crate::PlanError;

/// Chances of experts, and what steps need of them.
#[derive(Debug)]
pub(super) struct Counted {
    /// For every expert of every layer the chance that a window needs it, least first.
    chances: Vec<f64>,
    layers: f64,
    /// By windows in a step: the sum of what the first `n` of the list are needed, for every `n`.
    sums: Mutex<BTreeMap<u64, Vec<f64>>>,
}

impl Counted {
    /// Of the chances of each layer's experts.
    pub(super) fn of_chances(layers: &[Vec<f64>]) -> Self {
        let mut chances = layers.concat();
        chances.sort_by(f64::total_cmp);
        Self { chances, layers: layers.len().max(1) as f64, sums: Mutex::default() }
    }

    /// Of an engine's counts. Only their proportions within a layer matter: an engine that counts
    /// on several ranks counts every use several times.
    pub(super) fn of_histogram(model: &Model, histogram: &Histogram) -> Result<Self, PlanError> {
        let shape = Shape::new(layers_of(model))?;
        let uses = histogram.uses(&shape)?;
        let mut from = 0;
        let mut layers = Vec::new();
        for layer in shape.layers() {
            let counts = &uses[from..from + layer.experts as usize];
            from += counts.len();
            layers.push(chances(histogram, layer, counts)?);
        }
        Ok(Self::of_chances(&layers))
    }

    /// What a step of so many windows needs of a layer when `share` of all experts have a slot.
    pub(super) fn need(&self, windows: u64, share: f64) -> RoutingNeed {
        let mut known = lock(&self.sums);
        let sums = known.entry(windows).or_insert_with(|| {
            let mut sum = 0.0;
            let mut sums = vec![0.0];
            sums.extend(self.chances.iter().map(|chance| {
                sum += 1.0 - power(1.0 - chance, windows);
                sum
            }));
            sums
        });
        let all = self.chances.len();
        let without = ((1.0 - share).clamp(0.0, 1.0) * all as f64).round() as usize;
        RoutingNeed::new(sums[all] / self.layers, sums[without.min(all)] / self.layers)
    }

    /// The same for a kind of step: tokens choose on their own, a window is one token.
    pub(super) fn need_of_tokens(&self, kind: StepKind, share: f64) -> RoutingNeed {
        self.need(kind.tokens_in_all(), share)
    }
}

/// The map behind a mutex.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic elsewhere leaves whole entries: the map is sound.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// `k / uses of the layer` for each use of an expert.
fn chances(
    histogram: &Histogram,
    layer: &LayerShape,
    counts: &[u64],
) -> Result<Vec<f64>, PlanError> {
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    let most = counts.iter().copied().max().unwrap_or(0);
    let (number, top_k) = (layer.number, f64::from(layer.top_k));
    if total <= 0.0 {
        let why = format!("'{}' has no uses in layer {number}", histogram.name);
        return Err(PlanError::setting("`Routing::of_histogram`", why));
    }
    // A token uses an expert once at most. Rounding aside: one expert of top-1 is a chance of 1.
    if most as f64 * top_k > total * 1.000_001 {
        let why = format!(
            "'{}' counts one expert of layer {number} {most} times in {total} uses: with top-{} \
             no expert can have more than one use in {}; are the counts of another model?",
            histogram.name, layer.top_k, layer.top_k
        );
        return Err(PlanError::setting("`Routing::of_histogram`", why));
    }
    Ok(counts.iter().map(|&count| (count as f64 * top_k / total).min(1.0)).collect())
}
