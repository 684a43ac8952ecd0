//! `hotset experiment`: `semantic`, `prefetch` and `ablation`.

use hotset::experiments::{Arm, Parts, Protocol, prediction_costs};
use hotset::sim::Named;
use hotset::traces::{Trace, Workload};

use super::request::{give_priced, time, with_threads};
use crate::cli::{AblationArgs, ExperimentArgs, ExperimentCommand, PrefetchArgs, SemanticArgs};
use crate::fault::{Ending, Fault};
use crate::progress::Bar;
use crate::{commands, parse};

/// The machine and the bytes of attention and router a layer that compute is priced by where
/// nothing else is said: those of the live runs.
const MACHINE: &str = "h200";
const DENSE_BYTES: u64 = 20 << 20;

/// Runs an experiment.
pub fn run(command: &ExperimentCommand) -> Result<Ending, Fault> {
    match command {
        ExperimentCommand::Semantic(args) => semantic(args),
        ExperimentCommand::Prefetch(args) => prefetch(args),
        ExperimentCommand::Ablation(args) => ablation(args),
    }
}

fn semantic(args: &SemanticArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.experiment.trace.as_deref())?;
    let protocol = protocol(&args.experiment, None)?;
    let work = || hotset::experiments::semantic(&trace, &protocol, &args.repeat, &Bar::new());
    let report = with_threads(args.experiment.threads, work)??;
    let (output, of) = (hotset::reports::semantic(&report)?, &args.experiment);
    give_priced(output, &of.time, &protocol.links, &of.output)?;
    Ok(Ending::Passed)
}

fn ablation(args: &AblationArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.experiment.trace.as_deref())?;
    let protocol = protocol(&args.experiment, None)?;
    let work = || hotset::experiments::ablation(&trace, &protocol, &Bar::new());
    let report = with_threads(args.experiment.threads, work)??;
    let (output, of) = (hotset::reports::ablation(&report)?, &args.experiment);
    give_priced(output, &of.time, &protocol.links, &of.output)?;
    Ok(Ending::Passed)
}

fn prefetch(args: &PrefetchArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.experiment.trace.as_deref())?;
    let protocol = protocol(&args.experiment, args.repeat)?;
    let work = || hotset::experiments::prefetch(&trace, &protocol, &args.lookahead, &Bar::new());
    let report = with_threads(args.experiment.threads, work)??;
    if args.time_predictors {
        tell_costs(&trace, &protocol, &args.lookahead)?;
    }
    let (output, of) = (hotset::reports::prefetch(&report)?, &args.experiment);
    give_priced(output, &of.time, &protocol.links, &of.output)?;
    Ok(Ending::Passed)
}

/// To standard error, for it is another figure every time.
fn tell_costs(trace: &Trace, protocol: &Protocol, lookaheads: &[u32]) -> Result<(), Fault> {
    eprintln!("learning and guessing, one layer of one token, trace reading included:");
    for cost in prediction_costs(trace, protocol, lookaheads)? {
        eprintln!("{:>12.0} ns  {}", cost.ns_per_event, cost.arm);
    }
    Ok(())
}

fn protocol(args: &ExperimentArgs, repetition: Option<f64>) -> Result<Protocol, Fault> {
    if args.time.host_threads.is_some() {
        let told = "--host-threads has nothing to serve: every miss of an experiment is fetched";
        return Err(Fault::Usage(told.to_owned()));
    }
    let unsaid = args.time.machine.is_none() && args.time.compute_ms.is_none();
    let machine = args.time.machine.as_deref().or(unsaid.then_some(MACHINE));
    let machine = machine.map(parse::machine).transpose()?;
    let dense_bytes = args.time.dense_bytes.or(unsaid.then_some(DENSE_BYTES));
    let arms: Vec<Arm> = args.arm.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let capacity = Named::new(args.capacity.clone(), args.capacity.parse()?);
    let asked = repetition.is_some() || args.drift.is_some() || args.users.is_some();
    let workload = Workload {
        repetition: repetition.unwrap_or(0.0),
        drift: args.drift.unwrap_or(0.0),
        users: args.users.unwrap_or(1),
        sequences: None,
        seed: args.seed,
    };
    Ok(Protocol {
        capacity,
        scope: args.scope.into(),
        links: parse::links(&args.link, machine.as_ref())?,
        time: time(&args.time, machine.as_ref(), dense_bytes)?,
        expert_bytes: args.expert_size,
        parts: args.train.map_or(Parts::Folds(args.folds.into()), Parts::Train),
        workload: asked.then_some(workload),
        resamples: args.resamples,
        seed: args.seed,
        arms,
        against: args.against.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
    })
}
