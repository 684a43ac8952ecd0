//! What-ifs: one plan at many values of a setting, or of several at once.
//!
//! Curves are measured once for each kind of step and shared by all points, so hundreds of them
//! cost little more than one.

use hotset_cost_models::Model;
use hotset_sim::SCHEMA;
use rayon::prelude::*;
use serde::Serialize;

use crate::advice::without_trace;
use crate::axis::{Axis, Knob, check, with_values};
use crate::fit::Fitting;
use crate::memory::gib;
use crate::placement::{PlacedSpeed, resident_speed};
use crate::pricing::Pricing;
use crate::routing::{Routing, RoutingSummary, StepKind};
use crate::speed::Speed;
use crate::verdict::FitVerdict;
use crate::weights::weights;
use crate::{PlanError, Request};

/// One point of a what-if.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The values of the axes, in order.
    pub values: Vec<String>,
    /// How it fits; absent where the setting cannot be.
    pub verdict: Option<FitVerdict>,
    /// What binds.
    pub binding: Option<&'static str>,
    /// GiB short of the next better verdict.
    pub short_gib: Option<f64>,
    /// Slots.
    pub slots: u64,
    /// Share of the experts that have one.
    pub slots_share: f64,
    /// How fast; absent where it does not fit.
    pub speed: Option<Speed>,
    /// How fast the engine was reported to run what is all resident, as this is; absent where it is
    /// not, or no engine with reports was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_speed: Option<PlacedSpeed>,
    /// Why there is no speed.
    pub reason: Option<String>,
}

/// A what-if's results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    /// The schema of results.
    pub schema: &'static str,
    /// hotset's version.
    pub hotset: &'static str,
    /// The model and the machine that were asked for.
    pub model: String,
    /// The machine.
    pub machine: String,
    /// The link of the request.
    pub link: String,
    /// Users, context and drafts of the request.
    pub users: u32,
    /// Tokens each.
    pub context: u64,
    /// Tokens drafted a step.
    pub drafts: u32,
    /// What the routing rests on.
    pub routing: RoutingSummary,
    /// Names of the axes.
    pub axes: Vec<Knob>,
    /// One a combination of values, the last axis fastest.
    pub points: Vec<Point>,
    /// What was assumed about the model.
    pub notes: Vec<String>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl WhatIf {
    /// Every text of the result that may name a field of the request.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let reasons = self.points.iter_mut().filter_map(|point| point.reason.as_mut());
        self.notes.iter_mut().chain(&mut self.warnings).chain(reasons)
    }
}

/// Plans `request` at every combination of the axes' values. `routing_of` gives the routing of a
/// model: of the request's own for all points, but where the model is varied.
///
/// # Errors
/// [`PlanError`]: axes that cannot be, names that nothing has. A point that cannot be run says why
/// instead.
pub fn what_if<'a>(
    request: &Request,
    axes: &[Axis],
    routing_of: impl Fn(&Model) -> Result<Routing<'a>, PlanError>,
) -> Result<WhatIf, PlanError> {
    check(axes)?;
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for axis in axes {
        let longer = |values: &Vec<String>| {
            let values = values.clone();
            axis.values.iter().map(move |value| [&values[..], std::slice::from_ref(value)].concat())
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    let with = |values: Vec<String>| Ok((values.clone(), with_values(request, axes, &values)?));
    let requests: Vec<(Vec<String>, Request)> =
        combinations.into_iter().map(with).collect::<Result<_, PlanError>>()?;
    let mut models: Vec<(&Model, Routing<'a>)> = Vec::new();
    for (_, request) in &requests {
        if models.iter().all(|known| *known.0 != request.model) {
            models.push((&request.model, routing_of(&request.model)?));
        }
    }
    let routing = |model: &Model| models.iter().find(|known| known.0 == model).map(|of| &of.1);
    // All kinds of steps first, side by side; then points are cheap.
    for (model, routing) in &models {
        let of_model = requests.iter().filter(|(_, request)| request.model == **model);
        let mut kinds: Vec<StepKind> = of_model.map(|(_, request)| request.step_kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.retain(|kind| routing.supports(*kind).is_ok());
        routing.prepare(&kinds)?;
    }
    let points: Vec<Point> = requests
        .par_iter()
        .filter_map(|(values, request)| {
            Some(point(values.clone(), request, routing(&request.model)?))
        })
        .collect();
    models.iter().try_for_each(|(_, routing)| routing.check_watch())?;
    let first = models.first().map(|of| of.1.summary()).unwrap_or(RoutingSummary::Uniform);
    let mut warnings = Vec::new();
    let all_resident = points.iter().all(|point| point.verdict == Some(FitVerdict::Resident));
    if !all_resident {
        warnings.extend(without_trace(&first));
    }
    let mut notes = request.model.notes.clone();
    let longest = requests.iter().map(|(_, request)| request.context).max().unwrap_or(0);
    if let Some(most) = request.model.max_context.filter(|most| *most < longest) {
        notes.push(format!("{} was made for {most} tokens of context", request.model.name));
    }
    Ok(WhatIf {
        schema: SCHEMA,
        hotset: env!("CARGO_PKG_VERSION"),
        model: request.model.name.clone(),
        machine: request.machine.name.clone(),
        link: request.link().name.clone(),
        users: request.users,
        context: request.context,
        drafts: request.speculation.drafts,
        routing: first,
        axes: axes.iter().map(|axis| axis.knob).collect(),
        points,
        notes,
        warnings,
    })
}

fn point(values: Vec<String>, request: &Request, routing: &Routing<'_>) -> Point {
    let mut point = Point {
        values,
        verdict: None,
        binding: None,
        short_gib: None,
        slots: 0,
        slots_share: 0.0,
        speed: None,
        engine_speed: None,
        reason: None,
    };
    let run = |point: &mut Point| -> Result<(), PlanError> {
        request.check()?;
        let weights = weights(request)?;
        let fit = Fitting::new(request, &weights).fit(request.users, request.context, None);
        point.verdict = Some(fit.verdict);
        point.binding = Some(fit.binding.name());
        point.short_gib = Some(gib(fit.short_bytes));
        (point.slots, point.slots_share) = (fit.slots, fit.share());
        if fit.verdict == FitVerdict::DoesNotFit {
            let short = gib(fit.short_bytes);
            point.reason = Some(format!("{short:.2} GiB short of {}", fit.binding.name()));
            return Ok(());
        }
        if fit.verdict == FitVerdict::Resident {
            point.engine_speed = resident_speed(request);
        }
        routing.supports(request.step_kind())?;
        let pricing = Pricing::new(request, &weights);
        point.speed = Some(pricing.speed(routing, &fit, request.users, request.context)?);
        Ok(())
    };
    if let Err(error) = run(&mut point) {
        point.reason = Some(error.to_string());
    }
    point
}
