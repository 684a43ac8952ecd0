//! Memory and time with so many layers' experts on the host.

use hotset_cost_models::hardware::Basis;
use hotset_cost_models::model::Mixer;
use hotset_cost_models::{GgmlType, Hardware, WeightFormat};

use super::{PlacedSpeed, Placing, Stage, layers};
use crate::engine::SpeedFigures;
use crate::engine::buffers::Placed;
use crate::engine::prefill::Chunk;
use crate::engine::speed::{HostPrefill, Past, Step, device_class, host_class};
use crate::kernels::{always_read, past_read};
use crate::memory::{self, MemoryLine};
use crate::weights::RankWeights;
use crate::{Coefficient, Request, reserve};

/// What accelerators and the host hold beside experts: the engine's own lines where they are known.
pub(super) fn lines(
    request: &Request,
    weights: &RankWeights,
    placed: Placed,
) -> (Vec<MemoryLine>, Vec<MemoryLine>) {
    let mut engine = reserve::lines(request, weights, request.context, placed);
    let host = engine.as_mut().map(|engine| std::mem::take(&mut engine.host));
    let sequences = (request.users, request.context);
    let accelerator = memory::accelerator(request, weights, sequences, engine);
    (accelerator, host.unwrap_or_default())
}

/// Layers shared out by memory: each accelerator holds its part of everything, and what each needs for itself.
pub(super) fn stages(
    request: &Request,
    lines: &[MemoryLine],
    cards: &[&Hardware],
    routed: u64,
) -> Vec<Stage> {
    let budget = |card: &Hardware| match (request.reserve.free, request.reserve.usable_share) {
        (Some(free), _) => free,
        (None, Some(share)) => (card.memory.value as f64 * share).floor() as u64,
        (None, None) => card.usable_memory(),
    };
    let budgets: Vec<u64> = cards.iter().map(|card| budget(card)).collect();
    let whole: u64 = budgets.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)).max(1);
    let part = |bytes: u64, budget: u64| {
        u64::try_from(u128::from(bytes) * u128::from(budget) / u128::from(whole))
            .unwrap_or(u64::MAX)
    };
    // What each accelerator needs whole, however few layers it has.
    let own = ["activations", "compute buffer", "graphs", "process", "slack"];
    let all = layers(&request.model);
    let stage = |budget: u64| {
        let mut lines: Vec<MemoryLine> = lines
            .iter()
            .map(|line| match own.contains(&line.name) || cards.len() == 1 {
                true => line.clone(),
                false => MemoryLine { bytes: part(line.bytes, budget), ..line.clone() },
            })
            .collect();
        let source = "routed experts of the layers that stay";
        lines.push(MemoryLine::new("experts", part(routed, budget), Basis::Calculated, source));
        let share = budget as f64 / whole as f64;
        Stage { layers: (f64::from(all) * share).round() as u32, lines, budget_bytes: budget }
    };
    budgets.into_iter().map(stage).collect()
}

/// What the host holds.
pub(super) fn host_lines(mut kept: Vec<MemoryLine>, experts: u64) -> Vec<MemoryLine> {
    let source = "routed experts of layers on the host";
    kept.push(MemoryLine::new("experts", experts, Basis::Calculated, source));
    kept
}

