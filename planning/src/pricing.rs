//! What a step takes: kernels, copies, host cores and disk, put together in three ways.

use crate::coefficient::Coefficient;
use crate::fit::EXPERT_BANK;
use crate::kernels::{Kernels, always_read, between, kv_read};
use crate::routing::{HostCache, Routing, StepKind};
use crate::sources::{engine_coefficients, host_share, link_coefficient};
use crate::speed::{Rate, Speed, StepParts, expected_tokens};
use crate::verdict::Fit;
use crate::weights::RankWeights;
use crate::{Load, PlanError, Request};

/// A request's prices: made once, asked for many numbers of users, tokens and slots.
pub(crate) struct Pricing<'a> {
    request: &'a Request,
    weights: &'a RankWeights,
    kernels: Kernels,
    /// The same at their fastest.
    fastest: Kernels,
    /// Bytes of an expert, and how many layers have such.
    sizes: Vec<(u64, u32)>,
    /// Share of the misses that are fetched; host cores serve the rest at this pace.
    fetch_share: f64,
    host_ps_per_byte: f64,
    pub(crate) coefficients: Vec<Coefficient>,
}

/// What copies cost with everything in its place: one after another, in bursts, queued.
#[derive(Default)]
struct Moves {
    alone_ps: f64,
    burst_ps: f64,
    queued_ps: f64,
    host_ps: f64,
    disk_ps: f64,
    /// By layer, the longer of burst, host and disk.
    beside_ps: f64,
    bytes: f64,
}

/// Who keeps in host memory what of the experts it has room for.
pub(crate) fn host_cache(request: &Request) -> HostCache {
    match request.offload.load {
        Load::Mapped => HostCache::Pages,
        Load::Copied | Load::Direct => HostCache::Direct,
    }
}

impl<'a> Pricing<'a> {
    pub fn new(request: &'a Request, weights: &'a RankWeights) -> Self {
        let (kernels, mut coefficients) = Kernels::of(request);
        let mut sizes: Vec<(u64, u32)> = Vec::new();
        for layer in &weights.bytes.experts {
            match sizes.iter_mut().find(|size| size.0 == layer.stored) {
                Some(size) => size.1 += 1,
                None => sizes.push((layer.stored, 1)),
            }
        }
        let largest = sizes.iter().map(|size| size.0).max().unwrap_or(0);
        coefficients.push(link_coefficient(request, largest));
        let (mut fetch_share, mut host_ps_per_byte) = (1.0, 0.0);
        if let Some(host) = host_share(request, largest) {
            (fetch_share, host_ps_per_byte) = (host.fetch_share, host.host_ps_per_byte);
            coefficients.push(host.coefficient);
        }
        coefficients.extend(engine_coefficients(request));
        Self {
            request,
            weights,
            fastest: kernels.fastest(request),
            kernels,
            sizes,
            fetch_share,
            host_ps_per_byte,
            coefficients,
        }
    }

    /// How fast `users` sequences of `context` tokens are with what `fit` found.
    pub fn speed(
        &self,
        routing: &Routing<'_>,
        fit: &Fit,
        users: u32,
        context: u64,
    ) -> Result<Speed, PlanError> {
        let drafts = self.request.speculation.drafts;
        let tokens_run = u64::from(users) * (1 + u64::from(drafts));
        let tokens_given =
            f64::from(users) * expected_tokens(drafts, &self.request.speculation.accept);
        let of_model = routing.need(StepKind { users, tokens: 1 + drafts }, fit.share())?;
        let need = of_model.part(f64::from(self.request.parallel.expert.max(1)));
        let reads = self.read_share(routing, StepKind { users, tokens: 1 + drafts }, fit)?;
        let moves = self.moves(need.misses, reads);
        let compute = |kernels| self.compute(kernels, need.distinct, users, context, tokens_run);
        let mut parts = compute(&self.kernels);
        parts.link_ms = moves.burst_ps / 1e9;
        parts.host_ms = moves.host_ps / 1e9;
        parts.disk_ms = moves.disk_ps / 1e9;
        // A measured step is what the accelerator takes with every expert in its slot: misses come on
        // top of it as they do on top of what is calculated.
        let (kernels, least) = match self.request.pace.measured {
            Some(step) => {
                let measured = step.first_ms + step.further_ms * (tokens_run - 1) as f64;
                (measured, measured)
            }
            None => (parts.kernels(), compute(&self.fastest).kernels()),
        };
        let alone = moves.alone_ps + moves.host_ps + moves.disk_ps;
        let longest = moves.queued_ps.max(moves.host_ps).max(moves.disk_ps) / 1e9;
        let times = [kernels + alone / 1e9, kernels + moves.beside_ps / 1e9, least.max(longest)];
        let rate = |step_ms: f64| Rate {
            step_ms,
            tokens_per_s: tokens_given / step_ms * 1e3,
            tokens_per_s_each: tokens_given / f64::from(users) / step_ms * 1e3,
        };
        let with_misses = |misses| rate(kernels + self.moves(misses, reads).beside_ps / 1e9);
        Ok(Speed {
            timeline_between: need.between.map(|[few, many]| [with_misses(many), with_misses(few)]),
            tokens_run,
            tokens_given,
            need,
            moved_mib: moves.bytes / f64::from(1 << 20),
            parts,
            no_overlap: rate(times[0]),
            timeline: rate(times[1]),
            perfect: rate(times[2]),
        })
    }

