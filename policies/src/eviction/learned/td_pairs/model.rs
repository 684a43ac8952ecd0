//! td-pairs' model: what every expert is worth, and the least worth resident of each layer.

use super::pairs::{LANES, Pairs, Row, RowSet};
use crate::policy::{Key, PoolShape};
use crate::structures::memory::{array, sum};

type Lanes = [f32; LANES];

const HALF_LIVES: [f32; 2] = [6.0, 32.0];
const FEATURES: usize = 1 + HALF_LIVES.len();
/// A share never falls below this, so that its logarithm has an end.
const FLOOR: f32 = 0.003;
/// 0.25 ln(2): the features are natural logarithms.
const PER_OCTAVE: f32 = 0.173_286_8;
/// Numbers of a pair's weight in one of a logit.
const SCALE: f32 = 2048.0;
const WEIGHT_RATE: f32 = 0.003;
const PAIR_RATE: f32 = 0.1;
/// Added to the worth of an expert in use.
const IN_USE: f32 = 1024.0;
/// 1.5 * 2^23: added to a small number, it rounds it to a whole one in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// Eight experts of a layer.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Decayed shares of the layer's visits that used them, by half-life, floor included.
    shares: [Lanes; 2],
    /// The estimates p.
    chances: Lanes,
    /// log2 of them.
    worths: Lanes,
    /// The same for residents; infinity for the absent.
    held: Lanes,
}

const UNUSED: Block = Block {
    shares: [[FLOOR; LANES]; 2],
    chances: [0.02; LANES],
    worths: [-5.643_856; LANES],
    held: [f32::INFINITY; LANES],
};

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
        let idle = used.map_or([0.0; LANES], |used| used[index]);
        let mut lanes = block.held.iter().zip(idle);
        match lanes.position(|(&held, used)| held == worth && used == 0.0) {
            Some(lane) => (worth, self.base + (index * LANES + lane) as Key),
            None => NOBODY,
        }
    }
}

/// The lowest worth of those of a block that are not in use.
#[inline(always)]
fn lowest(held: &Lanes, used: &Lanes) -> f32 {
    let lower = |a: f32, b: f32| if b < a { b } else { a };
    // Nothing is worth more than log2(1) = 0.
    let lanes: Lanes = std::array::from_fn(|i| held[i] + used[i] * IN_USE);
    let four: [f32; 4] = std::array::from_fn(|i| lower(lanes[i], lanes[i + 4]));
    lower(lower(four[0], four[2]), lower(four[1], four[3]))
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

/// What one event's blocks have in common.
#[derive(Clone, Copy)]
struct Common {
    weights: [f32; FEATURES],
    decays: [(f32, f32); 2],
    gamma: f32,
    /// A logit in one of a sum's numbers.
    per_number: f32,
    /// Numbers that a pair moves for an error of 1.
    rate: f32,
    dither: Lanes,
}

impl Model {
    pub(super) fn new(pool: &PoolShape) -> Self {
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
                    blocks: vec![UNUSED; experts.div_ceil(LANES)],
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
            weights: [-1.7, 0.75, 2.0],
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
        let in_block = used.map_or([0.0; LANES], |used| used[block]);
        layer.lowest[block] = lowest(&layer.blocks[block].held, &in_block);
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
            if std::mem::replace(used, [0.0; LANES]) != [0.0; LANES] {
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
        let before_set = if layer.before.is_some() { self.latest } else { RowSet::EMPTY };
        self.latest = own_set;
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
            let errors = common.renew(block, &used[index], &sums[index], lanes, &mut gradient);
            steps[index] = common.steps(&errors);
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

/// What is added to steps before they are rounded, so that small ones are not lost: spread evenly
/// over the lanes and, from event to event, by the golden ratio.
fn dither(event: u32) -> Lanes {
    let turn = (event.wrapping_mul(0x9e37_79b9) >> 16) as f32 / 65536.0;
    std::array::from_fn(|lane| {
        let place = turn + lane as f32 / LANES as f32;
        if place >= 1.0 { place - 1.5 } else { place - 0.5 }
    })
}

/// About log2 of a positive number: exact at powers of two, straight between them.
#[inline(always)]
fn log2(x: f32) -> f32 {
    x.to_bits() as i32 as f32 * (1.0 / 8_388_608.0) - 127.0
}

/// 1 / (1 + e^-z), to a thousandth of itself.
#[inline(always)]
fn sigma(z: f32) -> f32 {
    let power = (z * -std::f32::consts::LOG2_E).clamp(-30.0, 30.0);
    let rounded = power + (ROUNDER + 127.0);
    let rest = power - (rounded - (ROUNDER + 127.0));
    let whole = f32::from_bits(rounded.to_bits() << 23);
    1.0 / (1.0
        + whole
            * (1.0 + rest * (std::f32::consts::LN_2 + rest * (0.240_226_5 + rest * 0.055_504_1))))
}

impl Common {
    /// Takes eight experts over an event. Returns the errors of what was estimated before and adds
    /// their products with the features of then to `gradient`; only `lanes` of the experts exist.
    #[inline(always)]
    fn renew(
        &self,
        block: &mut Block,
        used: &Lanes,
        sums: &Row,
        lanes: usize,
        gradient: &mut [Lanes; FEATURES],
    ) -> Lanes {
        let mut z: Lanes =
            std::array::from_fn(|i| self.weights[0] + f32::from(sums[i]) * self.per_number);
        let mut features = [[0.0; LANES]; 2];
        for (j, shares) in block.shares.iter_mut().enumerate() {
            let (left, added) = self.decays[j];
            for i in 0..LANES {
                features[j][i] = log2(shares[i]) * PER_OCTAVE + 1.0;
                shares[i] = shares[i] * left + added * (used[i] + FLOOR);
                z[i] += self.weights[j + 1] * (log2(shares[i]) * PER_OCTAVE + 1.0);
            }
        }
        let mut errors = [0.0; LANES];
        for i in 0..LANES {
            let chance = sigma(z[i]);
            let later = self.gamma * chance;
            errors[i] = later + used[i] * (1.0 - later) - block.chances[i];
            block.chances[i] = chance;
            block.worths[i] = log2(chance);
            let absent = block.held[i] == f32::INFINITY;
            block.held[i] = if absent { f32::INFINITY } else { block.worths[i] };
        }
        if lanes < LANES {
            for error in errors.iter_mut().skip(lanes) {
                *error = 0.0;
            }
        }
        for i in 0..LANES {
            gradient[0][i] += errors[i];
            for j in 0..2 {
                gradient[j + 1][i] += errors[i] * features[j][i];
            }
        }
        errors
    }

    /// How far the pairs move for these errors.
    #[inline(always)]
    fn steps(&self, errors: &Lanes) -> Row {
        std::array::from_fn(|i| {
            let rounded = errors[i] * self.rate + self.dither[i] + ROUNDER;
            (rounded.to_bits() as i32 - ROUNDER.to_bits() as i32) as i16
        })
    }
}
