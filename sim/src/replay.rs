//! One setting replayed over one trace: the counting core.
//!
//! Event semantics drive the real cache, as an engine does. Sequential semantics take one access
//! at a time, as cache simulators do, and exist for parity with them.

use std::sync::Arc;

use hotset_policies::predict::AnyPredictor;
use hotset_policies::semantic::Guide;
use hotset_policies::{
    Anyone, Belady, Bound, Event, ExpertCache, ExpertId, Future, Key, Policy, PolicySpec,
    PoolShape, Slots, Visitor,
};
use hotset_traces::{IdColumn, Phase, Shape, Trace, WeightColumn};
use serde::{Deserialize, Serialize};

use crate::bypass::replay_bypass;
use crate::engine::{Engine, Habits};
use crate::forecast::{Forecaster, Guided};
use crate::{
    Counts, EventSink, Futures, Misses, Prefetch, Prefill, Scope, SimError, Steps, Timeline, drive,
};

/// How accesses reach the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Semantics {
    /// A layer's distinct experts arrive together and none of them may evict another.
    Event,
    /// One access at a time.
    Sequential,
}

impl Semantics {
    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Sequential => "sequential",
        }
    }
}

/// One cache to replay a trace through.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its policy.
    pub policy: PolicySpec,
    /// Its slots, and with them its scope.
    pub slots: Slots,
    /// Event or sequential.
    pub semantics: Semantics,
    /// The steps to replay; `None`: all.
    pub phase: Option<Phase>,
    /// Tokens that count as cold; `None`: all until the cache has first been full.
    pub warmup: Option<u64>,
    /// Uses of each dense key in a part of the trace that is not replayed, for policies that are
    /// trained.
    pub training: Option<Arc<[u64]>>,
    /// Who says what to prefetch.
    pub prefetch: Prefetch,
    /// The predictor as training left it; `None`: it begins knowing nothing.
    pub predictor: Option<Arc<AnyPredictor>>,
    /// The guide of a policy that goes by profiles, as training left it; `None`: it begins knowing
    /// no conversation.
    pub guide: Option<Arc<Guide>>,
    /// Bytes of an expert in each layer, for a prefetch budget; empty: unknown.
    pub expert_bytes: Vec<u64>,
    /// How prefill uses the cache.
    pub prefill: Prefill,
    /// What becomes of misses.
    pub misses: Misses,
    /// Slots from given tokens on, ascending, in the cache's scope.
    pub resizes: Vec<(u64, Slots)>,
}

impl Setting {
    /// A cache that fetches every miss, in event semantics, over all phases.
    #[must_use]
    pub fn new(policy: PolicySpec, slots: Slots) -> Self {
        Self {
            policy,
            slots,
            semantics: Semantics::Event,
            phase: None,
            warmup: None,
            prefetch: Prefetch::None,
            predictor: None,
            guide: None,
            expert_bytes: Vec::new(),
            prefill: Prefill::OnDemand,
            misses: Misses::Fetch,
            resizes: Vec::new(),
            training: None,
        }
    }

    /// Whether the cache is only asked for what each layer needs.
    fn is_plain(&self) -> bool {
        self.prefetch == Prefetch::None
            && self.prefill == Prefill::OnDemand
            && self.misses == Misses::Fetch
            && self.resizes.is_empty()
            && self.policy.guide().is_none()
    }

    fn scope(&self) -> Scope {
        match self.slots {
            Slots::Global(_) => Scope::Global,
            Slots::Layer(_) => Scope::Layer,
        }
    }
}

/// Replays `trace`, in `steps`, through one setting. `futures` serves the bounds and must be of
/// the same trace, steps, semantics and phase.
///
/// # Errors
/// The cache is impossible, or a bound cannot number the accesses.
pub fn replay(
    trace: &Trace,
    steps: &Steps,
    futures: &Futures<'_>,
    setting: &Setting,
) -> Result<Counts, SimError> {
    replay_timed(trace, steps, futures, setting, Vec::new()).map(|(counts, _)| counts)
}

