//! Logistic regression on inputs of zeros and ones, with a step of Adagrad at each token.
//!
//! Memory: 16 bytes for each pair of an input and an output. A token takes an exponential for each
//! output, and a square root and a division for each output and input that is 1.

use crate::predict::vectors::add;
use crate::structures::memory::{array, sum};

/// One layer's model at one distance.
#[derive(Debug, Clone)]
pub(super) struct Logistic {
    outputs: usize,
    /// `[input][output]`.
    weights: Vec<f64>,
    /// Sums of squared gradients, `[input][output]`.
    squares: Vec<f64>,
    rate: f64,
    begun: bool,
    /// Gradients by output.
    gradients: Vec<f64>,
}

impl Logistic {
    /// A model of these many inputs, the last of them the bias, that expects `used` of its
    /// `outputs`.
    pub(super) fn new(inputs: usize, (used, outputs): (usize, usize), rate: f64) -> Self {
        let mut weights = vec![0.0; inputs * outputs];
        let odds = (used as f64 + 0.5) / (outputs.saturating_sub(used) as f64 + 0.5);
        weights[(inputs - 1) * outputs..].fill(libm::log(odds));
        let (squares, gradients) = (vec![0.0; inputs * outputs], Vec::with_capacity(outputs));
        Self { outputs, weights, squares, rate, begun: false, gradients }
    }

    /// Bytes of models of these many inputs and, together, outputs.
    pub(super) fn memory(inputs: u64, outputs: u64) -> u64 {
        sum([array::<[f64; 2]>(inputs.saturating_mul(outputs)), array::<f64>(outputs)])
    }

    /// A token with these inputs used these outputs.
    #[inline]
    pub(super) fn learn(&mut self, inputs: &[usize], used: &[u32]) {
        self.begun = true;
        let mut gradients = std::mem::take(&mut self.gradients);
        self.scores(inputs, &mut gradients);
        used.iter().for_each(|&output| gradients[output as usize] -= 1.0);
        for &input in inputs {
            let row = input * self.outputs..(input + 1) * self.outputs;
            let rows = self.weights[row.clone()].iter_mut().zip(&mut self.squares[row]);
            for ((weight, square), gradient) in rows.zip(&gradients) {
                *square += gradient * gradient;
                *weight -= self.rate * gradient / (square.sqrt() + 1e-8);
            }
        }
        self.gradients = gradients;
    }

    /// The probability of each output; none before the first token.
    #[inline]
    pub(super) fn scores(&self, inputs: &[usize], scores: &mut Vec<f64>) {
        scores.clear();
        if !self.begun {
            return;
        }
        scores.resize(self.outputs, 0.0);
        for &input in inputs {
            let row = &self.weights[input * self.outputs..(input + 1) * self.outputs];
            add(scores, row, 1.0);
        }
        scores.iter_mut().for_each(|score| *score = 1.0 / (1.0 + libm::exp(-*score)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of two outputs: the bias starts at ln(1.5 / 1.5) = 0. Adagrad's first step is the whole
    /// rate (g / |g|), up to 1e-8 of it, in each input's weight and the bias: logits 0.2, -0.2.
    /// The second step: g = sigma(0.2) - 1 = -0.450166; G = 0.25 + 0.202649, its root 0.672792; the
    /// step is 0.1 * 0.669102 = 0.0669102 in each of two: logit 0.2 + 0.1338204.
    #[test]
    fn two_steps_by_hand() {
        let mut model = Logistic::new(3, (1, 2), 0.1);
        let mut scores = Vec::new();
        model.scores(&[0, 2], &mut scores);
        assert_eq!(scores, []);
        let logits = |model: &Logistic, inputs: &[usize]| {
            let mut scores = Vec::new();
            model.scores(inputs, &mut scores);
            scores.iter().map(|score| -libm::log(1.0 / score - 1.0)).collect::<Vec<_>>()
        };
        let near = |logits: &[f64], expected: [f64; 2]| {
            for (logit, expected) in logits.iter().zip(expected) {
                assert!((logit - expected).abs() < 1e-6, "{logits:?}");
            }
        };
        model.learn(&[0, 2], &[0]);
        near(&logits(&model, &[0, 2]), [0.2, -0.2]);
        // An input that was 0: the bias alone.
        near(&logits(&model, &[1, 2]), [0.1, -0.1]);
        model.learn(&[0, 2], &[0]);
        near(&logits(&model, &[0, 2]), [0.333_820_4, -0.333_820_4]);
    }

    /// All outputs used: the bias starts at ln(2.5 / 0.5).
    #[test]
    fn the_start_is_finite_where_everything_is_used() {
        let model = Logistic::new(1, (2, 2), 0.1);
        assert_eq!(model.weights, [libm::log(5.0); 2]);
    }
}
