//! `hotset compare`.

use hotset::sim::{Compare, Compute, Serving, SimError, TimeModel, compare};

use crate::cli::{CompareArgs, ReplayArgs};
use crate::fault::{Fault, Verdict};
use crate::progress::Bar;
use crate::{commands, output, parse};

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Verdict, Fault> {
    let request = request(&args.replay, &args.capacity)?;
    let trace = commands::open(args.replay.trace.as_deref())?;
    let work = || compare(&trace, &request, &Bar::new());
    let report = with_threads(args.replay.threads, work)??;
    output::give(&hotset::reports::comparison(&report)?, &args.output)?;
    Ok(Verdict::Passed)
}

/// What the flags ask for.
pub(super) fn request(args: &ReplayArgs, capacities: &[String]) -> Result<Compare, Fault> {
    Ok(Compare {
        policies: parse::admitted(
            parse::policies(&args.policy)?,
            &parse::admissions(&args.admit)?,
        )?,
        scopes: args.scope.iter().map(|&scope| scope.into()).collect(),
        capacities: parse::capacities(capacities)?,
        links: parse::links(&args.link)?,
        phase: args.phase.into(),
        semantics: args.semantics.into(),
        warmup: args.warmup,
        chunk: args.chunk,
        expert_bytes: args.expert_size,
        serving: Serving::default(),
        time: TimeModel {
            compute: args.compute_ms.map_or(Compute::None, Compute::per_token_ms),
            ..TimeModel::default()
        },
        timelines: !args.no_timeline,
        shuffle: args.shuffle.map(Into::into),
        train: args.train,
        seed: args.seed,
    })
}

/// Runs `work` on this many threads, or on all cores.
pub(super) fn with_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<T, SimError> + Send,
) -> Result<Result<T, SimError>, Fault> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| Fault::Usage(format!("cannot start threads: {error}")))?;
    Ok(pool.install(work))
}
