//! Naive references of the policies that come from MoE systems, and of those that learn.

use std::collections::{BTreeMap, BTreeSet};

use hotset_policies::{Event, Key, PoolShape};

use super::harness::Naive;

/// Residents with the number of their last touch, and the victim by a score of one's own.
struct Slots {
    capacity: usize,
    touched: BTreeMap<Key, u64>,
    touches: u64,
}

impl Slots {
    fn new(pool: &PoolShape) -> Self {
        Self { capacity: pool.capacity as usize, touched: BTreeMap::new(), touches: 0 }
    }

    fn touch(&mut self, key: Key) {
        self.touches += 1;
        self.touched.insert(key, self.touches);
    }

    /// Makes room by the smallest score, ties to the least recent, and lets `key` in.
    fn admit(
        &mut self,
        key: Key,
        may_evict: &dyn Fn(Key) -> bool,
        score: impl Fn(Key) -> f64,
    ) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.touched.len() == self.capacity {
            let mut candidates: Vec<(f64, u64, Key)> = self
                .touched
                .iter()
                .filter(|&(&other, _)| may_evict(other))
                .map(|(&other, &touch)| (score(other), touch, other))
                .collect();
            candidates.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let &(_, _, victim) = candidates.first()?;
            self.touched.remove(&victim);
            left.push(victim);
        }
        self.touch(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.touched.keys().copied().collect()
    }
}

fn layer_of(pool: &PoolShape, key: Key) -> usize {
    pool.layer_bases.iter().rposition(|&base| base <= key).unwrap()
}

pub fn keys_of(pool: &PoolShape, layer: usize) -> std::ops::Range<Key> {
    let end = pool.layer_bases.get(layer + 1).copied().unwrap_or(pool.keys);
    pool.layer_bases[layer]..end
}

/// Layers from the running event's to a key's next turn.
pub fn layers_ahead(pool: &PoolShape, running: usize, key: Key) -> f64 {
    let (layer, layers) = (layer_of(pool, key), pool.layer_bases.len());
    if layer > running { (layer - running) as f64 } else { (layer + layers - running) as f64 }
}

macro_rules! residents_of_slots {
    () => {
        fn residents(&self) -> BTreeSet<Key> {
            self.slots.residents()
        }
    };
}

/// Every use of every key by token, oldest first.
pub struct NaiveClassLru {
    slots: Slots,
    uses: BTreeMap<Key, Vec<u64>>,
    tokens: u64,
    half_life: f64,
}

impl NaiveClassLru {
    pub fn new(pool: &PoolShape, half_life: f64) -> Self {
        Self { slots: Slots::new(pool), uses: BTreeMap::new(), tokens: 0, half_life }
    }

    fn touched(&mut self, key: Key) {
        self.uses.entry(key).or_default().push(self.tokens);
    }

    fn class(&self, key: Key) -> i32 {
        let uses = &self.uses[&key];
        let mut crf = 0.0f64;
        for (index, &token) in uses.iter().enumerate() {
            let before = if index == 0 { 0 } else { uses[index - 1] };
            crf = crf * libm::exp2(-((token - before) as f64) / self.half_life) + 1.0;
        }
        (1..=7).filter(|&class| crf >= f64::from(1 << class)).count() as i32
    }
}

impl Naive for NaiveClassLru {
    fn hit(&mut self, key: Key) {
        self.touched(key);
        self.slots.touch(key);
    }

    /// The least recent of a class is also its oldest, so all residents may compete.
    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let ages: BTreeMap<Key, f64> = self
            .slots
            .residents()
            .into_iter()
            .map(|other| {
                let age = (self.tokens - self.uses[&other].last().unwrap()) as f64;
                (other, age / f64::from(1 << self.class(other)))
            })
            .collect();
        let left = self.slots.admit(key, may_evict, |other| -ages[&other])?;
        self.touched(key);
        Some(left)
    }

    fn begin_step(&mut self, tokens: u32) {
        self.tokens += u64::from(tokens);
    }

    residents_of_slots!();
}

/// Uses and the clock at the last of them.
pub struct NaiveLfru {
    slots: Slots,
    uses: BTreeMap<Key, (u64, u64)>,
    clock: u64,
    by_access: bool,
}

impl NaiveLfru {
    pub fn new(pool: &PoolShape, by_access: bool) -> Self {
        Self { slots: Slots::new(pool), uses: BTreeMap::new(), clock: 0, by_access }
    }
}

