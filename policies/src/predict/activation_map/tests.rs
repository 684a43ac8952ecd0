//! The match by hand, against a plain reading of the definition, and what it can and cannot learn.

use crate::predict::TokenPlace;
use rand::RngExt;

use super::store::squares;
use super::*;
use crate::predict::testing::{Sequence, random, random_row, recall, told};

fn store(layers: &Layers, store: usize) -> ActivationMap {
    ActivationMap::new(layers, Horizon::at(1), &ActivationMapConfig { store })
}

/// A whole token, and what is guessed for the last layer at the one before.
fn pass(map: &mut ActivationMap, layers: &Layers, lane: u32, row: &[u32]) -> Vec<(u32, f32)> {
    let mut guesses = Vec::new();
    let last = layers.len() as u32 - 1;
    for layer in 0..=last {
        let token = Token::new(TokenPlace { lane, row: 0, layer }, layers, row, &[]);
        map.observe(&token);
        if layer + 1 == last {
            guesses = told(map, &token, last, 3);
        }
    }
    guesses
}

/// Two layers of four experts; stored maps with last rows (3, 1, 0, 0), (1, 1, 0, 0), (0, 0, 0, 1).
/// A sequence with last row (2, 1, 0, 0) has cosines 7 / sqrt(10 * 5) = 0.990, 3 / sqrt(2 * 5) =
/// 0.949 and 0; with (1, 1, 0, 0), 4 / sqrt(20) = 0.894, 1 and 0. One layer ahead of three fades by
/// 1 - 1/3.
#[test]
fn the_match_and_its_confidence_by_hand() {
    let layers = Layers::new(&[4, 4], &[1, 1]);
    let mut map = store(&layers, 10);
    for rows in [&[0, 0, 0, 1][..], &[0, 1], &[3]] {
        map.begin_sequence(0, &Opening::default());
        for &last in rows {
            pass(&mut map, &layers, 0, &[2, last]);
        }
        map.end_sequence(0);
    }
    map.set_learning(false);
    map.begin_sequence(0, &Opening::default());
    let near = |guesses: &[(u32, f32)], expected: &[(u32, f32)]| {
        assert_eq!(guesses.len(), expected.len());
        for (guess, expected) in guesses.iter().zip(expected) {
            assert_eq!(guess.0, expected.0, "{guesses:?}");
            assert!((guess.1 - expected.1).abs() < 1e-6, "{guesses:?}");
        }
    };
    // No row behind layer 0 yet: the first map. Experts 0 and 1 by 3 and 1 of 4 tokens, then the
    // first of those that it never used.
    let first = [(0, 0.75 * 2.0 / 3.0), (1, 0.25 * 2.0 / 3.0), (2, 0.0)];
    near(&pass(&mut map, &layers, 0, &[2, 1]), &first);
    // (0, 1, 0, 0): 1 / sqrt(10) against 1 / sqrt(2).
    let second = [(0, 0.5 * 2.0 / 3.0), (1, 0.5 * 2.0 / 3.0), (2, 0.0)];
    near(&pass(&mut map, &layers, 0, &[2, 0]), &second);
    near(&pass(&mut map, &layers, 0, &[2, 0]), &second);
    near(&pass(&mut map, &layers, 0, &[2, 3]), &first);
    // Another lane has counts of its own; those of a prompt are a start.
    let uses = [0, 0, 0, 0, 0, 0, 0, 5];
    map.begin_sequence(7, &Opening { prompt_uses: &uses, prompt_tokens: 5, ..Opening::default() });
    near(&pass(&mut map, &layers, 7, &[2, 0]), &[(3, 2.0 / 3.0), (0, 0.0), (1, 0.0)]);
}

/// The row of layer 0 says the first map, but it is decided already: row 1 speaks for the second.
#[test]
fn rows_up_to_the_current_layer_do_not_count() {
    let layers = Layers::new(&[2, 2, 2], &[1, 1, 1]);
    let mut map = store(&layers, 2);
    for row in [[0, 0, 0], [1, 1, 1]] {
        pass(&mut map, &layers, 0, &row);
        map.end_sequence(0);
    }
    pass(&mut map, &layers, 0, &[0, 1, 0]);
    let token = Token::new(TokenPlace { lane: 0, row: 1, layer: 0 }, &layers, &[0], &[]);
    map.observe(&token);
    // Rows 1 and 2: (0, 1) and (1, 0), one each: the lowest slot. p of layer 2: 1 - 2/4.
    assert_eq!(told(&mut map, &token, 2, 1), [(0, 0.5)]);
    for (layer, row) in [(1, [0, 1]), (2, [0, 1])] {
        map.observe(&Token::new(
            TokenPlace { lane: 0, row: 1, layer },
            &layers,
            &[row[0], row[1], 1],
            &[],
        ));
    }
    map.observe(&Token::new(TokenPlace { lane: 0, row: 2, layer: 0 }, &layers, &[0], &[]));
    // Row 1: (0, 2), cosine 1 with the second; row 2: (1, 1), equal.
    assert_eq!(
        told(
            &mut map,
            &Token::new(TokenPlace { lane: 0, row: 2, layer: 0 }, &layers, &[0], &[]),
            1,
            1
        ),
        [(1, 0.75)]
    );
}

