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

use serde::{Deserialize, Serialize};

use super::{
    Guess, Horizon, Layers, Opening, Predictor, PredictorInfo, PredictorNeed, Token, best,
};
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

/// Maps of ended sequences, in slots.
#[derive(Debug, Clone)]
struct Store {
    /// `[key][slot]`, which the dot products walk.
    columns: Vec<Vec<u32>>,
    /// `[slot][key]`, which the guesses walk.
    maps: Vec<Vec<u32>>,
    /// 1 / |row|, `[layer][slot]`; 0 for an empty row.
    inverse_norms: Vec<Vec<f64>>,
    accesses: Vec<u64>,
    capacity: usize,
}

impl Store {
    /// Stores a map, in place of the least accessed one if there is no room, and gives its slot.
    fn put(&mut self, layers: &Layers, counts: &[u32]) -> usize {
        if self.maps.len() < self.capacity {
            self.maps.push(Vec::new());
            self.accesses.push(0);
            self.columns.iter_mut().for_each(|column| column.push(0));
            self.inverse_norms.iter_mut().for_each(|norms| norms.push(0.0));
        }
        // A new slot has no access yet, so it is the least accessed.
        let least = (0..self.maps.len()).min_by_key(|&slot| self.accesses[slot]);
        let slot = least.expect("a store keeps at least one map");
        self.maps[slot].clear();
        self.maps[slot].extend_from_slice(counts);
        self.accesses[slot] = 1;
        for (column, &count) in self.columns.iter_mut().zip(counts) {
            column[slot] = count;
        }
        for (layer, norms) in self.inverse_norms.iter_mut().enumerate() {
            norms[slot] = inverse_norm(squares(&counts[layers.keys(layer)]));
        }
        slot
    }
}

fn squares(row: &[u32]) -> f64 {
    row.iter().map(|&count| f64::from(count) * f64::from(count)).sum()
}

fn inverse_norm(squares: f64) -> f64 {
    if squares > 0.0 { 1.0 / squares.sqrt() } else { 0.0 }
}

/// A sequence under way.
#[derive(Debug, Clone, Default)]
struct Lane {
    running: bool,
    /// By dense key.
    counts: Vec<u32>,
    /// Sum of the squares of each layer's counts.
    squares: Vec<f64>,
    /// Products of each layer's counts and the stored ones, `[layer][slot]`.
    dots: Vec<Vec<f64>>,
    /// The best slot at each layer.
    matches: Vec<usize>,
    /// Rows from this one on are those that `matches` was made of.
    changed: usize,
    /// Whether the latest layer's match was counted as an access.
    counted: bool,
}

impl Lane {
    fn begin(&mut self, layers: &Layers, store: &Store, uses: &[u32]) {
        self.running = true;
        self.counts.clear();
        self.counts.extend_from_slice(uses);
        self.counts.resize(layers.total_experts(), 0);
        self.squares.clear();
        self.squares.extend((0..layers.len()).map(|l| squares(&self.counts[layers.keys(l)])));
        self.dots.resize_with(layers.len(), Vec::new);
        for (layer, dots) in self.dots.iter_mut().enumerate() {
            dots.clear();
            dots.resize(store.maps.len(), 0.0);
            for key in layers.keys(layer).filter(|&key| self.counts[key] > 0) {
                add(dots, &store.columns[key], f64::from(self.counts[key]));
            }
        }
        self.matches.clear();
        self.matches.resize(layers.len(), 0);
        self.changed = layers.len();
        self.counted = false;
    }

    /// Takes in that the store has another map in a slot.
    fn replaced(&mut self, layers: &Layers, store: &Store, slot: usize) {
        for (layer, dots) in self.dots.iter_mut().enumerate() {
            dots.resize(store.maps.len(), 0.0);
            let keys = layers.keys(layer);
            let pairs = self.counts[keys.clone()].iter().zip(&store.maps[slot][keys]);
            dots[slot] = pairs.map(|(&own, &stored)| f64::from(own) * f64::from(stored)).sum();
        }
        self.changed = layers.len();
    }

    /// Finds the best slot at each layer, from the rows behind it.
    fn search(&mut self, store: &Store, sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(store.maps.len(), 0.0);
        let rows = self.dots.iter().zip(&store.inverse_norms).zip(&self.squares);
        for (best, ((dots, norms), &squares)) in self.matches.iter_mut().zip(rows).rev() {
            *best = first_of_largest(sums);
            let own = inverse_norm(squares);
            if own > 0.0 {
                for (sum, (dot, norm)) in sums.iter_mut().zip(dots.iter().zip(norms)) {
                    *sum += dot * norm * own;
                }
            }
        }
        self.changed = 0;
    }
}

/// Adds `times` a column of counts.
#[inline]
fn add(dots: &mut [f64], column: &[u32], times: f64) {
    for (dot, &count) in dots.iter_mut().zip(column) {
        *dot += times * f64::from(count);
    }
}

/// Where the largest number is, the first of equal ones.
fn first_of_largest(numbers: &[f64]) -> usize {
    let mut first = 0;
    for (place, number) in numbers.iter().enumerate() {
        if *number > numbers[first] {
            first = place;
        }
    }
    first
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
        let store = Store {
            columns: vec![Vec::new(); layers.total_experts()],
            maps: Vec::new(),
            inverse_norms: vec![Vec::new(); layers.len()],
            accesses: Vec::new(),
            capacity: config.store.max(1),
        };
        let (layers, lanes, scores) = (layers.clone(), Vec::new(), Vec::new());
        Self { layers, store, lanes, learning: true, scores }
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
        if self.learning && lane.counts.iter().any(|&count| count > 0) {
            let slot = self.store.put(&self.layers, &lane.counts);
            for lane in self.lanes.iter_mut().filter(|lane| lane.running) {
                lane.replaced(&self.layers, &self.store, slot);
            }
        }
    }

    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        self.announce(token.lane);
        let lane = &mut self.lanes[token.lane as usize];
        let layer = token.layer as usize;
        let base = self.layers.keys(layer).start;
        for &expert in token.experts(layer) {
            let key = base + expert as usize;
            // (m + 1)^2 = m^2 + 2m + 1
            lane.squares[layer] += 2.0 * f64::from(lane.counts[key]) + 1.0;
            lane.counts[key] = lane.counts[key].saturating_add(1);
            add(&mut lane.dots[layer], &self.store.columns[key], 1.0);
        }
        lane.changed = lane.changed.max(layer + 1);
        lane.counted = false;
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        if self.store.maps.is_empty() {
            return;
        }
        self.announce(token.lane);
        let lane = &mut self.lanes[token.lane as usize];
        let (layer, target) = (token.layer as usize, target as usize);
        // What is matched at this layer are the rows behind it.
        if lane.changed > layer + 1 {
            lane.search(&self.store, &mut self.scores);
        }
        let slot = lane.matches[layer];
        if self.learning && !lane.counted {
            self.store.accesses[slot] += 1;
            lane.counted = true;
        }
        let row = &self.store.maps[slot][self.layers.keys(target)];
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
