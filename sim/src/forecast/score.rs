//! How good guesses are, apart from any cache: precision and recall by distance.

use hotset_policies::predict::{AnyPredictor, Predictor};
use hotset_traces::{Phase, Trace};
use serde::Serialize;

use super::feed::{Feed, Reads, train};
use super::{Control, Forecast, Forecaster, Guesser};
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
    let forecaster = Forecaster::of(trace, steps, phase, forecast, trained)?;
    Ok(run(trace, steps, phase, forecaster))
}

/// [`score`] for a predictor that is not in the registry: an engine's own. It goes on learning, or
/// not, as it was left.
#[must_use]
pub fn score_predictor(
    trace: &Trace,
    steps: &Steps,
    phase: Option<Phase>,
    control: &Control,
    predictor: Box<dyn Predictor>,
) -> Vec<Quality> {
    let feed = Feed::new(trace, steps, phase, Reads { weights: true, future: false });
    run(trace, steps, phase, Forecaster::with(feed, Guesser::Learned(predictor), *control))
}

/// Lets an engine's own predictor see the steps of `phase` of a trace.
pub fn train_predictor(
    predictor: &mut dyn Predictor,
    trace: &Trace,
    steps: &Steps,
    phase: Option<Phase>,
) {
    train(predictor, trace, steps, phase, Reads { weights: true, future: false });
}

fn run(
    trace: &Trace,
    steps: &Steps,
    phase: Option<Phase>,
    mut forecaster: Forecaster<'_>,
) -> Vec<Quality> {
    let horizon = forecaster.horizon;
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
    qualities
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
