//! Hits at every capacity, by phase, window and layer, as differences until the end.

use hotset_traces::Phase;

use crate::Counts;
use crate::meter::RunClock;

/// Counts of one phase (with a warm-up: of one phase and window) in one layer.
#[derive(Debug, Clone)]
struct Line {
    accesses: u64,
    /// `hits[c]`: by how much the hits at capacity `c` exceed those at `c - 1`; sums in the end.
    hits: Vec<i64>,
    /// Of the hits, those before the cache of that capacity was full.
    cold_hits: Vec<i64>,
    /// `cold_accesses[n]`: accesses in steps that began with `n` slots filled; in the end the sum
    /// over all fewer, which are the accesses before a cache of `n` slots was full.
    cold_accesses: Vec<u64>,
}

#[derive(Debug, Clone)]
struct Bank {
    tokens: u64,
    /// As `Line::cold_accesses`.
    cold_tokens: Vec<u64>,
    lines: Vec<Line>,
}

/// Collects hits while a trace runs.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// Keys of each layer's pool.
    keys: Vec<u32>,
    /// `[phase][cold, steady]`; without a warm-up only the first of each pair is used.
    banks: Vec<Option<Bank>>,
    /// Whether cold and steady are told apart by tokens.
    by_warmup: bool,
    clock: RunClock,
    current: usize,
    /// Slots that are filled, whatever the capacity, as the step begins.
    filled: u32,
}

impl Tally {
    /// `keys[l]`: experts in the pool of layer `l`.
    pub fn new(keys: Vec<u32>, warmup: Option<u64>) -> Self {
        let banks = vec![None; 2 * Phase::ALL.len()];
        let (by_warmup, clock) = (warmup.is_some(), RunClock::new(warmup));
        Self { keys, banks, by_warmup, clock, current: 0, filled: 0 }
    }

    /// A step begins with `filled` distinct keys in the least filled pool.
    pub fn begin_step(&mut self, phase: Phase, tokens: u32, filled: u32) {
        // When a cache is full depends on its capacity: that is told apart in the end.
        self.clock.begin_step(phase, tokens, || false);
        self.current = 2 * phase as usize + usize::from(self.clock.is_steady());
        self.filled = filled;
        let bank = self.banks[self.current].get_or_insert_with(|| {
            let line = |&keys: &u32| Line {
                accesses: 0,
                hits: vec![0; keys as usize + 2],
                cold_hits: vec![0; keys as usize + 2],
                cold_accesses: vec![0; keys as usize + 2],
            };
            let most = self.keys.iter().max().map_or(0, |&keys| keys as usize);
            Bank {
                tokens: 0,
                cold_tokens: vec![0; most + 2],
                lines: self.keys.iter().map(line).collect(),
            }
        });
        bank.tokens += u64::from(tokens);
        bank.cold_tokens[filled as usize] += u64::from(tokens);
    }

    /// Where one layer's accesses of the running step are counted.
    #[inline(always)]
    pub fn layer(&mut self, layer: usize, accesses: u32) -> Marks<'_> {
        // `begin_step` made the bank.
        let line = self.banks[self.current].as_mut().map(|bank| &mut bank.lines[layer]);
        let line = line.expect("a step has begun");
        line.accesses += u64::from(accesses);
        line.cold_accesses[self.filled as usize] += u64::from(accesses);
        Marks { hits: &mut line.hits, cold_hits: &mut line.cold_hits, filled: self.filled, late: 0 }
    }

    /// Sums the differences up.
    pub fn finish(&mut self) {
        for bank in self.banks.iter_mut().flatten() {
            below(&mut bank.cold_tokens);
            for line in &mut bank.lines {
                up_to(&mut line.hits);
                up_to(&mut line.cold_hits);
                below(&mut line.cold_accesses);
            }
        }
    }

    /// The counts with `slots[l]` slots in the pool of layer `l`; after [`finish`](Self::finish).
    /// Without a warm-up all layers must have the same slots.
    pub fn counts(&self, slots: impl Fn(usize) -> usize) -> Counts {
        let mut counts = Counts::new(self.keys.len());
        for (index, bank) in self.banks.iter().enumerate() {
            let Some(bank) = bank else { continue };
            let phase = Phase::ALL[index / 2];
            let by_fill = !self.by_warmup;
            let steady = counts.bucket_mut(phase, by_fill || index % 2 == 1);
            steady.tokens += bank.tokens;
            for (layer, line) in bank.lines.iter().enumerate() {
                let hits = line.hits[slots(layer)] as u64;
                steady.accesses += line.accesses;
                steady.hits += hits;
                steady.demand_fetches[layer] += line.accesses - hits;
            }
            if !by_fill {
                continue;
            }
            let tokens = bank.cold_tokens[slots(0)];
            steady.tokens -= tokens;
            let mut moved = vec![(0, 0); bank.lines.len()];
            for (layer, (line, moved)) in bank.lines.iter().zip(&mut moved).enumerate() {
                let hits = line.cold_hits[slots(layer)] as u64;
                *moved = (line.cold_accesses[slots(layer)], hits);
                steady.accesses -= moved.0;
                steady.hits -= hits;
                steady.demand_fetches[layer] -= moved.0 - hits;
            }
            let cold = counts.bucket_mut(phase, false);
            cold.tokens += tokens;
            for (layer, (accesses, hits)) in moved.into_iter().enumerate() {
                cold.accesses += accesses;
                cold.hits += hits;
                cold.demand_fetches[layer] += accesses - hits;
            }
        }
        counts
    }

    /// Accesses of one layer over everything that ran.
    pub fn accesses(&self, layer: usize) -> u64 {
        self.banks.iter().flatten().map(|bank| bank.lines[layer].accesses).sum()
    }

    /// Misses of one layer over everything that ran; after [`finish`](Self::finish).
    pub fn misses(&self, layer: usize, slots: usize) -> u64 {
        let lines = self.banks.iter().flatten().map(|bank| &bank.lines[layer]);
        lines.map(|line| line.accesses - line.hits[slots] as u64).sum()
    }
}

/// One layer's line with the running step's fill.
pub(super) struct Marks<'a> {
    hits: &'a mut [i64],
    cold_hits: &'a mut [i64],
    filled: u32,
    /// Hits at capacities that were full when the step began.
    late: i64,
}

impl Marks<'_> {
    /// An access that hits at every capacity from `least` on.
    #[inline(always)]
    pub fn from(&mut self, least: u32) {
        self.hits[least as usize] += 1;
        if least > self.filled {
            self.cold_hits[least as usize] += 1;
        } else {
            self.late += 1;
        }
    }

    /// An access that hits at the capacities from `least` to below `end`.
    pub fn between(&mut self, least: u32, end: u32) {
        self.hits[least as usize] += 1;
        self.hits[end as usize] -= 1;
        let cold = least.max(self.filled + 1);
        if cold < end {
            self.cold_hits[cold as usize] += 1;
            self.cold_hits[end as usize] -= 1;
        }
    }
}

impl Drop for Marks<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cold_hits[self.filled as usize + 1] += self.late;
    }
}

/// Each entry becomes the sum of all entries up to it.
fn up_to(values: &mut [i64]) {
    let mut sum = 0;
    for value in values {
        sum += *value;
        *value = sum;
    }
}

/// Each entry becomes the sum of all entries before it.
fn below(values: &mut [u64]) {
    let mut sum = 0;
    for value in values {
        sum += std::mem::replace(value, sum);
    }
}
