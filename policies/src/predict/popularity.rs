//! The experts that a layer uses most, whatever the token.

use super::{Guess, Horizon, Layers, Predictor, PredictorInfo, PredictorNeed, Token, best};
use crate::NoConfig;
use crate::structures::memory::array;

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "popularity",
    summary: "the experts that the layer has used most",
    definition: "A candidate's score is the share of the tokens seen so far (in training, and in the run where it goes on learning) that used it in that layer; ties go to the lower expert.",
    source: "folklore; the control that a predictor has to beat",
    needs: PredictorNeed::Nothing,
    parameters: &[],
};

/// Uses of every expert.
#[derive(Debug, Clone)]
pub struct Popularity {
    /// By dense key.
    uses: Vec<f64>,
    tokens: f64,
    learning: bool,
}

impl Popularity {
    /// No use counted yet.
    #[must_use]
    pub fn new(layers: &Layers, _: Horizon, _: &NoConfig) -> Self {
        Self { uses: vec![0.0; layers.total_experts()], tokens: 0.0, learning: true }
    }

    pub(super) fn memory(layers: &Layers, _: Horizon, _: &NoConfig) -> u64 {
        array::<f64>(layers.total_experts() as u64)
    }
}

impl Predictor for Popularity {
    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        if !self.learning {
            return;
        }
        if token.layer == 0 {
            self.tokens += 1.0;
        }
        let layer = token.layer as usize;
        let base = token.layers().keys(layer).start;
        for &expert in token.experts(layer) {
            self.uses[base + expert as usize] += 1.0;
        }
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        let uses = &self.uses[token.layers().keys(target as usize)];
        best(uses, width, 1.0 / self.tokens.max(1.0), guesses);
    }

    fn set_learning(&mut self, learning: bool) {
        self.learning = learning;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::TokenPlace;

    #[test]
    fn shares_by_hand() {
        let layers = Layers::new(&[2, 4], &[1, 2]);
        let mut popular = Popularity::new(&layers, Horizon::at(1), &NoConfig {});
        for row in [[0, 3, 1], [0, 1, 2], [1, 1, 0], [0, 1, 3]] {
            for layer in 0..2 {
                popular.observe(&Token::new(
                    TokenPlace { lane: 0, row: 0, layer },
                    &layers,
                    &row,
                    &[],
                ));
            }
        }
        let mut guesses = Vec::new();
        popular.predict(
            &Token::new(TokenPlace { lane: 0, row: 0, layer: 0 }, &layers, &[1], &[]),
            1,
            3,
            &mut guesses,
        );
        let told: Vec<_> = guesses.iter().map(|guess| (guess.expert, guess.confidence)).collect();
        assert_eq!(told, [(1, 1.0), (3, 0.5), (0, 0.25)]);
    }
}
