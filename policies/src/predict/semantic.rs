//! The experts that conversations like this one use most.

use super::{
    Guess, Horizon, Layers, Opening, Predictor, PredictorInfo, PredictorNeed, Token, best,
};
use crate::semantic::{GUIDE_PARAMETERS, Guide, GuideConfig};
use crate::structures::memory::array;

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "semantic",
    summary: "the experts that conversations like this one use most",
    definition: "At a conversation's start its expected profile (uses of each expert a token) is the mean profile of the k stored conversations nearest by embedding, each weighted by its cosine, or what `from` says. The guesses for a layer are its experts with the highest shares, which are the confidences; ties go to the lower expert. At its end the conversation is stored; a full store overwrites the most redundant (FineMoE's rule).",
    source: "the article's cache keyed on the meaning of the conversation; FineMoE's store",
    needs: PredictorNeed::Embeddings,
    parameters: GUIDE_PARAMETERS,
};

/// A guide whose profiles are guesses.
#[derive(Debug, Clone)]
pub struct Semantic {
    guide: Guide,
    scores: Vec<f64>,
}

impl Semantic {
    /// One that knows no conversation.
    #[must_use]
    pub fn new(layers: &Layers, _: Horizon, config: &GuideConfig) -> Self {
        Self { guide: Guide::new(layers.total_experts(), config), scores: Vec::new() }
    }

    /// The profiles of a full store, without their embeddings.
    pub(super) fn memory(layers: &Layers, _: Horizon, config: &GuideConfig) -> u64 {
        let profile = array::<f32>(layers.total_experts() as u64);
        profile.saturating_mul(config.store as u64)
    }
}

impl Predictor for Semantic {
    fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
        self.guide.begin(lane, opening);
    }

    fn end_sequence(&mut self, lane: u32) {
        self.guide.end(lane);
    }

    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        self.guide.observe(token);
    }

    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        let profile = self.guide.profile(token.lane);
        if profile.is_empty() {
            return;
        }
        let of_layer = &profile[token.layers().keys(target as usize)];
        self.scores.clear();
        self.scores.extend(of_layer.iter().map(|&share| f64::from(share)));
        best(&self.scores, width, 1.0, guesses);
    }

    fn set_learning(&mut self, learning: bool) {
        self.guide.set_learning(learning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::TokenPlace;
    use crate::semantic::ProfileFrom;

    #[test]
    fn guesses_are_the_profile_s_largest() {
        let layers = Layers::new(&[2, 4], &[1, 1]);
        let config = GuideConfig { from: ProfileFrom::Prompt, ..GuideConfig::default() };
        let mut semantic = Semantic::new(&layers, Horizon::at(1), &config);
        let opening =
            Opening { prompt_uses: &[4, 0, 1, 0, 3, 0], prompt_tokens: 4, ..Opening::default() };
        semantic.begin_sequence(0, &opening);
        let mut guesses = Vec::new();
        semantic.predict(
            &Token::new(TokenPlace { lane: 0, row: 0, layer: 0 }, &layers, &[0], &[]),
            1,
            3,
            &mut guesses,
        );
        let told: Vec<_> = guesses.iter().map(|guess| (guess.expert, guess.confidence)).collect();
        assert_eq!(told, [(2, 0.75), (0, 0.25)]);
    }
}
