//! How fast an engine's kernels are: what one step takes, from what it reads and where.
//!
//! ```text
//! t = (D + A (1 - f)) / (eg Bg)  +  KV / (ek Bg)  +  L o  +  A f / (ec Bc)  +  Lc c  +  what is copied or read
//! ```
//!
//! D are the bytes outside the routed experts, A those of the routed experts that a step uses, f the share of them that
//! the host computes; Bg and Bc the rates of accelerator and host memory, L layers, Lc those of them with experts on the
//! host. The figures (eg, ek, ec, o, c and the rest) are in `engines/speed.toml`, written by the example `fit_speeds` from
//! reports: by kind of engine and class of device, none by machine or model.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::Fitted;

const FIGURES: &str = include_str!("../../engines/speed.toml");

/// The kind whose figures stand in where a kind has none of its own.
const COMMON: &str = "ggml";

/// An engine's speed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSpeed {
    /// The kind whose figures it goes by.
    pub like: String,
    /// How prompts use experts on the host.
    #[serde(default)]
    pub prefill: HostPrefill,
}

/// How prompts use experts that lie on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPrefill {
    /// Computed there or copied for the chunk, whichever takes less.
    #[default]
    Chooses,
    /// Always copied for the chunk.
    Copies,
}

/// Figures of every kind of engine, by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct SpeedFigures(pub BTreeMap<String, BTreeMap<String, Fitted>>);

impl SpeedFigures {
    /// Those that come with the crate.
    ///
    /// # Panics
    /// Never: a test reads them.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static READ: OnceLock<SpeedFigures> = OnceLock::new();
        READ.get_or_init(|| toml::from_str(FIGURES).expect("the figures of engines are TOML"))
    }

    /// A figure of a kind, or what stands in for it.
    #[must_use]
    pub fn get(&self, kind: &str, name: &str) -> Option<&Fitted> {
        let of = |kind: &str| self.0.get(kind).and_then(|figures| figures.get(name));
        of(kind).or_else(|| of(COMMON))
    }

    /// Its value; `otherwise` where nobody gives one.
    #[must_use]
    pub fn value(&self, kind: &str, name: &str, otherwise: f64) -> f64 {
        self.get(kind, name).map_or(otherwise, |figure| figure.value)
    }
}

/// What attention reads of a sequence's past, for each has its own share of the memory's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Keys and values.
    Full,
    /// Latents, which are computed with more than read.
    Latent,
    /// What an index or compression chose.
    Sparse,
}

impl Past {
    fn figure(self) -> &'static str {
        match self {
            Self::Full => "kv_share.full",
            Self::Latent => "kv_share.latent",
            Self::Sparse => "kv_share.sparse",
        }
    }
}

/// The class of a device by the architecture of its cores, as figures are told apart.
#[must_use]
pub fn device_class(architecture: Option<&str>) -> &'static str {
    match architecture.unwrap_or_default() {
        "ada" | "blackwell" | "hopper" | "blackwell-server" => "new",
        "rdna" | "cdna" | "gcn" => "amd",
        "apple" => "apple",
        "gb10" | "jetson" => "gb10",
        "strix" => "strix",
        "cpu" => "cpu",
        _ => "old",
    }
}

/// Hosts above this rate are servers: many cores that wait for each other.
pub const SERVER_BYTES_PER_SECOND: f64 = 115e9;

/// The class of a host by the rate of its memory.
#[must_use]
pub fn host_class(bytes_per_second: f64) -> &'static str {
    if bytes_per_second > SERVER_BYTES_PER_SECOND { "server" } else { "desktop" }
}

/// One decode step: what is read, where and how fast that memory is.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Class of the accelerator ([`device_class`]).
    pub device: &'static str,
    /// The rate of one accelerator's memory, bytes a second.
    pub memory: f64,
    /// Accelerators that slice every matrix.
    pub tensor: u32,
    /// Accelerators that take layers in turn.
    pub stages: u32,
    /// Bytes outside the routed experts.
    pub dense: f64,
    /// Bytes of routed experts that the step uses.
    pub routed: f64,
    /// Of them, the share that the host computes.
    pub on_host: f64,
    /// Layers.
    pub layers: f64,
    /// Layers with experts on the host.
    pub host_layers: f64,
    /// The rate of host memory that programs reach, bytes a second; 0 where nothing is on the host.
    pub host: f64,
    /// Experts on the host are in MXFP4, which CPU kernels unpack more slowly than they read it.
    pub host_mxfp4: bool,
    /// Bytes of keys and values that are read.
    pub past: f64,
    /// What they are.
    pub past_kind: Past,
    /// Bytes fetched over the link, and what large copies reach of it, bytes a second.
    pub fetched: Option<(f64, f64)>,
    /// Bytes read from storage, its rate, and whether reading goes on beside computing.
    pub stored: Option<(f64, f64, bool)>,
}

/// Where a step's time goes, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTime {
    /// Accelerator: weights.
    pub weights: f64,
    /// Accelerator: keys and values.
    pub past: f64,
    /// A cost for each layer, and between accelerators.
    pub layers: f64,
    /// Experts on the host.
    pub host: f64,
    /// Experts over the link.
    pub link: f64,
    /// Experts from storage.
    pub storage: f64,
}

