//! Where the numbers of a price come from, one [`Coefficient`] each.

use hotset_cost_models::hardware::Basis;

use crate::Request;
use crate::coefficient::{Coefficient, link_basis};
use crate::engine::SpeedFigures;
use crate::engine::speed::host_class;
use crate::request::MissPricing;
use crate::routing::{Routing, RoutingSummary};

/// The link, for the largest expert.
pub(crate) fn link_coefficient(request: &Request, bytes: u64) -> Coefficient {
    let link = request.link();
    Coefficient::new(
        format!("link {}", link.name),
        format!("{:.1} GiB/s for an expert", link.rate_gib_s(bytes.max(1))),
        link_basis(&link.source),
        link.source.clone(),
    )
}

/// How misses are shared out between link and host cores.
pub(crate) struct HostShare {
    /// Share of the misses that are fetched; host cores serve the rest.
    pub fetch_share: f64,
    /// At this pace.
    pub host_ps_per_byte: f64,
    /// What that rests on.
    pub coefficient: Coefficient,
}

/// The share of the misses, experts of `bytes`, that host cores serve; `None` where all are fetched.
pub(crate) fn host_share(request: &Request, bytes: u64) -> Option<HostShare> {
    let alone = request.offload.misses == MissPricing::Host;
    if request.offload.misses == MissPricing::Fetch {
        return None;
    }
    let link = request.link();
    let (ps_per_mib, basis, source) = match request.host_kernel_ps_per_mib() {
        Some(ps_per_mib) => {
            let source = match &request.machine.host_kernel_rate {
                Some(rate) if link.host_kernel.is_none() => rate.source.clone(),
                _ => link.source.clone(),
            };
            (ps_per_mib, Basis::Measured, source)
        }
        None if alone => fitted_kernel(request),
        None => return None,
    };
    let host_ps_per_byte = ps_per_mib / f64::from(1 << 20);
    let host = host_ps_per_byte * bytes as f64;
    let queued = link.queued_ps(bytes) as f64;
    let fetch_share = match alone {
        true => 0.0,
        false => link.fetch_share(bytes).unwrap_or((host / queued).min(1.0)),
    };
    let value = format!(
        "{:.0} GB/s, {:.0}% of the misses",
        1e3 / host_ps_per_byte,
        (1.0 - fetch_share) * 100.0
    );
    let coefficient = Coefficient::new("experts on host cores", value, basis, source);
    Some(HostShare { fetch_share, host_ps_per_byte, coefficient })
}

/// Experts on host cores where nobody measured this machine: the share of its memory's rate that reports give.
fn fitted_kernel(request: &Request) -> (f64, Basis, String) {
    let rate = request.machine.reached_host_rate();
    let name = format!("cpu_share.{}", host_class(rate));
    let figure = SpeedFigures::builtin().get("ggml", &name);
    let share = figure.map_or(0.65, |figure| figure.value);
    let source = figure.map(|figure| figure.source.clone()).unwrap_or_default();
    let told = format!("{:.0}% of {:.0} GB/s: {source}", share * 100.0, rate / 1e9);
    (f64::from(1 << 20) / (rate * share) * 1e12, Basis::Calculated, told)
}

/// What a request gives beside link and kernels: storage, accelerators' exchange, drafts, overhead.
pub(crate) fn engine_coefficients(request: &Request) -> Vec<Coefficient> {
    let mut coefficients = Vec::new();
    let mut add = |name: &str, value: String, basis, source: &str| {
        coefficients.push(Coefficient::new(name, value, basis, source));
    };
    if let Some(disk) = &request.machine.disk_rate {
        let value = format!("{:.1} GB/s", disk.value as f64 / 1e9);
        add("storage", value, disk.basis, &disk.source);
    }
    if request.parallel.tensor > 1 {
        match &request.machine.peer_rate {
            Some(peer) => add(
                "between accelerators",
                format!("{:.0} GB/s", peer.value as f64 / 1e9),
                peer.basis,
                &peer.source,
            ),
            None => add(
                "between accelerators",
                "left out".to_owned(),
                Basis::Assumed,
                "the machine does not give a rate",
            ),
        }
    }
    if request.speculation.drafts > 0 {
        let accept: Vec<String> =
            request.speculation.accept.iter().map(|a| format!("{:.0}%", a * 100.0)).collect();
        add("accepted", accept.join(", then "), Basis::Assumed, "`Speculation::accept`");
    }
    match request.pace.measured {
        Some(step) => {
            let value = format!(
                "{} ms, {} ms for each further token, misses aside",
                step.first_ms, step.further_ms
            );
            add("a step", value, Basis::Measured, "`Pace::measured`");
        }
        None if request.pace.fixed_ms > 0.0 => {
            let value = format!("{} ms a step", request.pace.fixed_ms);
            add("engine's overhead", value, Basis::Assumed, "`Pace::fixed_ms`");
        }
        None => add(
            "engine's overhead",
            "left out".to_owned(),
            Basis::Assumed,
            "nobody measured it here: give `Pace::fixed_ms`, or a whole step with `Pace::measured`",
        ),
    }
    coefficients
}

/// What routing rests on.
pub(crate) fn routing_coefficient(routing: &Routing<'_>) -> Coefficient {
    match routing.summary() {
        RoutingSummary::Uniform => Coefficient::new(
            "routing",
            "uniform",
            Basis::Assumed,
            "every expert alike, as asked: real routing misses less",
        ),
        RoutingSummary::Recorded { traces, how, left_out } => Coefficient::new(
            "routing",
            format!("{} recorded traces stand in", traces.len()),
            Basis::Assumed,
            format!(
                "{how}; of one that is left out the others are {:.1} points of the miss rate off, {:.1} \
                 of {}",
                left_out.mean_points, left_out.worst_points, left_out.worst
            ),
        ),
        RoutingSummary::Histogram { name, format, uses, how } => Coefficient::new(
            "routing",
            format!("counts {name}"),
            Basis::Assumed,
            format!("{how}; {uses} uses ({format})"),
        ),
        RoutingSummary::OwnTrace { trace } => Coefficient::new(
            "routing",
            format!("trace {}", trace.name),
            Basis::Measured,
            format!(
                "LRU over {} tokens of a trace with the model's layers, experts and top-k (that \
                     it is of this model is taken on trust), digest {}",
                trace.tokens, trace.digest
            ),
        ),
        RoutingSummary::StandIn { trace, how } => Coefficient::new(
            "routing",
            format!("trace {} stands in", trace.name),
            Basis::Assumed,
            format!("{how}; digest {}", trace.digest),
        ),
    }
}
