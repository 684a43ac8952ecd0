//! td-pairs' model: what every expert is worth, and the least worth resident of each layer.

use super::block::{
    Block, Common, FEATURES, HALF_LIVES, IDLE, IN_USE, Lanes, SCALE, dither, lowest,
};
use super::pairs::{LANES, Pairs, Row, RowSet};
use super::part::AblatedPart;
use crate::policy::{Key, PoolShape};
use crate::structures::memory::{array, sum};

const WEIGHT_RATE: f32 = 0.003;
const PAIR_RATE: f32 = 0.1;

/// A resident's worth and its key; infinity where there is none.
type Least = (f32, Key);

const NOBODY: Least = (f32::INFINITY, Key::MAX);

/// What is kept of one layer.
#[derive(Debug, Clone)]
struct Layer {
    base: Key,
    experts: u32,
    blocks: Vec<Block>,
    /// With the layer's own set before.
    own: Pairs,
    /// With the event before.
    before: Option<Pairs>,
    /// The rows of the latest visit.
    own_set: RowSet,
    before_set: RowSet,
    visits: u32,
    /// The lowest worth of a resident in each block.
    lowest: Vec<f32>,
}

impl Layer {
    /// The block and lane of one of the layer's keys.
    #[inline(always)]
    fn place(&self, key: Key) -> (usize, usize) {
        let id = (key - self.base) as usize;
        (id / LANES, id % LANES)
    }

    /// Looks for the least worth resident that is not in use; the blocks' own are known. `used`: the
    /// experts in use, where this is the layer of the latest event.
    #[inline(always)]
    fn find_least(&self, used: Option<&[Lanes]>) -> Least {
        let mut least = (IN_USE / 2.0, usize::MAX);
        for (index, &worth) in self.lowest.iter().enumerate() {
            least = if worth < least.0 { (worth, index) } else { least };
        }
        let (worth, index) = least;
        let Some(block) = self.blocks.get(index) else { return NOBODY };
        // One in use may be worth the same.
        let idle = used.map_or(&IDLE, |used| &used[index]);
        let lane = (0..LANES).find(|&lane| block.held[lane] == worth && idle[lane] == 0.0);
        lane.map_or(NOBODY, |lane| (worth, self.base + (index * LANES + lane) as Key))
    }
}

/// The learned part, and who is resident.
#[derive(Debug, Clone)]
pub(super) struct Model {
    layers: Vec<Layer>,
    /// The least worth of a resident of each layer, and whose it is.
    least_worths: Vec<f32>,
    least_keys: Vec<Key>,
    /// The layer of each key.
    of_key: Vec<u32>,
    weights: [f32; FEATURES],
    /// Of what is left out weights stay at nothing, and sets are empty.
    without: AblatedPart,
    /// Share that a visit without use leaves, and that a use adds.
    decays: [(f32, f32); 2],
    gamma: f32,
    events: u32,
    /// The layer of the latest event, whose experts in use are nobody's least.
    current: usize,
    latest: RowSet,
    used: Vec<Lanes>,
    sums: Vec<Row>,
    steps: Vec<Row>,
}

impl Model {
    pub(super) fn new(pool: &PoolShape, without: AblatedPart) -> Self {
        let ends = pool.layer_bases.iter().skip(1).copied().chain([pool.keys]);
        let many = pool.layers() > 1;
        let layers: Vec<Layer> = pool
            .layer_bases
            .iter()
            .zip(ends)
            .map(|(&base, end)| {
                let experts = (end - base) as usize;
                Layer {
                    base,
                    experts: end - base,
                    blocks: vec![Block::UNUSED; experts.div_ceil(LANES)],
                    own: Pairs::new(experts),
                    before: many.then(|| Pairs::new(experts)),
                    own_set: RowSet::EMPTY,
                    before_set: RowSet::EMPTY,
                    visits: 0,
                    lowest: vec![f32::INFINITY; experts.div_ceil(LANES)],
                }
            })
            .collect();
        let widest = layers.iter().map(|layer| layer.blocks.len()).max().unwrap_or(0);
        Self {
            layers,
            least_worths: vec![NOBODY.0; pool.layers() as usize],
            least_keys: vec![NOBODY.1; pool.layers() as usize],
            of_key: pool.layer_of_keys(),
            weights: [
                -1.7,
                if without == AblatedPart::Fast { 0.0 } else { 0.75 },
                if without == AblatedPart::Slow { 0.0 } else { 2.0 },
            ],
            without,
            decays: HALF_LIVES.map(|half_life| {
                let left = libm::exp2f(-1.0 / half_life);
                (left, 1.0 - left)
            }),
            gamma: 0.8,
            events: 0,
            current: 0,
            latest: RowSet::EMPTY,
            used: vec![[0.0; LANES]; widest],
            sums: vec![[0; LANES]; widest],
            steps: vec![[0; LANES]; widest],
        }
    }

