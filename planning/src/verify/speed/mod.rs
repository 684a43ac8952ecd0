//! Predictions of speeds: a report's row as one step of an engine.

mod devices;
mod place;
mod prefill;
mod quant;

use hotset_cost_models::Model;
use hotset_cost_models::model::{KvFormat, Mixer};

use super::{Known, Prediction, SpeedKind, SpeedRow, WhyNot};
use crate::engine::SpeedFigures;
use crate::engine::speed::{HostPrefill, Past, Step};
use crate::kernels::past_read;

pub use prefill::Prefill;

/// Predicts one speed of a report, in the unit of its kind.
///
/// # Errors
/// [`WhyNot`]: what the row does not say, or what no rule is known for.
pub fn predict(row: &SpeedRow, kind: SpeedKind, known: &Known) -> Result<Prediction, WhyNot> {
    let figures = SpeedFigures::builtin();
    match kind {
        SpeedKind::Decode => Decode::of(row, known).map(|decode| decode.predict(figures)),
        SpeedKind::Prefill => Prefill::of(row, known).map(|prefill| prefill.predict(figures)),
        SpeedKind::FirstToken => Prefill::of(row, known)?.first_token(row, figures),
    }
}

/// Decoding as a report describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decode {
    /// The kind of engine, by which figures are told apart.
    pub kind: String,
    /// Where its experts are: `resident`, `unified`, `host`, `cache`, `disk`.
    pub placement: &'static str,
    /// One step of all its streams.
    pub step: Step,
    /// Streams.
    pub streams: f64,
}

impl Decode {
    /// From a report.
    ///
    /// # Errors
    /// [`WhyNot`]: what the row does not say.
    pub fn of(row: &SpeedRow, known: &Known) -> Result<Self, WhyNot> {
        let Setup { kind, model, weights, mxfp4, .. } = Setup::of(row, known)?;
        let placement = placement(row)?;
        let streams = row.batch.unwrap_or(1).max(1) as f64;
        let place = match placement {
            "cache" | "disk" => place::Place { on_host: 0.0, layers: 0.0 },
            _ => place::place(row, &model, weights)?,
        };
        let host = if place.on_host > 0.0 { devices::host_rate(row)? } else { 0.0 };
        let no_device = placement == "disk" && row.gpu.is_empty() && row.assumed_gpu.is_empty();
        let devices = match no_device {
            true => devices::Devices { count: 1, class: "cpu", rate: host_alone(row), link: None },
            false => devices::devices(row, place.on_host >= 0.5)?,
        };
        let sliced = place::setting(&row.settings, "tp=").is_some() || kind == "server";
        let one_token = routed_by_a_token(&model, weights);
        let routed = one_token * union(&model, streams);
        let depth = row.context_depth.or(row.assumed_context_depth).unwrap_or(0);
        let past = past_read(&model, kv_format(&row.settings), 1, depth) as f64 * streams;
        let missed = match placement {
            "cache" | "disk" => routed * (1.0 - hit_rate(row)?),
            _ => 0.0,
        };
        let link = || devices.link.ok_or_else(|| WhyNot::new("the link's rate is not said"));
        let fetched = if placement == "cache" { Some((missed, link()?)) } else { None };
        let beside = row.settings.contains("overlap") && !row.settings.contains("no overlap");
        let stored = match placement {
            "disk" => Some((missed, devices::storage_rate(row)?, beside)),
            _ => None,
        };
        let step = Step {
            device: devices.class,
            memory: devices.rate,
            tensor: if sliced { devices.count } else { 1 },
            stages: if sliced { 1 } else { devices.count },
            dense: weights.dense,
            routed,
            on_host: place.on_host,
            layers: model.layers.len() as f64,
            host_layers: place.layers,
            host,
            host_mxfp4: mxfp4,
            past,
            past_kind: past_kind(&model),
            fetched,
            stored,
        };
        Ok(Self { kind, placement, step, streams })
    }

    /// Tokens a second of all streams.
    #[must_use]
    pub fn tokens_per_second(&self, figures: &SpeedFigures) -> f64 {
        self.streams / figures.step(&self.kind, &self.step).total()
    }

    fn predict(&self, figures: &SpeedFigures) -> Prediction {
        let (low, high) = figures.range(&self.kind, self.placement);
        Prediction::between(self.tokens_per_second(figures), low, high)
    }
}

