//! What the benches and the table share: the workload, the limit, and a replay of one policy.

#![allow(dead_code, reason = "each bench uses a part of it")]

use std::sync::OnceLock;

use hotset::policies::{Need, PolicySpec, Slots};
use hotset::sim::{
    Counts, Futures, PREFILL_CHUNK, PhaseFilter, Semantics, Setting, SimError, Steps, replay, uses,
};
use hotset::traces::{IdColumn, Ids, SynthConfig, Trace, TraceBuilder, Weights, synth};

/// Tokens of the full workload: 19.2 million accesses.
pub const TOKENS: usize = 50_000;

/// A synthetic trace of 48 layers of 128 experts with top-8, and a cache of a quarter of them.
pub struct Workload {
    pub trace: Trace,
    pub steps: Steps,
    /// The same accesses as dense keys, for the plain loop.
    pub keys: Vec<u16>,
    pub slots: u32,
    /// The same with every column that a policy may read.
    full: OnceLock<Trace>,
}

impl Workload {
    pub fn new(tokens: usize) -> Self {
        Self::of(synthetic(tokens))
    }

    /// A workload over another trace of that shape, such as one that was opened from a file.
    pub fn of(trace: Trace) -> Self {
        let shape = trace.shape();
        let mut keys = Vec::with_capacity(trace.ids().len());
        for row in 0..trace.tokens() {
            for layer in 0..shape.layers().len() {
                let base = shape.key_base(layer);
                keys.extend(trace.layer_ids(row, layer).iter().map(|id| (base + id) as u16));
            }
        }
        let (slots, steps) = (shape.total_experts() / 4, Steps::of(&trace, PREFILL_CHUNK));
        Self { trace, steps, keys, slots, full: OnceLock::new() }
    }

    pub fn accesses(&self) -> u64 {
        self.keys.len() as u64
    }

    /// One replay from an empty cache; a bound's pass over the future is part of it.
    pub fn replay(&self, policy: &PolicySpec, semantics: Semantics) -> Result<Counts, SimError> {
        let (needs, phase) = (policy.needs(), PhaseFilter::All);
        let setting = Setting {
            semantics,
            training: (needs == Need::Training).then(|| uses(&self.trace, phase)),
            ..Setting::new(policy.clone(), Slots::Global(self.slots))
        };
        let trace = match needs {
            Need::Weights | Need::Embeddings => self.full.get_or_init(|| in_full(&self.trace)),
            Need::Nothing | Need::Future | Need::Training => &self.trace,
        };
        let futures = Futures::new(trace, &self.steps, semantics, PhaseFilter::All);
        replay(trace, &self.steps, &futures, &setting)
    }
}

/// The default shape, 384 accesses a token.
pub fn synthetic(tokens: usize) -> Trace {
    let config = SynthConfig { tokens, seed: 20_261_129, ..SynthConfig::default() };
    synth::generate(&config).expect("the default shape is possible")
}

/// The ids of a trace, `times` over.
pub fn repeated(trace: &Trace, times: usize) -> Ids {
    match trace.ids() {
        IdColumn::U8(ids) => Ids::U8(ids.repeat(times)),
        IdColumn::U16(ids) => Ids::U16(ids.repeat(times)),
    }
}

/// As many accesses as a file of 200 million has, if `tokens` are [`TOKENS`]: the same tokens
/// eleven times over, for what they say does not matter to reading them.
pub fn large_trace(tokens: usize) -> Trace {
    let trace = synthetic(tokens);
    TraceBuilder::new("large", trace.shape().clone(), repeated(&trace, 11))
        .build()
        .expect("the trace was valid before")
}

/// Numbers of a prompt's embedding.
const DIMENSION: usize = 64;

/// Router weights that fall with the rank, and an embedding of ones and minus ones for each prompt, for
/// the policies that read them.
fn in_full(trace: &Trace) -> Trace {
    let sign = |place: usize| (place.wrapping_mul(0x9e37_79b9) >> 16) as u16 & 1;
    let embeddings: Vec<u16> =
        (0..trace.sequences().len() * DIMENSION).map(|at| 0x3c00 | sign(at) << 15).collect();
    let ids = repeated(trace, 1);
    let weights = (0..ids.view().len()).map(|at| (96 >> (at % 8)) as u8 + 1).collect();
    TraceBuilder::new(trace.name(), trace.shape().clone(), ids)
        .sequences(trace.sequences().to_vec())
        .weights(Weights::U8(weights))
        .embeddings(DIMENSION, embeddings.clone(), embeddings)
        .build()
        .expect("the trace was valid before")
}

/// Nodes of the plain loop: 6,144 keys and the sentinel, rounded up so that a mask bounds them.
const NODES: usize = 8192;
const SENTINEL: usize = NODES - 1;

/// The limit: LRU over a linked list in one array, one word of two links a key, nothing else. No
/// bounds checks are left and the list fits a processor's first cache. Returns the misses.
pub fn array_lru(keys: &[u16], capacity: u32) -> u64 {
    const ABSENT: u32 = u32::MAX;
    let mut nodes = Box::new([ABSENT; NODES]);
    let pack = |prev: usize, next: usize| (prev as u32) << 16 | next as u32;
    let prev = |node: u32| (node >> 16) as usize % NODES;
    let next = |node: u32| (node & 0xffff) as usize % NODES;
    nodes[SENTINEL] = pack(SENTINEL, SENTINEL);
    let (mut misses, mut room) = (0, capacity);
    for &key in keys {
        let key = key as usize % NODES;
        let node = nodes[key];
        if node != ABSENT {
            let (before, after) = (prev(node), next(node));
            nodes[before] = nodes[before] & 0xffff_0000 | after as u32;
            nodes[after] = nodes[after] & 0xffff | (before as u32) << 16;
        } else {
            misses += 1;
            if room == 0 {
                let victim = prev(nodes[SENTINEL]);
                let before = prev(nodes[victim]);
                nodes[victim] = ABSENT;
                nodes[before] = nodes[before] & 0xffff_0000 | SENTINEL as u32;
                nodes[SENTINEL] = nodes[SENTINEL] & 0xffff | (before as u32) << 16;
            } else {
                room -= 1;
            }
        }
        let first = next(nodes[SENTINEL]);
        nodes[key] = pack(SENTINEL, first);
        nodes[first] = nodes[first] & 0xffff | (key as u32) << 16;
        nodes[SENTINEL] = nodes[SENTINEL] & 0xffff_0000 | key as u32;
    }
    misses
}
