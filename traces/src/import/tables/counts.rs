//! Counts as arrays: `expert_load` and its like, `[layers, experts]` or `[passes, layers, experts]`.

use super::names::{is_counts, layer_of};
use super::open::{Node, open};
use super::store::{Axes, Store};
use crate::error::Result;
use crate::import::input::Input;

/// Experts over all layers, at most.
const MOST: usize = 1 << 20;

/// Uses of each layer's experts, and the tokens where the file says how many.
#[derive(Debug, Default)]
pub(in crate::import) struct Counted {
    /// Numbers of the layers, rising.
    pub(in crate::import) numbers: Vec<u32>,
    pub(in crate::import) layers: Vec<Vec<u64>>,
    pub(in crate::import) tokens: Option<u64>,
}

/// Adds up the counts of a file.
pub(in crate::import) fn counts(input: &Input<'_>) -> Result<Counted> {
    let mut store = Store::new();
    let node = open(input, &mut store)?;
    let refuse = |problem: String| input.error("counts", problem);
    if let Some(layers) = by_layer(&node) {
        return one_each(input, &mut store, &layers);
    }
    let table = match &node {
        Node::Table(table) => Some(*table),
        Node::Map(entries) => entries.iter().find_map(|(name, node)| match node {
            Node::Table(table) if is_counts(name) => Some(*table),
            _ => None,
        }),
        _ => None,
    };
    let table = table.ok_or_else(|| refuse("no array named expert_load or so".to_owned()))?;
    let shape = store.tables[table].shape.clone();
    let axes = match shape[..] {
        [_, _] => Axes { tokens: 0, layers: None, width: Some(1) },
        [_, _, _] => Axes { tokens: 0, layers: Some(1), width: Some(2) },
        _ => {
            let problem =
                format!("{shape:?}, expected [layers, experts] or [passes, layers, experts]");
            return Err(refuse(problem));
        }
    };
    let view = store.view(table, axes, &[]);
    let passes = shape.len() == 3;
    let layers = if passes { view.layers } else { view.tokens };
    if layers.checked_mul(view.width).is_none_or(|all| all == 0 || all > MOST) {
        return Err(refuse(format!("{shape:?}: no model has so many layers and experts")));
    }
    let mut sums = vec![vec![0u64; view.width]; layers];
    let row = view.layers * view.width;
    let (each, mut rows) = (Store::block(row), Vec::new());
    for first in (0..view.tokens).step_by(each) {
        store.read(&view, first, each.min(view.tokens - first), &mut rows)?;
        for (index, counts) in rows.chunks_exact(view.width).enumerate() {
            let layer = if passes { index % layers } else { first + index };
            for (sum, &count) in sums[layer].iter_mut().zip(counts) {
                let count = whole(count).ok_or_else(|| refuse(no_count(layer, count)))?;
                *sum = sum.saturating_add(count);
            }
        }
    }
    let stated = ["num_tokens", "tokens", "total_tokens"].iter().find_map(|key| node.get(key));
    let tokens = match stated {
        Some(&Node::Int(tokens)) => u64::try_from(tokens).ok(),
        _ => None,
    };
    let numbers = (0..sums.len() as u32).collect();
    Ok(Counted { numbers, layers: sums, tokens })
}

/// An array of counts for each layer, by its number: `{"expert_counts": {3: ..}}`, or names with
/// the layers' numbers.
fn by_layer(node: &Node) -> Option<Vec<(u32, usize)>> {
    let Node::Map(entries) = node else { return None };
    let inner = entries.iter().find_map(|(name, node)| match node {
        Node::Map(layers) if is_counts(name) => Some(layers.iter().collect::<Vec<_>>()),
        _ => None,
    });
    let named = || entries.iter().filter(|(name, _)| is_counts(name)).collect::<Vec<_>>();
    let mut layers = Vec::new();
    for (name, node) in inner.unwrap_or_else(named) {
        let Node::Table(table) = node else { continue };
        layers.push((layer_of(name)?.layer, *table));
    }
    layers.sort_unstable();
    (!layers.is_empty()).then_some(layers)
}

/// Counts of layers that have an array each, `[experts]` or `[passes, experts]`.
fn one_each(input: &Input<'_>, store: &mut Store<'_>, layers: &[(u32, usize)]) -> Result<Counted> {
    let refuse = |problem: String| input.error("counts", problem);
    let mut all = Counted::default();
    let mut cells = 0;
    for &(layer, table) in layers {
        let shape = store.tables[table].shape.clone();
        let experts = shape.last().copied().unwrap_or(0);
        cells += experts;
        if experts == 0 || shape.len() > 2 || cells > MOST {
            return Err(refuse(format!("layer {layer} is {shape:?}, expected [experts]")));
        }
        let axes = match shape[..] {
            [_] => Axes { tokens: 0, layers: None, width: None },
            _ => Axes { tokens: 0, layers: None, width: Some(1) },
        };
        let view = store.view(table, axes, &[]);
        let mut sums = vec![0u64; experts];
        let (each, mut rows) = (Store::block(experts), Vec::new());
        for first in (0..view.tokens).step_by(each) {
            store.read(&view, first, each.min(view.tokens - first), &mut rows)?;
            for (index, &count) in rows.iter().enumerate() {
                let expert = (first * view.width + index) % experts;
                sums[expert] = sums[expert]
                    .saturating_add(whole(count).ok_or_else(|| refuse(no_count(layer, count)))?);
            }
        }
        all.numbers.push(layer);
        all.layers.push(sums);
    }
    Ok(all)
}

fn whole(count: f64) -> Option<u64> {
    let is_count = count.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&count);
    is_count.then_some(count as u64)
}

fn no_count(layer: impl std::fmt::Display, count: f64) -> String {
    format!(
        "layer {layer} has {count}, which is no count: shares and scores do not say how many \
         selections they stand for"
    )
}
