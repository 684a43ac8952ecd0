//! One document of JSON, walked once: lists of numbers go into one flat list, and each list of
//! experts becomes a cell that takes token, layer and phase from the objects around it.
//!
//! Keys come in any order, so what an object says is given to its cells when it ends; what an inner
//! object said stays.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::words::{self, Word};
use crate::import::tables::{Node, Shape};

/// Nothing was said.
pub(super) const UNSAID: u32 = u32::MAX;

/// Experts of a token in a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) sequence: u32,
    pub(super) step: u32,
    pub(super) token: Option<i64>,
    pub(super) layer: u32,
    /// 0 for prefill, 1 for decode, 255 where nothing was said.
    pub(super) phase: u8,
    /// One expert of several entries for the same token and layer.
    pub(super) single: bool,
    /// The first of its numbers, and how many.
    pub(super) ids: (u32, u32),
    /// The first of as many weights.
    pub(super) weights: u32,
}

/// What was found in a document.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) numbers: Vec<f32>,
    pub(super) cells: Vec<Cell>,
    /// Lists of lists of numbers.
    pub(super) tables: Vec<Shape>,
    pub(super) experts: Option<u32>,
    pub(super) model: Option<String>,
    /// Objects around what is read now.
    objects: usize,
    /// Lists around what is read now, up to the next object.
    lists: usize,
    /// A cell was found below the outermost object.
    pub(super) nested: bool,
    /// Lists in lists of numbers, at most; under the name of a layer, of ids, or of nothing.
    pub(super) by_layer: usize,
    pub(super) named: usize,
    pub(super) bare: usize,
    /// Lists that lie side by side and have different lengths.
    pub(super) ragged: Option<(usize, usize)>,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Got {
    Number(f64),
    Text(String),
    /// Numbers in lists of lists: the first, and the lengths from the outermost.
    Numbers(u32, Vec<usize>),
    /// Lists and objects with such lists in them.
    Tree(Node),
    Other,
}

