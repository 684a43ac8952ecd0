//! From flags to the settings that are run, and the model that they run on.

use std::path::Path;

use hotset::cost_models::{FitLabel, Link, MachineProfile, fit_links};
use hotset::live::{LiveModel, LiveSetting};
use hotset::policies::miss::MissHandler;
use hotset::sim::{
    Compare, Compute, Named, POLICY_MEMORY, PhaseFilter, Prefetch, Semantics, Serving, TimeModel,
    Training,
};
use hotset::traces::{Phase, Shape, Slice, Trace};

use crate::cli::{LiveModelArgs, LiveSettingArgs};
use crate::commands;
use crate::commands::request::{composition, rates_of};
use crate::fault::Fault;
use crate::input::{MOST_MEASUREMENT_BYTES, read_bytes};
use crate::parse;

/// Threads that compute experts where nobody says.
const HOST_THREADS: usize = 8;

/// The trace that is run: its first tokens, with the experts' size that was asked for.
pub fn trace(args: &LiveSettingArgs) -> Result<Trace, Fault> {
    let trace = commands::open(args.model.trace.as_deref())?;
    let Some(tokens) = args.tokens else { return Ok(trace) };
    let phase: PhaseFilter = args.phase.into();
    let wanted = |phase_of: Phase| phase.only().is_none_or(|only| only == phase_of);
    let rows = (0..trace.tokens()).filter(|&row| wanted(trace.phase(row)));
    let last = rows.take(usize::try_from(tokens).unwrap_or(usize::MAX)).last();
    let slice = Slice { tokens: Some(0..last.map_or(0, |last| last + 1)), ..Slice::default() };
    Ok(trace.slice(&slice)?)
}

/// The model on the GPU.
pub fn model(args: &LiveModelArgs, trace: &Trace) -> Result<LiveModel, Fault> {
    Ok(LiveModel::new(&args.shape(trace), args.dense_bytes, args.from.into())?)
}

impl LiveModelArgs {
    /// The trace's shape with the experts' size that was asked for.
    fn shape(&self, trace: &Trace) -> Shape {
        match self.expert_size {
            Some(bytes) => trace.shape().with_expert_bytes(bytes),
            None => trace.shape().clone(),
        }
    }
}

/// Host threads that compute experts: as asked, else eight, or all cores but two.
pub fn host_threads(args: &LiveModelArgs) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let few = HOST_THREADS.min(cores.saturating_sub(2)).max(1) as u32;
    args.host_threads.unwrap_or(few)
}

/// How settings are run.
pub fn live(args: &LiveModelArgs) -> LiveSetting {
    LiveSetting { host_threads: host_threads(args), ..LiveSetting::default() }
}

/// The machine that a file of timings is of.
pub fn machine_of(path: &Path) -> Result<MachineProfile, Fault> {
    machine(&read_bytes(path, MOST_MEASUREMENT_BYTES)?, &path.display().to_string())
}

/// The machine that timings are of.
pub fn machine(timings: &[u8], path: &str) -> Result<MachineProfile, Fault> {
    let label = FitLabel { name: None, source: path.to_owned(), date: "undated".to_owned() };
    let fitted = fit_links(timings, &label)
        .map_err(|reason| Fault::Fit { path: path.to_owned(), reason })?;
    Ok(fitted.profile)
}

/// The machine's link to where the experts lie: the one that was timed.
pub fn link(machine: &MachineProfile) -> Result<&Link, Fault> {
    machine.links.first().ok_or_else(|| Fault::Usage("the timings have no link".to_owned()))
}

/// One way to prefetch and to handle misses, with the policies and sizes that all ways share.
pub struct Request {
    /// The prefetcher as typed.
    pub prefetch: String,
    /// The miss handler as typed.
    pub miss: String,
    /// All of it.
    pub compare: Compare,
}

/// Refuses policies and sizes that there are not, before a GPU is asked for anything.
pub fn check_names(args: &LiveSettingArgs, trace: &Trace) -> Result<(), Fault> {
    parse::admitted(parse::policies(&args.policy)?, &parse::admissions(&args.admit)?)?;
    let shape = args.model.shape(trace);
    for capacity in parse::capacities(&args.capacity)? {
        for &scope in &args.scope {
            capacity.value.slots(&shape, scope.into())?;
        }
    }
    Ok(())
}

/// Every prefetcher with every miss handler.
pub fn requests(
    args: &LiveSettingArgs,
    trace: &Trace,
    machine: Option<&MachineProfile>,
) -> Result<Vec<Request>, Fault> {
    let serving = &args.serving;
    let given = |listed: Option<&parse::Listed<Prefetch>>| match listed {
        Some(listed) => listed.0.clone(),
        None => vec![Named::new("none", Prefetch::None)],
    };
    let misses = match &serving.miss {
        Some(listed) => listed.0.clone(),
        None => vec![Named::new("fetch", MissHandler::Fetch)],
    };
    let mut requests = Vec::new();
    for prefetch in given(serving.prefetch.as_ref()) {
        for miss in &misses {
            let compare = compare(args, trace, machine, (&prefetch.value, miss))?;
            requests.push(Request {
                prefetch: prefetch.text.clone(),
                miss: miss.text.clone(),
                compare,
            });
        }
    }
    Ok(requests)
}

fn compare(
    args: &LiveSettingArgs,
    trace: &Trace,
    machine: Option<&MachineProfile>,
    (prefetch, miss): (&Prefetch, &Named<MissHandler>),
) -> Result<Compare, Fault> {
    let links: Vec<Link> = match machine {
        Some(machine) => vec![link(machine)?.clone()],
        None => Vec::new(),
    };
    let compute = machine.and_then(|of| Compute::of_machine(of, args.model.dense_bytes));
    let host_threads = miss.value.uses_host().then(|| host_threads(&args.model));
    let compute = compute.unwrap_or_default();
    let time = TimeModel { compute, host_threads, ..TimeModel::default() };
    let sized = trace.shape().layers().iter().map(|layer| layer.expert_bytes).max();
    let expert_bytes = args.model.expert_size.or(sized).unwrap_or(0);
    let rates = links.first().map(|link| time.rates(link, expert_bytes.max(1)));
    let phase: PhaseFilter = args.phase.into();
    let tokens = (0..trace.tokens()).filter(|&row| phase.wants(trace.phase(row))).count() as u64;
    Ok(Compare {
        policies: parse::admitted(
            parse::policies(&args.policy)?,
            &parse::admissions(&args.admit)?,
        )?,
        scopes: args.scope.iter().map(|&scope| scope.into()).collect(),
        capacities: parse::capacities(&args.capacity)?,
        machine: None,
        phase,
        semantics: Semantics::Event,
        warmup: Some(args.warmup.unwrap_or(tokens / 5)),
        chunk: args.chunk,
        expert_bytes: args.model.expert_size,
        serving: Serving {
            prefetch: prefetch.clone(),
            misses: rates_of(miss, rates.as_ref())?,
            prefill: args.serving.prefill,
            composition: composition(&args.serving, args.chunk, args.seed),
            schedule: args.serving.schedule.clone().unwrap_or_default(),
            ..Serving::default()
        },
        time,
        timelines: !links.is_empty(),
        links,
        training: Training { share: args.train, ..Training::default() },
        policy_memory: POLICY_MEMORY,
        sample: None,
        seed: args.seed,
    })
}
