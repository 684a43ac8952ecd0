//! The main job: policies x scopes x capacities over one trace, each priced on every link.

use std::sync::{Arc, OnceLock};

use hotset_cost_models::Link;
use hotset_policies::semantic::Guide;
use hotset_policies::{Need, PolicySpec, Slots};
use hotset_traces::{Phase, Shape, Trace};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::report::{LinkPrice, PhaseChoice, Report, Row, SCHEMA, Settings, TraceSummary};
use crate::training::uses;
use crate::{
    AdaptiveSplit, Bucket, Capacity, Compute, Counts, CurveSetting, Futures, LruCurve, Misses,
    Prefetch, Prefill, Prices, Scope, Semantics, Serving, Setting, Shuffle, SimError, Split, Steps,
    TimeModel, Timeline, Times, Window, replay, replay_timed, trained, trained_guide,
};

/// What to compare.
#[derive(Debug, Clone)]
pub struct Compare {
    /// Policies, each with the text that named it.
    pub policies: Vec<(String, PolicySpec)>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Capacities, each with the text that gave it.
    pub capacities: Vec<(String, Capacity)>,
    /// Links.
    pub links: Vec<Link>,
    /// Steps to replay.
    pub phase: PhaseChoice,
    /// Event or sequential.
    pub semantics: Semantics,
    /// Tokens that count as cold; `None`: until the cache has first been full.
    pub warmup: Option<u64>,
    /// Prompt tokens a step, where the trace has no steps of its own.
    pub chunk: u32,
    /// Bytes of an expert in every layer; `None`: as the trace records them.
    pub expert_bytes: Option<u64>,
    /// What the engine does beside evicting.
    pub serving: Serving,
    /// Compute, and how copies run beside it.
    pub time: TimeModel,
    /// Whether to replay timelines; without them there are only the prices that need none.
    pub timelines: bool,
    /// What to permute before anything else: the control for temporal locality.
    pub shuffle: Option<Shuffle>,
    /// Share of the sequences, in percent, to train on; the others alone are then replayed. `None`:
    /// half where something is trained, else nothing.
    pub train: Option<f64>,
    /// Uses of each dense key that an engine counted, by which trained policies place instead of
    /// by a training part, with what they came from.
    pub histogram: Option<(String, Arc<[u64]>)>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Compare {
    /// The share of the sequences to train on, in percent.
    pub(crate) fn training_share(&self) -> Option<f64> {
        let trained = self.scopes.contains(&Scope::Adaptive)
            || matches!(&self.serving.prefetch, Prefetch::By(forecast) if forecast.needs_training())
            || self.histogram.is_none()
                && self.policies.iter().any(|(_, policy)| policy.info().needs == Need::Training);
        self.train.or(trained.then_some(50.0))
    }

    /// The trace's shape with the experts' size that was asked for.
    pub(crate) fn shape(&self, trace: &Trace) -> Shape {
        match self.expert_bytes {
            Some(bytes) => trace.shape().with_expert_bytes(bytes),
            None => trace.shape().clone(),
        }
    }
}

/// Told how the work goes; called from several threads.
pub trait Progress: Sync {
    /// There are `replays` to do.
    fn begin(&self, replays: u64);
    /// One of them is done.
    fn advance(&self);
    /// One of them had been done before.
    fn skip(&self) {
        self.advance();
    }
    /// Whether to stop before the next one.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn begin(&self, _: u64) {}
    fn advance(&self) {}
}

/// One cache size: its scope, its slots, and the bound's counts once they are known.
struct Size {
    scope: Scope,
    slots: Slots,
    resizes: Vec<(u64, Slots)>,
}

/// Replays every combination, in parallel over rayon's current pool; the result does not depend on
/// the number of threads.
///
/// # Errors
/// An impossible capacity, a phase that the trace does not have, a column that a policy lacks.
pub fn compare(
    trace: &Trace,
    request: &Compare,
    progress: &impl Progress,
) -> Result<Report, SimError> {
    run(trace, request, |_| Ok(()), progress, false).map(|(report, _)| report)
}

/// Keeps finished replays.
pub(crate) trait Keeper: Sync {
    /// The result of a replay that was finished before.
    fn take(&self, replay: usize) -> Option<Run>;
    /// A replay is finished.
    fn keep(&self, replay: usize, run: &Run) -> Result<(), SimError>;
}

impl Keeper for () {
    fn take(&self, _: usize) -> Option<Run> {
        None
    }
    fn keep(&self, _: usize, _: &Run) -> Result<(), SimError> {
        Ok(())
    }
}

/// [`compare()`] with a keeper, made for a number of replays, and with LRU's curves if they are
/// wanted.
pub(crate) fn run<K: Keeper>(
    trace: &Trace,
    request: &Compare,
    keeper: impl FnOnce(usize) -> Result<K, SimError>,
    progress: &impl Progress,
    wants_curves: bool,
) -> Result<(Report, Vec<(Scope, LruCurve)>), SimError> {
    let shuffled = match request.shuffle {
        None => None,
        Some(Shuffle::Tokens) => {
            let shuffled = trace.shuffle_tokens(request.seed);
            Some(shuffled.map_err(|error| SimError::Shuffle(error.to_string()))?)
        }
    };
    let trace = shuffled.as_ref().unwrap_or(trace);
    let whole = TraceSummary::of(trace);
    let parts = request.training_share().map(|percent| Split::of(trace, percent)).transpose()?;
    let (training, trace) = match &parts {
        None => (None, trace),
        Some((_, training, tested)) => (Some(training), tested),
    };
    let phases = present_phases(trace, request.phase)?;
    request.policies.iter().try_for_each(|(_, policy)| check_columns(trace, policy))?;
    let shape = request.shape(trace);
    let of_curve = CurveSetting {
        scope: Scope::Global,
        semantics: request.semantics,
        phase: request.phase.only(),
        warmup: request.warmup,
    };
    let adaptive = match training.filter(|_| request.scopes.contains(&Scope::Adaptive)) {
        None => None,
        Some(_) if !request.serving.schedule.is_empty() => return Err(SimError::AdaptiveSchedule),
        Some(training) => {
            let steps = request.serving.steps(training, request.chunk)?;
            Some(AdaptiveSplit::train(training, &steps, &of_curve)?)
        }
    };
    let mut sizes = Vec::new();
    for (_, capacity) in &request.capacities {
        for &scope in &request.scopes {
            let slots = capacity.slots(&shape, scope)?;
            let slots = match &adaptive {
                Some(split) if scope == Scope::Adaptive => Slots::Layer(split.slots(slots.total())),
                _ => slots,
            };
            let resizes = request.serving.resizes(trace, &shape, scope, request.phase.only())?;
            sizes.push(Size { scope, slots, resizes });
        }
    }
    let steps = request.serving.steps(trace, request.chunk)?;
    let futures = Futures::new(trace, &steps, request.semantics, request.phase.only())
        .with_prefill(request.serving.prefill);
    let timed = request.timelines && request.semantics == Semantics::Event && is_sized(&shape);
    if timed {
        request.time.check_clock(trace.tokens(), &shape, &request.links)?;
    }
    let uses = match &request.histogram {
        Some((_, counted)) => Some(Arc::clone(counted)),
        None => training.map(|training| uses(training, request.phase.only())),
    };
    let predictor = match (&request.serving.prefetch, training) {
        (Prefetch::By(forecast), Some(training)) => {
            let steps = request.serving.steps(training, request.chunk)?;
            trained(forecast, training, &steps, request.phase.only())?.map(Arc::new)
        }
        _ => None,
    };
    let guide = |(_, policy): &(String, PolicySpec)| -> Result<Option<Arc<Guide>>, SimError> {
        let (Some(training), Some(config)) = (training, policy.guide()) else { return Ok(None) };
        let steps = request.serving.steps(training, request.chunk)?;
        let config = (policy.info().name, &config);
        trained_guide(config, training, &steps, request.phase.only()).map(Arc::new).map(Some)
    };
    let guides: Vec<_> = request.policies.iter().map(guide).collect::<Result<_, _>>()?;
    let expert_bytes: Vec<u64> = shape.layers().iter().map(|layer| layer.expert_bytes).collect();
    let curves = Curves::new(trace, &steps, of_curve, request);

    // The bound of each size comes first, then each policy at each size; the bound itself, asked
    // for as a policy, is only replayed again where a timeline is to follow it.
    let mut jobs: Vec<(Option<usize>, &Size)> = Vec::new();
    jobs.extend(sizes.iter().map(|size| (None, size)));
    let mut job_of = Vec::with_capacity(sizes.len() * request.policies.len());
    for (index, size) in sizes.iter().enumerate() {
        for (place, (_, policy)) in request.policies.iter().enumerate() {
            if *policy == PolicySpec::Belady && !timed {
                job_of.push(index);
            } else {
                job_of.push(jobs.len());
                jobs.push((Some(place), size));
            }
        }
    }
    progress.begin(jobs.len() as u64);
    let keeper = keeper(jobs.len())?;
    let replay_one = |(place, size): (Option<usize>, &Size)| {
        let policy = place.map(|place| &request.policies[place].1);
        let setting = Setting {
            semantics: request.semantics,
            phase: request.phase.only(),
            warmup: request.warmup,
            prefill: request.serving.prefill,
            resizes: size.resizes.clone(),
            training: uses.clone(),
            ..Setting::new(policy.unwrap_or(&PolicySpec::Belady).clone(), size.slots.clone())
        };
        let (Some(policy), Some(place)) = (policy, place) else {
            return replay(trace, &steps, &futures, &setting).map(Run::counted);
        };
        let links = if timed { &request.links[..] } else { &[] };
        let timelines = links.iter().map(|link| Timeline::new(&shape, link, &request.time));
        let setting = match is_bound(policy) {
            true => setting,
            false => Setting {
                guide: guides[place].clone(),
                prefetch: request.serving.prefetch.clone(),
                predictor: predictor.clone(),
                expert_bytes: expert_bytes.clone(),
                misses: request.serving.misses,
                ..setting
            },
        };
        replay_timed(trace, &steps, &futures, &setting, timelines.collect()).map(Run::of)
    };
    let runs: Vec<Run> = jobs
        .par_iter()
        .enumerate()
        .map(|(index, &(place, size))| {
            if progress.cancelled() {
                return Err(SimError::Interrupted);
            }
            if let Some(run) = keeper.take(index) {
                progress.skip();
                return Ok(run);
            }
            let counted = place.filter(|_| !timed).map(|place| &request.policies[place].1);
            let run = match counted.and_then(|policy| curves.counts(policy, size)) {
                Some(counts) => Run::counted(counts),
                None => replay_one((place, size))?,
            };
            keeper.keep(index, &run)?;
            progress.advance();
            Ok(run)
        })
        .collect::<Result<_, _>>()?;

    let mut rows = Vec::new();
    for (index, &job) in job_of.iter().enumerate() {
        let (size, policy) = (index / request.policies.len(), index % request.policies.len());
        let (run, bound) = (&runs[job], &runs[size]);
        for &phase in &phases {
            for window in [Window::All, Window::Cold, Window::Steady] {
                let bucket = run.counts.bucket(phase, window);
                if bucket.tokens == 0 {
                    continue;
                }
                let bound = bound.counts.bucket(phase, window);
                rows.push(row(
                    request,
                    &request.policies[policy].0,
                    (&sizes[size], &shape),
                    (phase, window),
                    (run, &bucket, bound.misses()),
                ));
            }
        }
    }
    let mut warnings = warnings(&sizes, &shape, &rows);
    let bounds = request.policies.iter().filter(|(_, policy)| is_bound(policy));
    let alone =
        request.serving.prefetch == Prefetch::None && request.serving.misses == Misses::Fetch;
    warnings.extend(bounds.filter(|_| !alone).map(|(name, _)| {
        format!("{name} is a bound: its rows are without prefetch, every miss fetched")
    }));
    let split = parts.as_ref().map(|(split, _, _)| split.clone());
    warnings.extend(split.as_ref().map(|split| {
        format!(
            "all rows count the last {} sequences only; the first {} were trained on",
            split.tested_sequences, split.training_sequences
        )
    }));
    let report = Report {
        schema: SCHEMA,
        trace: whole,
        settings: settings(trace, request, (&shape, split)),
        rows,
        warnings,
    };
    Ok((report, if wants_curves { curves.all(&request.scopes) } else { Vec::new() }))
}

/// LRU's curves, each made when it is first asked for.
struct Curves<'a> {
    trace: &'a Trace,
    steps: &'a Steps,
    setting: CurveSetting,
    /// LRU is asked for, and the engine does nothing beside evicting that changes its counts.
    applies: bool,
    /// So many replays cost more than a curve.
    pays: bool,
    global: OnceLock<LruCurve>,
    layer: OnceLock<LruCurve>,
}

