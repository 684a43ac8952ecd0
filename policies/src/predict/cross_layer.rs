//! A table of which experts follow which, from one layer to a later one of the same token.
//!
//! Memory: 8 bytes for each pair of experts of each two layers that lie as far apart as the table
//! looks ahead (at order 2 one layer further too); 1 MB for 32 layers of 64 at one distance.

use serde::{Deserialize, Serialize};

use super::{Guess, Horizon, Layers, Predictor, PredictorInfo, PredictorNeed, Token, best};
use crate::structures::memory::{array, sum};
use crate::{Config, Parameter};

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "cross-layer",
    summary: "which experts of a later layer follow those of this one",
    definition: "P(j at l+d | i at l) = c[i][j] / n[i], where n[i] counts the tokens that used expert i of layer l and c[i][j] those that also used j of layer l+d. A candidate's score is the sum of P(j | i) over the experts i that the token uses in layer l and, at order 2, those of layer l-1 too. Only candidates seen at least once are guessed; ties go to the lower expert. The confidence is the score over the number of experts summed. With decay, an observation counts for half after that many tokens.",
    source: "FATE and the article's cross-layer predictor; conditional co-selection",
    needs: PredictorNeed::Nothing,
    parameters: &[
        Parameter { name: "order", default: "1", meaning: "layers that are looked at, 1 or 2" },
        Parameter {
            name: "decay",
            default: "0",
            meaning: "tokens after which an observation counts for half; 0: never",
        },
    ],
};

/// Layers that the table looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub enum Order {
    /// The latest layer.
    One,
    /// The latest layer and the one before.
    Two,
}

impl Order {
    /// The first of the layers that are looked at from `layer`.
    #[inline]
    pub(super) fn first(self, layer: usize) -> usize {
        match self {
            Self::One => layer,
            Self::Two => layer.saturating_sub(1),
        }
    }
}

impl TryFrom<u32> for Order {
    type Error = String;
    fn try_from(order: u32) -> Result<Self, String> {
        match order {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            _ => Err(format!("order {order} is neither 1 nor 2")),
        }
    }
}

impl From<Order> for u32 {
    fn from(order: Order) -> Self {
        match order {
            Order::One => 1,
            Order::Two => 2,
        }
    }
}

/// Parameters of [`CrossLayer`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrossLayerConfig {
    /// Layers that are looked at.
    pub order: Order,
    /// Tokens after which an observation counts for half; 0: never.
    pub decay: f64,
}

impl Default for CrossLayerConfig {
    fn default() -> Self {
        Self { order: Order::One, decay: 0.0 }
    }
}

impl Config for CrossLayerConfig {
    fn check(&self) -> Result<(), String> {
        let fine = self.decay == 0.0 || (self.decay >= 1.0 && self.decay.is_finite());
        if fine { Ok(()) } else { Err("decay is 0 or at least 1 token".to_owned()) }
    }
}

/// Beyond this weight of one observation everything is scaled down, so that sums stay exact enough.
const HEAVY: f64 = 1e100;

/// How often experts of one layer are followed by those of another.
#[derive(Debug, Clone)]
struct Table {
    /// `[experts of the earlier layer][experts of the later]`.
    pairs: Vec<f64>,
    /// Uses of each expert of the earlier layer.
    uses: Vec<f64>,
}

/// A table for each layer and each distance of the horizon.
#[derive(Debug, Clone)]
pub struct CrossLayer {
    order: Order,
    horizon: Horizon,
    /// What the latest observation counts, growing by `growth` a token.
    weight: f64,
    growth: f64,
    learning: bool,
    /// `[distance, from the nearest][earlier layer]`.
    tables: Vec<Vec<Table>>,
    scores: Vec<f64>,
}