impl StepTime {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.weights + self.past + self.layers + self.host + self.link + self.storage
    }
}

impl SpeedFigures {
    /// A figure that differs by device: the kind's own for the device, its own for all, or what stands in for it.
    pub(super) fn of_device(&self, kind: &str, name: &str, device: &str, otherwise: f64) -> f64 {
        let own = |name: &str| self.0.get(kind).and_then(|figures| figures.get(name));
        let of_device = format!("{name}.{device}");
        let found = own(&of_device).or_else(|| own(name)).or_else(|| self.get(kind, &of_device));
        found.or_else(|| self.get(kind, &format!("{name}.old"))).map_or(otherwise, |f| f.value)
    }

    /// What a step takes with an engine of this kind.
    #[must_use]
    pub fn step(&self, kind: &str, step: &Step) -> StepTime {
        let get = |name: &str, otherwise| self.value(kind, name, otherwise);
        let us = |name: &str, otherwise| get(name, otherwise) * 1e-6;
        let slices = f64::from(step.tensor.max(1));
        let memory = step.memory * slices;
        let mut time = StepTime::default();
        if step.device == "cpu" {
            time.weights = (step.dense + step.routed) / (get("cpu_share.alone", 0.4) * step.memory);
        } else {
            let resident = step.dense + step.routed * (1.0 - step.on_host);
            time.weights = resident / (get("gpu_share", 0.85) * memory);
            let layer = self.of_device(kind, "layer_us", step.device, 90.0);
            let latent =
                if step.past_kind == Past::Latent { get("latent_layers", 1.0) } else { 1.0 };
            let summed = us("reduce_us", 30.0) * (slices - 1.0);
            time.layers = step.layers * (layer * 1e-6 * latent + summed)
                + f64::from(step.stages.saturating_sub(1)) * us("stage_us", 800.0);
        }
        time.past = step.past / (get(step.past_kind.figure(), 0.5) * memory);
        if step.on_host > 0.0 && step.host > 0.0 {
            let class = host_class(step.host);
            let unpacked = if step.host_mxfp4 { get("cpu_mxfp4", 0.8) } else { 1.0 };
            let reached = get(&format!("cpu_share.{class}"), 0.65) * unpacked * step.host;
            time.host = step.routed * step.on_host / reached
                + step.host_layers * us(&format!("cpu_layer_us.{class}"), 150.0);
        }
        if let Some((bytes, rate)) = step.fetched {
            time.link = bytes / (get("fetch_share", 0.35) * rate)
                + step.layers * us("fetch_layer_us", 300.0);
        }
        if let Some((bytes, rate, beside)) = step.stored {
            let waits = if beside { get("storage_waits", 0.6) } else { 1.0 };
            time.storage = bytes * waits / rate;
        }
        time
    }

    /// The factors of a prediction between which so many in ten reports of this kind lie.
    #[must_use]
    pub fn range(&self, kind: &str, placement: &str) -> (f64, f64) {
        let name = format!("range.{placement}");
        self.get(kind, &name).map_or((0.6, 1.6), |figure| (figure.low(), figure.high()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Step {
        Step {
            device: "new",
            memory: 1e12,
            tensor: 1,
            stages: 1,
            dense: 1e9,
            routed: 1e9,
            on_host: 0.0,
            layers: 40.0,
            host_layers: 0.0,
            host: 0.0,
            host_mxfp4: false,
            past: 0.0,
            past_kind: Past::Full,
            fetched: None,
            stored: None,
        }
    }

    #[test]
    fn a_resident_step_is_bytes_over_rate_and_a_cost_a_layer() {
        let figures = SpeedFigures::builtin();
        let share = figures.value("ggml", "gpu_share", 0.0);
        let layer = figures.value("ggml", "layer_us.new", 0.0);
        let time = figures.step("ggml", &step()).total();
        assert!((time - (2e9 / (share * 1e12) + 40.0 * layer * 1e-6)).abs() < 1e-12);
    }

    #[test]
    fn a_layer_moved_to_the_host_costs_its_bytes_and_a_hand_over() {
        // Q4_K_M of a 35B-A3B model beside two channels of DDR5-4800 (77 GB/s nominal, 73 reached): 15.25 MB of experts a
        // token and layer. Measured with llama.cpp on an RTX 5080: 0.33 ms a layer.
        let routed = 40.0 * 15.25e6;
        let with = |layers: f64| {
            let host =
                Step { routed, on_host: layers / 40.0, host_layers: layers, host: 73e9, ..step() };
            SpeedFigures::builtin().step("ggml", &Step { memory: 960e9, ..host }).total()
        };
        let layer = (with(40.0) - with(24.0)) / 16.0;
        assert!((layer / 0.33e-3 - 1.0).abs() < 0.25, "{layer}");
    }

    #[test]
    fn every_kind_that_an_engine_names_has_figures() {
        let figures = SpeedFigures::builtin();
        for engine in crate::engine::builtin_engines() {
            if let Some(speed) = &engine.speed {
                assert!(figures.0.contains_key(&speed.like), "{}", engine.name);
            }
        }
    }
}