impl<'a> Curves<'a> {
    fn new(trace: &'a Trace, steps: &'a Steps, setting: CurveSetting, request: &Compare) -> Self {
        let Serving { prefetch, misses, prefill, schedule, composition: _ } = &request.serving;
        let plain = *prefetch == Prefetch::None
            && *misses == Misses::Fetch
            && *prefill == Prefill::OnDemand
            && schedule.is_empty();
        let replays = match setting.semantics {
            Semantics::Event => 12,
            Semantics::Sequential => 6,
        };
        Self {
            trace,
            steps,
            setting,
            applies: plain && request.policies.iter().any(|(_, policy)| is_lru(policy)),
            pays: request.capacities.len() >= replays,
            global: OnceLock::new(),
            layer: OnceLock::new(),
        }
    }

    fn of(&self, scope: Scope) -> &LruCurve {
        let cell = if scope == Scope::Global { &self.global } else { &self.layer };
        let setting = CurveSetting { scope, ..self.setting };
        cell.get_or_init(|| LruCurve::of(self.trace, self.steps, &setting))
    }

    /// What a replay of `policy` would count, where a curve tells and is worth its while.
    fn counts(&self, policy: &PolicySpec, size: &Size) -> Option<Counts> {
        let told = self.applies && self.pays && is_lru(policy) && size.scope != Scope::Adaptive;
        told.then(|| self.of(size.scope).counts(&size.slots)).flatten()
    }

