//! Typed, bounded access to the fields of a configuration.
//!
//! A language model may be nested in `text_config`; some fields stand outside of it. Every number is checked against
//! a bound before anything is computed or allocated from it.

use serde_json::{Map, Value};

use crate::model::ModelError;

/// Widths (hidden, experts', heads', ranks) are at most this many elements.
const MAX_WIDTH: u64 = 1 << 20;
/// Heads, experts and groups are at most this many.
const MAX_COUNT: u64 = 1 << 16;
/// Layers are at most this many.
const MAX_LAYERS: u64 = 1 << 12;
/// Words of the vocabulary are at most this many.
const MAX_VOCAB: u64 = 1 << 24;
/// Tokens of a context, window or chunk are at most this many.
const MAX_TOKENS: u64 = 1 << 40;

/// The fields of one configuration.
pub struct Fields<'a> {
    /// The file or name, for errors.
    pub origin: &'a str,
    /// The `model_type` of the language model.
    pub architecture: &'a str,
    text: &'a Map<String, Value>,
    outer: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The fields of a parsed `config.json`.
    pub fn new(origin: &'a str, root: &'a Value) -> Result<Self, ModelError> {
        let outer = root.as_object().ok_or_else(|| {
            ModelError::invalid(origin, "the file", "is not a JSON object of configuration fields")
        })?;
        let nested = ["text_config", "llm_config", "language_config"]
            .iter()
            .find_map(|name| outer.get(*name).and_then(Value::as_object));
        let text = nested.unwrap_or(outer);
        let kind = text.get("model_type").or_else(|| outer.get("model_type"));
        let architecture = kind.and_then(Value::as_str).unwrap_or("");
        Ok(Self { origin, architecture, text, outer })
    }

    /// The first of these names that has a value; inside first.
    pub fn value(&self, names: &[&str]) -> Option<(&'a str, &'a Value)> {
        let find = |map: &'a Map<String, Value>| {
            names.iter().find_map(|name| {
                map.get_key_value(*name)
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| (key.as_str(), value))
            })
        };
        find(self.text).or_else(|| find(self.outer))
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

    /// The number of layers.
    pub fn layers(&self) -> Result<u64, ModelError> {
        let names = ["num_hidden_layers", "n_layer", "num_layers"];
        self.number(&names, 1, MAX_LAYERS)?.ok_or_else(|| self.missing(&names[..1]))
    }

    /// The size of the vocabulary.
    pub fn vocab(&self) -> Result<u64, ModelError> {
        self.number(&["vocab_size"], 1, MAX_VOCAB)?.ok_or_else(|| self.missing(&["vocab_size"]))
    }

    /// A number of tokens, if given.
    pub fn tokens(&self, names: &[&str]) -> Result<Option<u64>, ModelError> {
        self.number(names, 1, MAX_TOKENS)
    }

    fn number(&self, names: &[&str], least: u64, most: u64) -> Result<Option<u64>, ModelError> {
        self.value(names).map(|(name, value)| self.bounded(name, value, least, most)).transpose()
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

    /// One value for each of the first `layers` layers, if the list is there. Longer lists (they may go on to draft
    /// layers) are cut.
    pub fn per_layer(&self, name: &str, layers: u64) -> Result<Option<Vec<&'a Value>>, ModelError> {
        let Some((_, Value::Array(values))) = self.value(&[name]) else { return Ok(None) };
        if (values.len() as u64) < layers {
            let why = format!("lists {} layers of {layers}", values.len());
            return Err(self.invalid(name, why));
        }
        Ok(Some(values.iter().take(layers as usize).collect()))
    }

    /// One truth value (or 0 and 1) for each layer, if the list is there.
    pub fn flags(&self, name: &str, layers: u64) -> Result<Option<Vec<bool>>, ModelError> {
        let Some(values) = self.per_layer(name, layers)? else { return Ok(None) };
        let flag = |value: &&Value| match value {
            Value::Bool(flag) => Ok(*flag),
            value => match value.as_u64() {
                Some(number @ 0..=1) => Ok(number == 1),
                _ => Err(self.invalid(name, format!("holds {value}, not 0 or 1"))),
            },
        };
        values.iter().map(flag).collect::<Result<_, _>>().map(Some)
    }

    /// One word for each layer, if the list is there.
    pub fn words(&self, name: &str, layers: u64) -> Result<Option<Vec<&'a str>>, ModelError> {
        let Some(values) = self.per_layer(name, layers)? else { return Ok(None) };
        let word = |value: &&'a Value| {
            value.as_str().ok_or_else(|| self.invalid(name, format!("holds {value}, not a word")))
        };
        values.iter().map(word).collect::<Result<_, _>>().map(Some)
    }

    /// One small number for each layer, if the list is there.
    pub fn numbers(&self, name: &str, layers: u64) -> Result<Option<Vec<u64>>, ModelError> {
        let Some(values) = self.per_layer(name, layers)? else { return Ok(None) };
        let number = |value: &&Value| self.bounded(name, value, 0, MAX_WIDTH);
        values.iter().map(number).collect::<Result<_, _>>().map(Some)
    }

    /// A list of numbers of any length, if it is there.
    pub fn list(&self, name: &str) -> Result<Option<Vec<u64>>, ModelError> {
        let Some((_, Value::Array(values))) = self.value(&[name]) else { return Ok(None) };
        let number = |value: &Value| self.bounded(name, value, 0, MAX_LAYERS);
        values.iter().map(number).collect::<Result<_, _>>().map(Some)
    }

    /// The fields of an object within.
    pub fn inside(&self, name: &str) -> Option<Fields<'a>> {
        let object = self.value(&[name])?.1.as_object()?;
        Some(Fields {
            origin: self.origin,
            architecture: self.architecture,
            text: object,
            outer: object,
        })
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
