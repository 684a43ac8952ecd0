//! An oracle with a chosen precision and recall: what would a predictor have to reach?

use hotset_policies::Parameter;
use hotset_policies::predict::{Guess, PredictorInfo, PredictorNeed};
use serde::{Deserialize, Serialize};

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "oracle",
    summary: "the truth, with a chosen precision and recall",
    definition: "Of the experts that the token will use in the layer, each is guessed with the chance `recall`, in router order. Behind r right guesses follow r (1 - precision) / precision wrong ones, rounded up or down at random so that the mean is that, drawn uniformly from the layer's other experts; a layer has no more wrong guesses than it has other experts. All draws are a function of the seed, the token and the layer. The confidence is the precision.",
    source: "hotset; with precision = recall = 1 it is the perfect predictor",
    needs: PredictorNeed::Future,
    parameters: &[
        Parameter {
            name: "precision",
            default: "1",
            meaning: "share of guesses that are right, above 0",
        },
        Parameter {
            name: "recall",
            default: "1",
            meaning: "share of needed experts that are guessed",
        },
        Parameter { name: "seed", default: "1", meaning: "seed of the draws, any u64" },
    ],
};

/// Parameters of the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OracleConfig {
    /// Share of guesses that are right, above 0.
    pub precision: f64,
    /// Share of needed experts that are guessed, 0 to 1.
    pub recall: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for OracleConfig {
    fn default() -> Self {
        Self { precision: 1.0, recall: 1.0, seed: 1 }
    }
}

/// Reads the parameters.
///
/// # Errors
/// An unknown key or a value out of its range.
pub fn config(text: &str) -> Result<OracleConfig, String> {
    let config: OracleConfig = hotset_policies::parse_parameters(text)?;
    if !(config.precision > 0.0 && config.precision <= 1.0) {
        return Err(format!("precision = {} is not above 0 and at most 1", config.precision));
    }
    if !(0.0..=1.0).contains(&config.recall) {
        return Err(format!("recall = {} is not within 0 to 1", config.recall));
    }
    Ok(config)
}

/// The oracle at work.
#[derive(Debug, Clone)]
pub(super) struct Oracle {
    config: OracleConfig,
    others: Vec<u32>,
}

impl Oracle {
    pub fn new(config: OracleConfig) -> Self {
        Self { config, others: Vec::new() }
    }

    /// Starts the draws of the token at `row` for layer `target`, of which they are a function.
    pub fn start(&mut self, row: usize, target: usize) -> OracleDraw<'_> {
        let place = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (target as u64) << 48;
        let draws = Draws(self.config.seed ^ place);
        OracleDraw { config: self.config, draws, others: &mut self.others }
    }
}

/// The oracle's draws for one token and layer.
pub(super) struct OracleDraw<'a> {
    config: OracleConfig,
    draws: Draws,
    others: &'a mut Vec<u32>,
}

impl OracleDraw<'_> {
    /// Guesses for a layer of `experts` experts, of which the token will use `truth`.
    pub fn guess(self, truth: &[u32], experts: usize, width: usize, guesses: &mut Vec<Guess>) {
        let Self { config, mut draws, others } = self;
        let confidence = config.precision as f32;
        let start = guesses.len();
        for &expert in truth {
            if draws.unit() < config.recall {
                guesses.push(Guess { expert, confidence });
            }
        }
        let right = (guesses.len() - start) as f64;
        let wrong = right * (1.0 - config.precision) / config.precision;
        let wrong = (wrong + draws.unit()).floor() as usize;
        if wrong > 0 {
            others.clear();
            others.extend((0..experts as u32).filter(|expert| !truth.contains(expert)));
            for taken in 0..wrong.min(others.len()) {
                let left = others.len() - taken;
                let pick = taken + (draws.unit() * left as f64) as usize;
                others.swap(taken, pick);
                guesses.push(Guess { expert: others[taken], confidence });
            }
        }
        guesses.truncate(start.saturating_add(width));
    }
}

/// SplitMix64: a stream that is a function of its seed, cheap to start at every token.
struct Draws(u64);

impl Draws {
    /// Uniform in 0..1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        (word >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_what_it_is_told_to() {
        for (precision, recall) in [(1.0, 1.0), (0.8, 0.5), (0.25, 1.0), (0.5, 0.0)] {
            let mut oracle = Oracle::new(OracleConfig { precision, recall, seed: 7 });
            let truth = [3, 60, 17, 8];
            let (mut right, mut all) = (0, 0);
            let mut guesses = Vec::new();
            for row in 0..4000 {
                guesses.clear();
                oracle.start(row, row % 5).guess(&truth, 64, usize::MAX, &mut guesses);
                let mut experts: Vec<u32> = guesses.iter().map(|guess| guess.expert).collect();
                all += experts.len();
                right += experts.iter().filter(|expert| truth.contains(expert)).count();
                experts.sort_unstable();
                experts.dedup();
                assert_eq!(experts.len(), guesses.len());
                assert!(experts.iter().all(|&expert| expert < 64));
            }
            assert!((right as f64 / 16000.0 - recall).abs() < 0.015, "{precision} {recall}");
            if right > 0 {
                assert!(
                    (right as f64 / all as f64 - precision).abs() < 0.01,
                    "{precision} {recall}"
                );
            }
        }
    }

    #[test]
    fn there_are_no_more_wrong_guesses_than_other_experts() {
        let mut oracle = Oracle::new(OracleConfig { precision: 1e-9, recall: 1.0, seed: 1 });
        let mut guesses = Vec::new();
        oracle.start(0, 0).guess(&[1, 2], 4, usize::MAX, &mut guesses);
        let mut experts: Vec<u32> = guesses.iter().map(|guess| guess.expert).collect();
        experts.sort_unstable();
        assert_eq!(experts, [0, 1, 2, 3]);
        oracle.start(0, 0).guess(&[0, 1, 2, 3], 4, 1, &mut guesses);
        assert_eq!(
            guesses.len(),
            5,
            "every expert is needed: none is wrong, and one is let through"
        );
    }
}
