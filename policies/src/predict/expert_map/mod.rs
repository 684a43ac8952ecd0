//! FineMoE's prediction: what the stored iteration did whose prompt, or whose router's
//! probabilities so far, look most alike.
//!
//! Source: FineMoE (fMoE, EuroSys 2026), `ExpertMapStore`, `ExpertMapMatcher` and `ExpertTracer`.
//! There a map is of one *iteration*: a token's probabilities at every layer, with the embedding of
//! that token, stored as soon as its last layer is decided. Traces have less, so two things differ:
//! an iteration's embedding is its sequence's prompt's, and a row of probabilities is 0 outside the
//! recorded top-k. With one iteration's map nothing is left beyond its top-k that the threshold
//! could add; it acts with `map=sequence`, where a map is the mean over a sequence's tokens.
//!
//! The source asks, with n layers decided, for layers n + distance and later, never for those in
//! between. Here whoever asks chooses the layer, so a trajectory is matched by all rows decided at
//! that time, and the fading starts at the first layer that is asked for.
//!
//! Cost: a route adds the stored probabilities of its expert to the lane's dot products, and each
//! layer that is asked at compares them all, once. [`Store`] says what it takes.

mod lane;
mod store;

use serde::{Deserialize, Serialize};

use self::lane::Lane;
use self::store::Store;
use super::activation_map::check_store;
use super::{Guess, Horizon, Layers, Opening, Predictor, PredictorInfo, PredictorNeed, Token};
use crate::structures::memory::{array, sum};
use crate::{Config, Parameter};

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "expert-map",
    summary: "what the stored token with the most alike weights did",
    definition: "A map has a prompt's embedding and a probability for each expert of each layer: the router's weights of one token, 0 for experts outside its top-k (map=iteration), or their mean over a sequence (map=sequence). Layers below d = distance match the map with the largest cosine of embeddings; without an embedding they get no guess. Layer t >= d, asked at layer l0: the map with the largest cosine of rows 0 to l0, flattened, with the token's own. The score s is that cosine, 0 where a side is empty; ties go to the lowest slot. Of the match's row, most probable first, ties to the lower expert, the first max(k, top-k) are guessed, if above 0: k counts the sums over the first 1, 2, ... that are at most min(max(1 - s, 0), 1). The confidence is probability (1 - (t - a) / (b + 1)), at most 1: a = 0, b = d for layers below d, else b the number of layers and a = l0 + min(d + 1, nearest distance asked). When a token (sequence) is over its map is stored; a full store replaces the largest w cos(embeddings) + (1 - w) cos(maps), w = min(d / layers, 1). Not learning, nothing is stored.",
    source: "FineMoE (fMoE), EuroSys 2026; model_offload.py and expert_tracer.py",
    needs: PredictorNeed::Weights,
    parameters: &[
        Parameter { name: "store", default: "1000", meaning: "maps that are kept, 1 to 1000000" },
        Parameter {
            name: "distance",
            default: "6",
            meaning: "layers that the embedding speaks for; the source's lookahead",
        },
        Parameter { name: "map", default: "iteration", meaning: "iteration or sequence" },
    ],
};

/// What one map is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapOf {
    /// A token.
    Iteration,
    /// The mean of a sequence's tokens.
    Sequence,
}

/// Parameters of [`ExpertMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpertMapConfig {
    /// Maps that are kept.
    pub store: usize,
    /// Layers that the embedding speaks for.
    pub distance: u32,
    /// What one map is of.
    pub map: MapOf,
}

impl Default for ExpertMapConfig {
    fn default() -> Self {
        Self { store: 1000, distance: 6, map: MapOf::Iteration }
    }
}

impl Config for ExpertMapConfig {
    fn check(&self) -> Result<(), String> {
        check_store(self.store)
    }
}

/// Stored maps, and the tokens under way.
#[derive(Debug, Clone)]
pub struct ExpertMap {
    layers: Layers,
    nearest: usize,
    distance: usize,
    of: MapOf,
    store: Store,
    lanes: Vec<Lane>,
    learning: bool,
    /// A sequence's map and its products with those stored, while it is put away.
    mean: Vec<(u32, f32)>,
    dots: Vec<f64>,
}

impl ExpertMap {
    /// An empty store.
    #[must_use]
    pub fn new(layers: &Layers, horizon: Horizon, config: &ExpertMapConfig) -> Self {
        let distance = config.distance as usize;
        let share = (f64::from(config.distance) / layers.len().max(1) as f64).min(1.0);
        Self {
            layers: layers.clone(),
            nearest: horizon.nearest,
            distance,
            of: config.map,
            store: Store::new(layers, config.store.max(1), share),
            lanes: Vec::new(),
            learning: true,
            mean: Vec::new(),
            dots: Vec::new(),
        }
    }

