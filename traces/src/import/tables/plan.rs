//! From a tree of arrays to passes over the layers: which array is which layer, which axis is what.

use super::names;
use super::open::Node;
use super::store::{Axes, Store, View};
use crate::error::{Error, Result};
use crate::import::input::Input;

/// Layers that a model may have.
const MAX_LAYERS: usize = 1 << 12;

/// Tokens that ran through all layers.
#[derive(Debug, Clone, Default)]
pub(super) struct Pass {
    /// Layers in order: one view of all of them, or one for each.
    pub(super) views: Vec<View>,
    /// Weights of the same tokens, where there are some.
    pub(super) weights: Vec<View>,
    pub(super) tokens: usize,
}

/// The passes of a sequence.
pub(super) type Passes = Vec<Pass>;

/// What the inputs hold.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) sequences: Vec<Passes>,
    /// Numbers of the layers, where names say them.
    pub(super) numbers: Option<Vec<u32>>,
    /// Each pass is a forward pass of the engine.
    pub(super) steps: bool,
    /// Axes that were taken as documented, without anything that says so.
    pub(super) assumed: Option<[usize; 3]>,
    pub(super) notes: Vec<String>,
}

/// What decides where the arrays do not say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    pub(super) layers: Option<usize>,
    pub(super) top_k: Option<usize>,
    /// Nothing documents the order of axes (lists of JSON).
    pub(super) undocumented: bool,
}

/// Makes a plan of one file.
pub(super) struct Planner<'p, 'a> {
    pub(super) input: &'p Input<'a>,
    pub(super) store: &'p Store<'a>,
    pub(super) told: Told,
    pub(super) plan: Plan,
}

impl Planner<'_, '_> {
    fn refuse<T>(&self, problem: impl Into<String>) -> Result<T> {
        Err(self.input.error("arrays", problem))
    }

    /// What is in a tree, for messages.
    fn found(&self, node: &Node) -> String {
        let entry = |name: &str, node: &Node| match node {
            Node::Table(table) => {
                let table = &self.store.tables[*table];
                format!("{name} {:?} of {}", table.shape, table.element.name())
            }
            Node::List(nodes) => format!("{name} (a list of {})", nodes.len()),
            Node::Map(entries) => format!("{name} (a dictionary of {})", entries.len()),
            _ => name.to_owned(),
        };
        let listed: Vec<String> = match node {
            Node::Map(entries) => entries.iter().take(8).map(|(n, node)| entry(n, node)).collect(),
            Node::List(nodes) => nodes.iter().take(4).map(|node| entry("", node)).collect(),
            node => vec![entry("", node)],
        };
        listed.join(", ").trim().to_owned()
    }

    /// The passes of each sequence in a tree.
    pub(super) fn sequences(&mut self, node: &Node) -> Result<Vec<Passes>> {
        match node {
            Node::Table(table) => self.array(*table),
            Node::List(nodes) => self.list(node, nodes),
            Node::Map(entries) => self.map(node, entries),
            _ => self.refuse("no array of numbers is in it"),
        }
    }

    /// One array of everything.
    fn array(&mut self, table: usize) -> Result<Vec<Passes>> {
        let shape = self.store.tables[table].shape.clone();
        let Told { layers, top_k, undocumented } = self.told;
        let axes = |tokens, layers, width| Axes { tokens, layers, width: Some(width) };
        let view = match shape[..] {
            [_, columns] => match (layers, top_k) {
                (Some(layers), Some(k)) if layers > 1 && layers.checked_mul(k) == Some(columns) => {
                    self.store.folded(table, layers, k)
                }
                _ => self.store.view(table, axes(0, None, 1), &[]),
            },
            [tokens, middle, width] => {
                let swapped = layers.is_some_and(|n| n != middle && n == tokens);
                if undocumented {
                    self.settle(layers, tokens, middle, width)?;
                }
                if layers.is_none() {
                    self.plan.assumed = Some([tokens, middle, width]);
                }
                let (token, layer) = if swapped { (1, 0) } else { (0, 1) };
                self.store.view(table, axes(token, Some(layer), 2), &[])
            }
            [batch, _, _, _] => {
                let each = |index| {
                    let view = self.store.view(table, axes(1, Some(2), 3), &[(0, index)]);
                    vec![whole(view)]
                };
                return Ok((0..batch).map(each).collect());
            }
            _ => {
                return self.refuse(format!(
                    "shape {shape:?}; [tokens, top-k] of one layer, [tokens, layers, top-k] or \
                     [sequences, tokens, layers, top-k] can be read (scores: experts in place of \
                     top-k)"
                ));
            }
        };
        Ok(vec![vec![whole(view)]])
    }

