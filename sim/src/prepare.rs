//! The one preparation of a replay: shuffled, cut, trained, sized, so that whoever replays a
//! request (a comparison, a replay in full, an experiment, a check of live runs) replays the same.
//!
//! [`Parts`] own what is trained on and what is replayed; [`Preparation`] borrows them, and gives
//! the [`Setting`] of each policy at each size.

use std::sync::Arc;

use hotset_policies::miss::MissHandler;
use hotset_policies::predict::AnyPredictor;
use hotset_policies::semantic::Guide;
use hotset_policies::{Need, PolicySpec, Slots};
use hotset_traces::{Phase, Shape, Trace};

use crate::capacity::dimensions;
use crate::columns::check_columns;
use crate::memory::{self, Refused};
use crate::parts::{Part, Parts};
use crate::placing::{Load, placed};
use crate::request::{Compare, Named};
use crate::sampling::check_steps;
use crate::sequences::SequencePrices;
use crate::size::Size;
use crate::{
    AdaptiveSplit, Capacity, CurveSetting, Futures, GuidedPolicy, HostSetting, Prefetch, Scope,
    Semantics, Setting, SimError, Steps, Timeline, trained, trained_guide, uses,
};

/// A request, ready to be replayed: everything that its replays share.
pub struct Preparation<'p> {
    request: &'p Compare,
    parts: &'p Parts<'p>,
    trace: &'p Trace,
    steps: &'p Steps,
    shape: Shape,
    expert_bytes: Vec<u64>,
    timed: bool,
    sizes: Vec<Size>,
    futures: Futures<'p>,
    uses: Option<Arc<[u64]>>,
    predictor: Option<Arc<AnyPredictor>>,
    guides: Vec<TrainedGuide>,
    refused: Vec<Refused>,
    host: Option<HostSetting>,
    sequence_prices: Option<Arc<SequencePrices>>,
}

/// The guide of one policy, as training left it.
struct TrainedGuide {
    policy: PolicySpec,
    guide: Arc<Guide>,
}

impl<'p> Preparation<'p> {
    /// Trains what the request has to train, and finds its sizes: one for each capacity and scope,
    /// scopes innermost.
    ///
    /// # Errors
    /// A column that a policy or a predictor lacks, an impossible capacity, a concurrency that is
    /// not possible, a run that is too long for the clock.
    pub fn of(parts: &'p Parts<'p>, request: &'p Compare) -> Result<Self, SimError> {
        let trace = parts.trace();
        request.policies.iter().try_for_each(|policy| check_columns(trace, &policy.value))?;
        let shape = request.shape(trace);
        let training = parts.training();
        let sizes = sizes(trace, &shape, request, adaptive(training, request)?.as_ref())?;
        let refused = memory::refused(request, &shape, &sizes)?;
        check_predictor(trace, request)?;
        check_misses(&shape, request)?;
        let steps = parts.replayed().steps(request)?;
        let futures = Futures::new(trace, steps, request.semantics, request.phase)
            .with_prefill(request.serving.prefill);
        check_steps(trace, steps, request)?;
        let timed = request.timelines && request.semantics == Semantics::Event && is_sized(&shape);
        if timed {
            request.time.check_clock(trace.tokens(), &shape, &request.links)?;
        }
        let counted = request.training.histogram.as_ref();
        let used = |part: &Part<'_>| uses(&part.trace, request.phase);
        Ok(Self {
            uses: match counted {
                Some(counted) => Some(Arc::clone(&counted.uses)),
                None => training.filter(|_| request.places_by_training()).map(used),
            },
            sequence_prices: request
                .sample
                .map(|_| SequencePrices::of(request, &shape, is_sized(&shape))),
            predictor: predictor(training, request)?,
            guides: guides(training, request)?,
            host: host(&shape, request)?,
            expert_bytes: shape.layers().iter().map(|layer| layer.expert_bytes).collect(),
            request,
            parts,
            trace,
            steps,
            shape,
            timed,
            sizes,
            refused,
            futures,
        })
    }