/// [`replay`], followed by any number of timelines: one run of the cache, priced on every link.
///
/// # Errors
/// As [`replay`]; timelines, prefetch and the like without event semantics; a bound with prefetch;
/// a column that the prefetcher needs; slots that cannot be borrowed or changed.
pub fn replay_timed(
    trace: &Trace,
    steps: &Steps,
    futures: &Futures<'_>,
    setting: &Setting,
    timelines: Vec<Timeline>,
) -> Result<(Counts, Vec<Timeline>), SimError> {
    match trace.ids() {
        IdColumn::U8(ids) => replay_ids(trace, ids, steps, futures, setting, timelines),
        IdColumn::U16(ids) => replay_ids(trace, ids, steps, futures, setting, timelines),
    }
}

fn replay_ids<E: ExpertId + Default>(
    trace: &Trace,
    ids: &[E],
    steps: &Steps,
    futures: &Futures<'_>,
    setting: &Setting,
    timelines: Vec<Timeline>,
) -> Result<(Counts, Vec<Timeline>), SimError> {
    let needs_events = if !timelines.is_empty() {
        Some("a timeline")
    } else {
        (!setting.is_plain())
            .then_some("prefetch, a prefill mode, host misses, a schedule or the policy 'semantic'")
    };
    match needs_events {
        Some(what) if setting.semantics != Semantics::Event => Err(SimError::EventsOnly { what }),
        _ => setting.policy.visit(Run { trace, ids, steps, futures, setting, timelines }),
    }
}

/// Replays with whatever policy it is handed.
struct Run<'a, 'f, E> {
    trace: &'a Trace,
    ids: &'a [E],
    steps: &'a Steps,
    futures: &'a Futures<'f>,
    setting: &'a Setting,
    timelines: Vec<Timeline>,
}

impl<E: ExpertId + Default> Visitor for Run<'_, '_, E> {
    type Output = Result<(Counts, Vec<Timeline>), SimError>;

    fn online<P: Policy + Send>(self, build: impl Fn(&PoolShape) -> P) -> Self::Output {
        match self.setting.semantics {
            Semantics::Event => self.events(|_, pool| build(pool)),
            Semantics::Sequential => self.sequential(|_, pool| build(pool)),
        }
    }

    fn trained<P: Policy + Send>(self, build: impl Fn(&PoolShape, &[u64]) -> P) -> Self::Output {
        let counts = self.training()?;
        let build = |pool: usize, shape: &PoolShape| build(shape, &counts[pool]);
        match self.setting.semantics {
            Semantics::Event => self.events(build),
            Semantics::Sequential => self.sequential(build),
        }
    }

    fn offline(self, bound: Bound) -> Self::Output {
        let serves_all = self.setting.prefetch == Prefetch::None
            && self.setting.misses == Misses::Fetch
            && (bound == Bound::Belady || self.setting.is_plain());
        if !serves_all {
            let policy = self.setting.policy.info().name.to_owned();
            return Err(SimError::BoundAlone { policy });
        }
        if bound == Bound::BeladyBypass {
            let (experts, top_k) = dimensions(self.trace.shape());
            let pools = self.setting.slots.pools(&experts, &top_k)?;
            let capacities: Vec<u32> = pools.iter().map(|pool| pool.capacity).collect();
            return replay_bypass(
                (self.trace, self.ids, self.steps),
                self.futures,
                (self.setting.scope(), &capacities),
                self.setting.semantics,
                (self.setting.phase, self.setting.warmup),
                self.timelines,
            );
        }
        let futures = self.futures.of(self.setting.scope())?;
        let future = |pool: usize| -> Arc<Future> { Arc::clone(&futures[pool]) };
        match self.setting.semantics {
            Semantics::Event => self.events(|pool, shape| Belady::<true>::new(shape, future(pool))),
            Semantics::Sequential => {
                self.sequential(|pool, shape| Belady::<false>::new(shape, future(pool)))
            }
        }
    }
}

