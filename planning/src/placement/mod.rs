//! Experts of whole layers on the host, computed there: how many, does it fit, how fast, what to type.
//!
//! Where an engine computes experts on the CPU, their bytes leave the accelerators and are not copied back: a layer on the
//! host costs its experts' bytes over what the engine reaches of host memory, and a hand-over. Several accelerators take
//! layers in turn and may be of unequal size. The fewest layers on the host that fit are the fastest.

mod advice;
mod settings;
mod step;

use hotset_cost_models::{Hardware, Model};
use serde::Serialize;

use crate::engine::{Engine, buffers};
use crate::memory::{self, MemoryLine};
use crate::request::Pace;
use crate::weights::{RankWeights, weights};
use crate::{Coefficient, PlanError, Request};

pub use advice::Worth;

/// How many layers' experts the host computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostLayers {
    /// The fewest that fit.
    Auto,
    /// The first so many, layers without experts left out of the count.
    Layers(u32),
    /// All.
    All,
}

/// A plan with experts on the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedReport {
    /// The model.
    pub model: String,
    /// The machine.
    pub machine: String,
    /// The engine whose figures are used.
    pub engine: String,
    /// Whether it fits.
    pub fits: bool,
    /// What to type.
    pub settings: Vec<String>,
    /// Layers with experts, and of them those on the host.
    pub expert_layers: u32,
    /// Of them, computed on the host.
    pub host_layers: u32,
    /// Layers on each accelerator.
    pub stages: Vec<Stage>,
    /// What the host holds.
    pub host: Vec<MemoryLine>,
    /// What it may hold.
    pub host_budget_bytes: u64,
    /// The line that binds, as `accelerator 1` or `host`, with what is left of it.
    pub tightest: Tightest,
    /// How fast it is; absent where it does not fit.
    pub speed: Option<PlacedSpeed>,
    /// What one more of something gives.
    pub worth: Vec<Worth>,
    /// What the speed rests on.
    pub coefficients: Vec<Coefficient>,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// What one accelerator holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Layers, those with experts on the host among them.
    pub layers: u32,
    /// Lines.
    pub lines: Vec<MemoryLine>,
    /// What it may hold.
    pub budget_bytes: u64,
}

/// The memory that is nearest to full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tightest {
    /// Which.
    pub name: String,
    /// Bytes left; negative where they are short.
    pub left_bytes: i64,
}

/// Tokens a second with the range that reports of this kind give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlacedSpeed {
    /// The middle.
    pub tokens_per_s: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Of ten reports of this kind, so many lie inside.
    pub of_ten_inside: f64,
    /// Milliseconds a step: weights on accelerators, keys and values, layers, experts on the host.
    pub parts_ms: [f64; 4],
    /// Prefill, tokens a second, where the machine says how fast it computes.
    pub prefill_tokens_per_s: Option<f64>,
    /// Seconds to the first token of a prompt as long as the context, less one answer's token.
    pub first_token_s: Option<f64>,
    /// Seconds to read the file from storage once, where the machine has some.
    pub load_s: Option<f64>,
}

/// Plans with the experts of whole layers on the host.
///
/// ```
/// use hotset_cost_models::{Model, WeightFormat, find_hardware};
/// use hotset_planning::placement::{HostLayers, place};
/// use hotset_planning::{Request, engine::find_engine};
///
/// let card = find_hardware("rtx-3060").unwrap();
/// let machine = card.clone().with_host(&"ddr5-6000x2:32GB".parse().unwrap()).unwrap();
/// let mut request = Request::new(Model::builtin("gpt-oss-120b").unwrap(), machine);
/// request.engine = Some(find_engine("llama.cpp").unwrap());
/// let report = place(&request, HostLayers::Auto, &[])?;
/// assert!(!report.fits, "61 GiB in 11 and 22");
/// request.machine = card.with_host(&"ddr5-6000x2:96GB".parse().unwrap()).unwrap();
/// let report = place(&request, HostLayers::Auto, &[])?;
/// assert!(report.fits && report.host_layers > 20);
/// assert!(report.settings[0].contains("-ncmoe"), "{:?}", report.settings);
/// # Ok::<(), hotset_planning::PlanError>(())
/// ```
///
/// `more` are further accelerators of other kinds, which take layers in turn with the machine's own.
///
/// # Errors
/// [`PlanError`]: settings that cannot be, formats that nobody gave.
pub fn place(
    request: &Request,
    host_layers: HostLayers,
    more: &[Hardware],
) -> Result<PlacedReport, PlanError> {
    request.check()?;
    if request.machine.unified {
        let why = "is for a host with memory of its own: a unified machine has one memory, and nothing to gain";
        return Err(PlanError::setting("`Offload::host_layers`", why));
    }
    let Some(engine) = &request.engine else {
        let why = "needs an engine: give `Request::engine`";
        return Err(PlanError::setting("`Offload::host_layers`", why));
    };
    let Some(speed) = &engine.speed else {
        let why =
            format!("needs an engine whose speed is known, and that of {} is not", engine.name);
        return Err(PlanError::setting("`Offload::host_layers`", why));
    };
    let weights = weights(request)?;
    let placing = Placing { request, weights: &weights, more, kind: &speed.like, engine };
    let all = placing.expert_layers();
    let least = (0..=all).find(|layers| placing.at(*layers).fits());
    let wanted = match host_layers {
        HostLayers::All => all,
        HostLayers::Auto => least.unwrap_or(all),
        HostLayers::Layers(layers) if layers <= all => layers,
        HostLayers::Layers(layers) => {
            let why =
                format!("is {layers}, and {} has {all} layers with experts", request.model.name);
            return Err(PlanError::setting("`Offload::host_layers`", why));
        }
    };
    Ok(placing.report(wanted, least))
}