impl Placing<'_> {
    fn devices(&self) -> (f64, u32, &'static str) {
        let cards = self.cards();
        let held: f64 = cards.iter().map(|card| card.memory.value as f64).sum();
        let time: f64 =
            cards.iter().map(|card| card.memory.value as f64 / card.memory_rate.value as f64).sum();
        let class = device_class(self.request.machine.architecture.as_deref());
        (held / time, u32::try_from(cards.len()).unwrap_or(u32::MAX), class)
    }

    /// Tokens that run through the layers together: as given, else the engine's default.
    pub(super) fn micro_batch(&self) -> u64 {
        let reserve = &self.request.reserve;
        let planned = self.engine.memory.as_ref().is_some_and(|memory| memory.buffers.is_some());
        reserve.micro_batch.unwrap_or(if planned {
            crate::reserve::MICRO_BATCH
        } else {
            reserve.chunk
        })
    }

    fn mxfp4(&self) -> bool {
        let native = self.request.model.native.map(|(experts, _)| experts);
        let format = self.request.storage.format.or(native);
        matches!(format, Some(WeightFormat::Mxfp4 | WeightFormat::Gguf(GgmlType::Mxfp4)))
    }

    /// One decode step.
    pub(super) fn step(&self, on_host: u32) -> Step {
        let request = self.request;
        let (dense, head) = always_read(&request.model, &self.weights.bytes);
        let used = |layer: &hotset_cost_models::model::LayerExperts| {
            let (all, k) = (f64::from(layer.count.max(1)), f64::from(layer.top_k));
            let union = all * (1.0 - (1.0 - k / all).powf(f64::from(request.users)));
            union.max(k) * layer.stored as f64
        };
        let experts = &self.weights.bytes.experts;
        let routed: f64 = experts.iter().map(used).sum();
        let host: f64 = experts.iter().take(on_host as usize).map(used).sum();
        let (memory, stages, device) = self.devices();
        let past = past_read(&request.model, request.storage.kv, 1, request.context / 2);
        let has = |found: fn(&Mixer) -> bool| request.model.layers.iter().any(|l| found(&l.mixer));
        let past_kind = match () {
            () if has(|mixer| matches!(mixer, Mixer::Compressed(_))) => Past::Sparse,
            () if has(|mixer| matches!(mixer, Mixer::Latent(_))) => Past::Latent,
            () => Past::Full,
        };
        Step {
            device,
            memory,
            tensor: 1,
            stages,
            dense: dense.saturating_add(head) as f64,
            routed,
            on_host: if routed > 0.0 { host / routed } else { 0.0 },
            layers: f64::from(layers(&request.model)),
            host_layers: f64::from(on_host),
            host: request.machine.reached_host_rate(),
            host_mxfp4: self.mxfp4(),
            past: past as f64 * f64::from(request.users),
            past_kind,
            fetched: None,
            stored: None,
        }
    }

    pub(super) fn tokens_per_second(&self, on_host: u32) -> f64 {
        let time = SpeedFigures::builtin().step(self.kind, &self.step(on_host)).total();
        f64::from(self.request.users) / time
    }

    pub(super) fn speed(&self, on_host: u32) -> PlacedSpeed {
        let figures = SpeedFigures::builtin();
        let step = self.step(on_host);
        let time = figures.step(self.kind, &step);
        let placement = if on_host > 0 { "host" } else { "resident" };
        let (low, high) = figures.range(self.kind, placement);
        let tokens_per_s = self.tokens_per_second(on_host);
        let range = figures.get(self.kind, &format!("range.{placement}"));
        let prefill =
            self.chunk(&step).map(|chunk| chunk.tokens / figures.chunk(self.kind, &chunk));
        let prompt = self.request.context.saturating_sub(1) as f64;
        let file = self.weights.bytes.total() as f64;
        PlacedSpeed {
            tokens_per_s,
            low: tokens_per_s * low,
            high: tokens_per_s * high,
            of_ten_inside: range.and_then(crate::engine::Fitted::of_ten_inside).unwrap_or(0.0),
            parts_ms: [time.weights, time.past, time.layers, time.host].map(|s| s * 1e3),
            prefill_tokens_per_s: prefill,
            first_token_s: prefill.map(|rate| prompt / rate + time.total()),
            load_s: self.request.machine.disk_rate.as_ref().map(|disk| file / disk.value as f64),
        }
    }

    /// A chunk of a prompt in the middle of the context.
    fn chunk(&self, step: &Step) -> Option<Chunk> {
        let request = self.request;
        let tokens = self.micro_batch().min(request.context).max(1) as f64;
        let parameters = request.model.parameters();
        let experts = &self.weights.bytes.experts;
        let touched = experts.iter().map(|layer| {
            let share = f64::from(layer.top_k) / f64::from(layer.count.max(1));
            let all = u64::from(layer.count).saturating_mul(layer.stored) as f64;
            all * (1.0 - (1.0 - share).powf(tokens))
        });
        let routed_bytes: f64 = touched.sum();
        let (used, all) = experts.iter().fold((0.0, 0.0), |sum, layer| {
            (sum.0 + f64::from(layer.top_k), sum.1 + f64::from(layer.count))
        });
        let embedding = if request.model.tied { 0 } else { parameters.embed };
        let always = parameters.total().saturating_sub(parameters.routed + embedding);
        let copies = self.engine.speed.as_ref().map(|speed| speed.prefill);
        Some(Chunk {
            device: step.device,
            tokens,
            compute: request.machine.compute.as_ref()?.value as f64,
            memory: step.memory,
            dense: always as f64,
            routed: if all > 0.0 { parameters.routed as f64 * used / all } else { 0.0 },
            routed_bytes,
            dense_bytes: step.dense,
            on_host: step.on_host,
            host: step.host,
            cores: if host_class(step.host) == "server" { 32.0 } else { 12.0 },
            always_copied: copies == Some(HostPrefill::Copies),
            link: Some(request.link().rate_gib_s(1 << 30) * f64::from(1u32 << 30)),
            layers: step.layers,
            past: past_read(&request.model, request.storage.kv, 1, request.context / 2) as f64,
        })
    }

    /// What the speed rests on.
    pub(super) fn coefficients(&self, on_host: u32) -> Vec<Coefficient> {
        let machine = &self.request.machine;
        let rate = |name, figure: &hotset_cost_models::hardware::Figure<u64>| {
            let value = format!("{:.0} GB/s", figure.value as f64 / 1e9);
            Coefficient::new(name, value, figure.basis, figure.source.clone())
        };
        let mut lines = vec![rate("accelerator memory", &machine.memory_rate)];
        if on_host > 0 {
            lines.push(rate("host memory", &machine.host_rate));
        }
        let figures = SpeedFigures::builtin();
        let class = host_class(machine.reached_host_rate());
        let names = [
            ("share of accelerator memory", "gpu_share".to_owned(), ""),
            ("a layer", format!("layer_us.{}", self.devices().2), " us"),
            ("share of host memory", format!("cpu_share.{class}"), ""),
            ("a layer on the host", format!("cpu_layer_us.{class}"), " us"),
        ];
        let shown = if on_host > 0 { 4 } else { 2 };
        lines.extend(names.iter().take(shown).filter_map(|(name, figure, unit)| {
            let fitted = figures.get(self.kind, figure)?;
            let value = format!("{}{unit}", fitted.value);
            Some(Coefficient::new(*name, value, fitted.basis, fitted.source.clone()))
        }));
        lines
    }
}
