//! A naive td-pairs: the model by key, pairs in a map, LRU in a vector.

use std::collections::{BTreeMap, BTreeSet};

use hotset_policies::{Event, Key, PoolShape};

use super::harness::Naive;
use super::naive_slots::{keys_of, layers_ahead};

/// What is known of a key: shares by half-life, the estimate, its logarithm.
#[derive(Clone, Copy)]
struct Known {
    shares: [f32; 2],
    chance: f32,
    worth: f32,
}

/// Which of the two tables of pairs, the layer, the row, the key.
type Pair = (usize, usize, usize, Key);

pub struct NaiveTdPairs {
    pool: PoolShape,
    gamma: f64,
    known: BTreeMap<Key, Known>,
    pairs: BTreeMap<Pair, i16>,
    weights: [f32; 3],
    /// The rows of each layer's latest visit, in both tables.
    rows: Vec<[Vec<usize>; 2]>,
    visits: Vec<u32>,
    latest: Vec<usize>,
    running: Vec<Key>,
    events: u32,
    layer: usize,
    residents: BTreeSet<Key>,
    /// All keys ever used, the most recent last.
    recency: Vec<Key>,
    credit: i64,
}

/// Linear between the powers of two.
fn log2(x: f32) -> f32 {
    (x.to_bits() as i32) as f32 / 8_388_608.0 - 127.0
}

fn sigma(z: f32) -> f32 {
    let power = (z * -std::f32::consts::LOG2_E).clamp(-30.0, 30.0);
    let whole = power.round_ties_even();
    let rest = power - whole;
    let part = 1.0 + rest * (std::f32::consts::LN_2 + rest * (0.240_226_5 + rest * 0.055_504_1));
    1.0 / (1.0 + f32::powi(2.0, whole as i32) * part)
}

fn feature(share: f32) -> f32 {
    log2(share) * 0.173_286_8 + 1.0
}

fn damped(rows: usize) -> f32 {
    if rows <= 16 { 1.0 } else { 16.0 / rows as f32 }
}

impl NaiveTdPairs {
    pub fn new(pool: &PoolShape) -> Self {
        let layers = pool.layer_bases.len();
        let (keys, slots) = (i64::from(pool.keys), i64::from(pool.capacity));
        let new = Known { shares: [0.003; 2], chance: 0.02, worth: -5.643_856 };
        Self {
            gamma: 0.75 + 0.2 * slots as f64 / keys as f64,
            known: (0..pool.keys).map(|key| (key, new)).collect(),
            pairs: BTreeMap::new(),
            weights: [-1.7, 0.75, 2.0],
            rows: vec![[Vec::new(), Vec::new()]; layers],
            visits: vec![0; layers],
            latest: Vec::new(),
            running: Vec::new(),
            events: 0,
            layer: 0,
            residents: BTreeSet::new(),
            recency: Vec::new(),
            credit: 0,
            pool: pool.clone(),
        }
    }

    /// What LRU holds, the least recent first.
    fn shadow(&self) -> &[Key] {
        &self.recency[self.recency.len().saturating_sub(self.pool.capacity as usize)..]
    }

    fn worth(&self, key: Key) -> f32 {
        let layers = self.pool.layer_bases.len() as f64;
        let off = layers_ahead(&self.pool, self.layer, key);
        self.known[&key].worth + (libm::log2(self.gamma) * off / layers) as f32
    }