    /// Bytes that the model of such a pool allocates.
    pub(super) fn memory(pool: &PoolShape) -> u64 {
        let ends = pool.layer_bases.iter().skip(1).copied().chain([pool.keys]);
        let (mut widest, mut bytes) = (0, Vec::new());
        for (&base, end) in pool.layer_bases.iter().zip(ends) {
            let blocks = (end - base).div_ceil(LANES as u32);
            widest = blocks.max(widest);
            let matrices = if pool.layers() > 1 { 2 } else { 1 };
            bytes.push(array::<(Block, f32)>(blocks));
            bytes.extend(vec![Pairs::memory(end - base); matrices]);
        }
        let scratch = [array::<Lanes>(widest), array::<Row>(widest), array::<Row>(widest)];
        sum(bytes
            .into_iter()
            .chain([array::<(Layer, f32, Key)>(pool.layers()), array::<u32>(pool.keys)])
            .chain(scratch))
    }

    pub(super) fn set_gamma(&mut self, gamma: f32) {
        self.gamma = gamma;
    }

    #[inline(always)]
    pub(super) fn holds(&self, key: Key) -> bool {
        let layer = &self.layers[self.of_key[key as usize] as usize];
        let (block, lane) = layer.place(key);
        layer.blocks[block].held[lane] != f32::INFINITY
    }

    /// The layer of a key, and what it is worth at that layer's next visit.
    pub(super) fn worth(&self, key: Key) -> (usize, f32) {
        let number = self.of_key[key as usize] as usize;
        let (block, lane) = self.layers[number].place(key);
        (number, self.layers[number].blocks[block].worths[lane])
    }

    #[inline(always)]
    pub(super) fn hold(&mut self, key: Key) {
        let number = self.of_key[key as usize] as usize;
        let layer = &mut self.layers[number];
        let (block, lane) = layer.place(key);
        let worth = layer.blocks[block].worths[lane];
        layer.blocks[block].held[lane] = worth;
        if number == self.current && self.used[block][lane] != 0.0 {
            return;
        }
        layer.lowest[block] = worth.min(layer.lowest[block]);
        if (worth, key) < (self.least_worths[number], self.least_keys[number]) {
            self.set_least(number, (worth, key));
        }
    }

    #[inline(always)]
    pub(super) fn let_go(&mut self, key: Key) {
        let number = self.of_key[key as usize] as usize;
        let layer = &mut self.layers[number];
        let (block, lane) = layer.place(key);
        layer.blocks[block].held[lane] = f32::INFINITY;
        let used = (number == self.current).then_some(&self.used[..]);
        let in_block = used.map_or(&IDLE, |used| &used[block]);
        layer.lowest[block] = lowest(&layer.blocks[block].held, in_block);
        if self.least_keys[number] == key {
            let least = layer.find_least(used);
            self.set_least(number, least);
        }
    }

    /// The latest event is over: its experts may be their layer's least again.
    #[inline(always)]
    fn settle(&mut self) {
        let layer = &mut self.layers[self.current];
        for (block, used) in self.used[..layer.blocks.len()].iter_mut().enumerate() {
            let mut any = 0.0;
            for used in used.iter() {
                any += used;
            }
            if any != 0.0 {
                *used = IDLE;
                layer.lowest[block] = lowest(&layer.blocks[block].held, used);
            }
        }
        let least = layer.find_least(None);
        self.set_least(self.current, least);
    }

    #[inline(always)]
    fn set_least(&mut self, layer: usize, (worth, key): Least) {
        self.least_worths[layer] = worth;
        self.least_keys[layer] = key;
    }

    /// The least worth of a layer's residents, infinity where it has none.
    #[inline(always)]
    pub(super) fn least_worth(&self, layer: usize) -> f32 {
        self.least_worths[layer]
    }

