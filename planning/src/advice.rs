//! What a reader of a plan must know: assumptions, and what would go wrong.

use crate::Request;
use crate::memory::gib;
use crate::pricing::host_cache;
use crate::routing::{HostCache, Recordings, Routing, RoutingSummary};
use crate::speed::Speed;
use crate::verdict::{Fit, FitVerdict};
use crate::weights::RankWeights;

pub(crate) fn notes(request: &Request, weights: &RankWeights) -> Vec<String> {
    let mut notes = request.model.notes.clone();
    if weights.bytes.slots_differ() {
        notes.push("slots differ between layers: one pool takes the largest".to_owned());
    }
    if let Some(most) = request.model.max_context.filter(|most| *most < request.context) {
        notes.push(format!("the model was made for {most} tokens of context"));
    }
    if request.parallel.expert > 1 {
        notes.push("experts are taken as needed evenly by all accelerators".to_owned());
    }
    notes
}

/// LRU hits so little that it is worth saying why, and what would help.
const HITS_LITTLE: f64 = 0.9;

pub(crate) fn thrashing(
    request: &Request,
    routing: &Routing<'_>,
    fit: &Fit,
    speed: &Speed,
) -> Option<String> {
    let need = speed.need;
    if need.misses < HITS_LITTLE * need.distinct {
        return None;
    }
    let pinned = routing.pinned(request.step_kind(), fit.share())?
        / f64::from(request.parallel.expert.max(1));
    let layers = request.model.moe_layers().count() as f64;
    Some(format!(
        "LRU hits {:.0}%: a step needs {:.0} experts and there are {} slots, so each leaves before it \
         is asked for again; with the most used ones pinned {pinned:.1} a layer would be copied \
         instead of {:.1}",
        (1.0 - need.misses / need.distinct) * 100.0,
        need.distinct * layers,
        fit.slots,
        need.misses
    ))
}

pub(crate) fn warnings(request: &Request, fit: &Fit, routing: &Routing<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let machine = &request.machine;
    if machine.unified {
        let used = fit.used_bytes().saturating_add(fit.host_used_bytes());
        if fit.verdict.in_memory()
            && used.saturating_add(fit.page_cache_bytes) > machine.memory.value
        {
            warnings.push(format!(
                "loading may fill the page cache with {:.1} GiB beside {:.1} GiB in use, more than \
                 the {:.1} GiB there are: load past it (`Offload::load` direct), or drop it while loading",
                gib(fit.page_cache_bytes),
                gib(used),
                gib(machine.memory.value)
            ));
        }
        if request.offload.bank.is_some() {
            warnings.push(
                "one memory holds the experts twice: in the bank and in slots (without `Offload::bank` \
                 they are there once)"
                    .to_owned(),
            );
        }
        if used as f64 > 0.9 * machine.memory.value as f64 && fit.verdict.in_memory() {
            warnings.push(
                "over nine tenths of the pool in use: at 94% an engine on a DGX Spark was 17% \
                 slower (DGX Spark article)"
                    .to_owned(),
            );
        }
    }
    if fit.verdict == FitVerdict::WithDisk {
        warnings.extend(over_disk(request, routing));
    }
    if fit.verdict != FitVerdict::Resident {
        warnings.extend(without_trace(&routing.summary()));
    }
    let out_of = fit.short_bytes > 0
        && fit.needed_for_all_bytes > fit.budget.bytes
        && fit.needed_for_all_bytes <= machine.memory.value
        && request.reserve.free.is_none();
    if out_of {
        warnings.push(format!(
            "all experts would fit if the whole memory were usable: {:.1} of {:.1} GiB",
            gib(fit.needed_for_all_bytes),
            gib(machine.memory.value)
        ));
    }
    warnings
}

/// How reads from disk were found, and what a person may measure otherwise.
fn over_disk(request: &Request, routing: &Routing<'_>) -> [String; 2] {
    let cache = match host_cache(request) {
        HostCache::Direct => "the engine's own LRU, read past the system's cache",
        HostCache::Pages => "the system's page cache under mapped files",
    };
    let one_memory = request.machine.unified && request.offload.bank.is_none();
    let found = match (one_memory, routing.replays_tiers()) {
        (true, _) => "what has no slot is read from disk at every miss".to_owned(),
        (false, true) => format!("host memory is {cache}, replayed on the trace under the slots"),
        (false, false) => {
            "what host memory lacks is what a cache as large as both would miss".to_owned()
        }
    };
    [
        format!("reads from disk: {found}"),
        "not modelled: a larger cache in host memory can be slower (reported at 60 of 64 GB, and of \
         large caches on Apple machines): it takes room from the system's page cache, and close to the \
         end of memory pages are compressed or swapped"
            .to_owned(),
    ]
}

/// What a reader must know where misses are no trace's of the model.
pub(crate) fn without_trace(routing: &RoutingSummary) -> Option<String> {
    match routing {
        RoutingSummary::Uniform => Some(
            "misses are those of uniform routing, more than any model's; give `Routing::of_trace`"
                .to_owned(),
        ),
        RoutingSummary::Recorded { traces, left_out, .. } => Some(format!(
            "no trace of this model: misses are the mean of {} recorded traces of others, which tell of \
             one another to {:.0} points of the miss rate ({:.0} at worst); give `Routing::of_trace`",
            traces.len(),
            left_out.mean_points,
            left_out.worst_points
        )),
        RoutingSummary::StandIn { trace, .. } => {
            let left_out = Recordings::builtin().left_out_error();
            Some(format!(
                "the trace '{}' is of another model: recorded models tell of one another to {:.0} points \
                 of the miss rate ({:.0} at worst)",
                trace.name, left_out.mean_points, left_out.worst_points
            ))
        }
        RoutingSummary::OwnTrace { .. } | RoutingSummary::Histogram { .. } => None,
    }
}
