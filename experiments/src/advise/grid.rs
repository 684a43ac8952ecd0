//! Which settings are tried: every policy and scope under every way to serve, at every capacity.

use hotset_policies::miss::MissHandler;
use hotset_policies::{Need, NoConfig, PolicySpec};
use hotset_sim::{Compare, Named, Prefetch, Scope, Serving};
use hotset_traces::{Phase, Trace};

use super::Advise;
use crate::ExperimentError;

/// What plain LRU is called.
pub(super) const PLAIN: &str = "lru";

/// All replays over all links.
pub(super) struct Grid {
    /// The phase whose tokens count.
    pub phase: Phase,
    pub train: Option<f64>,
    /// For each link, the references first.
    pub links: Vec<OverLink>,
    pub warnings: Vec<String>,
}

/// The requests over one link.
pub(super) struct OverLink {
    /// Plain LRU and Belady's bound, in every scope.
    pub references: Compare,
    pub served: Vec<Served>,
}

/// Policies that are served in one way.
pub(super) struct Served {
    pub miss: Named<MissHandler>,
    pub prefetch: Named<Prefetch>,
    pub request: Compare,
}

impl Grid {
    pub fn of(trace: &Trace, advise: &Advise) -> Result<Self, ExperimentError> {
        let compare = &advise.compare;
        let present = compare.phase.present(trace)?;
        let phase = *present.iter().find(|&&of| of == Phase::Decode).unwrap_or(&present[0]);
        let trained = compare.scopes.contains(&Scope::Adaptive)
            || advise
                .prefetches
                .iter()
                .any(|of| matches!(&of.value, Prefetch::By(forecast) if forecast.needs_training()))
            || compare.training.histogram.is_none()
                && compare.policies.iter().any(|of| of.value.needs() == Need::Training);
        let train = compare.training.share.or(trained.then_some(50.0));
        let mut warnings = Vec::new();
        let links = (0..compare.links.len())
            .map(|link| over_link(trace, advise, link, train, &mut warnings))
            .collect();
        Ok(Self { phase, train, links, warnings })
    }

    /// How many there are at most.
    pub fn replays(&self) -> usize {
        let of = |request: &Compare| {
            request.policies.len() * request.scopes.len() * request.capacities.len()
        };
        let link = |link: &OverLink| {
            of(&link.references)
                + link.served.iter().map(|served| of(&served.request)).sum::<usize>()
        };
        self.links.iter().map(link).sum()
    }
}

fn over_link(
    trace: &Trace,
    advise: &Advise,
    link: usize,
    train: Option<f64>,
    warnings: &mut Vec<String>,
) -> OverLink {
    let link = &advise.compare.links[link];
    let mut shared =
        Compare { links: vec![link.clone()], timelines: true, ..advise.compare.clone() };
    shared.training.share = train;
    shared.time.judges_splits = false;
    let plain =
        Serving { prefetch: Prefetch::None, misses: MissHandler::Fetch, ..shared.serving.clone() };
    let mut scopes = vec![Scope::Global];
    scopes.extend(shared.scopes.iter().filter(|&&scope| scope != Scope::Global));
    let references = Compare {
        policies: vec![
            Named::new(PLAIN, PolicySpec::Lru(NoConfig {})),
            Named::new("belady", PolicySpec::Belady),
        ],
        scopes,
        serving: plain,
        ..shared.clone()
    };
    let bytes = trace.shape().layers().iter().map(|layer| layer.expert_bytes).max();
    let bytes = shared.expert_bytes.or(bytes).unwrap_or(0).max(1);
    let rates = shared.time.rates(link, bytes);
    let served_by_host = |miss: &&Named<MissHandler>| miss.value.uses_host();
    if rates.host_ps.is_none() && advise.misses.iter().any(|miss| served_by_host(&miss)) {
        let names: Vec<&str> =
            advise.misses.iter().filter(served_by_host).map(|miss| miss.text.as_str()).collect();
        warnings.push(format!(
            "link '{}' does not say how fast the host's cores serve an expert: {} left out there",
            link.name,
            names.join(", ")
        ));
    }
    let mut served = Vec::new();
    for miss in &advise.misses {
        if miss.value.uses_host() && rates.host_ps.is_none() {
            continue;
        }
        for prefetch in &advise.prefetches {
            served.extend(of_serving(&shared, miss, prefetch, miss.value.with_rates(&rates)));
        }
    }
    OverLink { references, served }
}

/// Nothing where it could not be another setting than those that there are.
fn of_serving(
    shared: &Compare,
    miss: &Named<MissHandler>,
    prefetch: &Named<Prefetch>,
    handler: MissHandler,
) -> Option<Served> {
    let online = |policy: &&Named<PolicySpec>| policy.value.needs() != Need::Future;
    let mut policies: Vec<_> = shared.policies.iter().filter(online).cloned().collect();
    let mut scopes = shared.scopes.clone();
    // Whole layers: each is all resident or all on the host, whatever evicts.
    if matches!(handler, MissHandler::CpuLayers { .. }) {
        if prefetch.value != Prefetch::None {
            return None;
        }
        policies.truncate(1);
        scopes = vec![Scope::Global];
    }
    let serving =
        Serving { prefetch: prefetch.value.clone(), misses: handler, ..shared.serving.clone() };
    let request = Compare { policies, scopes, serving, ..shared.clone() };
    Some(Served { miss: miss.clone(), prefetch: prefetch.clone(), request })
}
