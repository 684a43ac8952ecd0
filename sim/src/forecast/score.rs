//! How good guesses are, apart from any cache: precision and recall by distance.

use hotset_policies::predict::{AnyPredictor, Predictor, PrefetchControl};
use hotset_traces::Trace;
use serde::Serialize;

use super::feed::{Feed, Reads, train};
use super::forecaster::Forecaster;
use super::spec::Forecast;
use crate::{PhaseFilter, SimError, Steps};

/// Guesses at one distance, token by token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quality {
    /// Layers between the one that ran and the one that was predicted.
    pub distance: usize,
    /// Layers of tokens that were predicted.
    pub events: u64,
    /// Experts guessed.
    pub guesses: u64,
    /// Of those, used by the token.
    pub right: u64,
    /// Experts used by the tokens in the predicted layers.
    pub wanted: u64,
}

impl Quality {
    /// right / guesses; `None` without guesses.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        (self.guesses > 0).then(|| self.right as f64 / self.guesses as f64)
    }

    /// right / wanted; `None` where nothing was wanted.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        (self.wanted > 0).then(|| self.right as f64 / self.wanted as f64)
    }
}

/// Asks a predictor for every layer of the steps that `phase` picks, at every distance of its horizon, and
/// compares with what the tokens used. Width and threshold apply, no budget and no cache.
///
/// # Errors
/// A column that the trace lacks; predictions further ahead than were recorded.
pub fn score(
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
    forecast: &Forecast,
    trained: Option<&AnyPredictor>,
) -> Result<Vec<Quality>, SimError> {
    let forecaster = Forecaster::of(trace, steps, phase, forecast, trained, &[])?;
    Ok(run(trace, steps, phase, forecaster))
}

/// [`score`] for a predictor that is not in the registry: an engine's own. It goes on learning, or
/// not, as it was left.
#[must_use]
pub fn score_predictor(
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
    control: &PrefetchControl,
    predictor: Box<dyn Predictor>,
) -> Vec<Quality> {
    let feed = Feed::new(trace, steps, phase, Reads { weights: true, future: false });
    run(trace, steps, phase, Forecaster::of_predictor(feed, predictor, *control))
}

/// Lets an engine's own predictor see the steps that `phase` picks of a trace.
pub fn train_predictor(
    predictor: &mut dyn Predictor,
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
) {
    train(predictor, trace, steps, phase, Reads { weights: true, future: false });
}

fn run(
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
    mut forecaster: Forecaster<'_>,
) -> Vec<Quality> {
    let horizon = forecaster.horizon();
    let of = |distance| Quality { distance, events: 0, guesses: 0, right: 0, wanted: 0 };
    let mut qualities: Vec<Quality> = (horizon.nearest..=horizon.farthest).map(of).collect();
    for step in 0..steps.len() {
        let first = steps.row(steps.places(step).start);
        if !phase.wants(trace.phase(first)) {
            continue;
        }
        forecaster.begin_step(step);
        for layer in 0..trace.shape().layers().len() {
            forecaster.observe(layer);
            for target in forecaster.targets(layer) {
                let quality = &mut qualities[target - layer - horizon.nearest];
                forecaster.judge(layer, target, |guesses, used| {
                    quality.events += 1;
                    quality.guesses += guesses.len() as u64;
                    let right = guesses.iter().filter(|guess| used.contains(&guess.expert));
                    quality.right += right.count() as u64;
                    quality.wanted += used.len() as u64;
                });
            }
        }
    }
    qualities
}