impl<'a, E: ExpertId + Default> Run<'a, '_, E> {
    /// Uses of the keys of each pool in the training part.
    fn training(&self) -> Result<Vec<Vec<u64>>, SimError> {
        let counts = self.setting.training.as_deref().ok_or_else(|| SimError::NeedsTraining {
            policy: self.setting.policy.info().name.to_owned(),
        })?;
        if self.setting.scope() == Scope::Global {
            return Ok(vec![counts.to_vec()]);
        }
        let mut left = counts;
        let layers = self.trace.shape().layers().iter();
        Ok(layers
            .map(|layer| {
                let (of_layer, rest) = left.split_at(layer.experts as usize);
                left = rest;
                of_layer.to_vec()
            })
            .collect())
    }

    fn wants(&self, phase: Phase) -> bool {
        self.setting.phase.is_none_or(|only| only == phase)
    }

    fn events<P: Policy>(
        self,
        build: impl FnMut(usize, &PoolShape) -> P,
    ) -> Result<(Counts, Vec<Timeline>), SimError> {
        let (experts, top_k) = dimensions(self.trace.shape());
        let cache = ExpertCache::new(&experts, &top_k, &self.setting.slots, build)?;
        if !(self.setting.is_plain() && self.timelines.is_empty()) {
            return self.engine(cache);
        }
        let mut sink = Counter {
            cache: cache.with_ordered_copies(),
            counts: Counts::new(experts.len()),
            phase: Phase::Decode,
            steady: false,
            tokens: 0,
            warmup: self.setting.warmup,
        };
        drive(self.trace, self.ids, self.steps, |phase| self.wants(phase), &mut sink);
        Ok((sink.counts, Vec::new()))
    }

    fn engine<P: Policy>(self, cache: ExpertCache<P>) -> Result<(Counts, Vec<Timeline>), SimError> {
        let setting = self.setting;
        let borrowed = match setting.prefill {
            Prefill::Streamed => Prefill::borrowed(self.trace.shape(), &setting.slots)?,
            _ => 0,
        };
        let habits = Habits {
            forecaster: self.forecaster()?,
            guided: self.guided()?,
            expert_bytes: setting.expert_bytes.clone(),
            prefill: setting.prefill,
            misses: setting.misses,
            resizes: &setting.resizes,
            warmup: setting.warmup,
        };
        let wants = |phase| setting.phase.is_none_or(|only| only == phase);
        let shape = self.trace.shape();
        let mut engine = Engine::new(cache, shape, habits, borrowed, self.timelines);
        drive(self.trace, self.ids, self.steps, wants, &mut engine);
        Ok(engine.finish()?)
    }

    fn guided(&self) -> Result<Option<Guided<'a>>, SimError> {
        let setting = self.setting;
        let Some(config) = setting.policy.guide() else { return Ok(None) };
        let config = (setting.policy.info().name, &config);
        let trained = setting.guide.as_deref();
        Guided::of(self.trace, self.steps, setting.phase, config, trained).map(Some)
    }

    fn forecaster(&self) -> Result<Option<Forecaster<'a>>, SimError> {
        let setting = self.setting;
        let Prefetch::By(forecast) = &setting.prefetch else { return Ok(None) };
        let control = &forecast.control;
        if control.budget_bytes().is_some() && setting.expert_bytes.iter().all(|&bytes| bytes == 0)
        {
            return Err(SimError::BudgetNeedsSize);
        }
        if control.cancel && !matches!(&self.timelines[..], [only] if only.can_cancel()) {
            return Err(SimError::CancelNeedsOneLink);
        }
        if forecast.needs_training() && setting.predictor.is_none() {
            let name = forecast.source.info().name.to_owned();
            return Err(SimError::UntrainedPredictor { name });
        }
        let predictor = setting.predictor.as_deref();
        Forecaster::of(self.trace, self.steps, setting.phase, forecast, predictor).map(Some)
    }

    fn sequential<P: Policy>(
        &self,
        mut build: impl FnMut(usize, &PoolShape) -> P,
    ) -> Result<(Counts, Vec<Timeline>), SimError> {
        let shape = self.trace.shape();
        let (experts, top_k) = dimensions(shape);
        let mut pools: Vec<P> = self
            .setting
            .slots
            .pools(&experts, &top_k)?
            .iter()
            .enumerate()
            .map(|(index, pool)| build(index, pool))
            .collect();
        let global = pools.len() == 1;
        let layers: Vec<LayerRow> = (0..experts.len())
            .map(|layer| LayerRow {
                ids: shape.row_offset(layer)..shape.row_offset(layer) + top_k[layer] as usize,
                base: if global { shape.key_base(layer) } else { 0 },
                pool: if global { 0 } else { layer },
                in_pool: if global { layer as u32 } else { 0 },
            })
            .collect();
        let capacity = self.setting.slots.total();
        let mut counts = Counts::new(layers.len());
        let (mut steady, mut tokens) = (self.setting.warmup == Some(0), 0);
        for row in 0..self.trace.tokens() {
            let phase = self.trace.phase(row);
            if !self.wants(phase) {
                continue;
            }
            if P::OBSERVES {
                pools.iter_mut().for_each(|pool| pool.begin_step(1));
            }
            let start = row * shape.row_len();
            let ids = &self.ids[start..start + shape.row_len()];
            let bucket = counts.bucket_mut(phase, steady);
            bucket.tokens += 1;
            bucket.accesses += ids.len() as u64;
            for (layer, part) in layers.iter().enumerate() {
                let weights_at = P::READS_WEIGHTS
                    .then(|| self.trace.weights())
                    .flatten()
                    .map(|weights| (weights, start + part.ids.start));
                let misses = access_all(
                    &mut pools[part.pool],
                    &ids[part.ids.clone()],
                    (part.base, part.in_pool),
                    weights_at,
                );
                bucket.hits += part.ids.len() as u64 - misses;
                bucket.demand_fetches[layer] += misses;
            }
            tokens += 1;
            if !steady {
                steady = match self.setting.warmup {
                    Some(warmup) => tokens >= warmup,
                    None => pools.iter().map(Policy::len).sum::<u32>() == capacity,
                };
            }
        }
        Ok((counts, Vec::new()))
    }
}