    /// A full store of tokens' maps, without their embeddings.
    pub(super) fn memory(layers: &Layers, _: Horizon, config: &ExpertMapConfig) -> u64 {
        let (experts, rows) = (layers.total_experts() as u64, layers.len() as u64);
        let of_map = sum([
            array::<[(u32, f32); 2]>(match config.map {
                MapOf::Iteration => layers.row_len() as u64,
                MapOf::Sequence => experts,
            }),
            array::<(f64, u32)>(rows),
        ]);
        sum([of_map.saturating_mul(config.store.max(1) as u64), array::<f32>(experts)])
    }

    /// A sequence that nobody announced begins with its first token.
    #[inline]
    fn announce(&mut self, lane: u32) {
        if self.lanes.get(lane as usize).is_none_or(|lane| !lane.running) {
            self.begin_sequence(lane, &Opening::default());
        }
    }

    /// Stores the map of the token that a lane has seen all layers of.
    fn store_iteration(&mut self, lane: usize) {
        let own = &self.lanes[lane];
        let slot = self.store.room(&own.dots, own.square, &own.likeness);
        self.store.put(&self.layers, slot, &own.probabilities, &own.embedding);
        self.update_lanes(slot);
    }

    /// Stores the mean of a lane's tokens.
    fn store_sequence(&mut self, lane: usize) {
        let own = &self.lanes[lane];
        self.mean.clear();
        self.mean.extend(own.mean());
        if self.mean.is_empty() {
            return;
        }
        self.dots.clear();
        self.dots.resize(self.store.len(), 0.0);
        let mut square = 0.0;
        for &(key, mean) in &self.mean {
            square += f64::from(mean) * f64::from(mean);
            self.store.add_products(key, f64::from(mean), &mut self.dots);
        }
        let slot = self.store.room(&self.dots, square, &own.likeness);
        self.store.put(&self.layers, slot, &self.mean, &own.embedding);
        self.update_lanes(slot);
    }

    /// A map was put into `slot`: the running sequences compare themselves with it.
    fn update_lanes(&mut self, slot: usize) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.running) {
            lane.replaced(&self.store, slot);
        }
    }
}

impl Predictor for ExpertMap {
    fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
        let lane = lane as usize;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        self.lanes[lane].begin(&self.store, opening.embedding);
    }

    fn end_sequence(&mut self, lane: u32) {
        let lane = lane as usize;
        let Some(own) = self.lanes.get_mut(lane).filter(|own| own.running) else {
            return;
        };
        own.running = false;
        if self.learning && self.of == MapOf::Sequence {
            self.store_sequence(lane);
        }
    }

    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        self.announce(token.lane);
        let lane = &mut self.lanes[token.lane as usize];
        lane.follow(&self.store, token, token.layer as usize);
        if lane.layers < self.layers.len() || !self.learning || lane.probabilities.is_empty() {
            return;
        }
        match self.of {
            MapOf::Iteration => self.store_iteration(token.lane as usize),
            MapOf::Sequence => lane.add_to_mean(self.layers.total_experts()),
        }
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        if self.store.len() == 0 {
            return;
        }
        self.announce(token.lane);
        let lane = &mut self.lanes[token.lane as usize];
        let (layer, target) = (token.layer as usize, target as usize);
        let ((slot, score), from, to) = if target < self.distance {
            let Some(found) = lane.alike_by_embedding() else {
                return;
            };
            (found, 0, self.distance)
        } else {
            let found = lane.alike_by_rows(&self.store, token);
            (found, layer + self.nearest.min(self.distance + 1), self.layers.len())
        };
        let fading = 1.0 - target.saturating_sub(from) as f64 / (to as f64 + 1.0);
        let row = self.store.row(slot, target);
        let chosen = chosen(row, score, self.layers.places(target).len());
        let base = self.layers.keys(target).start as u32;
        guesses.extend(row[..chosen.min(width)].iter().map(|&(key, probability)| Guess {
            expert: key - base,
            confidence: (f64::from(probability) * fading).min(1.0) as f32,
        }));
    }

    fn set_learning(&mut self, learning: bool) {
        self.learning = learning;
    }
}

/// How many of a row, most probable first, are chosen at a score: as many as keep the sum within 1
/// less the score, and at least the top-k.
fn chosen(row: &[(u32, f32)], score: f64, top_k: usize) -> usize {
    let threshold = (1.0 - score).clamp(0.0, 1.0);
    let sums = row.iter().scan(0.0, |sum, &(_, probability)| {
        *sum += f64::from(probability);
        Some(*sum)
    });
    sums.take_while(|&sum| sum <= threshold).count().max(top_k).min(row.len())
}

#[cfg(test)]
mod tests;
