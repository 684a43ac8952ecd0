//! Typed, bounded access to the fields of a configuration.
//!
//! A language model may be nested in `text_config`, or deeper; some fields stand outside of it, some in parts of it. A
//! field may hold one value a layer: [`Fields::at`] reads them at a layer. Every number is checked against
//! a bound before anything is computed or allocated from it.

mod lists;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use super::names::LAYERS;
use crate::model::ModelError;

/// Widths (hidden, experts', heads', ranks) are at most this many elements.
const MAX_WIDTH: u64 = 1 << 20;
/// Heads, experts and groups are at most this many.
const MAX_COUNT: u64 = 1 << 16;
/// Layers are at most this many.
const MAX_LAYERS: u64 = 1 << 12;
/// Words of the vocabulary are at most this many.
const MAX_VOCAB: u64 = 1 << 24;
/// Rows of a table of n-grams are at most this many.
const MAX_ROWS: u64 = 1 << 32;
/// Tokens of a context, window or chunk are at most this many.
const MAX_TOKENS: u64 = 1 << 40;

/// Objects that hold the language model of a larger one.
const NESTED: [&str; 6] = [
    "thinker_config",
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "decoder_config",
];
/// Objects that hold parts of the language model's fields.
const PARTS: [&str; 4] = ["ffn_config", "attn_config", "attention_config", "moe"];

type Map = serde_json::Map<String, Value>;

/// The fields of one configuration.
#[derive(Clone)]
pub struct Fields<'a> {
    /// The file or name, for errors.
    pub origin: &'a str,
    /// The `model_type` of the language model.
    pub architecture: &'a str,
    /// The class that loads it, where the configuration names one.
    pub class: &'a str,
    /// The language model's own, its parts, then what it is nested in.
    maps: Vec<&'a Map>,
    /// How many of these are the language model's.
    own: usize,
    /// The layer whose value is taken from lists.
    layer: Option<u64>,
    read: Rc<RefCell<BTreeSet<String>>>,
}

