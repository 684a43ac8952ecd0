//! `hotset compare`.

use hotset::sim::{Compare, Compute, Serving, SimError, TimeModel, compare};

use crate::cli::CompareArgs;
use crate::fault::{Fault, Verdict};
use crate::progress::Bar;
use crate::{commands, output, parse};

/// Compares and gives the report.
pub fn run(args: &CompareArgs) -> Result<Verdict, Fault> {
    let request = Compare {
        policies: parse::policies(&args.policy)?,
        scopes: args.scope.iter().map(|&scope| scope.into()).collect(),
        capacities: parse::capacities(&args.capacity)?,
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
        seed: args.seed,
    };
    let trace = commands::open(args.trace.as_deref())?;
    let report = with_threads(args.threads, || compare(&trace, &request, &Bar::new()))??;
    output::give(&hotset::reports::comparison(&report)?, &args.output)?;
    Ok(Verdict::Passed)
}

/// Runs `work` on this many threads, or on all cores.
fn with_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> Result<T, SimError> + Send,
) -> Result<Result<T, SimError>, Fault> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| Fault::Usage(format!("cannot start threads: {error}")))?;
    Ok(pool.install(work))
}
