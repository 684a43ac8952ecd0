//! Checks of expert ids: each must exist in its layer, and none may be chosen twice by one token.
//!
//! This runs over every id at every opening, so the usual widths (top-4 and top-8 at one byte an
//! id) compare a whole row in one register; what looks wrong is then looked at slowly and named.

use rayon::prelude::*;

use crate::column::IdColumn;
use crate::error::{Error, Result};
use crate::parts::PredictionData;
use crate::shape::Shape;

/// Checks ids whose first row is `first`, `chunk` values to a task.
pub(crate) fn check(shape: &Shape, ids: IdColumn<'_>, first: usize, chunk: usize) -> Result<()> {
    let row_len = shape.row_len();
    let rows = (chunk / row_len).max(1);
    let fault = match ids {
        IdColumn::U8(ids) => ids
            .par_chunks(rows * row_len)
            .enumerate()
            .find_map_first(|(task, ids)| fault_in(shape, ids, suspicious_u8, first + task * rows)),
        IdColumn::U16(ids) => {
            ids.par_chunks(rows * row_len).enumerate().find_map_first(|(task, ids)| {
                fault_in(shape, ids, suspicious_u16, first + task * rows)
            })
        }
    };
    fault.map_or(Ok(()), Err)
}

/// Checks predictions whose first entry is `first`: each id exists in its layer or is the none
/// marker. `of` is what they belong to.
pub(crate) fn check_predicted(
    shape: &Shape,
    of: &PredictionData,
    tokens: usize,
    ids: IdColumn<'_>,
    first: usize,
) -> Result<()> {
    let none = ids.none_marker();
    let (layers, width) = (shape.layers().len(), of.width);
    let bad = |entry: usize| {
        let experts = shape.layers()[(first + entry) % layers].experts;
        let chosen = ids.slice(entry * width..(entry + 1) * width);
        chosen.iter().find(|&id| id >= experts && id != none).map(|id| (first + entry, id, experts))
    };
    let entries = ids.len() / width;
    let Some((entry, id, experts)) = (0..entries).into_par_iter().find_map_first(bad) else {
        return Ok(());
    };
    Err(Error::Token {
        column: "predictions",
        token: entry / layers % tokens,
        layer: Some(entry % layers),
        problem: format!(
            "expert {id} predicted {} layers before; the layer has experts 0 to {}",
            entry / layers / tokens + 1,
            experts - 1
        ),
    })
}

/// The index of the layer that entry `rank` of a token's row belongs to.
pub(crate) fn layer_of(shape: &Shape, rank: usize) -> usize {
    (0..shape.layers().len()).rev().find(|&l| shape.row_offset(l) <= rank).unwrap_or(0)
}

fn fault_in<T: Copy + Into<u32>>(
    shape: &Shape,
    ids: &[T],
    suspicious: fn(&Shape, &[T]) -> bool,
    first_row: usize,
) -> Option<Error> {
    suspicious(shape, ids).then(|| name_fault(shape, ids, first_row)).flatten()
}

/// The slow, exact look: the first id that does not exist or is there twice.
fn name_fault<T: Copy + Into<u32>>(shape: &Shape, ids: &[T], first_row: usize) -> Option<Error> {
    for (row, ids) in ids.chunks_exact(shape.row_len()).enumerate() {
        for (index, layer) in shape.layers().iter().enumerate() {
            let chosen = &ids[shape.row_offset(index)..][..layer.top_k as usize];
            for (rank, &id) in chosen.iter().enumerate() {
                let id: u32 = id.into();
                let problem = if id >= layer.experts {
                    format!("expert {id}; the layer has experts 0 to {}", layer.experts - 1)
                } else if chosen[..rank].iter().any(|&before| before.into() == id) {
                    format!("expert {id} is chosen twice in one top-{}", layer.top_k)
                } else {
                    continue;
                };
                let (token, layer) = (first_row + row, Some(index));
                return Some(Error::Token { column: "ids", token, layer, problem });
            }
        }
    }
    None
}

fn suspicious_u8(shape: &Shape, ids: &[u8]) -> bool {
    if let Some((experts, top_k)) = shape.as_uniform() {
        let max = ids.iter().fold(0, |max: u8, &id| max.max(id));
        if u32::from(max) >= experts {
            return true;
        }
        return match top_k {
            1 => false,
            4 => ids.as_chunks::<4>().0.iter().fold(false, |any, row| any | repeats_4(*row)),
            8 => ids.as_chunks::<8>().0.iter().fold(false, |any, row| any | repeats_8(*row)),
            k => ids.chunks_exact(k as usize).any(repeats_u8),
        };
    }
    any_layer(shape, ids, repeats_u8)
}

fn suspicious_u16(shape: &Shape, ids: &[u16]) -> bool {
    let mut seen = vec![0u64; shape.max_experts().div_ceil(64) as usize];
    any_layer(shape, ids, |chosen| repeats_u16(chosen, &mut seen))
}

fn any_layer<T: Copy + Into<u32>>(
    shape: &Shape,
    ids: &[T],
    mut repeats: impl FnMut(&[T]) -> bool,
) -> bool {
    ids.chunks_exact(shape.row_len()).any(|row| {
        shape.layers().iter().enumerate().any(|(index, layer)| {
            let chosen = &row[shape.row_offset(index)..][..layer.top_k as usize];
            chosen.iter().any(|&id| id.into() >= layer.experts) || repeats(chosen)
        })
    })
}

