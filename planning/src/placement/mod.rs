//! Experts of whole layers on the host, computed there: how many, does it fit, how fast, what to type.
//!
//! Where an engine computes experts on the CPU, their bytes leave the accelerators and are not copied back: a layer on the
//! host costs its experts' bytes over what the engine reaches of host memory, and a hand-over. Several accelerators take
//! layers in turn and may be of unequal size. The fewest layers on the host that fit are the fastest.

mod advice;
mod report;
mod settings;
mod stages;
mod step;

use hotset_cost_models::model::{Layer, Parallel};
use hotset_cost_models::{Hardware, Model};
use serde::Serialize;

use crate::engine::{Engine, buffers};
use crate::memory;
use crate::memory_line::MemoryLine;
use crate::weights::{RankWeights, weights};
use crate::{PlanError, Request};

pub use advice::Worth;
pub use report::{PlacedReport, PlacedSpeed, Stage, Tightest};

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
    refuse(request)?;
    let weights = weights(request)?;
    let kind = &speed.like;
    let mut placing =
        Placing { request, weights: &weights, more, kind, engine, sliced: 1, correction: 1.0 };
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
    placing.correction = placing.measured_over_calculated(wanted).unwrap_or(1.0);
    Ok(placing.report(wanted, least))
}

/// What is said of other plans and would be left out of this one.
fn refuse(request: &Request) -> Result<(), PlanError> {
    let told = |name: &'static str, why: &str| Err(PlanError::setting(name, why));
    if request.parallel.tensor > 1 {
        return told("`Parallel::tensor`", "slices matrices; here accelerators take whole layers");
    }
    if request.parallel.expert > 1 {
        return told("`Parallel::expert`", "spreads experts; here accelerators take whole layers");
    }
    if request.speculation.drafts > 0 {
        return told("`Speculation::drafts`", "is for plans without layers on the host");
    }
    if request.pace.efficiency.is_some() {
        let why =
            "is for plans without an engine's own speed: here reports of it say what is reached";
        return told("`Pace::efficiency`", why);
    }
    Ok(())
}

/// How fast an engine was reported to run what is resident: nothing where no reports say.
#[must_use]
pub(crate) fn resident_speed(request: &Request) -> Option<PlacedSpeed> {
    let engine = request.engine.as_ref()?;
    let speed = engine.speed.as_ref()?;
    let other = request.parallel.expert > 1
        || request.speculation.drafts > 0
        || request.pace.measured.is_some()
        || request.pace.efficiency.is_some();
    if other {
        return None;
    }
    let mut whole = request.clone();
    whole.machine = request.machine.with_accelerators(request.ranks());
    whole.parallel = Parallel::NONE;
    let weights = weights(&whole).ok()?;
    let placing = Placing {
        request: &whole,
        weights: &weights,
        more: &[],
        kind: &speed.like,
        engine,
        sliced: request.parallel.tensor.max(1),
        correction: 1.0,
    };
    Some(placing.speed(0))
}

/// What is asked, to be looked at with any number of layers on the host.
struct Placing<'a> {
    request: &'a Request,
    weights: &'a RankWeights,
    more: &'a [Hardware],
    kind: &'a str,
    engine: &'a Engine,
    /// Accelerators that slice every matrix; 1: they take layers in turn.
    sliced: u32,
    /// By which every calculated time is multiplied.
    correction: f64,
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
        let host = experts.iter().take(on_host as usize);
        let host_bytes = host.fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        // Layers in their order, those without experts among them.
        let mut here = experts.iter().enumerate();
        let mut stays = |layer: &Layer| match layer.experts {
            Some(_) => {
                here.next().map_or(0, |(i, bytes)| if i < on_host as usize { 0 } else { *bytes })
            }
            None => 0,
        };
        let routed: Vec<u64> = self.request.model.layers.iter().map(&mut stays).collect();
        let placed = if on_host > 0 { buffers::Placed::Host } else { buffers::Placed::Accelerator };
        let (lines, kept) = step::lines(self.request, self.weights, placed);
        Placed {
            stages: stages::stages(self.request, &lines, &self.cards(), &routed),
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
        if self.request.pace.measured.is_some() {
            let why = "one measured run corrects every time of this placement and of the changes; prefill is not corrected";
            notes.push(why.to_owned());
        }
        notes
    }
}

/// A model's layers in all.
fn layers(model: &Model) -> u32 {
    u32::try_from(model.layers.len()).unwrap_or(u32::MAX)
}
