//! A plan: how a model fits a machine, how its memory is best divided, how fast it is.

use hotset_sim::SCHEMA;
use serde::Serialize;

use crate::advice::{notes, thrashing, warnings};
use crate::coefficient::Coefficient;
use crate::fit::Fitting;
use crate::placement::{PlacedSpeed, resident_speed};
use crate::pricing::Pricing;
use crate::right_sized::{Alternative, right_sized};
use crate::routing::{Routing, RoutingSummary, StepKind, Unions};
use crate::sources::routing_coefficient;
use crate::speed::Speed;
use crate::split::{SplitFront, ladder, split};
use crate::summary::{MachineSummary, ModelSummary, RequestSummary};
use crate::verdict::{Fit, FitVerdict};
use crate::weights::weights;
use crate::{PlanError, Request};

/// A plan in full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// The schema of results.
    pub schema: &'static str,
    /// hotset's version.
    pub hotset: &'static str,
    /// The model.
    pub model: ModelSummary,
    /// The machine.
    pub machine: MachineSummary,
    /// What was asked.
    pub asked: RequestSummary,
    /// How it fits.
    pub fit: Fit,
    /// The longest context with which it still fits as well as this, and at all.
    pub longest: Longest,
    /// How fast it is; absent where it does not fit.
    pub speed: Option<Speed>,
    /// How fast the engine was reported to run models that are all resident, as this one is.
    pub engine_speed: Option<PlacedSpeed>,
    /// What drafting must give to pay: tokens a step above which it is faster than none.
    pub break_even_tokens: Option<f64>,
    /// What dividing the memory otherwise gives.
    pub split: Option<SplitFront>,
    /// What the routing rests on.
    pub routing: RoutingSummary,
    /// Distinct experts of a layer in one step, three ways; absent without a trace.
    pub unions: Option<Unions>,
    /// The numbers that the speed rests on.
    pub coefficients: Vec<Coefficient>,
    /// Models that fit whole on this machine, where this one does not.
    pub right_sized: Vec<Alternative>,
    /// What was assumed or left out about model and setting.
    pub notes: Vec<String>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// How long contexts may grow, with the users asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Longest {
    /// With which the verdict stays.
    pub same_verdict: u64,
    /// With which it fits at all.
    pub any: u64,
}

impl PlanReport {
    /// Every text of the plan that may name a field of the request, so that a caller may name it
    /// as its own users do.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let coefficients = self.coefficients.iter_mut().map(|coefficient| &mut coefficient.source);
        let texts = self.notes.iter_mut().chain(&mut self.warnings).chain(coefficients);
        texts.chain(self.fit.texts_mut()).chain([&mut self.model.weights_source])
    }
}

/// Plans `request` with the routing given.
///
/// ```
/// use hotset_cost_models::{Model, find_hardware};
/// use hotset_planning::{FitVerdict, Request, Routing, plan};
///
/// let machine = find_hardware("rtx-4090").unwrap();
/// let mut request = Request::new(Model::builtin("OLMoE-1B-7B").unwrap(), machine);
/// request.reserve.free = Some(8 << 30);
/// let report = plan(&request, &Routing::uniform(&request.model))?;
/// assert_eq!(report.fit.verdict, FitVerdict::Cached);
/// let speed = report.speed.expect("it fits");
/// assert!(speed.no_overlap.tokens_per_s <= speed.perfect.tokens_per_s);
/// # Ok::<(), hotset_planning::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError`].
pub fn plan(request: &Request, routing: &Routing<'_>) -> Result<PlanReport, PlanError> {
    request.check()?;
    let weights = weights(request)?;
    let fitting = Fitting::new(request, &weights);
    let mut pricing = Pricing::new(request, &weights);
    let fit = fitting.fit(request.users, request.context, None);
    let window = 1 + request.speculation.drafts;
    let fits = fit.verdict != FitVerdict::DoesNotFit;
    if fits {
        // One pass for each kind of step, side by side.
        let of_users = |users| StepKind { users, tokens: window };
        let mut kinds: Vec<StepKind> = ladder(request.users).into_iter().map(of_users).collect();
        if window > 1 {
            kinds.push(StepKind { users: request.users, tokens: 1 });
        }
        routing.prepare(&kinds)?;
    }
    let speed = match fits {
        true => Some(pricing.speed(routing, &fit, request.users, request.context)?),
        false => None,
    };
    let split = split(request, &fitting, &pricing, routing)?;
    let unions = match request.tokens_per_step() > 1 && fits {
        true => routing.unions(request.step_kind())?,
        false => None,
    };
    let break_even_tokens = match &speed {
        Some(speed) if window > 1 => Some(break_even(request, routing, speed)?),
        _ => None,
    };
    let thrashing = speed.as_ref().and_then(|speed| thrashing(request, routing, &fit, speed));
    routing.check_watch()?;
    pricing.coefficients.push(routing_coefficient(routing));
    let notes = notes(request, &weights);
    let right_sized = match fit.verdict {
        FitVerdict::Resident => Vec::new(),
        _ => right_sized(request),
    };
    let resident = fit.verdict == FitVerdict::Resident;
    Ok(PlanReport {
        engine_speed: resident.then(|| resident_speed(request)).flatten(),
        schema: SCHEMA,
        hotset: env!("CARGO_PKG_VERSION"),
        model: ModelSummary::of(request, &weights),
        machine: MachineSummary::of(request),
        asked: RequestSummary::of(request),
        longest: longest(request, &fitting, &fit),
        warnings: warnings(request, &fit, routing).into_iter().chain(thrashing).collect(),
        fit,
        speed,
        break_even_tokens,
        split,
        routing: routing.summary(),
        unions,
        coefficients: pricing.coefficients,
        right_sized,
        notes,
    })
}

/// Tokens that a step with drafts must give to be worth its time, against a step without.
fn break_even(request: &Request, routing: &Routing<'_>, speed: &Speed) -> Result<f64, PlanError> {
    let mut plain = request.clone();
    plain.speculation.drafts = 0;
    let weights = weights(&plain)?;
    let fit = Fitting::new(&plain, &weights).fit(plain.users, plain.context, None);
    let pricing = Pricing::new(&plain, &weights);
    let without = pricing.speed(routing, &fit, plain.users, plain.context)?;
    Ok(speed.timeline.step_ms / without.timeline.step_ms)
}

/// Contexts beyond this are not looked for where the model does not say.
const NO_LIMIT: u64 = 1 << 24;

fn longest(request: &Request, fitting: &Fitting<'_>, fit: &Fit) -> Longest {
    let limit = request.model.max_context.unwrap_or(NO_LIMIT).max(1);
    let search = |as_good: FitVerdict| {
        let fits = |context| fitting.fit(request.users, context, None).verdict <= as_good;
        let (mut fitting, mut failing) = (0, limit + 1);
        while failing - fitting > 1 {
            let middle = fitting + (failing - fitting) / 2;
            if fits(middle) { fitting = middle } else { failing = middle }
        }
        fitting
    };
    let any = search(FitVerdict::WithDisk);
    let same_verdict = if fit.verdict == FitVerdict::DoesNotFit { 0 } else { search(fit.verdict) };
    Longest { same_verdict, any }
}