    /// Whether bare lists can be told: their outer two axes have different lengths, and the
    /// caller says how many layers there are.
    fn settle(&self, layers: Option<usize>, outer: usize, inner: usize, k: usize) -> Result<()> {
        let lists = format!("lists [{outer}][{inner}][{k}]");
        if outer == inner {
            return self.refuse(format!(
                "{lists}: nothing tells tokens from layers, as there are as many; write \
                 {{\"layer_0\": [[ids], ...], ...}} or one line a token with its layers by name"
            ));
        }
        match layers {
            Some(layers) if layers == inner || layers == outer => Ok(()),
            Some(layers) => self.refuse(format!(
                "{lists}: `ImportOptions::layers` says {layers} layers, neither is {layers} long"
            )),
            None => self.refuse(format!(
                "{lists}: nothing says whether the {outer} or the {inner} are layers: give \
                 `ImportOptions::layers` {inner} for [token][layer][expert], {outer} for \
                 [layer][token][expert]"
            )),
        }
    }

    fn list(&mut self, node: &Node, nodes: &[Node]) -> Result<Vec<Passes>> {
        let nodes: Vec<&Node> = nodes.iter().filter(|node| node.has_table()).collect();
        let Some(first) = nodes.first() else { return self.refuse("an empty list") };
        if nodes.iter().all(|node| matches!(node, Node::Table(_))) {
            let axes = |node: &&Node| self.shape(node).len();
            let all = |wanted: usize| nodes.iter().all(|node| axes(node) == wanted);
            // Whole requests: [tokens, layers, top-k] each. Scores with a batch are by layer.
            let scores = self.is_float(first);
            if all(3) && !scores && nodes.len() > 1 && !self.batched(&nodes) {
                return self.each(&nodes);
            }
            let numbers: Vec<u32> = (0..nodes.len() as u32).collect();
            return self.by_layer(&numbers, &nodes, false);
        }
        // One list of layers for each forward pass, as a model's generate() returns them.
        if nodes.iter().all(|node| matches!(node, Node::List(_))) {
            let mut passes = Vec::new();
            for node in &nodes {
                let mut found = self.sequences(node)?;
                if found.len() != 1 {
                    return self.refuse("passes with several sequences each");
                }
                passes.append(&mut found[0]);
            }
            self.plan.steps = true;
            return Ok(vec![passes]);
        }
        if nodes.iter().all(|node| matches!(node, Node::Map(_))) {
            return self.each(&nodes);
        }
        let found = self.found(node);
        self.refuse(format!("a list of different things ({found})"))
    }

    /// A sequence or several for each entry.
    fn each(&mut self, nodes: &[&Node]) -> Result<Vec<Passes>> {
        let mut all = Vec::new();
        for node in nodes {
            let before = self.plan.numbers.take();
            all.append(&mut self.sequences(node)?);
            if before.is_some() && before != self.plan.numbers {
                return self.refuse(format!(
                    "layers {:?} after layers {:?}; one trace has one model",
                    self.plan.numbers.as_deref().unwrap_or_default(),
                    before.as_deref().unwrap_or_default()
                ));
            }
        }
        Ok(all)
    }

    fn map(&mut self, node: &Node, entries: &[(String, Node)]) -> Result<Vec<Passes>> {
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

    fn shape(&self, node: &Node) -> &[usize] {
        match node {
            Node::Table(table) => &self.store.tables[*table].shape,
            _ => &[],
        }
    }

    fn is_float(&self, node: &Node) -> bool {
        matches!(node, Node::Table(table) if self.store.tables[*table].element.is_float())
    }

    /// Whether arrays of three axes are all of the same batch of one.
    fn batched(&self, nodes: &[&Node]) -> bool {
        nodes.iter().all(|node| self.shape(node)[0] == 1)
            && nodes.windows(2).all(|pair| self.shape(pair[0]) == self.shape(pair[1]))
    }

    /// One entry a layer: an array, ids with their weights, or a list of passes.
    fn by_layer(&mut self, numbers: &[u32], nodes: &[&Node], named: bool) -> Result<Vec<Passes>> {
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

fn whole(view: View) -> Pass {
    Pass { views: vec![view], weights: Vec::new(), tokens: view.tokens }
}

/// Numbers and widths of all layers of a pass, checked against the passes before it.
pub(super) fn widths(pass: &Pass) -> Vec<usize> {
    pass.views.iter().flat_map(|view| std::iter::repeat_n(view.width, view.layers)).collect()
}

/// An error of a whole plan.
pub(super) fn refuse(input: &Input<'_>, problem: impl Into<String>) -> Error {
    input.error("arrays", problem)
}
