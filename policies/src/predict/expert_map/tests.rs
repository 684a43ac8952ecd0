//! Matches, thresholds and replacement by hand, and the store against a plain reading of it.

use crate::predict::TokenPlace;
use rand::RngExt;

use super::*;
use crate::predict::testing::{Sequence, random, random_row, recall, told};
use crate::predict::vectors::first_of_largest;

fn configured(layers: &Layers, store: usize, distance: u32, map: MapOf) -> ExpertMap {
    ExpertMap::new(layers, Horizon::at(1), &ExpertMapConfig { store, distance, map })
}

fn pass(map: &mut ExpertMap, layers: &Layers, row: &[u32], weights: &[f32]) {
    for layer in 0..layers.len() as u32 {
        map.observe(&Token::new(TokenPlace { lane: 0, row: 0, layer }, layers, row, weights));
    }
}

fn sequence(
    map: &mut ExpertMap,
    layers: &Layers,
    embedding: &[f32],
    rows: &[([u32; 4], [f32; 4])],
) {
    map.begin_sequence(0, &Opening { embedding, ..Opening::default() });
    rows.iter().for_each(|(row, weights)| pass(map, layers, row, weights));
    map.end_sequence(0);
}

/// Sums 1/2, 3/4, 7/8, 1 against 1 - s.
#[test]
fn the_threshold_by_hand() {
    let row = [(4, 0.5), (1, 0.25), (2, 0.125), (3, 0.125)];
    // s = 0.3: 0.5 fits in 0.7, 0.75 does not. s = 0.25: exactly.
    assert_eq!([0.3, 0.25, 0.2, 0.125, 0.0].map(|s| chosen(&row, s, 1)), [1, 2, 2, 3, 4]);
    // At least the top-k; beyond 0 to 1 as at its ends; never more than there are.
    assert_eq!([1.0, 1.5, -1.0, 0.3].map(|s| chosen(&row, s, 2)), [2, 2, 4, 2]);
    assert_eq!((chosen(&row, 1.0, 9), chosen(&[], 0.0, 2)), (4, 0));
}

const A: ([u32; 4], [f32; 4]) = ([0, 1, 2, 3], [0.75, 0.25, 0.75, 0.25]);
const B: ([u32; 4], [f32; 4]) = ([1, 2, 0, 1], [0.5, 0.5, 0.25, 0.5]);

/// Two layers of four, top-2, d = 1. Rows 0 of the maps: (3, 1, 0, 0) / 4 and (0, 1, 1, 0) / 2. A
/// token with (0, 3, 1, 0) / 4 has cosines 3 / sqrt(10 * 10) = 0.3 and 4 / sqrt(2 * 10) = 0.894: B.
/// One with (3, 0, 0, 1): 9 / sqrt(10 * 10) = 0.9 and 0: A. Layer 1 is the first that is asked for,
/// so nothing fades; B's second rank comes first, as it weighs more.
#[test]
fn rows_so_far_are_matched_by_hand() {
    let layers = Layers::new(&[4, 4], &[2, 2]);
    let mut map = configured(&layers, 9, 1, MapOf::Iteration);
    let row = |map: &mut ExpertMap, row: &[u32], weights: &[f32]| {
        let token = Token::new(TokenPlace { lane: 0, row: 7, layer: 0 }, &layers, row, weights);
        map.observe(&token);
        told(map, &token, 1, 4)
    };
    assert_eq!(row(&mut map, &[0, 1], &[0.75, 0.25]), []);
    sequence(&mut map, &layers, &[], &[A, B]);
    map.set_learning(false);
    assert_eq!(row(&mut map, &[1, 2], &[0.75, 0.25]), [(1, 0.5), (0, 0.25)]);
    assert_eq!(row(&mut map, &[0, 3], &[0.75, 0.25]), [(2, 0.75), (3, 0.25)]);
    let token =
        Token::new(TokenPlace { lane: 0, row: 7, layer: 0 }, &layers, &[0, 3], &[0.75, 0.25]);
    let by_rows = map.lanes[0].alike_by_rows(&map.store, &token);
    assert!(by_rows.0 == 0 && (by_rows.1 - 0.9).abs() < 1e-12, "{by_rows:?}");
    // What is not a weight counts as 0; with none left everything is equally unlike.
    assert_eq!(row(&mut map, &[1, 2], &[f32::NAN, -0.5]), [(2, 0.75), (3, 0.25)]);
    assert_eq!(row(&mut map, &[1, 2], &[f32::INFINITY, 0.25]), [(1, 0.5), (0, 0.25)]);
    let token =
        Token::new(TokenPlace { lane: 0, row: 7, layer: 0 }, &layers, &[1, 2], &[0.75, 0.25]);
    assert_eq!(told(&mut map, &token, 1, 1), [(1, 0.5)], "no more than asked for");
}