impl<'a> Fields<'a> {
    /// The fields of a parsed `config.json`.
    pub fn new(origin: &'a str, root: &'a Value) -> Result<Self, ModelError> {
        let root = root.as_object().ok_or_else(|| {
            ModelError::invalid(origin, "the file", "is not a JSON object of configuration fields")
        })?;
        let inside = |map: &'a Map, names: &[&str]| {
            names.iter().find_map(|name| map.get(*name).and_then(Value::as_object))
        };
        let mut outer = vec![root];
        // Omni models nest twice.
        while let (Some(deeper), true) = (inside(outer[0], &NESTED), outer.len() < 4) {
            outer.insert(0, deeper);
        }
        let text = outer.remove(0);
        let parts = PARTS.iter().filter_map(|name| inside(text, &[*name]));
        let mut maps: Vec<&Map> = std::iter::once(text).chain(parts).collect();
        let own = maps.len();
        maps.extend(outer);
        let word = |name: &str| maps.iter().find_map(|map| map.get(name)?.as_str()).unwrap_or("");
        let class = maps.iter().find_map(|map| map.get("architectures")?.get(0)?.as_str());
        Ok(Self {
            origin,
            architecture: word("model_type"),
            class: class.unwrap_or(""),
            maps,
            own,
            layer: None,
            read: Rc::default(),
        })
    }

    /// The same fields, lists of one value a layer read at this one.
    pub fn at(&self, layer: u64) -> Self {
        Self { layer: Some(layer), ..self.clone() }
    }

    /// The language model's own keys, its parts themselves left out.
    pub fn innermost(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let all = self.maps[..self.own].iter().flat_map(|map| map.iter());
        all.map(|(key, value)| (key.as_str(), value)).filter(|(key, _)| !PARTS.contains(key))
    }

    /// Whether anything asked for this key.
    pub fn was_read(&self, key: &str) -> bool {
        self.read.borrow().contains(key)
    }

    /// The first of these names that has a value; inside first.
    pub fn value(&self, names: &[&str]) -> Option<(&'a str, &'a Value)> {
        let mut read = self.read.borrow_mut();
        for name in names.iter().filter(|name| !read.contains(**name)).collect::<Vec<_>>() {
            read.insert((*name).to_owned());
        }
        let find = |map: &&'a Map| {
            names.iter().find_map(|name| {
                map.get_key_value(*name)
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| (key.as_str(), value))
            })
        };
        self.maps.iter().find_map(find)
    }

    /// The first of these names that has a value; of a list of one value a layer, this layer's.
    fn single(&self, names: &[&str]) -> Result<Option<(&'a str, &'a Value)>, ModelError> {
        let Some((name, value)) = self.value(names) else { return Ok(None) };
        let Value::Array(list) = value else { return Ok(Some((name, value))) };
        // ERNIE-VL gives the text's experts and the pictures', which are not counted, as pictures' towers are not.
        let text_first = self.architecture.starts_with("ernie4_5") && list.len() == 2;
        if let (true, Some(first)) = (text_first, list.first()) {
            return Ok(Some((name, first)));
        }
        let same = list.first().filter(|first| list.iter().all(|value| value == *first));
        if let Some(first) = same {
            return Ok(Some((name, first)));
        }
        match self.layer {
            Some(layer) => match list.get(layer as usize) {
                Some(value) => Ok(Some((name, value))),
                None => Err(self
                    .invalid(name, format!("lists {} values, none for layer {layer}", list.len()))),
            },
            None => {
                Err(self.invalid(name, "differs by layer, which is not understood of this field"))
            }
        }
    }

    /// Whether any of these names has a value.
    pub fn has(&self, name: &str) -> bool {
        self.value(&[name]).is_some()
    }

    /// A truth value; absent is false.
    pub fn flag(&self, name: &str) -> Result<bool, ModelError> {
        match self.value(&[name]) {
            None => Ok(false),
            Some((_, Value::Bool(flag))) => Ok(*flag),
            Some((name, _)) => Err(self.invalid(name, "is not true or false")),
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.value(&[name]).and_then(|(_, value)| value.as_str())
    }

    /// A width, if given.
    pub fn width(&self, names: &[&str]) -> Result<Option<u64>, ModelError> {
        self.number(names, 1, MAX_WIDTH)
    }

    /// A number of layers from one to the next of a kind, where the field is a number at all.
    pub fn step(&self, name: &str) -> Result<Option<u64>, ModelError> {
        match self.value(&[name]) {
            Some((_, Value::Number(_))) => self.count(&[name]),
            _ => Ok(None),
        }
    }

    /// A width that the architecture needs.
    pub fn need_width(&self, names: &[&str]) -> Result<u64, ModelError> {
        self.width(names)?.ok_or_else(|| self.missing(names))
    }

    /// A count that may be 0, if given.
    pub fn count(&self, names: &[&str]) -> Result<Option<u64>, ModelError> {
        self.number(names, 0, MAX_COUNT)
    }

    /// A count that the architecture needs, at least 1.
    pub fn need_count(&self, names: &[&str]) -> Result<u64, ModelError> {
        self.number(names, 1, MAX_COUNT)?.ok_or_else(|| self.missing(names))
    }

    /// The number of layers: given, or that of a list of their kinds.
    pub fn layers(&self) -> Result<u64, ModelError> {
        if let Some(layers) = self.number(LAYERS, 1, MAX_LAYERS)? {
            return Ok(layers);
        }
        let listed =
            match self.value(&["hybrid_override_pattern", "layers_block_type", "layer_types"]) {
                Some((_, Value::Array(list))) => list.len() as u64,
                Some((_, Value::String(letters))) => letters.len() as u64,
                _ => 0,
            };
        match listed {
            1..=MAX_LAYERS => Ok(listed),
            _ => Err(self.missing(&LAYERS[..1])),
        }
    }

    /// Whether the number of layers is given in one way or another.
    pub fn has_layers(&self) -> bool {
        self.layers().is_ok() || self.value(LAYERS).is_some()
    }

    /// The size of the vocabulary.
    pub fn vocab(&self) -> Result<u64, ModelError> {
        self.number(&["vocab_size"], 1, MAX_VOCAB)?.ok_or_else(|| self.missing(&["vocab_size"]))
    }

    /// Rows of a table, if given.
    pub fn rows(&self, names: &[&str]) -> Result<Option<u64>, ModelError> {
        self.number(names, 0, MAX_ROWS)
    }

    /// A number of tokens, if given.
    pub fn tokens(&self, names: &[&str]) -> Result<Option<u64>, ModelError> {
        self.number(names, 1, MAX_TOKENS)
    }

    fn number(&self, names: &[&str], least: u64, most: u64) -> Result<Option<u64>, ModelError> {
        let single = self.single(names)?;
        single.map(|(name, value)| self.bounded(name, value, least, most)).transpose()
    }

    fn bounded(&self, name: &str, value: &Value, least: u64, most: u64) -> Result<u64, ModelError> {
        let whole = value.as_u64().or_else(|| {
            // Some writers put a point into whole numbers.
            value
                .as_f64()
                .filter(|n| n.fract() == 0.0 && (0.0..=1e15).contains(n))
                .map(|n| n as u64)
        });
        match whole {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ => {
                Err(self
                    .invalid(name, format!("is {value}, not a whole number of {least} to {most}")))
            }
        }
    }

    /// The fields of an object within.
    pub fn inside(&self, name: &str) -> Option<Fields<'a>> {
        let object = self.value(&[name])?.1.as_object()?;
        Some(Fields { maps: vec![object], own: 1, read: Rc::default(), ..self.clone() })
    }

    /// A part that cannot be guessed.
    pub fn unknown(&self, why: String) -> ModelError {
        ModelError::UnknownArchitecture {
            origin: self.origin.into(),
            architecture: self.architecture.into(),
            why,
        }
    }

    /// A field that holds what no model has.
    pub fn invalid(&self, field: &str, why: impl Into<String>) -> ModelError {
        ModelError::invalid(self.origin, field, why)
    }

    /// A field that the architecture needs is absent.
    pub fn missing(&self, names: &[&str]) -> ModelError {
        ModelError::Missing {
            origin: self.origin.into(),
            architecture: self.architecture.into(),
            fields: vec![names.join(" or ")],
        }
    }

    /// All fields that are absent, at once.
    pub fn missing_all(&self, fields: Vec<String>) -> ModelError {
        ModelError::Missing {
            origin: self.origin.into(),
            architecture: self.architecture.into(),
            fields,
        }
    }
}