impl CrossLayer {
    /// Empty tables.
    #[must_use]
    pub fn new(layers: &Layers, horizon: Horizon, config: &CrossLayerConfig) -> Self {
        let widest = (0..layers.len()).map(|layer| layers.experts(layer)).max().unwrap_or(0);
        let growth = if config.decay == 0.0 { 1.0 } else { libm::exp2(1.0 / config.decay) };
        let table = |earlier: usize, distance: usize| {
            let (from, to) = (layers.experts(earlier), layers.experts(earlier + distance));
            Table { pairs: vec![0.0; from * to], uses: vec![0.0; from] }
        };
        let further = usize::from(config.order == Order::Two);
        let tables = (horizon.nearest..=horizon.farthest + further).map(|distance| {
            let earlier = 0..layers.len().saturating_sub(distance);
            earlier.map(|earlier| table(earlier, distance)).collect()
        });
        Self {
            order: config.order,
            horizon,
            weight: 1.0,
            growth,
            learning: true,
            tables: tables.collect(),
            scores: Vec::with_capacity(widest),
        }
    }

    pub(super) fn memory(layers: &Layers, horizon: Horizon, config: &CrossLayerConfig) -> u64 {
        let experts = |layer| layers.experts(layer) as u64;
        let further = usize::from(config.order == Order::Two);
        let distances = horizon.nearest..=horizon.farthest.saturating_add(further);
        let tables = distances.take_while(|&distance| distance < layers.len()).map(|distance| {
            sum((0..layers.len() - distance).map(|earlier| {
                let (from, to) = (experts(earlier), experts(earlier + distance));
                sum([array::<f64>(from.saturating_mul(to)), array::<f64>(from)])
            }))
        });
        let widest = (0..layers.len()).map(experts).max().unwrap_or(0);
        sum([sum(tables), array::<f64>(widest)])
    }

    /// Scales everything so that the latest observation counts 1 again.
    #[cold]
    fn rescale(&mut self) {
        for table in self.tables.iter_mut().flatten() {
            table.pairs.iter_mut().chain(&mut table.uses).for_each(|count| *count /= self.weight);
        }
        self.weight = 1.0;
    }
}

impl Predictor for CrossLayer {
    #[inline]
    fn observe(&mut self, token: &Token<'_>) {
        let layer = token.layer as usize;
        if !self.learning {
            return;
        }
        if layer == 0 && self.growth > 1.0 {
            self.weight *= self.growth;
            if self.weight > HEAVY {
                self.rescale();
            }
        }
        let later = token.experts(layer);
        let width = token.layers().experts(layer);
        for (distance, tables) in (self.horizon.nearest..=layer).zip(&mut self.tables) {
            let earlier = layer - distance;
            let table = &mut tables[earlier];
            for &from in token.experts(earlier) {
                table.uses[from as usize] += self.weight;
                let row = &mut table.pairs[from as usize * width..(from as usize + 1) * width];
                for &to in later {
                    row[to as usize] += self.weight;
                }
            }
        }
    }

