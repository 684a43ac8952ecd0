//! Dictionaries: which entry is which layer, and which has the weights.

use super::names;
use super::open::Node;
use super::plan::{Pass, Passes, Planner};
use crate::error::Result;

impl Planner<'_, '_> {
    /// A dictionary's: its layers by their numbers, or the array that its name says is the ids.
    pub(super) fn map(&mut self, node: &Node, entries: &[(String, Node)]) -> Result<Vec<Passes>> {
        // A model's own weights are no recording of anything.
        let parameter = |name: &str| name.ends_with(".weight") || name.ends_with(".bias");
        let useful = |(name, node): &&(String, Node)| node.has_table() && !parameter(name);
        let entries: Vec<&(String, Node)> = entries.iter().filter(useful).collect();
        if entries.is_empty() {
            let found = self.found(node);
            return self.refuse(format!("no recorded array is in it; found {found}"));
        }
        let named = |test: fn(&str) -> bool| entries.iter().find(|(name, _)| test(name));
        // Modules are often called experts, and arrays without a name arr_0, arr_1, ...
        if self.are_layers(&entries)
            && let Some(numbers) = self.layered(&entries)?
        {
            return self.sorted(&numbers, &entries);
        }
        let main = named(names::is_ids).or_else(|| named(names::is_scores));
        if let Some((_, ids)) = main {
            let weights = named(names::is_weights).map(|(_, node)| node);
            return self.weighted(ids, weights);
        }
        let layered: Vec<&(String, Node)> =
            entries.iter().filter(|(name, _)| !names::is_weights(name)).copied().collect();
        if let Some(numbers) = self.layered(&layered)? {
            return self.sorted(&numbers, &layered);
        }
        if let [(_, only)] = entries[..] {
            return self.sequences(only);
        }
        let found = self.found(node);
        self.refuse(format!(
            "nothing says which of its arrays are the experts ({found}): name one topk_ids or \
             router_logits, or one a layer layer_0, layer_1, ..."
        ))
    }

    /// Layers in the order of their numbers.
    fn sorted(&mut self, numbers: &[u32], layers: &[&(String, Node)]) -> Result<Vec<Passes>> {
        let mut order: Vec<usize> = (0..layers.len()).collect();
        order.sort_by_key(|&at| numbers[at]);
        let numbers: Vec<u32> = order.iter().map(|&at| numbers[at]).collect();
        let nodes: Vec<&Node> = order.iter().map(|&at| &layers[at].1).collect();
        self.by_layer(&numbers, &nodes, true)
    }

    /// Whether all entries are arrays of one kind, `[tokens, numbers]` under one name with another
    /// number in each: layers, whatever the name says beside.
    fn are_layers(&self, entries: &[&(String, Node)]) -> bool {
        let table = |node: &Node| match node {
            Node::Table(table) => Some(&self.store.tables[*table]),
            _ => None,
        };
        let Some(first) = entries.first().and_then(|(_, node)| table(node)) else { return false };
        let alike = |node: &Node| {
            table(node)
                .is_some_and(|table| table.element == first.element && table.shape == first.shape)
        };
        entries.len() > 1
            && first.shape.len() == 2
            && entries.iter().all(|(_, node)| alike(node))
            && names::layers_of(entries.iter().map(|(name, _)| name.as_str()))
                .is_some_and(|all| all.iter().all(|name| name.rest == all[0].rest))
    }

    /// The layers' numbers, where the entries are layers.
    fn layered(&self, entries: &[&(String, Node)]) -> Result<Option<Vec<u32>>> {
        let Some(found) = names::layers_of(entries.iter().map(|(name, _)| name.as_str())) else {
            return Ok(None);
        };
        let mut numbers: Vec<u32> = found.iter().map(|name| name.layer).collect();
        if entries.len() == 1 && !found[0].rest.contains("ayer") && found[0].rest != "#" {
            return Ok(None);
        }
        let given = numbers.clone();
        numbers.sort_unstable();
        if let Some(twice) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            let names: Vec<&str> = entries
                .iter()
                .zip(&given)
                .filter(|(_, number)| **number == twice[0])
                .map(|(entry, _)| entry.0.as_str())
                .collect();
            let names = names.join(" and ");
            return self.refuse(format!("{names} are both layer {}", twice[0]));
        }
        Ok(Some(given))
    }

    /// Ids with weights beside them.
    fn weighted(&mut self, ids: &Node, weights: Option<&Node>) -> Result<Vec<Passes>> {
        let mut sequences = self.sequences(ids)?;
        let Some(weights) = weights else { return Ok(sequences) };
        let (numbers, assumed) = (self.plan.numbers.clone(), self.plan.assumed);
        let beside = self.sequences(weights);
        (self.plan.numbers, self.plan.assumed) = (numbers, assumed);
        let fits = beside.as_ref().is_ok_and(|beside| {
            let extent = |passes: &[Pass]| -> Vec<(usize, usize, usize)> {
                passes
                    .iter()
                    .flat_map(|pass| &pass.views)
                    .map(|view| (view.tokens, view.layers, view.width))
                    .collect()
            };
            beside.len() == sequences.len()
                && beside.iter().zip(&sequences).all(|(a, b)| extent(a) == extent(b))
        });
        let Some(beside) = beside.ok().filter(|_| fits) else {
            self.plan
                .notes
                .push("weights are left out: they have another shape than ids".to_owned());
            return Ok(sequences);
        };
        for (passes, beside) in sequences.iter_mut().zip(beside) {
            for (pass, beside) in passes.iter_mut().zip(beside) {
                pass.weights = beside.views;
            }
        }
        Ok(sequences)
    }
}
