//! Who is resident, by layer and cell of td-table's table, and which cells may hold the next victim.
//!
//! All experts of a cell are worth the same but for how far their layers are, and of those the
//! layer whose turn is furthest away is worth the least: so a cell has one candidate, and the
//! victim is the least of the cells' candidates. Distance takes at most gamma off, so that an event
//! has few cells that are worth little enough: they are sought once and looked at for each victim.

use super::value_table::{CELLS, ValueTable};
use crate::policy::{Key, PoolShape};
use crate::structures::memory::{array, sum};

/// Marks an absent key.
const ABSENT: u32 = u32::MAX;
/// Cells without residents from which on they are taken out of the list.
const EMPTIES: usize = 32;
/// How much more than the least a cell may be worth to be near it, beyond what distance takes off,
/// so that one event's victims are all near.
const NEAR: f64 = 1.02;
/// Cells that are looked through together.
const LANES: usize = 8;

/// The residents of a pool.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// First key of each layer, and the number of keys.
    bases: Vec<Key>,
    /// Residents of each layer, from the layer's first key's place on, and how many they are.
    lists: Vec<Key>,
    lens: Vec<u32>,
    /// The cells of those in the lists.
    list_cells: Vec<u16>,
    /// The place of each key in its layer's list.
    places: Vec<u32>,
    /// By cell: a bit for each layer that has a resident there.
    layers: Vec<u64>,
    /// Words of bits a cell.
    words: usize,
    /// Cells with residents, and some without.
    known: Vec<u16>,
    /// By cell: whether it is among them.
    is_known: Vec<bool>,
    /// Their number from which on the empty are taken out.
    longest: usize,
    /// What they are worth, the empty infinitely much.
    values: Vec<f32>,
    /// Those of them that are worth less than the bound, unless values have moved since.
    near: Vec<u16>,
    bound: f32,
    /// gamma^(d/L), by distance d in layers.
    discounts: Vec<f64>,
    /// Whether the discounts are far enough apart for a cell to have one candidate.
    apart: bool,
}

impl Held {
    pub(super) fn new(pool: &PoolShape, gamma: f64) -> Self {
        let layers = pool.layers();
        let words = (layers as usize).div_ceil(64);
        let power = |off| libm::pow(gamma, f64::from(off) / f64::from(layers));
        let discounts: Vec<f64> = (0..=layers).map(power).collect();
        Self {
            bases: pool.layer_bases.iter().copied().chain([pool.keys]).collect(),
            lists: vec![0; pool.keys as usize],
            lens: vec![0; layers as usize],
            list_cells: vec![0; pool.keys as usize],
            places: vec![ABSENT; pool.keys as usize],
            layers: vec![0; CELLS * words],
            words,
            known: Vec::with_capacity(CELLS),
            is_known: vec![false; CELLS],
            longest: EMPTIES,
            values: vec![0.0; CELLS],
            near: Vec::with_capacity(CELLS + 1),
            bound: 0.0,
            apart: discounts.windows(2).all(|pair| pair[1] < pair[0] * (1.0 - 1e-12)),
            discounts,
        }
    }

    /// Bytes that the residents of such a pool allocate.
    pub(super) fn memory(pool: &PoolShape) -> u64 {
        let layers = u64::from(pool.layers());
        sum([
            array::<(Key, u32)>(pool.keys),
            array::<u16>(pool.keys),
            array::<(Key, f64)>(layers + 1),
            array::<u32>(layers),
            array::<u64>(layers.div_ceil(64).saturating_mul(CELLS as u64)),
            array::<(u16, u16, f32)>(CELLS as u64),
            array::<bool>(CELLS as u64),
        ])
    }

    #[inline(always)]
    pub(super) fn contains(&self, key: Key) -> bool {
        self.places[key as usize] != ABSENT
    }

    #[inline(always)]
    fn residents(&self, layer: usize) -> &[Key] {
        let base = self.bases[layer] as usize;
        &self.lists[base..base + self.lens[layer] as usize]
    }

    /// The layer's residents are in no cell any more.
    #[inline(always)]
    pub(super) fn lift(&mut self, layer: usize) {
        let (base, len) = (self.bases[layer] as usize, self.lens[layer] as usize);
        let (word, bit) = (layer / 64, 1u64 << (layer % 64));
        for &cell in &self.list_cells[base..base + len] {
            self.layers[usize::from(cell) * self.words + word] &= !bit;
        }
    }

    /// They are in these.
    #[inline(always)]
    pub(super) fn lay(&mut self, layer: usize, cells: &[u16]) {
        self.bound = 0.0;
        let (base, len) = (self.bases[layer] as usize, self.lens[layer] as usize);
        let (word, bit) = (layer / 64, 1u64 << (layer % 64));
        let mut known = true;
        let keys = &self.lists[base..base + len];
        for (&key, of_key) in keys.iter().zip(&mut self.list_cells[base..base + len]) {
            let cell = cells[key as usize];
            *of_key = cell;
            self.layers[usize::from(cell) * self.words + word] |= bit;
            known &= self.is_known[usize::from(cell)];
        }
        if !known {
            for place in base..base + len {
                self.know(self.list_cells[place]);
            }
        }
    }

