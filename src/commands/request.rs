//! What the flags of `compare`, `sweep` and `replay` ask for.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use hotset::cost_models::{ComputeSource, Link, MachineProfile};
use hotset::policies::Need;
use hotset::policies::miss::MissHandler;
use hotset::reports::Output;
use hotset::sim::{
    Arrival, Compare, Composition, Compute, CountedUses, HostMemory, Named, POLICY_MEMORY,
    Prefetch, Serving, TimeModel, Training,
};
use hotset::traces::Trace;

use crate::cli::{ArrivalName, PrefetchToName, ReplayArgs, ServingArgs, TierArgs, TimeArgs};
use crate::fault::Fault;
use crate::output::{self, OutputArgs};
use crate::{parse, session};

/// Flags to a request over `trace`, with one way to handle misses.
pub fn request(args: &ReplayArgs, capacities: &[String], trace: &Trace) -> Result<Compare, Fault> {
    let miss = args.serving.miss.as_ref();
    let miss = miss.map(|given| given.only(parse::several_misses)).transpose()?;
    request_with(args, capacities, trace, miss.copied())
}

/// The same, once for each way to handle misses.
pub fn requests(
    args: &ReplayArgs,
    capacities: &[String],
    trace: &Trace,
) -> Result<Vec<Named<Compare>>, Fault> {
    let given = args.serving.miss.iter().flat_map(|given| &given.0);
    let each = |miss: &Named<MissHandler>| {
        let request = request_with(args, capacities, trace, Some(miss.value))?;
        Ok(Named::new(miss.text.clone(), request))
    };
    let each: Vec<_> = given.map(each).collect::<Result<_, Fault>>()?;
    if each.is_empty() {
        let plain = request_with(args, capacities, trace, None)?;
        return Ok(vec![Named::new(MissHandler::Fetch.to_string(), plain)]);
    }
    Ok(each)
}

fn request_with(
    args: &ReplayArgs,
    capacities: &[String],
    trace: &Trace,
    miss: Option<MissHandler>,
) -> Result<Compare, Fault> {
    if args.time.host_threads.is_some() && miss.is_none() {
        let told = "--host-threads has nothing to serve: give --miss host or --miss balanced";
        return Err(Fault::Usage(told.to_owned()));
    }
    let machine = args.time.machine.as_deref().map(parse::machine).transpose()?;
    let links = parse::links(&args.link, machine.as_ref())?;
    let mut request = shared(args, capacities, trace, links, machine.as_ref())?;
    let sized = trace.shape().layers().iter().map(|layer| layer.expert_bytes).max();
    let expert_bytes = args.expert_size.or(sized).unwrap_or(0);
    request.time.judges_splits = miss.is_some();
    let prefetch = args.serving.prefetch.as_ref();
    if let Some(given) = prefetch.map(|given| given.only(parse::several_prefetches)).transpose()? {
        request.serving.prefetch = given.clone();
    }
    let to_host = request.serving.host.as_ref().is_some_and(|host| host.prefetches);
    if to_host && request.serving.prefetch == Prefetch::None {
        let told = "--prefetch-to host has nothing to bring: give --prefetch ahead or another";
        return Err(Fault::Usage(told.to_owned()));
    }
    request.serving.misses = misses(miss, &request.links, &request.time, expert_bytes)?;
    Ok(request)
}

