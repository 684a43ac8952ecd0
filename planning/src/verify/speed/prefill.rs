//! Prefill as a report describes it, and the time to a first token.

use hotset_cost_models::hardware_of_device;

use super::super::{Known, Prediction, SpeedRow, WhyNot};
use super::{Decode, Setup, devices, kv_format, place, placement, routed_by_a_token};
use crate::engine::SpeedFigures;
use crate::engine::prefill::Chunk;
use crate::kernels::past_read;

/// Micro-batches where a report does not say.
const MICRO_BATCH: f64 = 512.0;
/// A chunk of engines that take prompts in larger pieces.
const LARGE_CHUNK: f64 = 32768.0;

/// Prefill as a report describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefill {
    /// The kind of engine.
    pub kind: String,
    /// `prefill.` and where its experts are.
    pub placement: &'static str,
    /// One chunk.
    pub chunk: Chunk,
    /// Tokens of the prompt.
    pub length: f64,
    /// A step that follows.
    decode: Option<Decode>,
}

impl Prefill {
    /// From a report.
    ///
    /// # Errors
    /// [`WhyNot`]: what the row does not say, or what no rule is known for.
    pub fn of(row: &SpeedRow, known: &Known) -> Result<Self, WhyNot> {
        let Setup { kind, model, weights, copies, .. } = Setup::of(row, known)?;
        let placement = match placement(row)? {
            "resident" => "prefill.resident",
            "unified" => "prefill.unified",
            "host" => "prefill.host",
            _ => return Err(WhyNot::new("prefill through a cache of experts is not modelled")),
        };
        let length = row.pp_length.ok_or_else(|| WhyNot::new("the prompt's length is not said"))?;
        let place = place::place(row, &model, weights)?;
        let devices = devices::devices(row, false)?;
        let host = if place.on_host > 0.0 { devices::host_rate(row)? } else { 0.0 };
        let name = if row.gpu.is_empty() { &row.assumed_gpu } else { &row.gpu };
        let first = name.split(" + ").next().unwrap_or_default();
        let card = hardware_of_device(first, None).and_then(|card| card.compute);
        let why = || WhyNot::new(format!("how fast '{name}' computes is not known"));
        let compute = card.ok_or_else(why)?.value as f64;
        let chunk = match place::setting(&row.settings, "ub=") {
            Some(tokens) => tokens,
            None if kind == "ggml" => MICRO_BATCH,
            None => LARGE_CHUNK,
        };
        let length = length as f64;
        let tokens = chunk.min(length * row.batch.unwrap_or(1).max(1) as f64).max(1.0);
        let sliced = place::setting(&row.settings, "tp=").is_some() || kind == "server";
        if kind == "server" && (placement != "prefill.host" || devices.count > 2) {
            let why = "prefill of servers was reported for too few set-ups to fit how kernels and cards share it";
            return Err(WhyNot::new(why));
        }
        let at_once = if sliced { f64::from(devices.count) } else { 1.0 };
        let touched = model.moe_layers().next().map_or(0.0, |(_, experts)| {
            let share = f64::from(experts.top_k) / f64::from(experts.count.max(1));
            1.0 - (1.0 - share).powf(tokens)
        });
        let parameters = model.parameters();
        let routed_share = routed_by_a_token(&model, weights) / weights.routed.max(1.0);
        let embedding = if model.tied { 0 } else { parameters.embed };
        let before = match row.context_depth {
            // A depth that is the prompt's length is the depth at its end.
            Some(depth) if depth as f64 > length => depth as f64,
            _ => 0.0,
        };
        let depth = (before + length / 2.0) as u64;
        let chunk = Chunk {
            device: devices.class,
            tokens,
            compute: compute * at_once,
            memory: devices.rate * at_once,
            dense: (parameters.total() - parameters.routed - embedding) as f64,
            routed: parameters.routed as f64 * routed_share,
            routed_bytes: weights.routed * touched,
            dense_bytes: weights.dense,
            on_host: place.on_host,
            host,
            cores: devices::cores(row, host),
            always_copied: copies,
            link: devices.link,
            layers: model.layers.len() as f64,
            past: past_read(&model, kv_format(&row.settings), 1, depth) as f64,
        };
        Ok(Self { kind, placement, chunk, length, decode: Decode::of(row, known).ok() })
    }

    /// Tokens a second.
    #[must_use]
    pub fn tokens_per_second(&self, figures: &SpeedFigures) -> f64 {
        self.chunk.tokens / figures.chunk(&self.kind, &self.chunk)
    }

    pub(super) fn predict(&self, figures: &SpeedFigures) -> Prediction {
        let (low, high) = figures.range(&self.kind, self.placement);
        Prediction::between(self.tokens_per_second(figures), low, high)
    }

    /// Seconds to the first token: the prompt, then a step.
    pub(super) fn first_token(
        &self,
        row: &SpeedRow,
        figures: &SpeedFigures,
    ) -> Result<Prediction, WhyNot> {
        if row.batch.unwrap_or(1) > 1 {
            return Err(WhyNot::new("prompts of several streams wait for each other"));
        }
        let step = self.decode.as_ref().map_or(0.0, |d| 1.0 / d.tokens_per_second(figures));
        let (low, high) = figures.range(&self.kind, self.placement);
        let seconds = self.length / self.tokens_per_second(figures) + step;
        Ok(Prediction::between(seconds, 1.0 / high, 1.0 / low))
    }
}