    #[inline]
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>) {
        let (layer, target) = (token.layer as usize, target as usize);
        if !self.horizon.reaches(layer, target) {
            return;
        }
        let experts = token.layers().experts(target);
        self.scores.clear();
        self.scores.resize(experts, 0.0);
        let mut summed = 0;
        for earlier in (self.order.first(layer)..=layer).rev() {
            let table = &self.tables[target - earlier - self.horizon.nearest][earlier];
            for &from in token.experts(earlier) {
                summed += 1;
                let uses = table.uses[from as usize];
                if uses > 0.0 {
                    let row = &table.pairs[from as usize * experts..][..experts];
                    for (score, &pairs) in self.scores.iter_mut().zip(row) {
                        *score += pairs / uses;
                    }
                }
            }
        }
        best(&self.scores, width, 1.0 / f64::from(summed.max(1)), guesses);
    }

    fn set_learning(&mut self, learning: bool) {
        self.learning = learning;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::TokenPlace;

    fn learn(table: &mut CrossLayer, layers: &Layers, row: &[u32]) {
        for layer in 0..layers.len() as u32 {
            table.observe(&Token::new(TokenPlace { lane: 0, row: 0, layer }, layers, row, &[]));
        }
    }

    fn guess(
        table: &mut CrossLayer,
        layers: &Layers,
        (layer, target): (u32, u32),
        row: &[u32],
    ) -> Vec<(u32, f32)> {
        let mut guesses = Vec::new();
        table.predict(
            &Token::new(TokenPlace { lane: 0, row: 0, layer }, layers, row, &[]),
            target,
            4,
            &mut guesses,
        );
        guesses.iter().map(|guess| (guess.expert, guess.confidence)).collect()
    }

    /// Two layers of four experts, two used. Tokens {0,1}->{2,3}, {0,2}->{3,1}, {1,2}->{3,0}:
    /// P(2|0) = 1/2, P(3|0) = 1, P(1|0) = 1/2; P(2|1) = 1/2, P(3|1) = 1, P(0|1) = 1/2.
    /// A token that uses {0,1}: 3 scores 2, 2 scores 1, 0 and 1 score 1/2.
    #[test]
    fn conditionals_by_hand() {
        let layers = Layers::new(&[4, 4], &[2, 2]);
        let mut table = CrossLayer::new(&layers, Horizon::at(1), &CrossLayerConfig::default());
        assert_eq!(guess(&mut table, &layers, (0, 1), &[0, 1]), []);
        for row in [[0, 1, 2, 3], [0, 2, 3, 1], [1, 2, 3, 0]] {
            learn(&mut table, &layers, &row);
        }
        let expected = [(3, 1.0), (2, 0.5), (0, 0.25), (1, 0.25)];
        assert_eq!(guess(&mut table, &layers, (0, 1), &[0, 1]), expected);
        // Expert 3 was never used: it says nothing. P(. | 0) alone, over two experts.
        assert_eq!(guess(&mut table, &layers, (0, 1), &[0, 3]), [(3, 0.5), (1, 0.25), (2, 0.25)]);
        table.set_learning(false);
        learn(&mut table, &layers, &[3, 0, 0, 1]);
        assert_eq!(guess(&mut table, &layers, (0, 1), &[0, 3]), [(3, 0.5), (1, 0.25), (2, 0.25)]);
    }

    /// Layer 2 depends on layer 0 only: order 2 sees it, order 1 from layer 1 cannot.
    #[test]
    fn order_two_looks_at_the_layer_before_too() {
        let layers = Layers::new(&[2, 2, 2], &[1, 1, 1]);
        let config = CrossLayerConfig { order: Order::Two, decay: 0.0 };
        let mut two = CrossLayer::new(&layers, Horizon::at(1), &config);
        let mut one = CrossLayer::new(&layers, Horizon::at(1), &CrossLayerConfig::default());
        for table in [&mut one, &mut two] {
            for row in [[0, 0, 0], [1, 0, 1], [1, 0, 1], [1, 0, 1]] {
                learn(table, &layers, &row);
            }
        }
        // P(0 | 0 at layer 1) = 1/4, P(1 | it) = 3/4; P(0 | 0 at layer 0) = 1.
        assert_eq!(guess(&mut one, &layers, (1, 2), &[0, 0]), [(1, 0.75), (0, 0.25)]);
        assert_eq!(guess(&mut two, &layers, (1, 2), &[0, 0]), [(0, 0.625), (1, 0.375)]);
        // Two layers ahead is a table of its own, which this horizon does not have.
        assert_eq!(guess(&mut one, &layers, (0, 2), &[0]), []);
        let far = Horizon { nearest: 1, farthest: 2 };
        let mut far = CrossLayer::new(&layers, far, &CrossLayerConfig::default());
        learn(&mut far, &layers, &[0, 1, 0]);
        assert_eq!(guess(&mut far, &layers, (0, 2), &[0]), [(0, 1.0)]);
    }

    /// Half-life of one token: the latest counts twice the one before, P(1|0) = 2/3.
    #[test]
    fn decay_prefers_the_recent() {
        let layers = Layers::new(&[1, 2], &[1, 1]);
        let config = CrossLayerConfig { decay: 1.0, ..CrossLayerConfig::default() };
        let mut table = CrossLayer::new(&layers, Horizon::at(1), &config);
        learn(&mut table, &layers, &[0, 0]);
        learn(&mut table, &layers, &[0, 1]);
        let expected = [(1, 2.0 / 3.0), (0, 1.0 / 3.0)];
        assert_eq!(guess(&mut table, &layers, (0, 1), &[0]), expected);
        // Over many tokens the weights are scaled back, and what is old fades.
        (0..2000).for_each(|_| learn(&mut table, &layers, &[0, 0]));
        let after = guess(&mut table, &layers, (0, 1), &[0]);
        assert_eq!(after[0], (0, 1.0));
        assert!(config.check().is_ok());
        assert!(CrossLayerConfig { decay: 0.5, ..config }.check().is_err());
    }
}