/// What is the same whatever is prefetched and whatever becomes of misses.
pub fn shared(
    args: &ReplayArgs,
    capacities: &[String],
    trace: &Trace,
    links: Vec<Link>,
    machine: Option<&MachineProfile>,
) -> Result<Compare, Fault> {
    Ok(Compare {
        policies: parse::admitted(
            parse::policies(&args.policy)?,
            &parse::admissions(&args.admit)?,
        )?,
        scopes: args.scope.iter().map(|&scope| scope.into()).collect(),
        capacities: parse::capacities(capacities)?,
        phase: args.phase.into(),
        semantics: args.semantics.into(),
        warmup: args.warmup,
        chunk: args.chunk,
        expert_bytes: args.expert_size,
        serving: Serving {
            prefill: args.serving.prefill,
            host: host_memory(&args.tiers)?,
            composition: composition(&args.serving, args.chunk, args.seed),
            schedule: args.serving.schedule.clone().unwrap_or_default(),
            ..Serving::default()
        },
        time: TimeModel {
            disk: args.tiers.disk.as_deref().map(parse::disk).transpose()?,
            ..time(&args.time, machine, args.time.dense_bytes)?
        },
        links,
        timelines: !args.no_timeline,
        machine: args.time.machine.clone(),
        training: Training {
            shuffle: args.shuffle.map(Into::into),
            share: args.train,
            histogram: args
                .histogram
                .as_deref()
                .map(|path| histogram(path, args, trace))
                .transpose()?,
        },
        sample: args.sample,
        policy_memory: args.policy_memory.unwrap_or(POLICY_MEMORY),
        seed: args.seed,
    })
}

/// An engine's counts for the policies that place by them; the text tells one from another.
fn histogram(path: &Path, args: &ReplayArgs, trace: &Trace) -> Result<CountedUses, Fault> {
    let placed = parse::policies(&args.policy)?;
    if placed.iter().all(|policy| policy.value.needs() != Need::Training) {
        let told = "--histogram has no policy to place: give --policy static, or place beside one (lru+pin:50%, \
                    lru+seeded)";
        return Err(Fault::Usage(told.to_owned()));
    }
    let counted = super::open_histogram(path)?;
    let uses = counted.uses(trace.shape())?;
    // FNV-1a: two histograms of one name are told apart.
    let mixed = uses.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &uses| {
        (hash ^ uses).wrapping_mul(0x0100_0000_01b3)
    });
    let source = format!("{}: {} uses, {mixed:016x}", counted.name, counted.total());
    Ok(CountedUses { source, uses: uses.into() })
}

/// Runs `work` on this many threads, or on all cores.
pub fn with_threads<T: Send, E: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<Result<T, E>, Fault> {
    let session = session::current();
    let around = session.as_ref().and_then(|session| session.around);
    let started: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .spawn_handler(|thread| {
            let mut thread = Some(thread);
            let mut run = move || thread.take().map_or((), rayon::ThreadBuilder::run);
            let spawned = std::thread::Builder::new().spawn(move || match around {
                Some(around) => around(&mut run),
                None => run(),
            })?;
            started.lock().unwrap_or_else(PoisonError::into_inner).push(spawned);
            Ok(())
        })
        .build()
        .map_err(|error| Fault::Usage(format!("cannot start threads: {error}")))?;
    let done = pool.install(|| session::on_this_thread(session, work));
    drop(pool);
    // What a host has around its threads must not outlive the command.
    for thread in started.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let _ = thread.join();
    }
    Ok(done)
}

/// Refuses a host that would serve for nothing because nobody measured it, and tells the rule the
/// first link's rates.
fn misses(
    given: Option<MissHandler>,
    links: &[Link],
    time: &TimeModel,
    expert_bytes: u64,
) -> Result<MissHandler, Fault> {
    let handler = given.unwrap_or_default();
    if !handler.uses_host() {
        return Ok(handler);
    }
    let rates = |link: &Link| time.rates(link, expert_bytes.max(1));
    if let Some(link) = links.iter().find(|link| rates(link).host_ps.is_none()) {
        return Err(Fault::Usage(format!(
            "link '{}' does not say how fast the host's cores serve an expert: leave it out of \
             --link, or give --miss fetch",
            link.name
        )));
    }
    match links.first() {
        Some(first) => Ok(handler.with_rates(&rates(first))),
        None if handler.needs_rates() => {
            let name = handler.info().name;
            Err(Fault::Usage(format!("--miss {name} needs a link, or its parameters in full")))
        }
        None => Ok(handler),
    }
}