    /// The curves of these scopes; none where none apply.
    fn all(self, scopes: &[Scope]) -> Vec<(Scope, LruCurve)> {
        let scopes = scopes.iter().filter(|scope| self.applies && **scope != Scope::Adaptive);
        scopes.map(|&scope| (scope, self.of(scope).clone())).collect()
    }
}

fn is_lru(policy: &PolicySpec) -> bool {
    matches!(policy, PolicySpec::Lru(_))
}

/// Refuses a policy whose column the trace lacks, saying who gives it.
///
/// # Errors
/// [`SimError::MissingColumn`].
pub fn check_columns(trace: &Trace, policy: &PolicySpec) -> Result<(), SimError> {
    let guided = policy.guide().is_some_and(|guide| guide.needs_embeddings());
    let column = if guided && trace.embeddings().is_none() {
        "embeddings"
    } else if policy.info().needs == Need::Weights && trace.weights().is_none() {
        "weights"
    } else {
        return Ok(());
    };
    Err(SimError::missing_column(trace, "policy", policy.info().name, column))
}

/// What a replay gave: counts, and the times over each link where there are timelines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    counts: Counts,
    times: Vec<Times>,
}

impl Run {
    fn counted(counts: Counts) -> Self {
        Self { counts, times: Vec::new() }
    }

