//! What the models learn and what they cannot, by kind; their parameters.

use super::*;
use crate::predict::TokenPlace;
use crate::predict::testing::{Sequence, random, random_row, recall, told};
use rand::RngExt;

fn configs() -> [LinearConfig; 2] {
    let ridge = LinearConfig::default();
    [ridge, LinearConfig { kind: LinearKind::Logistic, ..ridge }]
}

/// Tokens in sequences, `row` making each.
fn sequences(count: usize, tokens: usize, mut row: impl FnMut() -> Vec<u32>) -> Vec<Sequence> {
    let mut rows = || (0..tokens).map(|_| row()).collect();
    (0..count).map(|_| Sequence { embedding: Vec::new(), rows: rows() }).collect()
}

/// Each layer uses a permutation of the layer before's experts: xW can be y exactly.
#[test]
fn what_follows_from_the_layer_before_is_foreseen_entirely() {
    let layers = Layers::new(&[8; 4], &[2; 4]);
    for config in configs() {
        for distance in [1, 2] {
            let mut rng = random(3);
            let mut row = || {
                let mut row = random_row(&layers, &mut rng)[..2].to_vec();
                (2..8).for_each(|place| row.push((row[place - 2] * 3 + 1) % 8));
                row
            };
            let (trained, tested) = (sequences(10, 40, &mut row), sequences(3, 20, &mut row));
            let mut linear = Linear::new(&layers, Horizon { nearest: 1, farthest: 2 }, &config);
            recall(&mut linear, &layers, distance, &trained);
            linear.set_learning(false);
            assert_eq!(recall(&mut linear, &layers, distance, &tested), 1.0, "{config:?}");
        }
    }
}

/// Layer 2 repeats layer 0, and layer 1 is noise: order 2 sees it, order 1 cannot.
#[test]
fn order_two_sees_the_layer_before_too() {
    let layers = Layers::new(&[8; 3], &[1; 3]);
    for config in configs() {
        let mut shares = [0.0; 2];
        for (share, order) in shares.iter_mut().zip([Order::One, Order::Two]) {
            let mut rng = random(4);
            let mut row = || {
                let row = random_row(&layers, &mut rng);
                vec![row[0], row[1], row[0]]
            };
            let config = LinearConfig { order, ..config };
            let mut linear = Linear::new(&layers, Horizon::at(1), &config);
            recall(&mut linear, &layers, 1, &sequences(10, 100, &mut row));
            linear.set_learning(false);
            *share = recall(&mut linear, &layers, 1, &sequences(10, 100, &mut row));
        }
        // Half of what is asked is layer 1, at chance; the other half is layer 2.
        assert!((shares[0] - 0.125).abs() < 0.03, "{config:?}: {shares:?}");
        assert!((shares[1] - 0.5625).abs() < 0.03, "{config:?}: {shares:?}");
    }
}

/// What was learned by heart says nothing of other noise.
#[test]
fn chance_is_not_beaten_on_noise() {
    let layers = Layers::new(&[16; 3], &[2; 3]);
    for config in configs() {
        let mut rng = random(6);
        let mut row = || random_row(&layers, &mut rng);
        let mut linear = Linear::new(&layers, Horizon::at(1), &config);
        recall(&mut linear, &layers, 1, &sequences(4, 100, &mut row));
        linear.set_learning(false);
        let share = recall(&mut linear, &layers, 1, &sequences(20, 100, &mut row));
        assert!((share - 0.125).abs() < 0.01, "{config:?}: {share} is not chance");
    }
}

/// Frozen, a model says the same whatever it is shown; ridge has taken in all that it saw.
#[test]
fn learning_ends_with_a_last_fit() {
    let layers = Layers::new(&[4, 4], &[1, 1]);
    for config in configs() {
        let mut linear = Linear::new(&layers, Horizon::at(1), &config);
        let see = |linear: &mut Linear, row: &[u32]| {
            for layer in 0..2 {
                linear.observe(&Token::new(
                    TokenPlace { lane: 0, row: 0, layer },
                    &layers,
                    row,
                    &[],
                ));
            }
            told(
                linear,
                &Token::new(TokenPlace { lane: 0, row: 0, layer: 0 }, &layers, &[1], &[]),
                1,
                4,
            )
        };
        let early = see(&mut linear, &[1, 2]);
        assert_eq!(early.is_empty(), config.kind == LinearKind::Ridge);
        linear.set_learning(false);
        let frozen = see(&mut linear, &[1, 3]);
        assert_eq!(frozen[0].0, 2, "{config:?}");
        assert_eq!(see(&mut linear, &[1, 3]), frozen);
        linear.set_learning(true);
        (0..200).for_each(|_| drop(see(&mut linear, &[1, 3])));
        assert_eq!(see(&mut linear, &[1, 3])[0].0, 3, "{config:?}");
    }
}

/// Guesses are ranked, at most as many as asked for, and their confidence lies in 0 to 1.
#[test]
fn guesses_are_in_order_and_within_one() {
    let layers = Layers::new(&[12, 9, 12], &[3, 2, 4]);
    let mut rng = random(8);
    for config in configs() {
        let config = LinearConfig { order: Order::Two, ..config };
        let horizon = Horizon { nearest: 1, farthest: 5 };
        let mut linear = Linear::new(&layers, horizon, &config);
        for _ in 0..300 {
            let mut row = random_row(&layers, &mut rng);
            row[5..].copy_from_slice(&[0, 1, 2, 3]);
            for layer in 0..3 {
                let token = Token::new(TokenPlace { lane: 0, row: 0, layer }, &layers, &row, &[]);
                linear.observe(&token);
                for target in layer + 1..3 {
                    let width = rng.random_range(0..6);
                    let guesses = told(&mut linear, &token, target, width);
                    assert!(guesses.len() <= width);
                    assert!(guesses.iter().all(|guess| (0.0..=1.0).contains(&guess.1)));
                    assert!(guesses.is_sorted_by(|one, next| one.1 >= next.1));
                }
            }
        }
    }
}

#[test]
fn parameters_out_of_range_or_of_the_other_kind_are_refused() {
    let ridge = LinearConfig::default();
    let told = |config: LinearConfig| config.check().unwrap_err();
    for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = told(LinearConfig { lambda, ..ridge });
        assert_eq!(refused, format!("lambda = {lambda} is not within 0.001 to 1000000"));
    }
    assert!(told(LinearConfig { rate: 0.0, ..ridge }).starts_with("rate = 0"));
    assert_eq!(told(LinearConfig { rate: 0.5, ..ridge }), "rate is for kind=logistic only");
    let logistic = LinearConfig { kind: LinearKind::Logistic, ..ridge };
    assert_eq!(told(LinearConfig { lambda: 2.0, ..logistic }), "lambda is for kind=ridge only");
    assert!(LinearConfig { rate: 0.5, ..logistic }.check().is_ok());
}