    /// The victim for a key that comes in.
    fn victim(&self, incoming: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Key> {
        let least = self.least_worth(may_evict)?;
        let shadow = self.shadow();
        let debt = shadow.iter().filter(|key| !self.residents.contains(key)).count() as i64;
        let both_miss = !shadow.contains(&incoming);
        let full = shadow.len() == self.pool.capacity as usize;
        let leaves = if both_miss && full { shadow.first().copied() } else { None };
        let forgiven = leaves.is_some_and(|key| key == least || !self.residents.contains(&key));
        if !shadow.contains(&least) || self.credit >= 128 * (debt + 1) || forgiven {
            return Some(least);
        }
        let here = |key: &Key| self.residents.contains(key);
        let kept = self.recency.iter().copied().filter(|key| here(key) && !shadow.contains(key));
        let spared: Vec<Key> = kept.take(16).chain(leaves.filter(here)).collect();
        let allowed = spared.into_iter().filter(|&key| may_evict(key));
        let chosen = allowed.min_by(|&a, &b| self.worth(a).total_cmp(&self.worth(b)));
        let mut all = self.recency.iter().copied();
        chosen.or_else(|| all.find(|key| here(key) && may_evict(*key)))
    }

    fn touch(&mut self, key: Key) {
        if !self.shadow().contains(&key) {
            self.credit = (self.credit + 129).min(128 * i64::from(self.pool.capacity));
        }
        self.recency.retain(|&other| other != key);
        self.recency.push(key);
    }

    /// The layer's rows for some ids. (No layer of these tests has more than it may.)
    fn rows_of(&self, ids: &[usize]) -> Vec<usize> {
        let rows = keys_of(&self.pool, self.layer).len();
        ids.iter().take(32).map(|id| id % rows).collect()
    }

    fn z(&self, rows: &[Vec<usize>; 2], key: Key) -> f32 {
        let pairs = (0..2).flat_map(|table| rows[table].iter().map(move |&row| (table, row)));
        let sum = pairs.fold(0i16, |sum, (table, row)| {
            sum.saturating_add(*self.pairs.get(&(table, self.layer, row, key)).unwrap_or(&0))
        });
        let scale = damped(rows[0].len() + rows[1].len()) / 2048.0;
        let start = self.weights[0] + f32::from(sum) * scale;
        let shares = self.known[&key].shares;
        let z = start + self.weights[1] * feature(shares[0]);
        z + self.weights[2] * feature(shares[1])
    }

    fn learn_pairs(&mut self, errors: &BTreeMap<Key, f32>) {
        let before = self.rows[self.layer].clone();
        let slower = (1.0 / (1.0 + self.visits[self.layer] as f32 / 1000.0)).max(0.1);
        let rate = 2048.0 * 0.1 * damped(before[0].len() + before[1].len()) * slower;
        let turn = (self.events.wrapping_mul(0x9e37_79b9) >> 16) as f32 / 65536.0;
        let base = self.pool.layer_bases[self.layer];
        for (table, rows) in before.iter().enumerate() {
            for &row in rows {
                for (&key, &error) in errors {
                    let place = turn + ((key - base) % 8) as f32 / 8.0;
                    let dither = if place >= 1.0 { place - 1.5 } else { place - 0.5 };
                    let step = (error * rate + dither).round_ties_even() as i16;
                    let pair = self.pairs.entry((table, self.layer, row, key)).or_default();
                    *pair = pair.saturating_add(step);
                }
            }
        }
    }

    fn least_worth(&self, may_evict: &dyn Fn(Key) -> bool) -> Option<Key> {
        let score = |key: Key| {
            // Equals of two layers: that which is asked first.
            (self.worth(key), layers_ahead(&self.pool, self.layer, key), key)
        };
        let candidates = |idle: bool| {
            let may = |key: &Key| may_evict(*key) && !(idle && self.running.contains(key));
            let all = self.residents.iter().copied().filter(may);
            all.min_by(|&a, &b| score(a).partial_cmp(&score(b)).unwrap())
        };
        candidates(true).or_else(|| candidates(false))
    }
}

impl Naive for NaiveTdPairs {
    fn hit(&mut self, key: Key) {
        self.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.residents.len() == self.pool.capacity as usize {
            let victim = self.victim(key, may_evict)?;
            self.residents.remove(&victim);
            left.push(victim);
        }
        self.credit -= 128;
        self.touch(key);
        self.residents.insert(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.clone()
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer as usize;
        let base = self.pool.layer_bases[self.layer];
        let own: Vec<usize> = event.keys.iter().map(|&key| (key - base) as usize).collect();
        let single = self.pool.layer_bases.len() == 1;
        let before = if single { Vec::new() } else { self.rows_of(&self.latest) };
        let rows = [self.rows_of(&own), before];
        (self.latest, self.running) = (own, event.keys.to_vec());
        self.visits[self.layer] += 1;

        let mut errors = BTreeMap::new();
        let mut gradient = [[0.0f32; 8]; 3];
        for key in keys_of(&self.pool, self.layer) {
            let used = if event.keys.contains(&key) { 1.0 } else { 0.0 };
            let known = self.known[&key];
            let mut shares = known.shares;
            for (share, half_life) in shares.iter_mut().zip([6.0, 32.0]) {
                let left = libm::exp2f(-1.0 / half_life);
                *share = *share * left + (1.0 - left) * (used + 0.003);
            }
            self.known.insert(key, Known { shares, ..known });
            let chance = sigma(self.z(&rows, key));
            let later = self.gamma as f32 * chance;
            let error = later + used * (1.0 - later) - known.chance;
            let lane = ((key - base) % 8) as usize;
            gradient[0][lane] += error;
            for j in 0..2 {
                gradient[j + 1][lane] += error * feature(known.shares[j]);
            }
            errors.insert(key, error);
            self.known.insert(key, Known { shares, chance, worth: log2(chance) });
        }
        self.learn_pairs(&errors);
        self.rows[self.layer] = rows;
        let rate = 0.003 * (1.0 / (1.0 + self.events as f32 / 100_000.0)).max(0.1);
        for (weight, lanes) in self.weights.iter_mut().zip(gradient) {
            *weight += rate * lanes.into_iter().fold(0.0, |sum, lane| sum + lane);
        }
        self.events += 1;
    }
}