    fn of((counts, timelines): (Counts, Vec<Timeline>)) -> Self {
        let times = timelines.into_iter().map(|timeline| timeline.finish().0).collect();
        Self { counts, times }
    }
}

/// A bound replays the accesses as they are: nothing is prefetched, nothing served elsewhere.
fn is_bound(policy: &PolicySpec) -> bool {
    policy.info().needs == Need::Future
}

/// Whether the bytes of every layer's experts are known.
fn is_sized(shape: &Shape) -> bool {
    shape.layers().iter().all(|layer| layer.expert_bytes > 0)
}

fn present_phases(trace: &Trace, choice: PhaseChoice) -> Result<Vec<Phase>, SimError> {
    let present = |phase: Phase| trace.phases().contains(&(phase as u8));
    match choice.only() {
        Some(phase) if present(phase) => Ok(vec![phase]),
        Some(phase) => Err(SimError::NoTokens { phase: phase.name() }),
        None => Ok(Phase::ALL.into_iter().filter(|&phase| present(phase)).collect()),
    }
}

fn row(
    request: &Compare,
    policy: &str,
    (size, shape): (&Size, &Shape),
    (phase, window): (Phase, Window),
    (run, bucket, belady_misses): (&Run, &Bucket, u64),
) -> Row {
    let capacity_slots = size.slots.total();
    let ratio = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let sized = is_sized(shape);
    let copies = bucket.demand_fetches.iter().zip(&bucket.prefetches).zip(shape.layers());
    let bytes: u128 = copies
        .map(|((&demand, &ahead), layer)| {
            u128::from(demand + ahead) * u128::from(layer.expert_bytes)
        })
        .sum();
    Row {
        policy: policy.to_owned(),
        scope: size.scope,
        capacity_slots,
        capacity_share: f64::from(capacity_slots) / f64::from(shape.total_experts()),
        phase,
        window,
        semantics: request.semantics,
        tokens: bucket.tokens,
        accesses: bucket.accesses,
        hits: bucket.hits,
        misses: bucket.misses(),
        hit_rate: ratio(bucket.hits, bucket.accesses),
        demand_fetches: bucket.demanded(),
        unplaced: bucket.unplaced,
        overflow_events: bucket.overflow_events,
        prefetches: bucket.prefetched(),
        prefetches_used: bucket.prefetches_used,
        prefetches_wasted: bucket.prefetches_wasted,
        prefetches_cancelled: bucket.prefetches_cancelled,
        host_served: bucket.host_served,
        refetches: bucket.refetches,
        moved_per_token: bucket.moved() as f64 / bucket.tokens as f64,
        mib_per_token: sized.then(|| bytes as f64 / f64::from(1 << 20) / bucket.tokens as f64),
        belady_misses,
        belady_ratio: ratio(bucket.misses(), belady_misses),
        links: if sized {
            let price = |(index, link): (usize, &Link)| {
                let spent = run.times.get(index).map(|times| times.bucket(phase, window));
                let compute =
                    u128::from(request.time.compute.token_ps(shape)) * u128::from(bucket.tokens);
                let prices = Prices::of(link, shape, bucket, compute, spent);
                LinkPrice::per_token(&link.name, &prices, bucket.tokens)
            };
            request.links.iter().enumerate().map(price).collect()
        } else {
            Vec::new()
        },
    }
}

