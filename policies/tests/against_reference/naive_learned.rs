//! Naive references of the policies that learn when an expert comes again.

use std::collections::BTreeMap;

use hotset_policies::{Event, Key, PoolShape};

use super::harness::Naive;
use super::naive_slots::{Slots, keys_of, layer_of, layers_ahead, residents_of_slots};

/// Which visits of its layer used each key and who followed whom: all features are computed anew
/// from these.
struct History {
    pool: PoolShape,
    visits: Vec<usize>,
    latest: Vec<Vec<Key>>,
    uses: BTreeMap<Key, Vec<usize>>,
    followed: BTreeMap<Key, u32>,
    pairs: BTreeMap<(Key, Key), u32>,
}

impl History {
    fn new(pool: &PoolShape) -> Self {
        let layers = pool.layer_bases.len();
        Self {
            pool: pool.clone(),
            visits: vec![0; layers],
            latest: vec![Vec::new(); layers],
            uses: (0..pool.keys).map(|key| (key, Vec::new())).collect(),
            followed: BTreeMap::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// Visits are numbered from 1.
    fn push(&mut self, layer: usize, set: &[Key]) {
        self.visits[layer] += 1;
        for &key in set {
            self.uses.get_mut(&key).unwrap().push(self.visits[layer]);
        }
        for &earlier in &self.latest[layer] {
            *self.followed.entry(earlier).or_default() += 1;
            for &key in set {
                *self.pairs.entry((earlier, key)).or_default() += 1;
            }
        }
        self.latest[layer] = set.to_vec();
    }

    fn visits(&self, key: Key) -> usize {
        self.visits[layer_of(&self.pool, key)]
    }

    /// Visits between the last use and the next visit to come; all of them if it was never used.
    fn age(&self, key: Key) -> usize {
        self.visits(key) - self.uses[&key].last().unwrap_or(&0)
    }

    /// Decayed share of visits that used the key, as of its last use.
    fn share(&self, key: Key, half_life: f64) -> f64 {
        let (mut share, mut last) = (0.0, 0);
        for &visit in &self.uses[&key] {
            let since = (visit - last) as f64;
            share = share * libm_exp2(-since / half_life) + 1.0 - libm_exp2(-1.0 / half_life);
            last = visit;
        }
        share
    }

    fn chance(&self, key: Key) -> f64 {
        let latest = &self.latest[layer_of(&self.pool, key)];
        if latest.is_empty() {
            return 0.0;
        }
        let mut sum = 0.0;
        for &earlier in latest {
            let with_key = self.pairs.get(&(earlier, key)).copied().unwrap_or(0);
            let all = self.followed.get(&earlier).copied().unwrap_or(0);
            sum += f64::from(with_key) / (f64::from(all) + 4.0);
        }
        sum / latest.len() as f64
    }
}

/// The policies' exponentials are `libm`'s, and the last bit may decide between near ties.
fn libm_exp2(x: f64) -> f64 {
    libm::exp2(x)
}

/// Cells by their three numbers.
pub struct NaiveTdTable {
    slots: Slots,
    history: History,
    values: BTreeMap<(usize, usize, usize), (f32, u32)>,
    gamma: f64,
    layer: usize,
}

impl NaiveTdTable {
    pub fn new(pool: &PoolShape, gamma: f64) -> Self {
        let mut values = BTreeMap::new();
        for a in 0..20 {
            for f in 0..14 {
                for g in 0..12 {
                    let value = 0.6 / (1.0 + 0.3 * a as f64) * libm_exp2((f as f64 - 13.0) / 4.0);
                    values.insert((a, f, g), (value as f32, 0));
                }
            }
        }
        Self { slots: Slots::new(pool), history: History::new(pool), values, gamma, layer: 0 }
    }

    fn cell(&self, key: Key) -> (usize, usize, usize) {
        let age = self.history.age(key);
        let bucket = |x: f64, n: usize| {
            let begins = |b: usize| 0.7 * libm_exp2((b as f64 - n as f64 + 0.5) / 1.5);
            (1..n).rev().find(|&b| x >= begins(b)).unwrap_or(0)
        };
        let a = if age <= 6 {
            age
        } else {
            19.min(6 + (2.0 * libm::log2(age as f64 / 6.0)).trunc() as usize)
        };
        let share = self.history.share(key, 32.0) * libm_exp2(-(age as f64) / 32.0);
        (a, bucket(share, 14), bucket(self.history.chance(key), 12))
    }

    fn value(&self, cell: (usize, usize, usize)) -> f64 {
        f64::from(self.values[&cell].0)
    }
}

impl Naive for NaiveTdTable {
    fn hit(&mut self, key: Key) {
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let layers = self.history.visits.len() as f64;
        let worth: BTreeMap<Key, f64> = self
            .slots
            .residents()
            .into_iter()
            .map(|other| {
                let off = layers_ahead(&self.history.pool, self.layer, other);
                (other, self.value(self.cell(other)) * libm::pow(self.gamma, off / layers))
            })
            .collect();
        self.slots.admit(key, may_evict, |other| worth[&other])
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer as usize;
        let keys = keys_of(&self.history.pool, self.layer);
        let before: Vec<_> = keys.clone().map(|key| self.cell(key)).collect();
        self.history.push(self.layer, event.keys);
        for (key, old) in keys.zip(before) {
            let target = if event.keys.contains(&key) {
                1.0
            } else {
                self.gamma * self.value(self.cell(key))
            };
            let (value, count) = self.values[&old];
            let rate = f64::max(0.001, 1.0 / (f64::from(count + 1) + 1.0));
            let learned = f64::from(value) + rate * (target - f64::from(value));
            self.values.insert(old, (learned as f32, count + 1));
        }
    }

    residents_of_slots!();
}

/// The weights, and each key's value as of its layer's last visit.
pub struct NaiveTdLogistic {
    slots: Slots,
    history: History,
    weights: [f64; 8],
    values: BTreeMap<Key, f64>,
    events: f64,
    gamma: f64,
    rate: f64,
    layer: usize,
}

impl NaiveTdLogistic {
    pub fn new(pool: &PoolShape, gamma: f64, rate: f64) -> Self {
        Self {
            slots: Slots::new(pool),
            history: History::new(pool),
            weights: [-2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
            values: BTreeMap::new(),
            events: 0.0,
            gamma,
            rate,
            layer: 0,
        }
    }

    fn features(&self, key: Key) -> [f64; 8] {
        let age = self.history.age(key);
        let share = |half_life: f64| {
            let decayed = self.history.share(key, half_life) * libm_exp2(-(age as f64) / half_life);
            0.25 * libm::log(decayed + 0.003) + 1.0
        };
        let visited = self.history.visits(key) > 0;
        let tau =
            if visited { 0.25 * libm::log(self.history.chance(key) + 0.003) + 1.0 } else { 0.0 };
        let just_used = if age == 0 { 1.0 } else { 0.0 };
        let of_age = 0.3 * libm::log(1.0 + age as f64) - 0.5;
        [1.0, share(1.5), share(6.0), share(32.0), share(256.0), of_age, just_used, tau]
    }

    fn sigma(&self, features: &[f64; 8]) -> f64 {
        let logit: f64 = (0..8).map(|i| self.weights[i] * features[i]).fold(0.0, |a, b| a + b);
        1.0 / (1.0 + libm::exp(-logit))
    }
}

impl Naive for NaiveTdLogistic {
    fn hit(&mut self, key: Key) {
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let layers = self.history.visits.len() as f64;
        self.slots.admit(key, may_evict, |other| {
            let off = layers_ahead(&self.history.pool, self.layer, other);
            self.values[&other] + libm::log(self.gamma) * off / layers
        })
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer as usize;
        let keys: Vec<Key> = keys_of(&self.history.pool, self.layer).collect();
        let before: Vec<[f64; 8]> = keys.iter().map(|&key| self.features(key)).collect();
        self.history.push(self.layer, event.keys);
        let mut sums = [0.0; 8];
        for (&key, before) in keys.iter().zip(&before) {
            let target = if event.keys.contains(&key) {
                1.0
            } else {
                self.gamma * self.sigma(&self.features(key))
            };
            let error = target - self.sigma(before);
            for (sum, feature) in sums.iter_mut().zip(before) {
                *sum += error * feature;
            }
        }
        for (weight, sum) in self.weights.iter_mut().zip(sums) {
            *weight += self.rate / (1.0 + 1e-5 * self.events) * sum;
        }
        for &key in &keys {
            let value = libm::log(self.sigma(&self.features(key)) + 1e-9);
            self.values.insert(key, value);
        }
        self.events += 1.0;
    }

    residents_of_slots!();
}