/// Four layers, d = 2: layer 1 is the embedding's, faded by 1 - 1/3; layers 2 and 3 are the rows',
/// asked at layer 1 and one layer ahead at the nearest: 1 and 1 - 1/5.
#[test]
fn early_layers_are_the_embedding_s_and_later_ones_fade() {
    let layers = Layers::new(&[4; 4], &[1; 4]);
    let horizon = Horizon { nearest: 1, farthest: 2 };
    let config = ExpertMapConfig { distance: 2, ..ExpertMapConfig::default() };
    let mut map = ExpertMap::new(&layers, horizon, &config);
    sequence(&mut map, &layers, &[1.0, 0.0], &[([0, 0, 0, 0], [1.0; 4])]);
    sequence(&mut map, &layers, &[1.0, 1.0], &[([1, 1, 1, 1], [1.0; 4])]);
    map.set_learning(false);
    let mut ask = |embedding: &[f32], target: u32| {
        map.begin_sequence(0, &Opening { embedding, ..Opening::default() });
        for layer in 0..2 {
            map.observe(&Token::new(
                TokenPlace { lane: 0, row: 0, layer },
                &layers,
                &[1, 1],
                &[0.5, 0.5],
            ));
        }
        let layer = if target == 1 { 0 } else { 1 };
        told(
            &mut map,
            &Token::new(TokenPlace { lane: 0, row: 0, layer }, &layers, &[1, 1], &[0.5, 0.5]),
            target,
            4,
        )
    };
    assert_eq!(ask(&[5.0, 1.0], 1), [(0, 2.0 / 3.0)]);
    assert_eq!(ask(&[0.0, 3.0], 1), [(1, 2.0 / 3.0)]);
    assert_eq!((ask(&[5.0, 1.0], 2), ask(&[5.0, 1.0], 3)), (vec![(1, 1.0)], vec![(1, 0.8)]));
    // No embedding, or none that points anywhere: nothing for layer 1, the rows as before.
    for none in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0]] {
        assert_eq!((ask(none, 1), ask(none, 2)), (vec![], vec![(1, 1.0)]));
    }
}

/// A sequence's mean has more experts than a token: here the threshold adds to the top-k. Layer 1:
/// expert 2 in both tokens, 0 and 3 in one each: (1/4, 0, 1/2, 1/4).
#[test]
fn the_mean_of_a_sequence_and_its_threshold() {
    let layers = Layers::new(&[4, 4], &[2, 2]);
    let mut map = configured(&layers, 9, 1, MapOf::Sequence);
    let half = [0.5; 4];
    sequence(&mut map, &layers, &[], &[([0, 1, 2, 0], half), ([0, 1, 2, 3], half)]);
    map.set_learning(false);
    let mut ask = |row: &[u32]| {
        let token = Token::new(TokenPlace { lane: 0, row: 0, layer: 0 }, &layers, row, &[0.5, 0.5]);
        map.observe(&token);
        told(&mut map, &token, 1, 4)
    };
    // Cosine 1: the top-k. Cosine 1/2: sums 1/2, then 3/4 > 1/2: the top-k. Cosine 0: all.
    assert_eq!(ask(&[0, 1]), [(2, 0.5), (0, 0.25)]);
    assert_eq!(ask(&[0, 2]), [(2, 0.5), (0, 0.25)]);
    assert_eq!(ask(&[2, 3]), [(2, 0.5), (0, 0.25), (3, 0.25)]);
}

