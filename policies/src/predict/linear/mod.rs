//! A linear model from the experts of the last layers to those of a later one, learned as it goes.
//!
//! One model for each layer and each distance of the horizon; its inputs are 1 for each expert that
//! the token used, and a bias. Arithmetic is the same on every machine: sums in a fixed order.
//! [`ridge`] and [`logistic`] say what they cost.

mod logistic;
mod ridge;

use serde::{Deserialize, Serialize};

use self::logistic::Logistic;
use self::ridge::{Ridge, Solver};
use super::{Guess, Horizon, Layers, Order, Predictor, PredictorInfo, PredictorNeed, Token, best};
use crate::registry::share;
use crate::structures::memory::sum;
use crate::{Config, Parameter};

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "linear",
    summary: "a linear model of a later layer's experts, trained online",
    definition: "For each layer l and distance d a model of its own. x: 1 for each expert that the token uses in layer l (at order 2 those of layer l-1 too), else 0, and a bias of 1; y: 1 for each expert of layer l+d that the token uses, else 0. ridge: W minimises |Y - XW|^2 + lambda |W|^2 (the bias is not penalised) over the tokens seen, solved by Cholesky when asked after more than 64 new tokens and more than a quarter of those of the last fit, and when learning ends; a candidate's score is xW, at most 1. logistic: score sigma(xW); W starts at 0, the bias at ln((k + 0.5) / (E - k + 0.5)) for k of E experts; at each token, for each x that is 1, G += g^2 and W -= rate g / (sqrt(G) + 1e-8), g = sigma(xW) - y (Adagrad). Candidates of a positive score rank by it, ties to the lower expert; the confidence is the score. Before its first fit or token a model guesses nothing.",
    source: "folklore; Adagrad: Duchi, Hazan and Singer, JMLR 12, 2011",
    needs: PredictorNeed::Nothing,
    parameters: &[
        Parameter { name: "kind", default: "ridge", meaning: "ridge or logistic" },
        Parameter { name: "order", default: "1", meaning: "layers that are looked at, 1 or 2" },
        Parameter {
            name: "lambda",
            default: "1",
            meaning: "ridge's penalty, in tokens, 0.001 to 1000000",
        },
        Parameter {
            name: "rate",
            default: "0.1",
            meaning: "logistic's learning rate, 0.00001 to 10",
        },
    ],
};

/// How a model is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinearKind {
    /// Least squares with a penalty, solved now and then.
    Ridge,
    /// Logistic regression, a step at each token.
    Logistic,
}

/// Parameters of [`Linear`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinearConfig {
    /// How a model is fitted.
    pub kind: LinearKind,
    /// Layers that are looked at.
    pub order: Order,
    /// Ridge's penalty, in tokens.
    pub lambda: f64,
    /// Logistic regression's learning rate.
    pub rate: f64,
}

impl Default for LinearConfig {
    fn default() -> Self {
        Self { kind: LinearKind::Ridge, order: Order::One, lambda: 1.0, rate: 0.1 }
    }
}

impl Config for LinearConfig {
    fn check(&self) -> Result<(), String> {
        // The least penalty keeps a billion tokens' sums solvable in double precision.
        share("lambda", self.lambda, 1e-3..=1e6)?;
        share("rate", self.rate, 1e-5..=10.0)?;
        let default = Self::default();
        let (idle, is_default, other) = match self.kind {
            LinearKind::Ridge => ("rate", self.rate == default.rate, "logistic"),
            LinearKind::Logistic => ("lambda", self.lambda == default.lambda, "ridge"),
        };
        if is_default { Ok(()) } else { Err(format!("{idle} is for kind={other} only")) }
    }
}

/// `[earlier layer]` or `[distance, from the nearest][earlier layer]`.
#[derive(Debug, Clone)]
enum Models {
    Ridge(Vec<Ridge>, Solver),
    Logistic(Vec<Vec<Logistic>>),
}

/// A linear model for each layer and distance.
#[derive(Debug, Clone)]
pub struct Linear {
    order: Order,
    horizon: Horizon,
    models: Models,
    learning: bool,
    /// Inputs that are 1.
    inputs: Vec<usize>,
    scores: Vec<f64>,
}