    /// What was prepared.
    #[must_use]
    pub fn request(&self) -> &'p Compare {
        self.request
    }

    /// What is replayed and what was trained on.
    #[must_use]
    pub fn parts(&self) -> &'p Parts<'p> {
        self.parts
    }

    /// What is replayed.
    #[must_use]
    pub fn trace(&self) -> &'p Trace {
        self.trace
    }

    /// Its steps.
    #[must_use]
    pub fn steps(&self) -> &'p Steps {
        self.steps
    }

    /// Its shape, with the experts' size that was asked for.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The recorded future of its accesses.
    #[must_use]
    pub fn futures(&self) -> &Futures<'p> {
        &self.futures
    }

    /// One size for each capacity and scope, scopes innermost.
    #[must_use]
    pub fn sizes(&self) -> &[Size] {
        &self.sizes
    }

    /// The policies that would take too much memory at some of the sizes.
    pub(crate) fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Whether a policy, by its place, would take too much memory at a size, by its place, to be
    /// replayed.
    #[must_use]
    pub fn leaves_out(&self, policy: usize, size: usize) -> bool {
        self.refused.iter().any(|refused| (refused.policy, refused.size) == (policy, size))
    }

    /// The cache in host memory that every replay has.
    pub(crate) fn host(&self) -> Option<&HostSetting> {
        self.host.as_ref()
    }

    /// Whether timelines follow the replays.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// The setting of a policy at a size. A bound replays the accesses as they are: nothing is
    /// prefetched, nothing served elsewhere.
    #[must_use]
    pub fn setting(&self, policy: &PolicySpec, size: &Size) -> Setting {
        let request = self.request;
        let setting = Setting {
            semantics: request.semantics,
            phase: request.phase,
            warmup: request.warmup,
            prefill: request.serving.prefill,
            resizes: size.resizes.clone(),
            training: self.uses.clone(),
            host: self.host.clone().filter(|_| *policy != PolicySpec::BeladyBypass),
            ..Setting::new(policy.clone(), size.slots.clone())
        };
        if is_bound(policy) {
            return setting;
        }
        let guide = self.guides.iter().find(|trained| trained.policy == *policy);
        Setting {
            guide: guide.map(|trained| Arc::clone(&trained.guide)),
            prefetch: request.serving.prefetch.clone(),
            predictor: self.predictor.clone(),
            expert_bytes: self.expert_bytes.clone(),
            misses: request.serving.misses,
            ..setting
        }
    }

    /// What a policy's cache of a size holds before the first step.
    pub(crate) fn load(&self, policy: &PolicySpec, size: &Size) -> Load {
        Load::of(&placed(&self.setting(policy, size), &self.shape), &self.shape)
    }

    /// One timeline a link, in their order; none where replays are not timed.
    #[must_use]
    pub fn timelines(&self) -> Vec<Timeline> {
        if self.timed { self.timelines_to_count() } else { Vec::new() }
    }

    /// One timeline a link: a replay that timelines follow counts by layer too.
    pub(crate) fn timelines_to_count(&self) -> Vec<Timeline> {
        let small = self.request.serving.misses.low_size_ppm();
        let timeline = |link| {
            Timeline::new(&self.shape, link, &self.request.time).with_low_precision(
                &self.shape,
                link,
                small,
            )
        };
        self.request.links.iter().map(timeline).collect()
    }

    /// What each sequence's counts cost, where sequences are counted by themselves.
    pub(crate) fn sequence_prices(&self) -> Option<&Arc<SequencePrices>> {
        self.sequence_prices.as_ref()
    }

    /// How many steps of a phase run.
    pub(crate) fn steps_of(&self, phase: Phase) -> usize {
        let first = |step| self.steps.row(self.steps.places(step).start);
        (0..self.steps.len()).filter(|&step| self.trace.phase(first(step)) == phase).count()
    }
}

/// Whether a policy is a bound over the recorded accesses.
pub(crate) fn is_bound(policy: &PolicySpec) -> bool {
    policy.info().needs == Need::Future
}

/// Whether the bytes of every layer's experts are known.
pub(crate) fn is_sized(shape: &Shape) -> bool {
    shape.layers().iter().all(|layer| layer.expert_bytes > 0)
}

/// Whether the engine does nothing beside evicting that a bound would not do.
pub(crate) fn serves_as_bounds_do(request: &Compare) -> bool {
    request.serving.prefetch == Prefetch::None && request.serving.misses.fetches_all()
}

impl Compare {
    /// LRU's curve under this request, in a scope.
    pub(crate) fn curve(&self, scope: Scope) -> CurveSetting {
        CurveSetting { scope, semantics: self.semantics, phase: self.phase, warmup: self.warmup }
    }
}

