//! One setting replayed over one trace: the counting core.
//!
//! Event semantics drive the real cache, as an engine does. Sequential semantics take one access
//! at a time, as cache simulators do, and exist for parity with them. What is compiled for each
//! policy is compiled three times: the plain cache, the engine around it, and one access at a
//! time; nothing else is generic over policies.

use std::sync::Arc;

use hotset_policies::miss::{MissDispatcher, MissHandler};
use hotset_policies::{Belady, Bound, ExpertCache, Future, Key, Policy, PoolShape, Visitor};
use hotset_traces::{Phase, Trace};

use crate::bypass::replay_bypass;
use crate::capacity::dimensions;
use crate::columns::check_misses;
use crate::drive::{EventSink, Way, drive_wide};
use crate::engine::{Engine, EngineParts};
use crate::forecast::{Forecaster, GuidedPolicy, ProfileFollower};
use crate::host_side::HostSide;
use crate::meter::{Meter, Served};
use crate::placing::placed;
use crate::prefetching::Prefetching;
use crate::prefill::PrefillService;
use crate::sequential;
use crate::{
    Counts, Device, Futures, Prefetch, ReplayProgress, Scope, Semantics, Setting, SimError, Steps,
    Timeline,
};

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

/// [`replay`] that stops on the way when `progress` says so.
///
/// # Errors
/// As [`replay`]; [`SimError::Interrupted`].
pub fn replay_until(
    trace: &Trace,
    (steps, progress): (&Steps, &dyn ReplayProgress),
    futures: &Futures<'_>,
    setting: &Setting,
) -> Result<Counts, SimError> {
    let way = &Way::new(steps, progress);
    replay_watched(trace, way, futures, setting, Vec::new()).map(|(counts, _)| counts)
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
    replay_watched(trace, &Way::new(steps, &()), futures, setting, timelines)
}

/// [`replay_timed`] that stops on the way when it is asked to.
///
/// # Errors
/// As [`replay_timed`]; [`SimError::Interrupted`].
pub(crate) fn replay_watched(
    trace: &Trace,
    way: &Way<'_>,
    futures: &Futures<'_>,
    setting: &Setting,
    timelines: Vec<Timeline>,
) -> Result<(Counts, Vec<Timeline>), SimError> {
    check_misses(trace, setting.misses)?;
    let needs_events = if !timelines.is_empty() {
        Some("a timeline")
    } else {
        (!setting.is_plain())
            .then_some("prefetch, a prefill mode, host misses, host memory, a schedule or the policy 'semantic'")
    };
    match needs_events {
        Some(what) if setting.semantics != Semantics::Event => Err(SimError::EventsOnly { what }),
        _ => {
            let device = None;
            setting.policy.visit(PolicyReplay { trace, way, futures, setting, timelines, device })
        }
    }
}

/// [`replay_timed`] whose decisions a device carries out: the same cache, driven by the same calls.
///
/// # Errors
/// As [`replay_timed`]; what no device can carry out as the cache means it
/// ([`SimError::NoDevice`]).
pub fn replay_on(
    trace: &Trace,
    steps: &Steps,
    futures: &Futures<'_>,
    setting: &Setting,
    timelines: Vec<Timeline>,
    device: &mut dyn Device,
) -> Result<(Counts, Vec<Timeline>), SimError> {
    check_misses(trace, setting.misses)?;
    if let Some(what) = beyond_devices(setting) {
        return Err(SimError::NoDevice { what });
    }
    let way = &Way::new(steps, &());
    let device = Some(&mut *device as &mut dyn Device);
    setting.policy.visit(PolicyReplay { trace, way, futures, setting, timelines, device })
}

/// What of a setting no device does.
fn beyond_devices(setting: &Setting) -> Option<&'static str> {
    let cancels = matches!(&setting.prefetch, Prefetch::By(forecast) if forecast.control.cancel);
    let over_disk = setting.host.is_some();
    let bypasses = setting.policy.info().name == "belady-bypass";
    match setting.misses {
        _ if setting.semantics != Semantics::Event => Some("sequential semantics"),
        _ if bypasses => Some("the policy 'belady-bypass'"),
        _ if cancels => Some("prefetches that are taken back (cancel=true)"),
        _ if over_disk => Some("a cache in host memory over disk"),
        misses if misses.low_size_ppm() > 0 => Some("smaller copies (low-precision)"),
        MissHandler::Defer { .. } => Some("experts whose output the next layer adds (defer)"),
        _ => None,
    }
}

/// Replays with whatever policy it is handed.
struct PolicyReplay<'a, 'f> {
    trace: &'a Trace,
    way: &'a Way<'a>,
    futures: &'a Futures<'f>,
    setting: &'a Setting,
    timelines: Vec<Timeline>,
    device: Option<&'a mut dyn Device>,
}

impl Visitor for PolicyReplay<'_, '_> {
    type Output = Result<(Counts, Vec<Timeline>), SimError>;

    fn online<P: Policy + Send>(self, build: impl Fn(&PoolShape) -> P) -> Self::Output {
        match self.setting.semantics {
            Semantics::Event => self.events(|_, pool| build(pool)),
            Semantics::Sequential => self.one_at_a_time(|_, pool| build(pool)),
        }
    }

    fn trained<P: Policy + Send>(self, build: impl Fn(&PoolShape, &[u64]) -> P) -> Self::Output {
        let counts = self.training()?;
        let build = |pool: usize, shape: &PoolShape| build(shape, &counts[pool]);
        match self.setting.semantics {
            Semantics::Event => self.events(build),
            Semantics::Sequential => self.one_at_a_time(build),
        }
    }

