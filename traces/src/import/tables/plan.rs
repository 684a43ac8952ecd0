//! From a tree of arrays to passes over the layers: which array is which layer, which axis is what.

use super::open::Node;
use super::store::{Axes, Store, View};
use crate::error::{Error, Result};
use crate::import::input::Input;
use crate::shape::MAX_LAYERS;

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
    pub(super) fn refuse<T>(&self, problem: impl Into<String>) -> Result<T> {
        Err(self.input.error("arrays", problem))
    }

    /// What is in a tree, for messages.
    pub(super) fn found(&self, node: &Node) -> String {
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

    pub(super) fn shape(&self, node: &Node) -> &[usize] {
        match node {
            Node::Table(table) => &self.store.tables[*table].shape,
            _ => &[],
        }
    }

    pub(super) fn is_float(&self, node: &Node) -> bool {
        matches!(node, Node::Table(table) if self.store.tables[*table].element.is_float())
    }

    /// Whether arrays of three axes are all of the same batch of one.
    fn batched(&self, nodes: &[&Node]) -> bool {
        nodes.iter().all(|node| self.shape(node)[0] == 1)
            && nodes.windows(2).all(|pair| self.shape(pair[0]) == self.shape(pair[1]))
    }
}

pub(super) fn whole(view: View) -> Pass {
    Pass { views: vec![view], weights: Vec::new(), tokens: view.tokens }
}

/// The width of each layer of a pass. Arrays without a token may claim any number of layers.
pub(super) fn widths(input: &Input<'_>, pass: &Pass) -> Result<Vec<usize>> {
    let layers = pass.views.iter().map(|view| view.layers).fold(0, usize::saturating_add);
    if layers > MAX_LAYERS {
        return Err(refuse(input, format!("{layers} layers; at most {MAX_LAYERS} are possible")));
    }
    let widths = |view: &View| std::iter::repeat_n(view.width, view.layers);
    Ok(pass.views.iter().flat_map(widths).collect())
}

/// An error of a whole plan.
pub(super) fn refuse(input: &Input<'_>, problem: impl Into<String>) -> Error {
    input.error("arrays", problem)
}
