//! Where the numbers of a price come from, one [`Coefficient`] each.

use hotset_cost_models::hardware::Basis;

use crate::coefficient::Coefficient;
use crate::pricing::Pricing;
use crate::request::Misses;
use crate::routing::{Routing, RoutingSummary};

impl Pricing<'_> {
    /// How misses are shared out between link and host cores.
    pub(crate) fn host(&mut self, bytes: u64) {
        if self.request.misses == Misses::Fetch {
            return;
        }
        let Some(ps_per_mib) = self.request.host_kernel_ps_per_mib() else { return };
        let link = self.request.link();
        self.host_ps_per_byte = ps_per_mib / f64::from(1 << 20);
        let host = self.host_ps_per_byte * bytes as f64;
        let queued = link.queued_ps(bytes) as f64;
        self.fetch_share = link.fetch_share(bytes).unwrap_or((host / queued).min(1.0));
        let source = match &self.request.machine.host_kernel_rate {
            Some(rate) if link.host_kernel.is_none() => rate.source.clone(),
            _ => link.source.clone(),
        };
        self.coefficients.push(Coefficient::new(
            "experts on host cores",
            format!(
                "{:.0} GB/s, {:.0}% of the misses",
                1e3 / self.host_ps_per_byte,
                (1.0 - self.fetch_share) * 100.0
            ),
            Basis::Measured,
            source,
        ));
    }

    pub(crate) fn tell(&mut self) {
        let request = self.request;
        let mut tell = |name: &str, value: String, basis, source: &str| {
            self.coefficients.push(Coefficient::new(name, value, basis, source));
        };
        if let Some(disk) = &request.machine.disk_rate {
            let value = format!("{:.1} GB/s", disk.value as f64 / 1e9);
            tell("storage", value, disk.basis, &disk.source);
        }
        if request.parallel.tensor > 1 {
            match &request.machine.peer_rate {
                Some(peer) => tell(
                    "between accelerators",
                    format!("{:.0} GB/s", peer.value as f64 / 1e9),
                    peer.basis,
                    &peer.source,
                ),
                None => tell(
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
            tell("accepted", accept.join(", then "), Basis::Assumed, "--accept");
        }
        match request.pace.measured {
            Some((first, more)) => {
                let value = format!("{first} ms, {more} ms for each further token");
                tell("a step", value, Basis::Measured, "--measured-step");
            }
            None if request.pace.fixed_ms > 0.0 => {
                let value = format!("{} ms a step", request.pace.fixed_ms);
                tell("engine's overhead", value, Basis::Assumed, "--fixed-ms");
            }
            None => tell(
                "engine's overhead",
                "left out".to_owned(),
                Basis::Assumed,
                "nobody measured it here: give --fixed-ms, or a whole step with --measured-step",
            ),
        }
    }

    /// What routing rests on.
    pub fn routing_coefficient(&self, routing: &Routing<'_>) -> Coefficient {
        match routing.summary() {
            RoutingSummary::Uniform => Coefficient::new(
                "routing",
                "uniform",
                Basis::Assumed,
                "no trace given, every expert alike: real routing misses less",
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
}

/// Profiles of links have one source for all their figures: published or measured by it.
pub(crate) fn link_basis(source: &str) -> Basis {
    if source.contains("this project") || source.contains("measure") {
        Basis::Measured
    } else {
        Basis::Published
    }
}
