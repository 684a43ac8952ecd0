//! What the sequence's previous token used in the layer.

use super::{
    Guess, Horizon, Layers, Opening, Predictor, PredictorInfo, PredictorNeed, RankRecord, Token,
};
use crate::NoConfig;
use crate::structures::memory::{array, sum};

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "previous-token",
    summary: "what the sequence's previous token used in that layer",
    definition: "The experts that the latest token of the sequence which went through layer l+d used there, best rank first. The confidence is the share of its guesses at that rank and layer that were right so far.",
    source: "folklore; temporal locality as a prediction",
    needs: PredictorNeed::Nothing,
    parameters: &[],
};

/// One sequence's latest routes.
#[derive(Debug, Clone, Default)]
struct Lane {
    routes: Vec<u32>,
    /// Layers of `routes` that a token has filled.
    layers: usize,
}

/// Each lane's latest routes, and how often a rank came again.
#[derive(Debug, Clone)]
pub struct PreviousToken {
    lanes: Vec<Lane>,
    /// By place in the row of routes.
    again: RankRecord,
    learning: bool,
}

impl PreviousToken {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(layers: &Layers, _: Horizon, _: &NoConfig) -> Self {
        Self { lanes: Vec::new(), again: RankRecord::new(layers.row_len()), learning: true }
    }

    /// The record of the ranks, and one lane's routes.
    pub(super) fn memory(layers: &Layers, _: Horizon, _: &NoConfig) -> u64 {
        let places = layers.row_len() as u64;
        sum([array::<(u64, u64)>(places), array::<u32>(places)])
    }

    fn lane(&mut self, lane: u32) -> &mut Lane {
        let lane = lane as usize;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        &mut self.lanes[lane]
    }
}

impl Predictor for PreviousToken {
    fn begin_sequence(&mut self, lane: u32, _: &Opening<'_>) {
        self.lane(lane).layers = 0;
    }

    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        let (layer, row_len, learning) =
            (token.layer as usize, token.layers().row_len(), self.learning);
        let places = token.layers().places(layer);
        let experts = token.experts(layer);
        self.lane(token.lane).routes.resize(row_len, 0);
        let lane = &mut self.lanes[token.lane as usize];
        if lane.layers > layer && learning {
            for place in places.clone() {
                self.again.record(place, experts.contains(&lane.routes[place]));
            }
        }
        lane.routes[places].copy_from_slice(experts);
        lane.layers = lane.layers.max(layer + 1);
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        let lane = self.lane(token.lane);
        if lane.layers <= target as usize {
            return;
        }
        let places = token.layers().places(target as usize);
        let lane = &self.lanes[token.lane as usize];
        guesses.extend(places.take(width).map(|place| Guess {
            expert: lane.routes[place],
            confidence: self.again.share(place),
        }));
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
    fn the_lane_s_own_previous_token_by_hand() {
        let layers = Layers::new(&[4, 4], &[1, 2]);
        let mut previous = PreviousToken::new(&layers, Horizon::at(1), &NoConfig {});
        let guess = |previous: &mut PreviousToken, lane| {
            let mut guesses = Vec::new();
            previous.predict(
                &Token::new(TokenPlace { lane, row: 0, layer: 0 }, &layers, &[0], &[]),
                1,
                8,
                &mut guesses,
            );
            guesses.iter().map(|guess| (guess.expert, guess.confidence)).collect::<Vec<_>>()
        };
        previous.begin_sequence(0, &Opening::default());
        assert_eq!(guess(&mut previous, 0), []);
        for row in [[0, 3, 1], [0, 1, 2], [0, 2, 0]] {
            for layer in 0..2 {
                previous.observe(&Token::new(
                    TokenPlace { lane: 0, row: 0, layer },
                    &layers,
                    &row,
                    &[],
                ));
            }
        }
        // {1, 2} after {3, 1}: rank 0's 3 did not come again, rank 1's 1 did. {2, 0} after {1, 2}:
        // rank 0's 1 did not, rank 1's 2 did.
        assert_eq!(guess(&mut previous, 0), [(2, 0.0), (0, 1.0)]);
        assert_eq!(guess(&mut previous, 1), [], "another sequence");
        previous.begin_sequence(0, &Opening::default());
        assert_eq!(guess(&mut previous, 0), [], "a new sequence");
    }
}
