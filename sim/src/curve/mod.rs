//! LRU's misses at every capacity from one pass over a trace.
//!
//! Under sequential semantics LRU is a stack algorithm: a larger cache holds all that a smaller
//! one does, so one stack distance an access tells every capacity (Mattson et al., "Evaluation
//! techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). Under event semantics it
//! is not one, and `event.rs` says what takes its place. Both are exact: equal to
//! [`replay`](crate::replay()) in every count. Where an event needs more experts than its pool
//! has slots the cache admits nothing, and only a replay tells what follows: see
//! [`LruCurve::exact_from`].

mod below;
mod event;
mod recency;
mod sequential;
mod tally;

use hotset_policies::{ExpertId, Key, Slots};
use hotset_traces::{IdColumn, Phase, Shape, Trace};

use crate::drive::Lookout;
use crate::{
    Counts, EventSink, PhaseFilter, ReplayProgress, Scope, Semantics, SimError, Steps,
    drive_watched,
};
use event::EventStack;
use sequential::Stack;
use tally::Tally;

/// LRU's counts at every capacity.
#[derive(Debug, Clone)]
pub struct LruCurve {
    global: bool,
    tally: Tally,
    /// Experts of each pool, and the widest event that each layer has.
    keys: Vec<u32>,
    widest: Vec<u32>,
    warmup: bool,
}

/// What to replay.
#[derive(Debug, Clone, Copy)]
pub struct CurveSetting {
    /// One pool over all layers, or one a layer ([`Scope::Adaptive`] is one a layer).
    pub scope: Scope,
    /// Event or sequential.
    pub semantics: Semantics,
    /// The steps to replay.
    pub phase: PhaseFilter,
    /// Tokens that count as cold; `None`: all until the cache has first been full.
    pub warmup: Option<u64>,
}

impl LruCurve {
    /// Runs `trace` once. Memory: 24 bytes for each layer, phase and capacity.
    #[must_use]
    pub fn of(trace: &Trace, steps: &Steps, setting: &CurveSetting) -> Self {
        match Self::until(trace, (steps, &()), setting) {
            Ok(curve) => curve,
            Err(_) => unreachable!("nobody asks it to stop"),
        }
    }

    /// [`LruCurve::of`] that stops on the way when `progress` says so.
    ///
    /// # Errors
    /// [`SimError::Interrupted`].
    pub fn until(
        trace: &Trace,
        (steps, progress): (&Steps, &dyn ReplayProgress),
        setting: &CurveSetting,
    ) -> Result<Self, SimError> {
        match trace.ids() {
            IdColumn::U8(ids) => Self::of_ids(trace, ids, (steps, progress), setting),
            IdColumn::U16(ids) => Self::of_ids(trace, ids, (steps, progress), setting),
        }
    }

    fn of_ids<E: ExpertId>(
        trace: &Trace,
        ids: &[E],
        way: (&Steps, &dyn ReplayProgress),
        setting: &CurveSetting,
    ) -> Result<Self, SimError> {
        let shape = trace.shape();
        let layers = shape.layers().len();
        let global = setting.scope == Scope::Global;
        let wanted = |phase: Phase| setting.phase.wants(phase);
        let keys: Vec<u32> = match global {
            true => vec![shape.total_experts()],
            false => shape.layers().iter().map(|layer| layer.experts).collect(),
        };
        let of_layer = |layer: usize| if global { keys[0] } else { keys[layer] };
        let tally = Tally::new((0..layers).map(of_layer).collect(), setting.warmup);
        let (mut tally, widest) = match setting.semantics {
            Semantics::Sequential => {
                let mut run =
                    Sequential { tally, stacks: stacks(&keys), layers: rows(shape, global) };
                run.over(trace, ids, wanted, way.1)?;
                (run.tally, vec![1; layers])
            }
            Semantics::Event => {
                let mut widest = Widest(vec![0; layers]);
                drive_watched(trace, ids, way, wanted, &mut widest)?;
                let widest = widest.0;
                let stack = |(pool, &keys): (usize, &u32)| {
                    let of_pool = if global { widest.iter().max() } else { widest.get(pool) };
                    EventStack::new(keys, of_pool.copied().unwrap_or(0))
                };
                let stacks = keys.iter().enumerate().map(stack).collect();
                let mut run = Events { tally, stacks, layers: rows(shape, global) };
                drive_watched(trace, ids, way, wanted, &mut run)?;
                (run.tally, widest)
            }
        };
        tally.finish();
        Ok(Self { global, tally, keys, widest, warmup: setting.warmup.is_some() })
    }

    /// Bytes that the curve of a trace of this shape takes at most while it is made: counts at each
    /// capacity for each layer, and answers for each use and expert of an event.
    pub(crate) fn memory(shape: &Shape, scope: Scope) -> u64 {
        let most = u64::from(shape.max_experts());
        let of_pool = |keys: u64| {
            // Places of uses, twice the keys, with a bit for each expert of the widest event.
            2 * keys * (8 * most.div_ceil(64) + 16)
        };
        // Three counts a capacity, cold and steady, in each phase.
        let tally = |capacities: u64| 3 * 8 * 2 * Phase::ALL.len() as u64 * capacities;
        let layers = shape.layers().len() as u64;
        let total = u64::from(shape.total_experts());
        match scope {
            Scope::Global => of_pool(total).saturating_add(tally(total).saturating_mul(layers)),
            Scope::Layer | Scope::Adaptive => of_pool(total).saturating_add(tally(total)),
        }
    }