/// Whether any byte of the word is zero (the high bit of a byte that is zero, or of one above it,
/// ends up set; none does where there is no zero byte).
fn has_zero_byte(word: u64) -> u64 {
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}

/// Two equal bytes of eight stand 1, 2, 3 or 4 places apart around the circle, so comparing the
/// word with its rotations by 1 to 4 bytes meets every pair.
fn repeats_8(row: [u8; 8]) -> bool {
    let word = u64::from_le_bytes(row);
    let rotated = |bytes: u32| has_zero_byte(word ^ word.rotate_left(8 * bytes));
    (rotated(1) | rotated(2) | rotated(3) | rotated(4)) != 0
}

/// As [`repeats_8`]; both rotations of four bytes share one 64-bit word.
fn repeats_4(row: [u8; 4]) -> bool {
    let word = u32::from_le_bytes(row);
    let pair = |bytes: u32| u64::from(word ^ word.rotate_left(8 * bytes));
    has_zero_byte(pair(1) | pair(2) << 32) != 0
}

fn repeats_u8(chosen: &[u8]) -> bool {
    let mut seen = [0u64; 4];
    chosen.iter().any(|&id| mark(&mut seen, u32::from(id)))
}

/// `seen` has a bit for each expert, all clear before and after.
fn repeats_u16(chosen: &[u16], seen: &mut [u64]) -> bool {
    if chosen.len() <= 16 {
        let twice = |(rank, id)| chosen[..rank].contains(id);
        return chosen.iter().enumerate().any(twice);
    }
    let repeats = chosen.iter().any(|&id| mark(seen, u32::from(id)));
    chosen.iter().for_each(|&id| seen[usize::from(id) / 64] = 0);
    repeats
}

/// Sets an id's bit; answers whether it was set.
fn mark(seen: &mut [u64], id: u32) -> bool {
    let (word, bit) = (id as usize / 64, 1u64 << (id % 64));
    let was = seen[word] & bit != 0;
    seen[word] |= bit;
    was
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::LayerShape;

    #[test]
    fn register_compares_agree_with_the_plain_ones() {
        // Every pair of places, made equal in an otherwise distinct row; values around 0 and 255
        // because the zero-byte trick borrows between bytes.
        for base in [0u8, 1, 127, 128, 200, 248] {
            let row: [u8; 8] = std::array::from_fn(|i| base.wrapping_add(i as u8));
            assert!(!repeats_8(row), "{row:?}");
            for (a, b) in (0..8).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let mut twice = row;
                twice[a] = twice[b];
                assert!(repeats_8(twice) && repeats_u8(&twice), "{twice:?}");
            }
            let row = [row[0], row[3], row[5], row[6]];
            assert!(!repeats_4(row), "{row:?}");
            for (a, b) in (0..4).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let mut twice = row;
                twice[a] = twice[b];
                assert!(repeats_4(twice), "{twice:?}");
            }
        }
    }

    #[test]
    fn all_small_rows_agree() {
        // All 4^4 rows of four values, and those rows twice over with an offset as eight.
        for code in 0..256u32 {
            let row: [u8; 4] = std::array::from_fn(|i| (code >> (2 * i) & 3) as u8);
            assert_eq!(repeats_4(row), repeats_u8(&row), "{row:?}");
            let eight: [u8; 8] = std::array::from_fn(|i| row[i % 4] + 4 * (i / 4) as u8);
            assert_eq!(repeats_8(eight), repeats_u8(&eight), "{eight:?}");
        }
    }

    #[test]
    fn wide_rows_use_and_clear_the_bits() {
        let mut seen = vec![0u64; 8];
        let mut row: Vec<u16> = (0..40).map(|i| i * 12).collect();
        assert!(!repeats_u16(&row, &mut seen));
        assert!(!repeats_u16(&row, &mut seen), "bits were left set");
        row[39] = row[0];
        assert!(repeats_u16(&row, &mut seen));
        assert!(seen.iter().all(|&word| word == 0));
    }

    #[test]
    fn the_first_fault_is_named() {
        let layer = |number, experts, top_k| LayerShape { number, experts, top_k, expert_bytes: 0 };
        let shape = Shape::new(vec![layer(0, 8, 2), layer(1, 4, 1)]).unwrap();
        let message = |ids: &[u8]| check(&shape, IdColumn::U8(ids), 0, 1).unwrap_err().to_string();
        assert!(check(&shape, IdColumn::U8(&[0, 7, 3, 1, 2, 0]), 0, 1).is_ok());
        assert_eq!(
            message(&[0, 7, 3, 1, 1, 4]),
            "column ids, token 1, layer 0: expert 1 is chosen twice in one top-2"
        );
        assert_eq!(
            message(&[0, 7, 4, 1, 1, 3]),
            "column ids, token 0, layer 1: expert 4; the layer has experts 0 to 3"
        );
        assert_eq!(layer_of(&shape, 1), 0);
        assert_eq!(layer_of(&shape, 2), 1);
    }
}