/// A rule at the rates of link and host, refused where it needs what nobody measured.
#[cfg(feature = "cuda")]
pub fn rates_of(
    given: &Named<MissHandler>,
    rates: Option<&hotset::policies::miss::Rates>,
) -> Result<MissHandler, Fault> {
    let handler = match rates {
        Some(rates) if given.value.uses_host() && rates.host_ps.is_none() => {
            let told = "the timings do not say how fast the host's cores compute an expert: measure them \
                        with 'hotset live calibrate --host-threads N'";
            return Err(Fault::Usage(told.to_owned()));
        }
        Some(rates) => given.value.with_rates(rates),
        None => given.value,
    };
    if handler.needs_rates() {
        let text = &given.text;
        let told = format!("--miss {text} needs rates: give --links, or its parameters in full");
        return Err(Fault::Usage(told));
    }
    Ok(handler)
}

/// The cache in host memory, if there is one.
fn host_memory(args: &TierArgs) -> Result<Option<HostMemory>, Fault> {
    let Some(capacity) = &args.host_slots else { return Ok(None) };
    let prefetches = args.prefetch_to == PrefetchToName::Host;
    Ok(Some(HostMemory {
        capacity: Named::new(capacity.trim(), capacity.parse()?),
        policy: Named::new(args.host_policy.as_str(), args.host_policy.parse()?),
        mode: args.host_mode.into(),
        read_ahead: args.read_ahead,
        prefetches,
    }))
}

/// How the steps of several sequences are composed, if they are.
pub fn composition(args: &ServingArgs, chunk: u32, seed: u64) -> Option<Composition> {
    let arrival = match args.arrival {
        ArrivalName::Recorded => Arrival::Recorded,
        ArrivalName::Shuffled => Arrival::Shuffled(seed),
    };
    let composed =
        |concurrency| Composition { concurrency, chunk, verify: args.verify_tokens, arrival };
    args.concurrency.map(composed)
}

/// Gives what was priced over these links, with what their own compute warns of: everything that
/// charges for time goes through here.
pub fn give_priced(
    mut output: Output,
    time: &TimeArgs,
    links: &[Link],
    to: &OutputArgs,
) -> Result<(), Fault> {
    output.warnings.extend(own_compute_warnings(time, links));
    output::give(&output, to)
}

/// Links whose source measured a token's compute beside them, where another compute is priced only
/// because none was given: beside the wrong one, findings turn around.
fn own_compute_warnings(args: &TimeArgs, links: &[Link]) -> Vec<String> {
    if args.machine.is_some() || args.compute_ms.is_some() {
        return Vec::new();
    }
    let warning = |link: &Link| {
        let compute = link.token_compute(None);
        let ms = compute.time.as_ms_f64();
        (compute.source == ComputeSource::Profile).then(|| {
            format!(
                "link {} was measured beside {ms} ms of compute a token, and no compute was given: \
                 --compute-ms {ms} takes it",
                link.name
            )
        })
    };
    links.iter().filter_map(warning).collect()
}

/// What takes how long; `dense_bytes` are read for each layer where a machine's memory prices kernels.
pub fn time(
    args: &TimeArgs,
    machine: Option<&MachineProfile>,
    dense_bytes: Option<u64>,
) -> Result<TimeModel, Fault> {
    let compute = match (machine, args.compute_ms) {
        (Some(machine), _) => {
            Compute::of_machine(machine, dense_bytes.unwrap_or(0)).ok_or_else(|| {
                Fault::Usage(format!(
                    "the memory of machine '{}' was not measured, so its kernels cannot be \
                     priced: give --compute-ms",
                    machine.name
                ))
            })?
        }
        (None, Some(ms)) => Compute::per_token_ms(ms),
        (None, None) => Compute::None,
    };
    Ok(TimeModel {
        compute,
        copies: args.copies.into(),
        wait: args.wait.into(),
        contention: !args.no_contention,
        host_threads: args.host_threads,
        disk: None,
        judges_splits: false,
    })
}