    /// The fewest slots of a layer's pool for which the curve is exact: as many as the widest
    /// event has experts (1 under sequential semantics). In global scope the same for all layers.
    #[must_use]
    pub fn exact_from(&self, layer: usize) -> u32 {
        let widest = if self.global { self.widest.iter().max() } else { self.widest.get(layer) };
        widest.map_or(1, |&widest| widest.max(1))
    }

    /// What a replay with these slots counts. `None` where this curve cannot tell: of the other
    /// scope, fewer slots than [`exact_from`](Self::exact_from), more than experts, or layers of
    /// unequal slots without a warm-up (which of them is full last is then decided by all layers
    /// together).
    #[must_use]
    pub fn counts(&self, slots: &Slots) -> Option<Counts> {
        let exact = |layer: usize, slots: u32| {
            slots >= self.exact_from(layer)
                && slots <= self.keys[if self.global { 0 } else { layer }]
        };
        match slots {
            Slots::Global(slots) if self.global => {
                exact(0, *slots).then(|| self.tally.counts(|_| *slots as usize))
            }
            Slots::Layer(each) if !self.global && each.len() == self.keys.len() => {
                let equal = each.iter().all(|slots| *slots == each[0]);
                let exact = each.iter().enumerate().all(|(layer, &slots)| exact(layer, slots));
                (exact && (equal || self.warmup))
                    .then(|| self.tally.counts(|layer| each[layer] as usize))
            }
            _ => None,
        }
    }

    /// Accesses of one layer over the whole run: its misses without a slot.
    #[must_use]
    pub fn accesses(&self, layer: usize) -> u64 {
        self.tally.accesses(layer)
    }

    /// Misses of one layer over the whole run, with `slots` slots in its pool; `None` as for
    /// [`counts`](Self::counts).
    #[must_use]
    pub fn misses(&self, layer: usize, slots: u32) -> Option<u64> {
        let most = *self.keys.get(if self.global { 0 } else { layer })?;
        let exact = (self.exact_from(layer)..=most).contains(&slots);
        exact.then(|| self.tally.misses(layer, slots as usize))
    }
}

fn stacks(keys: &[u32]) -> Vec<Stack> {
    keys.iter().map(|&keys| Stack::new(keys)).collect()
}

/// Where one layer's ids lie in a token's row, and which keys of which pool they are.
#[derive(Debug, Clone)]
struct LayerRow {
    ids: std::ops::Range<usize>,
    base: Key,
    pool: usize,
}

fn rows(shape: &Shape, global: bool) -> Vec<LayerRow> {
    let row = |(layer, of_shape): (usize, &hotset_traces::LayerShape)| {
        let start = shape.row_offset(layer);
        LayerRow {
            ids: start..start + of_shape.top_k as usize,
            base: if global { shape.key_base(layer) } else { 0 },
            pool: if global { 0 } else { layer },
        }
    };
    shape.layers().iter().enumerate().map(row).collect()
}

struct Sequential {
    tally: Tally,
    stacks: Vec<Stack>,
    layers: Vec<LayerRow>,
}

impl Sequential {
    fn over<E: ExpertId>(
        &mut self,
        trace: &Trace,
        ids: &[E],
        wanted: impl Fn(Phase) -> bool,
        progress: &dyn ReplayProgress,
    ) -> Result<(), SimError> {
        let row_len = trace.shape().row_len();
        let mut lookout = Lookout::new(progress);
        for (index, row) in ids.chunks_exact(row_len).enumerate() {
            let phase = trace.phase(index);
            if !wanted(phase) {
                continue;
            }
            lookout.pass(row_len)?;
            let filled = self.stacks.iter().map(Stack::distinct).min().unwrap_or(0);
            self.tally.begin_step(phase, 1, filled);
            for (layer, part) in self.layers.iter().enumerate() {
                let ids = &row[part.ids.clone()];
                let mut marks = self.tally.layer(layer, ids.len() as u32);
                let stack = &mut self.stacks[part.pool];
                for id in ids {
                    if let Some(distance) = stack.access(part.base + id.index()) {
                        marks.from(distance);
                    }
                }
            }
        }
        Ok(())
    }
}

struct Events {
    tally: Tally,
    stacks: Vec<EventStack>,
    layers: Vec<LayerRow>,
}

impl<E: ExpertId> EventSink<E> for Events {
    const WEIGHTS: bool = false;

    fn begin_step(&mut self, _: usize, phase: Phase, tokens: u32) {
        let filled = self.stacks.iter().map(EventStack::distinct).min().unwrap_or(0);
        self.tally.begin_step(phase, tokens, filled);
    }

    #[inline(always)]
    fn event(&mut self, layer: usize, experts: &[E], _: &[f32]) {
        let row = &self.layers[layer];
        let mut marks = self.tally.layer(layer, experts.len() as u32);
        self.stacks[row.pool].event(row.base, experts, &mut marks);
    }

    fn end_step(&mut self) {}
}

/// The most distinct experts that an event of each layer has.
struct Widest(Vec<u32>);

impl<E: ExpertId> EventSink<E> for Widest {
    const WEIGHTS: bool = false;

    fn begin_step(&mut self, _: usize, _: Phase, _: u32) {}

    fn event(&mut self, layer: usize, experts: &[E], _: &[f32]) {
        self.0[layer] = self.0[layer].max(experts.len() as u32);
    }

    fn end_step(&mut self) {}
}
