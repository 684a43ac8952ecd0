//! How good guesses are, apart from any cache: precision and recall by distance.

use hotset_policies::predict::AnyPredictor;
use hotset_traces::{Phase, Trace};
use serde::Serialize;

use super::{Forecast, Forecaster};
use crate::{SimError, Steps};

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

/// Asks a predictor for every layer of the steps of `phase`, at every distance of its horizon, and
/// compares with what the tokens used. Width and threshold apply, no budget and no cache.
///
/// # Errors
/// A column that the trace lacks; predictions further ahead than were recorded.
pub fn score(
    trace: &Trace,
    steps: &Steps,
    phase: Option<Phase>,
    forecast: &Forecast,
    trained: Option<&AnyPredictor>,
) -> Result<Vec<Quality>, SimError> {
    let mut forecaster = Forecaster::of(trace, steps, phase, forecast, trained)?;
    let horizon = forecast.horizon();
    let of = |distance| Quality { distance, events: 0, guesses: 0, right: 0, wanted: 0 };
    let mut qualities: Vec<Quality> = (horizon.nearest..=horizon.farthest).map(of).collect();
    for step in 0..steps.len() {
        let first = steps.row(steps.places(step).start);
        if phase.is_some_and(|only| trace.phase(first) != only) {
            continue;
        }
        forecaster.begin_step(step);
        for layer in 0..trace.shape().layers().len() {
            forecaster.observe(layer);
            for target in forecaster.targets(layer) {
                let quality = &mut qualities[target - layer - horizon.nearest];
                forecaster.judge((layer, target), quality);
            }
        }
    }
    Ok(qualities)
}

impl Forecaster<'_> {
    /// Guesses for each token of the step by itself.
    fn judge(&mut self, (layer, target): (usize, usize), quality: &mut Quality) {
        let threshold = self.control.threshold as f32;
        for index in 0..self.feed.tokens() {
            self.guesses.clear();
            self.guess_token(index, (layer, target));
            let truth = self.feed.truth(index, target);
            let kept = self.guesses.iter().filter(|guess| guess.confidence >= threshold);
            for guess in kept {
                quality.guesses += 1;
                quality.right += u64::from(truth.contains(&guess.expert));
            }
            quality.events += 1;
            quality.wanted += truth.len() as u64;
        }
    }
}