fn settings(trace: &Trace, request: &Compare, (shape, split): (&Shape, Option<Split>)) -> Settings {
    Settings {
        hotset: env!("CARGO_PKG_VERSION"),
        policies: request.policies.iter().map(|(text, _)| text.clone()).collect(),
        scopes: request.scopes.clone(),
        capacities: request.capacities.iter().map(|(text, _)| text.clone()).collect(),
        links: request.links.iter().map(|link| link.name.clone()).collect(),
        phase: request.phase,
        semantics: request.semantics,
        warmup_tokens: request.warmup,
        steps: request.serving.steps_text(trace, request.chunk),
        expert_bytes: shape.layers().iter().map(|layer| layer.expert_bytes).collect(),
        compute_ms_per_token: match request.time.compute {
            Compute::PerToken(token) => Some(token.as_ms_f64()),
            Compute::None | Compute::Memory { .. } => None,
        },
        dense_bytes_per_layer: match request.time.compute {
            Compute::Memory { dense_bytes, .. } => Some(dense_bytes),
            Compute::None | Compute::PerToken(_) => None,
        },
        serving: request.serving.clone(),
        copies: request.time.copies,
        wait: request.time.wait,
        contention: request.time.contention,
        host_threads: request.time.host_threads,
        machine: None,
        histogram: request.histogram.as_ref().map(|(from, _)| from.clone()),
        seed: request.seed,
        shuffle: request.shuffle,
        split,
    }
}

fn warnings(sizes: &[Size], shape: &Shape, rows: &[Row]) -> Vec<String> {
    let mut warnings = Vec::new();
    let token = shape.experts_per_token();
    for size in sizes {
        if let Slots::Global(slots) = size.slots
            && slots < token
        {
            warnings.push(format!(
                "{slots} slots are fewer than the {token} experts that one token uses: a global \
                 LRU has evicted an expert before its layer's next turn and hits only by chance \
                 of order; give at least {token} slots, or use --scope layer"
            ));
        }
    }
    for size in sizes {
        let overflows: u64 = rows
            .iter()
            .filter(|row| {
                row.window == Window::All
                    && row.scope == size.scope
                    && row.capacity_slots == size.slots.total()
            })
            .map(|row| row.overflow_events)
            .max()
            .unwrap_or(0);
        if overflows > 0 {
            warnings.push(format!(
                "{} scope, {} slots: {overflows} events need more experts than their pool has \
                 slots; their misses went through a transient buffer and were not admitted",
                size.scope.name(),
                size.slots.total(),
            ));
        }
    }
    for row in rows.iter().filter(|row| row.window == Window::All) {
        for link in &row.links {
            if link.time.is_some_and(|time| time.overlap_saves_ms < 0.0) {
                warnings.push(format!(
                    "{}, {} scope, {} slots, {} over {}: overlap costs more than it hides; copies \
                     and kernels slow each other by more than what runs at once saves",
                    row.policy,
                    row.scope.name(),
                    row.capacity_slots,
                    row.phase.name(),
                    link.link,
                ));
            }
        }
    }
    if !is_sized(shape) {
        warnings.push(
            "the size of an expert is not recorded, so no bytes and no times: give --expert-size"
                .to_owned(),
        );
    }
    warnings
}
