//! What the predictors' tests share: made-up sequences, and how many experts are foreseen.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Guess, Layers, Opening, Predictor, Token, TokenPlace};

/// A sequence: its prompt's embedding, and a row of routes for each token.
pub(crate) struct Sequence {
    pub(crate) embedding: Vec<f32>,
    pub(crate) rows: Vec<Vec<u32>>,
}

/// A generator of its own for each test.
pub(crate) fn random(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// Routes of a token that chooses at random.
pub(crate) fn random_row(layers: &Layers, rng: &mut Pcg64Mcg) -> Vec<u32> {
    let mut row = Vec::with_capacity(layers.row_len());
    for layer in 0..layers.len() {
        let experts = layers.experts(layer) as u32;
        let start = row.len();
        while row.len() < layers.places(layer).end {
            let expert = rng.random_range(0..experts);
            if !row[start..].contains(&expert) {
                row.push(expert);
            }
        }
    }
    row
}

/// The expert and the confidence of each guess.
pub(crate) fn told(
    predictor: &mut impl Predictor,
    token: &Token<'_>,
    target: u32,
    width: usize,
) -> Vec<(u32, f32)> {
    let mut guesses = vec![Guess { expert: u32::MAX, confidence: 0.5 }];
    predictor.predict(token, target, width, &mut guesses);
    assert_eq!(guesses[0].expert, u32::MAX, "guesses are appended");
    guesses[1..].iter().map(|guess| (guess.expert, guess.confidence)).collect()
}

/// Runs sequences through a predictor, one a lane and all at once, and gives the share of the
/// routes of layers `distance` and later that were among as many guesses as the layer's top-k.
pub(crate) fn recall(
    predictor: &mut impl Predictor,
    layers: &Layers,
    distance: u32,
    sequences: &[Sequence],
) -> f64 {
    let (mut found, mut asked) = (0, 0);
    for (lane, sequence) in (0..).zip(sequences) {
        let opening = Opening { embedding: &sequence.embedding, ..Opening::default() };
        predictor.begin_sequence(lane, &opening);
    }
    let tokens = sequences.iter().map(|sequence| sequence.rows.len()).max().unwrap_or(0);
    for (number, layer) in (0..tokens).flat_map(|n| (0..layers.len() as u32).map(move |l| (n, l))) {
        for (lane, sequence) in (0..).zip(sequences) {
            let Some(row) = sequence.rows.get(number) else { continue };
            let weights = vec![0.5; row.len()];
            let token = Token::new(TokenPlace { lane, row: number, layer }, layers, row, &weights);
            predictor.observe(&token);
            let target = layer + distance;
            if target as usize >= layers.len() {
                continue;
            }
            let routes = &row[layers.places(target as usize)];
            let guesses = told(predictor, &token, target, routes.len());
            asked += routes.len();
            found += guesses.iter().filter(|(expert, _)| routes.contains(expert)).count();
        }
    }
    (0..).zip(sequences).for_each(|(lane, _)| predictor.end_sequence(lane));
    f64::from(found as u32) / f64::from(asked as u32)
}
