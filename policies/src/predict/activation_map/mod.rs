//! MoE-Infinity's prediction: what the stored sequence used whose expert counts look most alike.
//!
//! Source: MoE-Infinity, `memory/expert_tracer.py` and `memory/expert_predictor.py`. Its
//! `find_most_similar` overwrites rows `0..=layer` of every stored map with a constant before it
//! compares, so those rows add the same to each map and only the *later* rows decide. They hold
//! what the sequence used up to its previous token. This is done here, as is what follows from it:
//! a sequence without a token behind it matches the first map. Two things are not copied: slots
//! that are not filled yet (whose cosine is not a number there, which wins), and persistent maps,
//! those that were loaded from a file; here nothing is.
//!
//! Cost: a route adds one column of the store to the lane's dot products, and the first question
//! after a token has passed sums all layers' cosines once, for all of the next token's layers.
//! Memory: 8 bytes for each expert of each stored map (125 MB for 1000 maps of 61 layers of 256),
//! and in each lane 8 for each layer of each.

mod lane;
mod store;

use serde::{Deserialize, Serialize};

use self::lane::Lane;
use self::store::Store;
use super::{
    Guess, Horizon, Layers, Opening, Predictor, PredictorInfo, PredictorNeed, Token, best,
};
use crate::structures::memory::{array, sum};
use crate::{Config, Parameter};

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "activation-map",
    summary: "what the stored sequence with the most alike counts used",
    definition: "m[l][e] counts the sequence's routes to expert e of layer l, its prompt's included where they are told. At layer l0 the match is the stored map M with the largest sum over the layers l > l0, from the last on, of cos(m[l], M[l]) (0 where a row is empty); ties go to the lowest slot. Candidates of layer l rank by p = (M[l][e] + 1e-8) (1 - (l - l0) / (L + 1)), L layers in all; ties go to the lower expert. The confidence is p over the tokens that M counted in layer l (its routes there over the layer's top-k). When a sequence ends its map is stored with 1 access; a match adds 1 for each token and layer that asks; a full store replaces the map with the fewest accesses, ties to the lowest slot. Not learning, the store and its accesses stay as they are.",
    source: "MoE-Infinity, expert_tracer.py and expert_predictor.py",
    needs: PredictorNeed::Nothing,
    parameters: &[Parameter {
        name: "store",
        default: "1000",
        meaning: "sequences whose maps are kept, 1 to 1000000",
    }],
};

/// Parameters of [`ActivationMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActivationMapConfig {
    /// Sequences whose maps are kept.
    pub store: usize,
}

impl Default for ActivationMapConfig {
    fn default() -> Self {
        Self { store: 1000 }
    }
}

impl Config for ActivationMapConfig {
    fn check(&self) -> Result<(), String> {
        check_store(self.store)
    }
}

/// Checks the size of a store of maps, which takes memory only as it fills.
pub(super) fn check_store(store: usize) -> Result<(), String> {
    if (1..=1_000_000).contains(&store) {
        return Ok(());
    }
    Err(format!("store = {store} is not within 1 to 1000000 maps"))
}

/// Stored maps, and those of the sequences under way.
#[derive(Debug, Clone)]
pub struct ActivationMap {
    layers: Layers,
    store: Store,
    lanes: Vec<Lane>,
    learning: bool,
    scores: Vec<f64>,
}

impl ActivationMap {
    /// An empty store.
    #[must_use]
    pub fn new(layers: &Layers, _: Horizon, config: &ActivationMapConfig) -> Self {
        let store = Store::new(layers, config.store.max(1));
        let (layers, lanes, scores) = (layers.clone(), Vec::new(), Vec::new());
        Self { layers, store, lanes, learning: true, scores }
    }

    /// A full store, and the products of one sequence.
    pub(super) fn memory(layers: &Layers, _: Horizon, config: &ActivationMapConfig) -> u64 {
        let (experts, rows) = (layers.total_experts() as u64, layers.len() as u64);
        // Counts by expert and by map, lengths and products by layer, and accesses.
        let of_map = sum([array::<[f32; 2]>(experts), array::<[f64; 2]>(rows), array::<u64>(1u64)]);
        of_map.saturating_mul(config.store.max(1) as u64)
    }

    /// A sequence that nobody announced begins with its first token.
    #[inline]
    fn announce(&mut self, lane: u32) {
        if self.lanes.get(lane as usize).is_none_or(|lane| !lane.running) {
            self.begin_sequence(lane, &Opening::default());
        }
    }
}

impl Predictor for ActivationMap {
    fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
        let lane = lane as usize;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        self.lanes[lane].begin(&self.layers, &self.store, opening.prompt_uses);
    }

    fn end_sequence(&mut self, lane: u32) {
        let Some(lane) = self.lanes.get_mut(lane as usize).filter(|lane| lane.running) else {
            return;
        };
        lane.running = false;
        let Some(map) = lane.map().filter(|_| self.learning) else {
            return;
        };
        let slot = self.store.put(&self.layers, map);
        for lane in self.lanes.iter_mut().filter(|lane| lane.running) {
            lane.replaced(&self.layers, &self.store, slot);
        }
    }

    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        self.announce(token.lane);
        let lane = &mut self.lanes[token.lane as usize];
        lane.count(&self.layers, &self.store, token);
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        if self.store.len() == 0 {
            return;
        }
        self.announce(token.lane);
        let lane = &mut self.lanes[token.lane as usize];
        let (layer, target) = (token.layer as usize, target as usize);
        let slot = lane.matching(&self.store, layer, &mut self.scores);
        if self.learning && !lane.counted {
            self.store.access(slot);
            lane.counted = true;
        }
        let row = &self.store.map(slot)[self.layers.keys(target)];
        let fading = 1.0 - target.saturating_sub(layer) as f64 / (self.layers.len() + 1) as f64;
        self.scores.clear();
        self.scores.extend(row.iter().map(|&count| (f64::from(count) + 1e-8) * fading));
        let routes: f64 = row.iter().map(|&count| f64::from(count)).sum();
        let tokens = routes / self.layers.places(target).len() as f64;
        best(&self.scores, width, if tokens > 0.0 { 1.0 / tokens } else { 0.0 }, guesses);
    }

    fn set_learning(&mut self, learning: bool) {
        self.learning = learning;
    }
}

#[cfg(test)]
mod tests;