    /// Kernels of a step, every expert in its slot.
    fn compute(
        &self,
        kernels: &Kernels,
        distinct: f64,
        users: u32,
        context: u64,
        tokens: u64,
    ) -> StepParts {
        let request = self.request;
        let (dense, head) = always_read(&request.model, &self.weights.bytes);
        let kept = kv_read(request, context) as f64 * f64::from(users);
        let layers = request.model.layers.len().max(1) as f64;
        let dense_ps = kernels.read((dense as f64 + kept) / layers) * layers;
        let experts_ps: f64 = self
            .sizes
            .iter()
            .map(|(bytes, count)| kernels.read_pieces(*bytes, distinct) * f64::from(*count))
            .sum();
        let drafts = f64::from(request.speculation.drafts);
        let draft_ps = if drafts > 0.0 { drafts * self.draft(kernels, head) } else { 0.0 };
        StepParts {
            dense_ms: dense_ps / 1e9,
            experts_ms: experts_ps / 1e9,
            head_ms: kernels.read(head as f64) / 1e9,
            draft_ms: draft_ps / 1e9,
            exchange_ms: self.exchange(tokens) / 1e9,
            fixed_ms: request.pace.fixed_ms,
            ..StepParts::default()
        }
    }

    /// One drafted token: a draft layer with its experts and the head, or a whole draft model.
    fn draft(&self, kernels: &Kernels, head: u64) -> f64 {
        let bytes = &self.weights.bytes;
        match self.request.reserve.draft {
            Some(model) => kernels.read(model as f64),
            None => {
                let layers = u64::from(self.request.model.mtp_layers.max(1));
                let last = bytes.experts.last();
                let experts =
                    last.map_or(0, |last| u64::from(last.top_k).saturating_mul(last.stored));
                let one = (bytes.mtp_dense / layers).saturating_add(experts).saturating_add(head);
                kernels.read(one as f64)
            }
        }
    }

    /// Two sums over all accelerators a layer, around a ring.
    fn exchange(&self, tokens: u64) -> f64 {
        let ranks = f64::from(self.request.parallel.tensor);
        let Some(peer) = self.request.machine.peer_rate.as_ref().filter(|_| ranks > 1.0) else {
            return 0.0;
        };
        let bytes = tokens as f64 * self.request.model.hidden as f64 * 2.0;
        let each = 2.0 * (ranks - 1.0) / ranks * bytes / peer.value as f64 * 1e12;
        2.0 * each * self.request.model.layers.len() as f64
    }

    fn moves(&self, misses: f64, reads: f64) -> Moves {
        let mut moves = Moves::default();
        if misses <= 0.0 {
            return moves;
        }
        let link = self.request.link();
        let unified_disk = self.request.machine.unified && self.request.offload.bank.is_none();
        // On a unified machine without a bank what is not resident is on disk, and read to where
        // it is used.
        let fetched = if unified_disk { 0.0 } else { misses * self.fetch_share };
        let served = if unified_disk { 0.0 } else { misses - fetched };
        let from_disk = misses * reads;
        let disk = self.request.machine.disk_rate.as_ref().map_or(0.0, |d| 1e12 / d.value as f64);
        for &(bytes, layers) in &self.sizes {
            let layers = f64::from(layers);
            let burst = between(fetched, |copies| link.demand_ps(bytes, copies));
            let host = served * self.host_ps_per_byte * bytes as f64;
            let read = from_disk * disk * bytes as f64;
            moves.alone_ps += fetched * link.demand_ps(bytes, 1) as f64 * layers;
            moves.burst_ps += burst * layers;
            moves.queued_ps += fetched * link.queued_ps(bytes) as f64 * layers;
            moves.host_ps += host * layers;
            moves.disk_ps += read * layers;
            moves.beside_ps += burst.max(host).max(read) * layers;
            moves.bytes +=
                (fetched + if unified_disk { misses } else { 0.0 }) * bytes as f64 * layers;
        }
        moves
    }

    /// Of the misses, the share that host memory does not hold either.
    fn read_share(
        &self,
        routing: &Routing<'_>,
        kind: StepKind,
        fit: &Fit,
    ) -> Result<f64, PlanError> {
        if fit.on_disk_bytes == 0 {
            return Ok(0.0);
        }
        let host = self.host_share(fit);
        if host <= 0.0 {
            // One memory without a bank: what has no slot is on disk.
            return Ok(1.0);
        }
        routing.read_share(kind, (fit.share(), host), host_cache(self.request))
    }

    /// Share of all experts that host memory holds.
    fn host_share(&self, fit: &Fit) -> f64 {
        let all = self.weights.bytes.routed() as f64 * f64::from(self.request.ranks_per_host());
        let bank = fit.host.iter().find(|line| line.name == EXPERT_BANK);
        let held = bank.map_or(0.0, |bank| bank.bytes as f64);
        if all > 0.0 { (held / all).min(1.0) } else { 0.0 }
    }
}