/// Where one layer's ids lie in a token's row, and which keys of which pool they are.
struct LayerRow {
    ids: std::ops::Range<usize>,
    base: Key,
    pool: usize,
    in_pool: u32,
}

/// One layer's accesses of one token, one after another. Returns the misses.
#[inline(always)]
fn access_all<P: Policy, E: ExpertId>(
    policy: &mut P,
    ids: &[E],
    (base, layer): (Key, u32),
    weights_at: Option<(WeightColumn<'_>, usize)>,
) -> u64 {
    let mut misses = 0;
    for (rank, id) in ids.iter().enumerate() {
        let key = base + id.index();
        if P::OBSERVES {
            let weight = weights_at.map(|(weights, start)| weights.get(start + rank));
            policy.begin_event(&Event { layer, keys: &[key], weights: weight.as_slice() });
        }
        if policy.contains(key) {
            policy.hit(key);
        } else {
            misses += 1;
            policy.admit(key, &mut Anyone);
        }
    }
    misses
}

/// Counts the plans of the real cache.
struct Counter<P> {
    cache: ExpertCache<P>,
    counts: Counts,
    phase: Phase,
    steady: bool,
    tokens: u64,
    warmup: Option<u64>,
}

impl<P: Policy, E: ExpertId> EventSink<E> for Counter<P> {
    const WEIGHTS: bool = P::READS_WEIGHTS;

    #[inline(always)]
    fn begin_step(&mut self, _: usize, phase: Phase, tokens: u32) {
        self.steady = match self.warmup {
            Some(warmup) => self.tokens >= warmup,
            None => self.steady || self.cache.resident() == self.cache.capacity(),
        };
        self.phase = phase;
        self.tokens += u64::from(tokens);
        self.counts.bucket_mut(phase, self.steady).tokens += u64::from(tokens);
        self.cache.begin_step(tokens);
    }

    #[inline(always)]
    fn event(&mut self, layer: usize, experts: &[E], weights: &[f32]) {
        let plan = self.cache.demand_weighted(layer, experts, weights);
        let bucket = self.counts.bucket_mut(self.phase, self.steady);
        bucket.accesses += u64::from(plan.distinct());
        bucket.hits += u64::from(plan.hits);
        bucket.demand_fetches[layer] += u64::from(plan.fetches + plan.unplaced);
        bucket.unplaced += u64::from(plan.unplaced);
        bucket.overflow_events += u64::from(plan.overflow);
        self.cache.release(layer);
    }

    fn end_step(&mut self) {}
}

/// Experts and top-k of each layer.
fn dimensions(shape: &Shape) -> (Vec<u32>, Vec<u32>) {
    shape.layers().iter().map(|layer| (layer.experts, layer.top_k)).unzip()
}