/// What every prediction needs of a row.
struct Setup {
    kind: String,
    model: Model,
    weights: quant::Weights,
    /// Prompts copy experts that lie on the host.
    copies: bool,
    /// Experts are in MXFP4.
    mxfp4: bool,
}

impl Setup {
    fn of(row: &SpeedRow, known: &Known) -> Result<Self, WhyNot> {
        let engine = known.engine(&row.engine)?;
        let speed = engine.speed.as_ref().ok_or_else(|| {
            WhyNot::new(format!("no speeds of {} were reported or measured", engine.name))
        })?;
        let named = known.models.find(&row.assumed_config);
        let model = named.or_else(|_| known.models.find(&row.model))?;
        let bits = quant::bits(&row.quant);
        // gpt-oss is published in MXFP4 and hardly ever in anything else.
        let native = || model.name.starts_with("gpt-oss").then(|| quant::bits("mxfp4")).flatten();
        let why = || WhyNot::new(format!("format '{}' is not known", row.quant));
        let bits = bits.or_else(native).ok_or_else(why)?;
        let file = row.file_gib.map(|gib| gib * f64::from(1u32 << 30));
        let weights = quant::weights(&model, bits, file);
        let copies = speed.prefill == HostPrefill::Copies;
        let mxfp4 = bits.experts == 4.25;
        Ok(Self { kind: speed.like.clone(), model, weights, copies, mxfp4 })
    }
}

fn placement(row: &SpeedRow) -> Result<&'static str, WhyNot> {
    Ok(match row.mode.as_str() {
        "resident" => "resident",
        "unified-resident" => "unified",
        "ot" | "ncmoe" | "cmoe" => "host",
        "ktransformers" => "host",
        "gpu-cache" => "cache",
        "ssd-stream" => "disk",
        other => return Err(WhyNot::new(format!("no rule for mode '{other}'"))),
    })
}

/// Bytes of routed experts that one token uses.
fn routed_by_a_token(model: &Model, weights: quant::Weights) -> f64 {
    let shares = model
        .moe_layers()
        .map(|(_, experts)| (f64::from(experts.top_k), f64::from(experts.count.max(1))));
    let (used, all) = shares.fold((0.0, 0.0), |sum, (k, n)| (sum.0 + k, sum.1 + n));
    if all > 0.0 { weights.routed * used / all } else { 0.0 }
}

/// Experts that so many streams use together, in those of one: recorded unions lie below those of chance.
fn union(model: &Model, streams: f64) -> f64 {
    let Some((_, experts)) = model.moe_layers().next() else { return 1.0 };
    let (all, k) = (f64::from(experts.count.max(1)), f64::from(experts.top_k.max(1)));
    let by_chance = all * (1.0 - (1.0 - k / all).powf(streams)) / k;
    by_chance.max(1.0).powf(UNION)
}

const UNION: f64 = 0.85;

/// The share of a token's experts that were in their slots: as reported, none where there is no cache.
fn hit_rate(row: &SpeedRow) -> Result<f64, WhyNot> {
    if let Some(rate) = row.hit_rate {
        return Ok(rate.clamp(0.0, 1.0));
    }
    if row.settings.contains("no cache") {
        return Ok(0.0);
    }
    Err(WhyNot::new("no hit rate is given, and what a cache misses depends on the text's routing"))
}

/// What programs reach of host memory where nothing else computes; 40 GB/s where nobody says.
fn host_alone(row: &SpeedRow) -> f64 {
    devices::host_rate(row).unwrap_or(40e9)
}

fn kv_format(settings: &str) -> KvFormat {
    match settings {
        text if text.contains("ctk=q8_0") => KvFormat::Q8_0,
        text if text.contains("ctk=q4_0") => KvFormat::Q4_0,
        _ => KvFormat::Bf16,
    }
}

fn past_kind(model: &Model) -> Past {
    let has = |found: fn(&Mixer) -> bool| model.layers.iter().any(|layer| found(&layer.mixer));
    match () {
        () if has(|mixer| matches!(mixer, Mixer::Compressed(_))) => Past::Sparse,
        () if has(|mixer| matches!(mixer, Mixer::Latent(_))) => Past::Latent,
        () => Past::Full,
    }
}