/// What is asked, to be looked at with any number of layers on the host.
struct Placing<'a> {
    request: &'a Request,
    weights: &'a RankWeights,
    more: &'a [Hardware],
    kind: &'a str,
    engine: &'a Engine,
}

/// One number of layers on the host.
struct Placed {
    stages: Vec<Stage>,
    host: Vec<MemoryLine>,
    host_budget: u64,
}

impl Placed {
    fn tightest(&self) -> Tightest {
        let left = |budget: u64, lines: &[MemoryLine]| {
            i64::try_from(budget).unwrap_or(i64::MAX)
                - i64::try_from(memory::sum(lines)).unwrap_or(i64::MAX)
        };
        let stages = self.stages.iter().enumerate().map(|(index, stage)| Tightest {
            name: format!("accelerator {}", index + 1),
            left_bytes: left(stage.budget_bytes, &stage.lines),
        });
        let host =
            Tightest { name: "host".to_owned(), left_bytes: left(self.host_budget, &self.host) };
        let all = stages.chain([host]);
        all.min_by_key(|line| line.left_bytes)
            .unwrap_or(Tightest { name: String::new(), left_bytes: 0 })
    }

    fn fits(&self) -> bool {
        self.tightest().left_bytes >= 0
    }
}

impl Placing<'_> {
    fn expert_layers(&self) -> u32 {
        u32::try_from(self.request.model.moe_layers().count()).unwrap_or(u32::MAX)
    }

    fn cards(&self) -> Vec<&Hardware> {
        let own = self.request.machine.accelerators.max(1) as usize;
        std::iter::repeat_n(&self.request.machine, own).chain(self.more).collect()
    }

    fn at(&self, on_host: u32) -> Placed {
        let bytes = &self.weights.bytes;
        let experts: Vec<u64> = bytes
            .experts
            .iter()
            .map(|layer| u64::from(layer.count).saturating_mul(layer.stored))
            .collect();
        let (host, here) = experts.split_at((on_host as usize).min(experts.len()));
        let host_bytes = host.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let routed = here.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let placed = if on_host > 0 { buffers::Placed::Host } else { buffers::Placed::Accelerator };
        let (lines, kept) = step::lines(self.request, self.weights, placed);
        Placed {
            stages: step::stages(self.request, &lines, &self.cards(), routed),
            host: step::host_lines(kept, host_bytes),
            host_budget: self.request.machine.host_memory.value.saturating_sub(
                self.request
                    .reserve
                    .host_reserved
                    .unwrap_or(self.request.machine.host_reserved.value),
            ),
        }
    }

    fn report(&self, on_host: u32, least: Option<u32>) -> PlacedReport {
        let placed = self.at(on_host);
        let fits = placed.fits();
        let tightest = placed.tightest();
        PlacedReport {
            model: self.request.model.name.clone(),
            machine: self.request.machine.name.clone(),
            engine: self.engine.name.clone(),
            fits,
            settings: settings::settings(self, on_host, &placed.stages),
            expert_layers: self.expert_layers(),
            host_layers: on_host,
            speed: fits.then(|| self.speed(on_host)),
            worth: advice::worth(self, on_host, least),
            coefficients: self.coefficients(on_host),
            notes: self.notes(fits, least),
            stages: placed.stages,
            host: placed.host,
            host_budget_bytes: placed.host_budget,
            tightest,
        }
    }

    fn notes(&self, fits: bool, least: Option<u32>) -> Vec<String> {
        let mut notes = self.request.model.notes.clone();
        match least {
            None => notes.push("with no number of layers on the host does it fit".to_owned()),
            Some(least) if !fits => notes.push(format!("{least} layers on the host would fit")),
            Some(_) => {}
        }
        if self.request.pace != (Pace { measured: None, fixed_ms: 0.0, efficiency: None }) {
            notes.push(
                "`Pace` is for plans without experts on the host and was left out".to_owned(),
            );
        }
        notes
    }
}

/// A model's layers in all.
fn layers(model: &Model) -> u32 {
    u32::try_from(model.layers.len()).unwrap_or(u32::MAX)
}