    #[inline(always)]
    fn know(&mut self, cell: u16) {
        if !std::mem::replace(&mut self.is_known[usize::from(cell)], true) {
            self.known.push(cell);
        }
    }

    /// A key of the layer comes in.
    #[inline(always)]
    pub(super) fn insert(&mut self, layer: usize, key: Key, (cell, value): (u16, f32)) {
        let len = &mut self.lens[layer];
        let place = (self.bases[layer] + *len) as usize;
        (self.lists[place], self.list_cells[place]) = (key, cell);
        self.places[key as usize] = *len;
        *len += 1;
        self.layers[usize::from(cell) * self.words + layer / 64] |= 1 << (layer % 64);
        self.know(cell);
        if value < self.bound && !self.near.contains(&cell) {
            self.near.push(cell);
        }
    }

    /// A key of the layer leaves.
    #[inline(always)]
    pub(super) fn remove(&mut self, layer: usize, key: Key) {
        let base = self.bases[layer] as usize;
        let place = base + std::mem::replace(&mut self.places[key as usize], ABSENT) as usize;
        self.lens[layer] -= 1;
        let last = base + self.lens[layer] as usize;
        let cell = self.list_cells[place];
        (self.lists[place], self.list_cells[place]) = (self.lists[last], self.list_cells[last]);
        if place != last {
            self.places[self.lists[place] as usize] = (place - base) as u32;
        }
        if place_of(cell, &self.list_cells[base..last], 0).is_none() {
            let bits = &mut self.layers[usize::from(cell) * self.words + layer / 64];
            *bits &= !(1 << (layer % 64));
        }
    }

    /// The least worth resident that may leave, as of `layer`'s turn, of equals the one with the
    /// lowest tick.
    #[inline(always)]
    pub(super) fn least(
        &mut self,
        layer: usize,
        (cells, ticks): (&[u16], &[u64]),
        table: &ValueTable,
        may_leave: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        let mut found = self.least_near(layer, table);
        if found.0 >= self.near_from() {
            self.find_near(table);
            found = self.least_near(layer, table);
        }
        let (worth, cell, one) = found;
        if self.apart && one && worth > 0.0 {
            let furthest = self.furthest(cell, layer);
            let (base, len) = (self.bases[furthest] as usize, self.lens[furthest] as usize);
            let (keys, of_keys) =
                (&self.lists[base..base + len], &self.list_cells[base..base + len]);
            let (mut least, mut from) = ((u64::MAX, None), 0);
            while let Some(place) = place_of(cell, of_keys, from) {
                let (key, tick) = (keys[place], ticks[keys[place] as usize]);
                if tick < least.0 && may_leave(key) {
                    least = (tick, Some(key));
                }
                from = place + 1;
            }
            if least.1.is_some() {
                return least.1;
            }
        }
        self.least_of_all(layer, (cells, ticks), table, may_leave)
    }

    /// What a candidate of a cell that is not near is worth at least.
    #[inline(always)]
    fn near_from(&self) -> f64 {
        f64::from(self.bound) * self.discounts[self.discounts.len() - 1]
    }

    /// The lowest worth of the near cells' candidates, its cell, and whether it is the only one.
    #[inline(always)]
    fn least_near(&self, layer: usize, table: &ValueTable) -> (f64, u16, bool) {
        let mut least = (f64::INFINITY, 0, false);
        if self.bound == 0.0 {
            return least;
        }
        for &cell in &self.near {
            if is_empty(&self.layers, self.words, cell) {
                continue;
            }
            let off = self.ahead(self.furthest(cell, layer), layer);
            let worth = f64::from(table.value(cell)) * self.discounts[off];
            if worth < least.0 {
                least = (worth, cell, true);
            } else if worth == least.0 {
                least.2 = false;
            }
        }
        least
    }

    /// Seeks the cells that are worth little enough.
    #[inline(always)]
    fn find_near(&mut self, table: &ValueTable) {
        if self.known.len() > self.longest {
            self.forget_empties();
        }
        let values = &mut self.values[..self.known.len()];
        let (layers, words) = (&self.layers[..], self.words);
        for (value, &cell) in values.iter_mut().zip(&self.known) {
            let empty = is_empty(layers, words, cell);
            *value = if empty { f32::INFINITY } else { table.value(cell) };
        }
        let furthest = self.discounts[self.discounts.len() - 1];
        self.bound = (NEAR * f64::from(least_of(values)) / furthest) as f32;
        // Whether a cell is near is hard to guess: all are written, and the list grows by some.
        self.near.resize(values.len() + 1, 0);
        let (mut near, bound, list) = (0, self.bound, &mut self.near[..]);
        for (&value, &cell) in values.iter().zip(&self.known) {
            list[near] = cell;
            near += usize::from(value < bound);
        }
        self.near.truncate(near);
    }