/// Reads one value under a key.
pub(super) struct Any<'w> {
    pub(super) walk: &'w mut Walk,
    pub(super) key: Word,
}

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Got;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Got, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Got;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Got, E> {
        Ok(Got::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Got, E> {
        Ok(Got::Other)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Got, E> {
        Ok(Got::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Got, E> {
        Ok(Got::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Got, E> {
        Ok(Got::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Got, E> {
        // Texts of models and phases are short.
        Ok(if text.len() <= 256 { Got::Text(text.to_owned()) } else { Got::Other })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Got, A::Error> {
        let Self { walk, key } = self;
        walk.lists += 1;
        let first = walk.numbers.len();
        let (mut count, mut numbers, mut plain) = (0usize, 0usize, true);
        let mut inner: Option<Vec<usize>> = None;
        let mut nodes = Vec::new();
        loop {
            let cells = walk.cells.len();
            let Some(got) = seq.next_element_seed(Any { walk, key })? else { break };
            match got {
                Got::Number(number) => {
                    walk.numbers.push(number as f32);
                    numbers += 1;
                }
                Got::Numbers(_, dims) => {
                    let before = inner.get_or_insert_with(|| dims.clone());
                    if *before != dims {
                        walk.ragged =
                            walk.ragged.or(before.first().copied().zip(dims.first().copied()));
                        plain = false;
                    }
                }
                Got::Tree(node) => nodes.push(node),
                _ => plain = false,
            }
            walk.place(key, cells, count as u32);
            count += 1;
        }
        walk.lists -= 1;
        if walk.numbers.len() > u32::MAX as usize {
            return Err(A::Error::custom("over 4 billion numbers in a document"));
        }
        if !nodes.is_empty() {
            return Ok(Got::Tree(Node::List(nodes)));
        }
        if !plain {
            return Ok(Got::Other);
        }
        let mut dims = vec![count];
        if numbers == count {
            walk.hint(key);
            return Ok(Got::Numbers(first as u32, dims));
        }
        match inner {
            Some(inner) if numbers == 0 => {
                dims.extend(inner);
                Ok(Got::Numbers(first as u32, dims))
            }
            _ => Ok(Got::Other),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Got, A::Error> {
        let Self { walk, key: outer } = self;
        let lists = std::mem::take(&mut walk.lists);
        walk.objects += 1;
        let cells = walk.cells.len();
        let mut said = Said::default();
        let mut named = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let key = words::of(&name, outer);
            let before = walk.cells.len();
            let got = map.next_value_seed(Any { walk, key })?;
            match key {
                Word::Layer(layer) => walk.cells[before..].iter_mut().for_each(|cell| {
                    if cell.layer == UNSAID {
                        cell.layer = layer;
                    }
                }),
                Word::Number(number) => walk.cells[before..].iter_mut().for_each(|cell| {
                    if cell.layer == UNSAID {
                        cell.layer = number;
                    } else {
                        cell.token.get_or_insert(number.into());
                    }
                }),
                Word::Token(token) => walk.cells[before..].iter_mut().for_each(|cell| {
                    cell.token.get_or_insert(token.into());
                }),
                _ => {}
            }
            said.hear(walk, key, &name, got, &mut named);
        }
        said.give(walk, cells);
        walk.objects -= 1;
        walk.lists = lists;
        if walk.cells.len() > u32::MAX as usize / 2 {
            return Err(A::Error::custom("over 2 billion entries in a document"));
        }
        Ok(if named.is_empty() { Got::Other } else { Got::Tree(Node::Map(named)) })
    }
}

impl Walk {
    /// Notes how deep lists of numbers are.
    fn hint(&mut self, key: Word) {
        let deep = self.lists + 1;
        match key {
            Word::Layer(_) | Word::Number(_) => self.by_layer = self.by_layer.max(deep),
            Word::Ids => self.named = self.named.max(deep),
            _ => self.bare = self.bare.max(deep),
        }
    }

    /// Gives the cells of a list's entry their place in it, where the list's name says what its
    /// entries are.
    fn place(&mut self, key: Word, first: usize, index: u32) {
        for cell in &mut self.cells[first..] {
            match key {
                Word::Steps if cell.step == UNSAID => cell.step = index,
                Word::Sequences if cell.sequence == UNSAID => cell.sequence = index,
                Word::Tokens => drop(cell.token.get_or_insert(index.into())),
                Word::Layers if cell.layer == UNSAID => cell.layer = index,
                _ => {}
            }
        }
    }
}

/// What one object says.
#[derive(Default)]
struct Said {
    sequence: Option<u32>,
    step: Option<u32>,
    /// The token's number, and how good the name is under which it came.
    token: Option<(u8, i64)>,
    layer: Option<u32>,
    phase: Option<u8>,
    /// It counts how often its expert was used, so that it is no selection.
    counts: bool,
    /// Experts: the first number, how many, and whether it is one of several entries.
    ids: Option<(u32, u32, bool)>,
    weights: Option<(u32, u32)>,
}

fn small(number: f64) -> Option<u32> {
    (number.fract() == 0.0 && (0.0..4_294_967_295.0).contains(&number)).then_some(number as u32)
}

impl Said {
    /// Takes in one entry.
    fn hear(
        &mut self,
        walk: &mut Walk,
        key: Word,
        name: &str,
        got: Got,
        named: &mut Vec<(String, Node)>,
    ) {
        match (key, got) {
            (Word::LayerNumber, Got::Number(number)) => self.layer = small(number),
            (Word::TokenNumber(rank), Got::Number(number))
                if number.fract() == 0.0 && self.token.is_none_or(|(before, _)| rank < before) =>
            {
                self.token = Some((rank, number as i64));
            }
            (Word::Count, Got::Number(_)) => self.counts = true,
            (Word::Step, Got::Number(number)) => self.step = small(number),
            (Word::Sequence, Got::Number(number)) => self.sequence = small(number),
            (Word::Phase, Got::Text(text)) => self.phase = words::phase(&text),
            (Word::Experts, Got::Number(number)) => walk.experts = walk.experts.max(small(number)),
            (Word::Model, Got::Text(text)) => drop(walk.model.get_or_insert(text)),
            (Word::Ids, Got::Numbers(first, dims)) if dims.len() == 1 => {
                self.ids = Some((first, dims[0] as u32, false));
            }
            (Word::Layer(layer) | Word::Number(layer), Got::Numbers(first, dims))
                if dims.len() == 1 =>
            {
                walk.cell(first, dims[0] as u32, Some(layer));
            }
            (Word::Layers | Word::Ids, Got::Numbers(first, dims))
                if dims.len() == 2 && self.token.is_some() =>
            {
                for layer in 0..dims[0] as u32 {
                    walk.cell(first + layer * dims[1] as u32, dims[1] as u32, Some(layer));
                }
            }
            (Word::Id, Got::Number(number)) => {
                self.ids = Some((walk.numbers.len() as u32, 1, true));
                walk.numbers.push(number as f32);
            }
            (Word::Weights, Got::Numbers(first, dims)) if dims.len() == 1 => {
                self.weights = Some((first, dims[0] as u32));
            }
            (Word::Weights, Got::Number(number)) => {
                self.weights = Some((walk.numbers.len() as u32, 1));
                walk.numbers.push(number as f32);
            }
            (_, Got::Numbers(first, shape)) if shape.len() > 1 => {
                let table = walk.tables.len();
                walk.tables.push(Shape { name: name.to_owned(), shape, first: first as usize });
                named.push((name.to_owned(), Node::Table(table)));
            }
            (_, Got::Tree(node)) => named.push((name.to_owned(), node)),
            _ => {}
        }
    }

    /// Gives what was said to the cells of this object that do not know it yet.
    fn give(&self, walk: &mut Walk, first: usize) {
        let counted = |single: bool| single && self.counts && self.token.is_none();
        if let Some((start, count, single)) = self.ids.filter(|ids| !counted(ids.2)) {
            walk.cell(start, count, None);
            if let Some(cell) = walk.cells.last_mut() {
                cell.single = single;
                let weights = self.weights.filter(|&(_, weights)| weights == count);
                cell.weights = weights.map_or(UNSAID, |(start, _)| start);
            }
        }
        for cell in &mut walk.cells[first..] {
            let fill = |into: &mut u32, value: Option<u32>| {
                if *into == UNSAID {
                    *into = value.unwrap_or(UNSAID);
                }
            };
            fill(&mut cell.sequence, self.sequence);
            fill(&mut cell.step, self.step);
            fill(&mut cell.layer, self.layer);
            cell.token = cell.token.or(self.token.map(|(_, token)| token));
            if cell.phase == 255 {
                cell.phase = self.phase.unwrap_or(255);
            }
        }
    }
}

impl Walk {
    fn cell(&mut self, first: u32, count: u32, layer: Option<u32>) {
        self.nested |= self.objects > 1;
        self.cells.push(Cell {
            sequence: UNSAID,
            step: UNSAID,
            token: None,
            layer: layer.unwrap_or(UNSAID),
            phase: 255,
            single: false,
            ids: (first, count),
            weights: UNSAID,
        });
    }
}
