//! The main job: policies x scopes x capacities over one trace, each priced on every link.

use hotset_cost_models::Link;
use hotset_policies::{PolicySpec, Slots};
use hotset_traces::{Phase, Shape, Trace};
use rayon::prelude::*;

use crate::report::{LinkPrice, PhaseChoice, Report, Row, SCHEMA, Settings, TraceSummary};
use crate::{
    Bucket, Capacity, Counts, Futures, Scope, Semantics, Setting, SimError, Steps, Window, replay,
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
    /// Compute a token, ms.
    pub compute_ms: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
}

/// Told how the work goes; called from several threads.
pub trait Progress: Sync {
    /// There are `replays` to do.
    fn begin(&self, replays: u64);
    /// One of them is done.
    fn advance(&self);
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
    let phases = present_phases(trace, request.phase)?;
    let shape = match request.expert_bytes {
        Some(bytes) => trace.shape().with_expert_bytes(bytes),
        None => trace.shape().clone(),
    };
    let mut sizes = Vec::new();
    for (_, capacity) in &request.capacities {
        for &scope in &request.scopes {
            sizes.push(Size { scope, slots: capacity.slots(&shape, scope)? });
        }
    }
    let steps = Steps::of(trace, request.chunk);
    let futures = Futures::new(trace, &steps, request.semantics, request.phase.only());

    // The bound of each size comes first, then each policy at each size.
    let mut jobs: Vec<(&PolicySpec, &Size)> = Vec::new();
    jobs.extend(sizes.iter().map(|size| (&PolicySpec::Belady, size)));
    for size in &sizes {
        jobs.extend(request.policies.iter().map(|(_, policy)| (policy, size)));
    }
    progress.begin(jobs.len() as u64);
    let counts: Vec<Counts> = jobs
        .par_iter()
        .map(|(policy, size)| {
            if progress.cancelled() {
                return Err(SimError::Interrupted);
            }
            let setting = Setting {
                semantics: request.semantics,
                phase: request.phase.only(),
                warmup: request.warmup,
                ..Setting::new((*policy).clone(), size.slots.clone())
            };
            let counts = replay(trace, &steps, &futures, &setting);
            progress.advance();
            counts
        })
        .collect::<Result<_, _>>()?;

    let (bounds, runs) = counts.split_at(sizes.len());
    let mut rows = Vec::new();
    for (index, counts) in runs.iter().enumerate() {
        let (size, policy) = (index / request.policies.len(), index % request.policies.len());
        for &phase in &phases {
            for window in [Window::All, Window::Cold, Window::Steady] {
                let bucket = counts.bucket(phase, window);
                if bucket.tokens == 0 {
                    continue;
                }
                let bound = bounds[size].bucket(phase, window);
                rows.push(row(
                    request,
                    &request.policies[policy].0,
                    (&sizes[size], &shape),
                    (phase, window),
                    (&bucket, bound.misses()),
                ));
            }
        }
    }
    let warnings = warnings(&sizes, &shape, &rows);
    Ok(Report {
        schema: SCHEMA,
        trace: TraceSummary::of(trace),
        settings: settings(trace, request, &shape),
        rows,
        warnings,
    })
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
    (bucket, belady_misses): (&Bucket, u64),
) -> Row {
    let capacity_slots = size.slots.total();
    let ratio = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let sized = shape.layers().iter().all(|layer| layer.expert_bytes > 0);
    let bytes = sum_by_layer(bucket, shape, |bytes| bytes);
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
        demand_fetches: bucket.moved(),
        unplaced: bucket.unplaced,
        overflow_events: bucket.overflow_events,
        prefetches: 0,
        prefetches_used: 0,
        moved_per_token: bucket.moved() as f64 / bucket.tokens as f64,
        mib_per_token: sized.then(|| bytes as f64 / f64::from(1 << 20) / bucket.tokens as f64),
        belady_misses,
        belady_ratio: ratio(bucket.misses(), belady_misses),
        links: if sized {
            request.links.iter().map(|link| price(link, request, shape, bucket)).collect()
        } else {
            Vec::new()
        },
    }
}

/// Compute and every transfer, one after another, in whole picoseconds until the last division.
fn price(link: &Link, request: &Compare, shape: &Shape, bucket: &Bucket) -> LinkPrice {
    let transfers = sum_by_layer(bucket, shape, |bytes| link.transfer_ps(bytes));
    LinkPrice {
        link: link.name.clone(),
        serial_ms_per_token: request.compute_ms.unwrap_or(0.0)
            + transfers as f64 / 1e9 / bucket.tokens as f64,
    }
}

/// The sum over all copies of what `of` makes of the copied expert's bytes.
fn sum_by_layer(bucket: &Bucket, shape: &Shape, of: impl Fn(u64) -> u64) -> u128 {
    let layers = bucket.demand_fetches.iter().zip(shape.layers());
    layers.map(|(&copies, layer)| u128::from(copies) * u128::from(of(layer.expert_bytes))).sum()
}

fn settings(trace: &Trace, request: &Compare, shape: &Shape) -> Settings {
    Settings {
        hotset: env!("CARGO_PKG_VERSION"),
        policies: request.policies.iter().map(|(text, _)| text.clone()).collect(),
        scopes: request.scopes.clone(),
        capacities: request.capacities.iter().map(|(text, _)| text.clone()).collect(),
        links: request.links.iter().map(|link| link.name.clone()).collect(),
        phase: request.phase,
        semantics: request.semantics,
        warmup_tokens: request.warmup,
        steps: match trace.steps() {
            Some(_) => "recorded".to_owned(),
            None => format!(
                "composed: one request after another, prompts in chunks of {} tokens",
                request.chunk
            ),
        },
        expert_bytes: shape.layers().iter().map(|layer| layer.expert_bytes).collect(),
        compute_ms_per_token: request.compute_ms,
        seed: request.seed,
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
    if shape.layers().iter().any(|layer| layer.expert_bytes == 0) {
        warnings.push(
            "the size of an expert is not recorded, so no bytes and no times: give --expert-size"
                .to_owned(),
        );
    }
    warnings
}