    #[cold]
    fn forget_empties(&mut self) {
        let Self { known, is_known, layers, words, .. } = self;
        known.retain(|&cell| {
            let kept = !is_empty(layers, *words, cell);
            is_known[usize::from(cell)] = kept;
            kept
        });
        self.longest = known.len() + known.len() / 4 + EMPTIES;
    }

    /// Of the layers with residents in a cell that has some, the one whose turn after `layer`'s is
    /// furthest away: `layer` itself, or else the nearest before it, around.
    #[inline(always)]
    fn furthest(&self, cell: u16, layer: usize) -> usize {
        let up_to = u64::MAX >> (63 - layer % 64);
        if self.words > 1 {
            return self.furthest_of_many(cell, layer, up_to);
        }
        let bits = self.layers[usize::from(cell)];
        let before = bits & up_to;
        63 - (if before == 0 { bits } else { before }).leading_zeros() as usize
    }

    #[cold]
    fn furthest_of_many(&self, cell: u16, layer: usize, up_to: u64) -> usize {
        let bits = &self.layers[usize::from(cell) * self.words..][..self.words];
        let here = layer / 64;
        let words = [(here, bits[here] & up_to)].into_iter();
        let others = (0..here).rev().chain((here..self.words).rev());
        let found = words.chain(others.map(|word| (word, bits[word]))).find(|&(_, bits)| bits != 0);
        found.map_or(layer, |(word, bits)| word * 64 + 63 - bits.leading_zeros() as usize)
    }

    /// Layers from `layer` to the next turn of `other`.
    #[inline(always)]
    fn ahead(&self, other: usize, layer: usize) -> usize {
        other + (if other > layer { 0 } else { self.lens.len() }) - layer
    }

    /// The definition: looks at every resident.
    #[cold]
    fn least_of_all(
        &self,
        layer: usize,
        (cells, ticks): (&[u16], &[u64]),
        table: &ValueTable,
        may_leave: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        let mut least: Option<((f64, u64), Key)> = None;
        for of in 0..self.lens.len() {
            let discount = self.discounts[self.ahead(of, layer)];
            for &key in self.residents(of) {
                let worth = f64::from(table.value(cells[key as usize])) * discount;
                let score = (worth, ticks[key as usize]);
                if least.is_none_or(|(lowest, _)| score < lowest) && may_leave(key) {
                    least = Some((score, key));
                }
            }
        }
        least.map(|(_, key)| key)
    }

    /// Residents in all.
    pub(super) fn len(&self) -> u32 {
        self.lens.iter().sum()
    }

    pub(super) fn validate(&self, cells: &[u16]) -> Result<(), String> {
        let mut expected = vec![0u64; CELLS * self.words];
        for layer in 0..self.lens.len() {
            for (place, &key) in self.residents(layer).iter().enumerate() {
                let cell = cells[key as usize];
                expected[usize::from(cell) * self.words + layer / 64] |= 1 << (layer % 64);
                if self.places[key as usize] as usize != place {
                    return Err(format!("key {key} is not at its place {place}"));
                }
                if self.list_cells[self.bases[layer] as usize + place] != cell {
                    return Err(format!("key {key} is not in cell {cell}"));
                }
                if !self.is_known[usize::from(cell)] || !self.known.contains(&cell) {
                    return Err(format!("cell {cell} has residents and is not known"));
                }
            }
        }
        if expected != self.layers {
            return Err("cells do not tell which layers are in them".to_owned());
        }
        Ok(())
    }
}

/// Whether no layer has a resident in the cell.
#[inline(always)]
fn is_empty(layers: &[u64], words: usize, cell: u16) -> bool {
    match words {
        1 => layers[usize::from(cell)] == 0,
        _ => layers[usize::from(cell) * words..][..words].iter().all(|&bits| bits == 0),
    }
}

/// The lowest of some values.
#[inline(always)]
fn least_of(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] < lanes[lane] { chunk[lane] } else { lanes[lane] };
        }
    }
    let all = lanes.iter().chain(rest);
    all.fold(f32::INFINITY, |least, &value| if value < least { value } else { least })
}

/// The place in a list of cells, from `from` on, of one of them.
#[inline(always)]
fn place_of(cell: u16, cells: &[u16], from: usize) -> Option<usize> {
    let mut place = from;
    while let Some(chunk) = cells[place..].first_chunk::<LANES>() {
        let mut any = 0;
        for &other in chunk {
            any |= u16::from(other == cell);
        }
        if any != 0 {
            break;
        }
        place += LANES;
    }
    cells[place..].iter().position(|&other| other == cell).map(|at| place + at)
}