    /// Whose that is.
    #[inline(always)]
    pub(super) fn least_key(&self, layer: usize) -> Key {
        self.least_keys[layer]
    }

    /// The least worth resident of a layer among those `wanted`.
    pub(super) fn least_of(&self, layer: usize, wanted: impl Fn(Key) -> bool) -> Option<Least> {
        let layer = &self.layers[layer];
        let held = layer.blocks.iter().flat_map(|block| block.held);
        let mut least = NOBODY;
        for (worth, key) in held.zip(layer.base..) {
            if worth < least.0 && wanted(key) {
                least = (worth, key);
            }
        }
        (least.0 < f32::INFINITY).then_some(least)
    }

    /// Learns from an event and values the layer's experts anew.
    #[inline(never)]
    pub(super) fn visit(&mut self, number: u32, set: &[Key]) {
        self.settle();
        self.current = number as usize;
        let layer = &mut self.layers[self.current];
        let (base, blocks) = (layer.base, layer.blocks.len());
        let own_set = RowSet::of(set.iter().map(|&key| key - base));
        let before_set = match (&layer.before, self.without) {
            (None, _) | (_, AblatedPart::Before | AblatedPart::Pairs) => RowSet::EMPTY,
            _ => self.latest,
        };
        self.latest = own_set;
        let own_set = match self.without {
            AblatedPart::Own | AblatedPart::Pairs => RowSet::EMPTY,
            _ => own_set,
        };
        let used = &mut self.used[..blocks];
        for &key in set {
            let id = (key - base) as usize;
            used[id / LANES][id % LANES] = 1.0;
        }
        let sums = &mut self.sums[..blocks];
        sums.fill([0; LANES]);
        layer.own.add_to(sums, &own_set);
        if let Some(pairs) = &layer.before {
            pairs.add_to(sums, &before_set);
        }
        layer.visits = layer.visits.saturating_add(1);
        let damped = |sets: usize| (16.0 / sets.max(1) as f32).min(1.0);
        let learned = damped(layer.own_set.len() + layer.before_set.len());
        let slower = (1.0 / (1.0 + layer.visits as f32 / 1000.0)).max(0.1);
        let common = Common {
            weights: self.weights,
            decays: self.decays,
            gamma: self.gamma,
            per_number: damped(own_set.len() + before_set.len()) / SCALE,
            rate: SCALE * PAIR_RATE * learned * slower,
            dither: dither(self.events),
        };
        let mut gradient = [[0.0; LANES]; FEATURES];
        let steps = &mut self.steps[..blocks];
        for index in 0..blocks {
            let lanes = (layer.experts as usize - index * LANES).min(LANES);
            let block = &mut layer.blocks[index];
            steps[index] = common.renew(block, (&used[index], &sums[index]), lanes, &mut gradient);
            layer.lowest[index] = lowest(&block.held, &used[index]);
        }
        layer.own.learn(steps, &layer.own_set);
        if let Some(pairs) = &mut layer.before {
            pairs.learn(steps, &layer.before_set);
        }
        (layer.own_set, layer.before_set) = (own_set, before_set);
        let least = layer.find_least(Some(used));
        self.set_least(self.current, least);
        let rate = WEIGHT_RATE * (1.0 / (1.0 + self.events as f32 / 100_000.0)).max(0.1);
        for (weight, lanes) in self.weights.iter_mut().zip(gradient) {
            *weight += rate * lanes.into_iter().fold(0.0, |sum, lane| sum + lane);
        }
        match self.without {
            AblatedPart::Fast => self.weights[1] = 0.0,
            AblatedPart::Slow => self.weights[2] = 0.0,
            _ => {}
        }
        self.events = self.events.saturating_add(1);
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.weights.iter().any(|weight| !weight.is_finite()) {
            return Err(format!("weights {:?}", self.weights));
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let idle = |key| {
                let (block, lane) = layer.place(key);
                number != self.current || self.used[block][lane] == 0.0
            };
            let (found, kept) = (self.least_of(number, idle), self.least_keys[number]);
            let used = (number == self.current).then_some(&self.used[..]);
            if found.unwrap_or(NOBODY).1 != kept || layer.find_least(used).1 != kept {
                return Err(format!("key {kept} is not the least of layer {number}: {found:?}"));
            }
        }
        Ok(())
    }
}