impl Naive for NaiveLfru {
    fn hit(&mut self, key: Key) {
        self.clock += u64::from(self.by_access);
        let (uses, _) = self.uses[&key];
        self.uses.insert(key, (uses + 1, self.clock));
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.clock += u64::from(self.by_access);
        // Numbers this small divide to the same double exactly if the quotients are equal.
        let left = self.slots.admit(key, may_evict, |other| {
            let (uses, last) = self.uses[&other];
            uses as f64 / (self.clock - last + 1) as f64
        })?;
        self.uses.insert(key, (1, self.clock));
        Some(left)
    }

    fn begin_event(&mut self, _: &Event<'_>) {
        self.clock += u64::from(!self.by_access);
    }

    residents_of_slots!();
}

/// Loads in order, and who was touched in this step.
pub struct NaiveLeastStale {
    loads: Vec<Key>,
    fresh: BTreeSet<Key>,
    capacity: usize,
}

impl NaiveLeastStale {
    pub fn new(pool: &PoolShape) -> Self {
        Self { loads: Vec::new(), fresh: BTreeSet::new(), capacity: pool.capacity as usize }
    }
}

impl Naive for NaiveLeastStale {
    fn hit(&mut self, key: Key) {
        self.fresh.insert(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let mut left = Vec::new();
        if self.loads.len() == self.capacity {
            let may_leave: Vec<Key> =
                self.loads.iter().copied().filter(|&other| may_evict(other)).collect();
            let stale = may_leave.iter().find(|&other| !self.fresh.contains(other));
            let victim = *stale.or(may_leave.first())?;
            self.loads.retain(|&other| other != victim);
            left.push(victim);
        }
        self.loads.push(key);
        self.fresh.insert(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.loads.iter().copied().collect()
    }

    fn begin_step(&mut self, _: u32) {
        self.fresh.clear();
    }
}

/// All accesses, from which the last of each window are counted.
pub struct NaiveDali {
    slots: Slots,
    pool: PoolShape,
    accesses: Vec<Key>,
    window: usize,
    hot: f64,
    each_layer: bool,
}

impl NaiveDali {
    pub fn new(pool: &PoolShape, window: usize, hot: f64, each_layer: bool) -> Self {
        let (slots, pool) = (Slots::new(pool), pool.clone());
        Self { slots, pool, accesses: Vec::new(), window, hot, each_layer }
    }

    fn is_hot(&self, key: Key) -> bool {
        let shares = |other: Key| {
            !self.each_layer || layer_of(&self.pool, other) == layer_of(&self.pool, key)
        };
        let window = self.accesses.iter().rev().filter(|&&other| shares(other)).take(self.window);
        window.filter(|&&other| other == key).count() as f64 >= self.hot * self.window as f64
    }
}

impl Naive for NaiveDali {
    fn hit(&mut self, key: Key) {
        self.accesses.push(key);
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.accesses.push(key);
        let residents = self.slots.residents();
        let hot: BTreeSet<Key> = residents.into_iter().filter(|&key| self.is_hot(key)).collect();
        self.slots.admit(key, may_evict, |other| if hot.contains(&other) { 1.0 } else { 0.0 })
    }

    residents_of_slots!();
}

/// Uses since admission.
pub struct NaiveHeatLru {
    slots: Slots,
    uses: BTreeMap<Key, u32>,
    max_uses: u32,
}

impl NaiveHeatLru {
    pub fn new(pool: &PoolShape, max_uses: u32) -> Self {
        Self { slots: Slots::new(pool), uses: BTreeMap::new(), max_uses }
    }
}

impl Naive for NaiveHeatLru {
    fn hit(&mut self, key: Key) {
        *self.uses.get_mut(&key).unwrap() += 1;
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let warm = |other| if self.uses[&other] > self.max_uses { 1.0 } else { 0.0 };
        let left = self.slots.admit(key, may_evict, warm)?;
        self.uses.insert(key, 1);
        Some(left)
    }

    residents_of_slots!();
}

/// Visits of all keys ever.
pub struct NaiveMoeInfinity {
    slots: Slots,
    pool: PoolShape,
    visits: Vec<u32>,
}

impl NaiveMoeInfinity {
    pub fn new(pool: &PoolShape) -> Self {
        let visits = vec![0; pool.keys as usize];
        Self { slots: Slots::new(pool), pool: pool.clone(), visits }
    }
}

impl Naive for NaiveMoeInfinity {
    fn hit(&mut self, key: Key) {
        self.visits[key as usize] += 1;
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let left = self.slots.admit(key, may_evict, |other| {
            let layer = layer_of(&self.pool, other);
            let expert = other - self.pool.layer_bases[layer];
            f64::from(self.visits[other as usize] * 10_000 + expert * 100) + layer as f64
        })?;
        self.visits[key as usize] += 1;
        Some(left)
    }

    residents_of_slots!();
}

/// Age over a fixed profile of halves and quarters, which floats hold exactly.
pub struct NaiveSemantic {
    slots: Slots,
}

impl NaiveSemantic {
    pub fn new(pool: &PoolShape) -> Self {
        Self { slots: Slots::new(pool) }
    }

    /// Expected uses a token, floor included: 1/2, 1, 2 in turn.
    pub fn expected(key: Key) -> f64 {
        [0.5, 1.0, 2.0][key as usize % 3]
    }
}

impl Naive for NaiveSemantic {
    fn hit(&mut self, key: Key) {
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let (touches, touched) = (self.slots.touches, self.slots.touched.clone());
        self.slots.admit(key, may_evict, |other| {
            -((touches - touched[&other] + 1) as f64) / Self::expected(other)
        })
    }

    residents_of_slots!();
}

/// Running averages. The harness's weights are 256ths, so nothing is rounded for 40 visits.
pub struct NaiveMrs {
    slots: Slots,
    pool: PoolShape,
    scores: Vec<f64>,
    alpha: f64,
}

impl NaiveMrs {
    pub fn new(pool: &PoolShape, alpha: f64) -> Self {
        let scores = vec![0.0; pool.keys as usize];
        Self { slots: Slots::new(pool), pool: pool.clone(), scores, alpha }
    }
}

impl Naive for NaiveMrs {
    fn hit(&mut self, key: Key) {
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.slots.admit(key, may_evict, |other| self.scores[other as usize])
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        for key in keys_of(&self.pool, event.layer as usize) {
            let rank = event.keys.iter().position(|&other| other == key);
            // In 255ths, as the policy has it: the last bit of a long history is part of the rule.
            let weight = rank.map_or(0.0, |rank| 255.0 * f64::from(event.weights[rank]));
            let score = &mut self.scores[key as usize];
            *score = self.alpha * weight + (1.0 - self.alpha) * *score;
        }
    }

    residents_of_slots!();
}

/// The last weight of each key, and its visits since admission.
pub struct NaiveFineMoe {
    slots: Slots,
    weights: BTreeMap<Key, f64>,
    visits: BTreeMap<Key, f64>,
    truncate: bool,
}

impl NaiveFineMoe {
    pub fn new(pool: &PoolShape, truncate: bool) -> Self {
        let (weights, visits) = (BTreeMap::new(), BTreeMap::new());
        Self { slots: Slots::new(pool), weights, visits, truncate }
    }
}

impl Naive for NaiveFineMoe {
    fn hit(&mut self, key: Key) {
        *self.visits.get_mut(&key).unwrap() += 1.0;
        self.slots.touch(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let left = self.slots.admit(key, may_evict, |other| {
            let product = self.weights[&other] * self.visits[&other];
            if self.truncate { product.floor() } else { product }
        })?;
        self.visits.insert(key, 1.0);
        Some(left)
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        for (&key, &weight) in event.keys.iter().zip(event.weights) {
            self.weights.insert(key, f64::from(weight));
        }
    }

    residents_of_slots!();
}

/// The keys of the largest counts.
pub struct NaiveStatic {
    chosen: BTreeSet<Key>,
    residents: BTreeSet<Key>,
}

impl NaiveStatic {
    pub fn new(pool: &PoolShape, counts: &[u64]) -> Self {
        let mut chosen = BTreeSet::new();
        while chosen.len() < pool.capacity as usize {
            let rest = (0..pool.keys).filter(|key| !chosen.contains(key));
            // The last of equal maxima is what max_by_key gives: the lowest key, from behind.
            let most = rest.rev().max_by_key(|&key| counts[key as usize]).unwrap();
            chosen.insert(most);
        }
        Self { chosen, residents: BTreeSet::new() }
    }
}

impl Naive for NaiveStatic {
    fn hit(&mut self, _: Key) {}

    fn admit(&mut self, key: Key, _: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        self.chosen.contains(&key).then(|| {
            self.residents.insert(key);
            Vec::new()
        })
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.residents.clone()
    }
}

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
