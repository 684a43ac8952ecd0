//! Which tensors have which type, where a load log says only how many have each.
//!
//! A recipe whose rules give the very same table is taken at its word. Otherwise the fewest bits are taken to be where
//! they save most: gate and up projections of experts, then down projections, then the rest, embedding and head last.
//! Routed experts are most of a file, and their matrices are of one size, so their bytes are sure wherever the fewest
//! bits make up just their number.

use std::collections::BTreeMap;

use super::assign::{by_rules, keeps_drafts, variants};
use super::{Basis, GgufBytes, sum};
use crate::format::{GgmlType, Mix, Named, Recipe, Role};
use crate::model::Model;
use crate::model::tensors::{LatentTensors, Part, Tensor, tensors};

type Table = [(GgmlType, u32)];

/// The bytes of a file with this table of types.
pub fn bytes(model: &Model, mix: &Mix, table: &Table) -> GgufBytes {
    let (list, whole) = fitting(model, table);
    if whole && let Some(exact) = by_recipe(model, mix, table, &list) {
        return exact;
    }
    let types = fill(&list, table);
    let middle = sum(model, &list, &types);
    let (low, high) = bounds(&list, &types);
    GgufBytes { basis: Basis::Counts, low, high, ..middle }
}

/// The form of the file that has as many matrices as the table, or the nearest; whether it has just as many.
fn fitting(model: &Model, table: &Table) -> (Vec<Tensor>, bool) {
    let matrices = table.iter().filter(|(kind, _)| *kind != GgmlType::F32);
    let wanted = matrices.fold(0u32, |sum, (_, count)| sum.saturating_add(*count));
    let drafts = if keeps_drafts(model) { [true, false] } else { [false, true] };
    let forms = [LatentTensors::Split, LatentTensors::Joined, LatentTensors::Both];
    let mut best: Option<(u32, Vec<Tensor>)> = None;
    for drafts in drafts {
        for form in forms {
            let list = tensors(model, form, drafts);
            let matrices = list.iter().filter(|tensor| tensor.role != Role::Small).count() as u32;
            let off = matrices.abs_diff(wanted);
            if best.as_ref().is_none_or(|(least, _)| off < *least) {
                best = Some((off, list));
            }
        }
    }
    let (off, list) = best.unwrap_or_default();
    (list, off == 0)
}

/// The recipe that gives this very table: the one named, or any.
fn by_recipe(model: &Model, mix: &Mix, table: &Table, list: &[Tensor]) -> Option<GgufBytes> {
    let named = match mix.named {
        Some(Named::Recipe(recipe)) => Some(recipe),
        _ => None,
    };
    let wanted = by_size(table);
    for recipe in named.iter().chain(Recipe::ALL) {
        for shape in variants(model, list) {
            let given = sum(model, list, &by_rules(*recipe, list, &shape));
            if by_size(&given.types) == wanted {
                return Some(GgufBytes { basis: Basis::Rules, ..given });
            }
        }
    }
    None
}

/// A table without f32, by the size of blocks: what rows fall back to has changed between types of one size.
fn by_size(table: &Table) -> BTreeMap<(u64, u64), u32> {
    let mut sizes = BTreeMap::new();
    for (kind, count) in table.iter().filter(|(kind, _)| *kind != GgmlType::F32) {
        let sum: &mut u32 = sizes.entry((kind.block(), kind.block_bytes())).or_default();
        *sum = sum.saturating_add(*count);
    }
    sizes
}

/// Fewest bits to the tensors that come first here.
fn order(tensor: &Tensor) -> u32 {
    match (tensor.part, tensor.role) {
        (Part::Routed, Role::Into) => 0,
        (Part::Routed, _) => 1,
        (Part::Dense, Role::Into | Role::Down) => 2,
        (Part::Shared, _) => 3,
        (Part::Dense, Role::Query | Role::Output) => 4,
        (Part::Dense, _) => 5,
        (Part::Embedding, _) => 6,
        (Part::Outside | Part::Table | Part::Head, _) => 7,
    }
}

/// A type for every tensor: the table's, fewest bits first.
fn fill(list: &[Tensor], table: &Table) -> Vec<GgmlType> {
    let mut types = vec![GgmlType::F32; list.len()];
    let mut open: Vec<usize> =
        (0..list.len()).filter(|index| list[*index].role != Role::Small).collect();
    open.sort_by_key(|index| order(&list[*index]));
    let mut table: Vec<(GgmlType, u32)> =
        table.iter().copied().filter(|(kind, _)| *kind != GgmlType::F32).collect();
    table.sort_by(|a, b| a.0.bits().total_cmp(&b.0.bits()));
    // Rows that are not blocks of 256 have fallen back to a type of 32, if their number tells.
    let odd = |index: &usize| !list[*index].columns.is_multiple_of(256);
    let fallen = open.iter().filter(|index| odd(index)).count() as u32;
    if let Some(row) = table.iter_mut().find(|row| row.0.block() == 32 && row.1 == fallen) {
        open.retain(|index| {
            if odd(index) {
                types[*index] = row.0;
            }
            !odd(index)
        });
        row.1 = 0;
    }
    for (kind, count) in &table {
        let mut left = *count;
        open.retain(|index| {
            let takes = left > 0 && list[*index].columns.is_multiple_of(kind.block());
            if takes {
                types[*index] = *kind;
                left -= 1;
            }
            !takes
        });
    }
    // A table that has too few: the rest as the last.
    if let Some((kind, _)) = table.last() {
        for index in open {
            types[index] = *kind;
        }
    }
    types
}

/// The least and most that the types could take if they changed places: those of routed experts among themselves where
/// the fewest bits make up just their number, else all.
fn bounds(list: &[Tensor], types: &[GgmlType]) -> (u64, u64) {
    let mut groups: [Vec<(&Tensor, GgmlType)>; 2] = [Vec::new(), Vec::new()];
    let mut ends = (0u64, 0u64);
    for (tensor, kind) in list.iter().zip(types) {
        if tensor.role == Role::Small {
            let bytes = tensor.bytes(*kind);
            ends = (ends.0.saturating_add(bytes), ends.1.saturating_add(bytes));
        } else {
            groups[usize::from(tensor.part != Part::Routed)].push((tensor, *kind));
        }
    }
    let [routed, rest] = &mut groups;
    let shared = routed.iter().any(|(_, kind)| rest.iter().any(|(_, other)| other == kind));
    if shared {
        routed.append(rest);
    }
    for group in groups {
        let mut kinds: Vec<GgmlType> = group.iter().map(|(_, kind)| *kind).collect();
        let mut tensors: Vec<&Tensor> = group.into_iter().map(|(tensor, _)| tensor).collect();
        tensors.sort_by_key(|tensor| tensor.elements());
        kinds.sort_by(|a, b| b.bits().total_cmp(&a.bits()));
        let pairs = |kinds: &[GgmlType]| -> u64 {
            let bytes = tensors.iter().zip(kinds).map(|(tensor, kind)| tensor.bytes(*kind));
            bytes.fold(0, u64::saturating_add)
        };
        ends.0 = ends.0.saturating_add(pairs(&kinds));
        kinds.reverse();
        ends.1 = ends.1.saturating_add(pairs(&kinds));
    }
    ends
}