/// w = 1/2. Against X the stored A, B have cosines of embeddings 1 and 0, of maps 0 and 1: 1/2
/// each, the lower slot goes. With w = 0 (distance 0) the same map goes, with w = 1 the same prompt.
#[test]
fn the_most_redundant_is_replaced() {
    let layers = Layers::new(&[4, 4], &[2, 2]);
    let a = ([0, 1, 0, 1], [0.5; 4]);
    let b = ([2, 3, 2, 3], [0.5; 4]);
    for (distance, gone) in [(0, 1), (1, 0), (2, 0), (99, 0)] {
        let mut map = configured(&layers, 2, distance, MapOf::Iteration);
        sequence(&mut map, &layers, &[1.0, 0.0], &[a]);
        sequence(&mut map, &layers, &[0.0, 2.0], &[b]);
        sequence(&mut map, &layers, &[3.0, 0.0], &[b]);
        assert_eq!(map.store.len(), 2);
        // What is left of a and of the first b.
        let left = [map.store.row(0, 0)[0].0, map.store.row(1, 0)[0].0];
        let expected = if gone == 0 { [2, 2] } else { [0, 2] };
        assert_eq!(left, expected, "distance {distance}");
        map.set_learning(false);
        sequence(&mut map, &layers, &[1.0, 0.0], &[a, a, a]);
        assert_eq!([map.store.row(0, 0)[0].0, map.store.row(1, 0)[0].0], expected);
    }
}

/// A token's rows, as dense as the definition has them.
fn dense(layers: &Layers, row: &[u32], weights: &[f32], decided: usize) -> Vec<f64> {
    let mut rows = vec![0.0; layers.total_experts()];
    for layer in 0..decided {
        for place in layers.places(layer) {
            rows[layers.keys(layer).start + row[place] as usize] = f64::from(weights[place]);
        }
    }
    rows
}

fn cosine(one: &[f64], other: &[f64]) -> f64 {
    let product = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    };
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