impl Linear {
    /// Models that have seen nothing.
    #[must_use]
    pub fn new(layers: &Layers, horizon: Horizon, config: &LinearConfig) -> Self {
        let order = config.order;
        let models = match config.kind {
            LinearKind::Ridge => {
                let earlier = 0..layers.len().saturating_sub(horizon.nearest);
                let models = earlier.map(|layer| {
                    let targets = layer + horizon.nearest..=layer + horizon.farthest;
                    let targets = targets.take_while(|&target| target < layers.len());
                    let outputs = targets.map(|target| layers.experts(target));
                    Ridge::new(width(layers, layer, order), outputs)
                });
                Models::Ridge(models.collect(), Solver::new(config.lambda))
            }
            LinearKind::Logistic => {
                let distances = (horizon.nearest..=horizon.farthest).map(|distance| {
                    let earlier = 0..layers.len().saturating_sub(distance);
                    let models = earlier.map(|layer| {
                        let target = layer + distance;
                        let of = (layers.places(target).len(), layers.experts(target));
                        Logistic::new(width(layers, layer, order), of, config.rate)
                    });
                    models.collect()
                });
                Models::Logistic(distances.collect())
            }
        };
        let (inputs, scores) = (Vec::new(), Vec::new());
        Self { order, horizon, models, learning: true, inputs, scores }
    }

    pub(in crate::predict) fn memory(
        layers: &Layers,
        horizon: Horizon,
        config: &LinearConfig,
    ) -> u64 {
        let models = (0..layers.len()).map(|layer| {
            let inputs = width(layers, layer, config.order) as u64;
            let targets = layer.saturating_add(horizon.nearest)
                ..=layer.saturating_add(horizon.farthest).min(layers.len().saturating_sub(1));
            let outputs: u64 = targets.map(|target| layers.experts(target) as u64).sum();
            match config.kind {
                // Without a target behind it a layer has no model.
                _ if outputs == 0 => 0,
                LinearKind::Ridge => Ridge::memory(inputs, outputs),
                LinearKind::Logistic => Logistic::memory(inputs, outputs),
            }
        });
        sum(models)
    }
}

/// Inputs of a layer's models, the bias included.
fn width(layers: &Layers, layer: usize, order: Order) -> usize {
    (order.first(layer)..=layer).map(|layer| layers.experts(layer)).sum::<usize>() + 1
}

/// Lists the inputs of a layer's models that are 1: the layer's experts, those of the layer before
/// at order 2, and the bias.
#[inline]
fn inputs(token: &Token<'_>, layer: usize, order: Order, inputs: &mut Vec<usize>) {
    inputs.clear();
    let mut base = 0;
    for layer in (order.first(layer)..=layer).rev() {
        inputs.extend(token.experts(layer).iter().map(|&expert| base + expert as usize));
        base += token.layers().experts(layer);
    }
    inputs.push(base);
}

impl Predictor for Linear {
    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        let layer = token.layer as usize;
        if !self.learning || layer < self.horizon.nearest {
            return;
        }
        let used = token.experts(layer);
        for distance in self.horizon.nearest..=self.horizon.farthest.min(layer) {
            let (earlier, number) = (layer - distance, distance - self.horizon.nearest);
            inputs(token, earlier, self.order, &mut self.inputs);
            match &mut self.models {
                Models::Ridge(models, _) => models[earlier].learn(number, &self.inputs, used),
                Models::Logistic(models) => models[number][earlier].learn(&self.inputs, used),
            }
        }
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        let (layer, target) = (token.layer as usize, target as usize);
        if !self.horizon.reaches(layer, target) {
            return;
        }
        let number = target - layer - self.horizon.nearest;
        inputs(token, layer, self.order, &mut self.inputs);
        match &mut self.models {
            Models::Ridge(models, solver) => {
                let model = &mut models[layer];
                if self.learning && model.is_stale(number) {
                    model.fit(number, solver);
                }
                model.scores(number, &self.inputs, &mut self.scores);
            }
            Models::Logistic(models) => {
                models[number][layer].scores(&self.inputs, &mut self.scores)
            }
        }
        let start = guesses.len();
        best(&self.scores, width, 1.0, guesses);
        guesses[start..].iter_mut().for_each(|guess| guess.confidence = guess.confidence.min(1.0));
    }

    /// When learning ends, what was seen since the last fit is taken in.
    fn set_learning(&mut self, learning: bool) {
        if let (true, false, Models::Ridge(models, solver)) =
            (self.learning, learning, &mut self.models)
        {
            models.iter_mut().for_each(|model| model.fit_all(solver));
        }
        self.learning = learning;
    }
}

#[cfg(test)]
mod tests;