fn adaptive(
    training: Option<&Part<'_>>,
    request: &Compare,
) -> Result<Option<AdaptiveSplit>, SimError> {
    let Some(part) = training.filter(|_| request.scopes.contains(&Scope::Adaptive)) else {
        return Ok(None);
    };
    if !request.serving.schedule.is_empty() {
        return Err(SimError::AdaptiveSchedule);
    }
    let experts = part.trace.shape().layers().iter().map(|layer| layer.experts);
    let bytes = AdaptiveSplit::memory(experts);
    memory::check("an adaptive split of the slots", bytes, request.policy_memory)?;
    let steps = part.steps(request)?;
    AdaptiveSplit::train(&part.trace, steps, &request.curve(Scope::Layer)).map(Some)
}

fn sizes(
    trace: &Trace,
    shape: &Shape,
    request: &Compare,
    adaptive: Option<&AdaptiveSplit>,
) -> Result<Vec<Size>, SimError> {
    let size = |capacity: &Capacity, scope: Scope| {
        let slots = capacity.slots(shape, scope)?;
        let slots = match adaptive {
            Some(split) if scope == Scope::Adaptive => Slots::Layer(split.slots(slots.total())),
            _ => slots,
        };
        let resizes = request.serving.resizes(trace, shape, scope, request.phase)?;
        Ok(Size { scope, slots, resizes })
    };
    let capacities = request.capacities.iter().map(|capacity| &capacity.value);
    capacities.flat_map(|capacity| request.scopes.iter().map(move |&s| size(capacity, s))).collect()
}

fn host(shape: &Shape, request: &Compare) -> Result<Option<HostSetting>, SimError> {
    let Some(host) = &request.serving.host else { return Ok(None) };
    let setting = host.setting(shape, request.serving.prefill)?;
    setting.check_misses(request.serving.misses)?;
    if request.policies.iter().any(|policy| policy.value == PolicySpec::BeladyBypass) {
        return Err(SimError::BoundOverDisk);
    }
    let bytes = memory::policy_bytes(&setting.policy, &setting.slots, shape);
    let what = format!("policy '{}' in host memory", host.policy.text);
    memory::check(what, bytes, request.policy_memory)?;
    Ok(Some(setting))
}

/// Whole layers on the host need slots that are anyone's, and pairs of experts memory.
fn check_misses(shape: &Shape, request: &Compare) -> Result<(), SimError> {
    let handler = request.serving.misses;
    let global = request.scopes.iter().all(|&scope| scope == Scope::Global);
    if matches!(handler, MissHandler::CpuLayers { .. }) && !global {
        return Err(SimError::CpuLayersNeedGlobal);
    }
    let what = format!("miss handler '{}'", handler.info().name);
    memory::check(what, handler.memory(&dimensions(shape).0), request.policy_memory)
}

fn check_predictor(trace: &Trace, request: &Compare) -> Result<(), SimError> {
    let Prefetch::By(forecast) = &request.serving.prefetch else { return Ok(()) };
    let what = format!("predictor '{}'", forecast.source.info().name);
    memory::check(what, forecast.memory(trace), request.policy_memory)
}

fn predictor(
    training: Option<&Part<'_>>,
    request: &Compare,
) -> Result<Option<Arc<AnyPredictor>>, SimError> {
    let (Prefetch::By(forecast), Some(part)) = (&request.serving.prefetch, training) else {
        return Ok(None);
    };
    let steps = part.steps(request)?;
    Ok(trained(forecast, &part.trace, steps, request.phase)?.map(Arc::new))
}

fn guides(training: Option<&Part<'_>>, request: &Compare) -> Result<Vec<TrainedGuide>, SimError> {
    let Some(part) = training else { return Ok(Vec::new()) };
    let guided = request
        .policies
        .iter()
        .filter_map(|Named { value, .. }| GuidedPolicy::of(value).map(|guided| (value, guided)));
    let train = |(policy, guided): (&PolicySpec, GuidedPolicy<'_>)| {
        let steps = part.steps(request)?;
        let guide = Arc::new(trained_guide(&guided, &part.trace, steps, request.phase)?);
        Ok(TrainedGuide { policy: policy.clone(), guide })
    };
    guided.map(train).collect()
}