/// Three lanes whose tokens take turns layer by layer, a store of five that is always being
/// replaced: each match has the largest cosine, and what is stored is what was seen.
#[test]
fn what_is_kept_up_is_what_the_definition_says() {
    let layers = Layers::new(&[5, 7, 6, 4], &[2, 3, 2, 1]);
    let mut rng = random(11);
    for same_row_number in [false, true] {
        let mut map = configured(&layers, 5, 1, MapOf::Iteration);
        let mut stored: Vec<(usize, Vec<f64>)> = Vec::new();
        let embeddings: Vec<Vec<f32>> =
            (0..3).map(|_| (0..11).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
        for (lane, embedding) in (0..).zip(&embeddings) {
            map.begin_sequence(lane, &Opening { embedding, ..Opening::default() });
        }
        let likeness = |one: usize, other: usize| {
            let wide = |lane: usize| embeddings[lane].iter().map(|v| f64::from(*v)).collect();
            let (one, other): (Vec<f64>, Vec<f64>) = (wide(one), wide(other));
            cosine(&one, &other)
        };
        for step in 0..60 {
            let tokens: Vec<(Vec<u32>, Vec<f32>)> = (0..3)
                .map(|_| {
                    let weights = (0..8).map(|_| rng.random_range(0.1..1.0)).collect();
                    (random_row(&layers, &mut rng), weights)
                })
                .collect();
            for layer in 0..4 {
                for (lane, (row, weights)) in tokens.iter().enumerate() {
                    let number = if same_row_number { 0 } else { 3 * step + lane };
                    let place = TokenPlace { lane: lane as u32, row: number, layer: layer as u32 };
                    let token = Token::new(place, &layers, row, weights);
                    map.observe(&token);
                    let own = dense(&layers, row, weights, layer + 1);
                    if layer < 3 && !stored.is_empty() {
                        told(&mut map, &token, layer as u32 + 1, 1);
                        let end = layers.keys(layer).end;
                        let best = stored.iter().map(|(_, map)| cosine(&map[..end], &own[..end]));
                        let best = best.fold(0.0, f64::max);
                        let (slot, score) = map.lanes[lane].alike_by_rows(&map.store, &token);
                        assert!((score - best).abs() < 1e-12, "step {step}: {score} not {best}");
                        let found = cosine(&stored[slot].1[..end], &own[..end]);
                        assert!((found - best).abs() < 1e-12);
                    }
                    if layer == 3 && stored.len() < 5 {
                        stored.push((lane, own));
                    } else if layer == 3 {
                        let redundant = |(other, map): &(usize, Vec<f64>)| {
                            0.25 * likeness(lane, *other) + 0.75 * cosine(map, &own)
                        };
                        let all: Vec<f64> = stored.iter().map(redundant).collect();
                        let (slot, _) = first_of_largest(all);
                        stored[slot] = (lane, own);
                    }
                }
            }
            for (slot, (_, expected)) in stored.iter().enumerate() {
                let mut kept = vec![0.0; layers.total_experts()];
                for &(key, probability) in (0..4).flat_map(|layer| map.store.row(slot, layer)) {
                    kept[key as usize] = f64::from(probability);
                }
                assert_eq!(&kept, expected, "step {step}, slot {slot}");
            }
        }
    }
}

/// Several tokens of one sequence, layer by layer: each is matched by its own rows.
#[test]
fn tokens_of_a_prompt_that_take_turns_are_kept_apart() {
    let layers = Layers::new(&[4; 3], &[1; 3]);
    let mut map = configured(&layers, 9, 0, MapOf::Iteration);
    (0..4).for_each(|e| pass(&mut map, &layers, &[e; 3], &[1.0; 3]));
    map.set_learning(false);
    for layer in 0..2 {
        for turn in [0, 1] {
            for e in 0..4 {
                let row = [e; 2];
                let token = Token::new(
                    TokenPlace { lane: 0, row: e as usize, layer },
                    &layers,
                    &row,
                    &[1.0; 2],
                );
                if turn == 0 {
                    map.observe(&token);
                } else {
                    assert_eq!(told(&mut map, &token, layer + 1, 4), [(e, 1.0)]);
                }
            }
        }
    }
}

/// Sixteen kinds of token are told apart by their first layer, with one weight and with another.
#[test]
fn a_fixed_routing_is_foreseen_and_chance_is_not_beaten() {
    let layers = Layers::new(&[16; 4], &[2; 4]);
    for map in [MapOf::Iteration, MapOf::Sequence] {
        let config = ExpertMapConfig { map, ..ExpertMapConfig::default() };
        let sequences = |count: usize, row: &mut dyn FnMut(usize) -> Vec<u32>| -> Vec<Sequence> {
            let mut one = |kind: usize| Sequence {
                embedding: (0..8).map(|place| f32::from(u8::from(place == kind % 8))).collect(),
                rows: (0..20).map(|_| row(kind)).collect(),
            };
            (0..count).map(&mut one).collect()
        };
        let mut fixed = |kind: usize| {
            let first = 2 * (kind as u32 % 8);
            (0..4)
                .flat_map(|layer| [(first + 3 * layer) % 16, (first + 1 + 3 * layer) % 16])
                .collect()
        };
        // Layers 1 to 3 by the embedding (d = 6), then by the rows (d = 1).
        for distance in [6, 1] {
            let mut map =
                ExpertMap::new(&layers, Horizon::at(1), &ExpertMapConfig { distance, ..config });
            recall(&mut map, &layers, 1, &sequences(8, &mut fixed));
            map.set_learning(false);
            let share = recall(&mut map, &layers, 1, &sequences(8, &mut fixed));
            assert_eq!(share, 1.0, "{config:?}, distance {distance}");
        }
        for distance in [6, 1] {
            let mut rng = random(2);
            let mut noise = |_| random_row(&layers, &mut rng);
            let mut map =
                ExpertMap::new(&layers, Horizon::at(1), &ExpertMapConfig { distance, ..config });
            recall(&mut map, &layers, 1, &sequences(10, &mut noise));
            map.set_learning(false);
            let share = recall(&mut map, &layers, 1, &sequences(100, &mut noise));
            assert!((share - 0.125).abs() < 0.012, "{config:?}, {distance}: {share} is not chance");
        }
    }
}

#[test]
fn a_store_of_nothing_is_refused() {
    assert!(ExpertMapConfig { store: 0, ..ExpertMapConfig::default() }.check().is_err());
    assert!(ExpertMapConfig::default().check().is_ok());
}
