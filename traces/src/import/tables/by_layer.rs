//! One entry a layer, put together again.

use super::names;
use super::open::Node;
use super::plan::{Passes, Planner, whole};
use super::store::Axes;
use crate::error::Result;

/// Layers that a model may have.
const MAX_LAYERS: usize = 1 << 12;

impl Planner<'_, '_> {
    /// One entry a layer: an array, ids with their weights, or a list of passes.
    pub(super) fn by_layer(
        &mut self,
        numbers: &[u32],
        nodes: &[&Node],
        named: bool,
    ) -> Result<Vec<Passes>> {
        if nodes.len() > MAX_LAYERS {
            return self
                .refuse(format!("{} layers; at most {MAX_LAYERS} are possible", nodes.len()));
        }
        let mut all: Vec<Passes> = Vec::new();
        for (index, (node, number)) in nodes.iter().zip(numbers).enumerate() {
            let layer = self.layer(node)?;
            if index == 0 {
                all = layer;
                continue;
            }
            let extent = |layer: &[Passes]| -> Vec<Vec<usize>> {
                layer.iter().map(|passes| passes.iter().map(|pass| pass.tokens).collect()).collect()
            };
            let (before, found) = (extent(&all), extent(&layer));
            if before != found {
                let sum = |all: &[Vec<usize>]| all.iter().flatten().sum::<usize>();
                return self.refuse(format!(
                    "layer {number} has {} tokens in {} passes, layer {} has {} in {}: parts of one \
                     recording have the same tokens",
                    sum(&found),
                    found.iter().map(Vec::len).sum::<usize>(),
                    numbers[0],
                    sum(&before),
                    before.iter().map(Vec::len).sum::<usize>()
                ));
            }
            for (passes, layer) in all.iter_mut().zip(layer) {
                for (pass, layer) in passes.iter_mut().zip(layer) {
                    pass.views.extend(layer.views);
                    pass.weights.extend(layer.weights);
                }
            }
        }
        if named {
            self.plan.numbers = Some(numbers.to_vec());
        }
        Ok(all)
    }

    /// Sequences and passes of one layer.
    fn layer(&mut self, node: &Node) -> Result<Vec<Passes>> {
        match node {
            Node::Table(table) => {
                let shape = &self.store.tables[*table].shape;
                let axes = |tokens, width| Axes { tokens, layers: None, width };
                let view =
                    |axes, at: &[(usize, usize)]| vec![whole(self.store.view(*table, axes, at))];
                match shape[..] {
                    [_] => Ok(vec![view(axes(0, None), &[])]),
                    [_, _] => Ok(vec![view(axes(0, Some(1)), &[])]),
                    [batch, _, _] => {
                        let each = |index| view(axes(1, Some(2)), &[(0, index)]);
                        Ok((0..batch).map(each).collect())
                    }
                    _ => {
                        let problem =
                            format!("{shape:?}; a layer is [tokens, top-k] or [tokens, experts]");
                        self.refuse(problem)
                    }
                }
            }
            Node::Map(entries) => {
                let named = |test: fn(&str) -> bool| {
                    entries.iter().find(|(name, node)| test(name) && node.has_table())
                };
                let main = named(names::is_ids).or_else(|| named(names::is_scores));
                let Some((_, ids)) = main else {
                    let found = self.found(node);
                    return self
                        .refuse(format!("a layer without topk_ids or router_logits: {found}"));
                };
                let mut all = self.layer(ids)?;
                if let Some((_, weights)) = named(names::is_weights) {
                    let beside = self.layer(weights)?;
                    for (passes, beside) in all.iter_mut().zip(beside) {
                        for (pass, beside) in passes.iter_mut().zip(beside) {
                            if pass.tokens == beside.tokens {
                                pass.weights = beside.views;
                            }
                        }
                    }
                }
                Ok(all)
            }
            Node::List(nodes) => {
                let mut passes = Vec::new();
                for node in nodes.iter().filter(|node| node.has_table()) {
                    let found = self.layer(node)?;
                    passes.extend(found.into_iter().flatten());
                }
                self.plan.steps |= passes.len() > 1;
                Ok(vec![passes])
            }
            _ => self.refuse("a layer without an array"),
        }
    }
}