#[test]
fn a_full_store_replaces_the_least_accessed_and_learning_off_leaves_it() {
    let layers = Layers::new(&[2, 4], &[1, 1]);
    let mut map = store(&layers, 2);
    for last in [0, 1] {
        pass(&mut map, &layers, 0, &[0, last]);
        map.end_sequence(0);
    }
    // The first was asked for by the second's token (nothing behind it), so it has two accesses.
    assert_eq!(map.store.accesses(), [2, 1]);
    pass(&mut map, &layers, 0, &[0, 2]);
    map.end_sequence(0);
    assert_eq!((map.store.accesses().to_vec(), map.store.map(1)[4]), (vec![3, 1], 1.0));
    map.set_learning(false);
    pass(&mut map, &layers, 0, &[0, 3]);
    map.end_sequence(0);
    map.end_sequence(9);
    assert_eq!((map.store.accesses().to_vec(), map.store.map(1)[4]), (vec![3, 1], 1.0));
}

/// The cosines' sum at a layer, straight from the definition.
fn plainly(layers: &Layers, counts: &[u32], stored: &[f32], layer: usize) -> f64 {
    let cosine = |layer: usize| {
        let (own, stored) = (&counts[layers.keys(layer)], &stored[layers.keys(layer)]);
        let product = own.iter().zip(stored).map(|(&a, &b)| f64::from(a) * f64::from(b));
        let norms = |own: f64, stored: f64| (own * stored).sqrt();
        let norms = norms(squares(own.iter().copied()), squares(stored.iter().copied()));
        if norms == 0.0 { 0.0 } else { product.sum::<f64>() / norms }
    };
    (layer + 1..layers.len()).map(cosine).sum()
}

#[test]
fn what_is_kept_up_is_what_the_definition_says() {
    let layers = Layers::new(&[6, 5, 7, 6], &[2, 1, 3, 2]);
    let mut rng = random(5);
    let mut map = store(&layers, 4);
    let mut counts = vec![vec![0u32; layers.total_experts()]; 3];
    for step in 0..600 {
        let lane = step % 3;
        if rng.random_range(0..12) == 0 {
            map.end_sequence(lane as u32);
            counts[lane].fill(0);
        }
        let row = random_row(&layers, &mut rng);
        for layer in 0..layers.len() {
            let token = Token::new(
                TokenPlace { lane: lane as u32, row: step, layer: layer as u32 },
                &layers,
                &row,
                &[],
            );
            map.observe(&token);
            for &expert in token.experts(layer) {
                counts[lane][layers.keys(layer).start + expert as usize] += 1;
            }
            // Not asked each time: what was left out is caught up on.
            if rng.random_range(0..3) > 0 || map.store.len() == 0 {
                continue;
            }
            let target = (layer + 1).min(layers.len() - 1) as u32;
            told(&mut map, &token, target, 2);
            let sum = |slot| plainly(&layers, &counts[lane], map.store.map(slot), layer);
            let largest = (0..map.store.len()).map(sum).fold(0.0, f64::max);
            let slot = map.lanes[lane].matching(&map.store, layer, &mut Vec::new());
            // Of equal ones the first, up to rounding.
            assert!((sum(slot) - largest).abs() < 1e-12, "step {step}, layer {layer}: {slot}");
            assert!((0..slot).all(|before| sum(before) < largest + 1e-12));
        }
    }
    assert_eq!(map.store.len(), 4);
}

/// Each kind of sequence keeps to experts of its own: after a token it is recognised.
#[test]
fn sequences_of_a_kind_are_foreseen_and_chance_is_not_beaten() {
    let layers = Layers::new(&[16; 4], &[2; 4]);
    let mut map = store(&layers, 8);
    let kind = |kind: u32, tokens| Sequence {
        embedding: Vec::new(),
        rows: vec![[2 * kind, 2 * kind + 1].repeat(4); tokens],
    };
    let kinds: Vec<Sequence> = (0..8).map(|k| kind(k, 5)).collect();
    recall(&mut map, &layers, 1, &kinds);
    map.set_learning(false);
    // Of 5 tokens the first has nothing to go by, and its guess is the first kind's.
    assert_eq!(recall(&mut map, &layers, 1, &kinds), (8.0 * 4.0 + 1.0) / 40.0);

    let mut rng = random(1);
    let mut chance = |sequences: usize, tokens: usize| -> Vec<Sequence> {
        let mut rows = || (0..tokens).map(|_| random_row(&layers, &mut rng)).collect();
        (0..sequences).map(|_| Sequence { embedding: Vec::new(), rows: rows() }).collect()
    };
    let mut map = store(&layers, 8);
    recall(&mut map, &layers, 1, &chance(8, 50));
    map.set_learning(false);
    let share = recall(&mut map, &layers, 1, &chance(20, 100));
    assert!((share - 2.0 / 16.0).abs() < 0.01, "{share} is not chance");
}

#[test]
fn a_store_of_nothing_is_refused() {
    for store in [0, 1_000_001] {
        let refused = ActivationMapConfig { store }.check().unwrap_err();
        assert_eq!(refused, format!("store = {store} is not within 1 to 1000000 maps"));
    }
    assert!(ActivationMapConfig { store: 1 }.check().is_ok());
}