    fn offline(self, bound: Bound) -> Self::Output {
        let serves_all = self.setting.prefetch == Prefetch::None
            && self.setting.misses.fetches_all()
            && (bound == Bound::Belady || self.setting.is_plain());
        if !serves_all {
            let policy = self.setting.policy.info().name.to_owned();
            return Err(SimError::BoundAlone { policy });
        }
        if bound == Bound::BeladyBypass {
            let Self { trace, way, futures, setting, timelines, .. } = self;
            return replay_bypass(trace, way, futures, setting, timelines);
        }
        let futures = self.futures.of(self.setting.scope())?;
        let future = |pool: usize| -> Arc<Future> { Arc::clone(&futures[pool]) };
        match self.setting.semantics {
            Semantics::Event => self.events(|pool, shape| Belady::<true>::new(shape, future(pool))),
            Semantics::Sequential => {
                self.one_at_a_time(|pool, shape| Belady::<false>::new(shape, future(pool)))
            }
        }
    }
}

impl<'a> PolicyReplay<'a, '_> {
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

    fn events<P: Policy>(
        mut self,
        build: impl FnMut(usize, &PoolShape) -> P,
    ) -> Result<(Counts, Vec<Timeline>), SimError> {
        let (trace, way, setting) = (self.trace, self.way, self.setting);
        let (experts, top_k) = dimensions(trace.shape());
        let mut cache = ExpertCache::new(&experts, &top_k, &setting.slots, build)?;
        cache.place(self.placed());
        if let Some(device) = &mut self.device {
            for key in cache.residents() {
                let (layer, expert) = cache.expert_of(key);
                if let Some(slot) = cache.slot_of(layer, expert) {
                    device.place(key, layer, expert, slot);
                }
            }
        }
        let wanted = |phase| setting.phase.wants(phase);
        if setting.is_plain() && self.timelines.is_empty() && self.device.is_none() {
            let meter = Meter::new(experts.len(), setting.warmup).with_sequences(way.sequences);
            let mut sink = PlainCache { cache: cache.with_ordered_copies(), meter };
            drive_wide(trace, way, wanted, &mut sink)?;
            return Ok((sink.meter.finish(), Vec::new()));
        }
        let mut parts = self.parts()?;
        parts.device = self.device;
        if let Some(host) = &mut parts.host {
            host.begin_below(cache.residents());
        }
        let meter = Meter::new(experts.len(), setting.warmup).with_sequences(way.sequences);
        let mut engine = Engine::new(cache, parts, meter, self.timelines);
        drive_wide(trace, way, wanted, &mut engine)?;
        Ok(engine.finish()?)
    }

    fn one_at_a_time<P: Policy>(
        self,
        build: impl FnMut(usize, &PoolShape) -> P,
    ) -> Result<(Counts, Vec<Timeline>), SimError> {
        let counts = sequential::replay(self.trace, self.setting, &self.placed(), self.way, build)?;
        Ok((counts, Vec::new()))
    }

    /// The experts that the cache begins with.
    fn placed(&self) -> Vec<Key> {
        placed(self.setting, self.trace.shape())
    }

    /// What the setting's engine does beside evicting.
    fn parts(&self) -> Result<EngineParts<'a>, SimError> {
        let (shape, setting) = (self.trace.shape(), self.setting);
        let prefill = PrefillService::new(setting.prefill, shape, &setting.slots)?;
        let forecaster = self.forecaster()?;
        let (experts, _) = dimensions(shape);
        let handler = setting.misses.with_slots(&experts, setting.slots.total());
        let asked = self.timelines.iter().any(Timeline::weighs_tokens);
        let misses =
            (asked || !handler.fetches_all()).then(|| MissDispatcher::new(handler, &experts));
        Ok(EngineParts {
            prefill,
            misses,
            weighs_misses: handler.loses_weight(),
            prefetching: forecaster.map(|source| Prefetching::new(source, shape.max_experts())),
            profiles: self.profiles()?,
            host: match &setting.host {
                Some(host) => {
                    host.check_prefill(setting.prefill)?;
                    host.check_misses(setting.misses)?;
                    Some(HostSide::new(host, shape)?)
                }
                None => None,
            },
            resizes: &setting.resizes,
            device: None,
        })
    }

    fn profiles(&self) -> Result<Option<ProfileFollower<'a>>, SimError> {
        let setting = self.setting;
        let Some(policy) = GuidedPolicy::of(&setting.policy) else { return Ok(None) };
        let trained = setting.guide.as_deref();
        ProfileFollower::of(self.trace, self.way.steps, setting.phase, &policy, trained).map(Some)
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
        let bytes = &setting.expert_bytes;
        Forecaster::of(self.trace, self.way.steps, setting.phase, forecast, predictor, bytes)
            .map(Some)
    }
}

/// The plain cache: every event is demanded of it and counted, nothing else.
struct PlainCache<P> {
    cache: ExpertCache<P>,
    meter: Meter<false>,
}

impl<P: Policy> EventSink<u16> for PlainCache<P> {
    const WEIGHTS: bool = P::READS_WEIGHTS;

    fn begin_sequence(&mut self, sequence: u32) {
        self.meter.begin_sequence(sequence);
    }

    #[inline(always)]
    fn begin_step(&mut self, _: usize, phase: Phase, tokens: u32) {
        let cache = &self.cache;
        self.meter.begin_step(phase, tokens, || cache.resident() == cache.capacity());
        self.cache.begin_step(tokens);
    }

    #[inline(always)]
    fn event(&mut self, layer: usize, experts: &[u16], weights: &[f32]) {
        let plan = self.cache.demand_weighted(layer, experts, weights);
        self.meter.serve(layer, Served::of(&plan));
        self.cache.release(layer);
    }

    fn end_step(&mut self) {}
}
