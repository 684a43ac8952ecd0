//! Typed, bounded access to the keys of a GGUF header.

use super::reader::{Header, Value};
use crate::model::ModelError;

const MAX_WIDTH: u64 = 1 << 20;
const MAX_COUNT: u64 = 1 << 16;
const MAX_LAYERS: u64 = 1 << 12;

/// The keys of a model, whichever shard holds them.
pub struct Keys<'a> {
    origin: &'a str,
    /// The architecture that begins the names of its keys.
    pub architecture: &'a str,
    header: &'a Header,
}

impl<'a> Keys<'a> {
    /// The keys of the shard that names the architecture.
    pub fn new(origin: &'a str, headers: &'a [Header]) -> Result<Self, ModelError> {
        let named =
            headers.iter().find_map(|header| match header.keys.get("general.architecture") {
                Some(Value::Text(architecture)) => Some((header, architecture.as_str())),
                _ => None,
            });
        let (header, architecture) = named.ok_or_else(|| {
            ModelError::invalid(
                origin,
                "general.architecture",
                "is absent: this is no model's header",
            )
        })?;
        Ok(Self { origin, architecture, header })
    }

    /// The value under the architecture's name.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.header.keys.get(&format!("{}.{key}", self.architecture))
    }

    /// A number within bounds, if given.
    fn number(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, ModelError> {
        match self.get(key) {
            None | Some(Value::Skipped) => Ok(None),
            Some(Value::Number(number)) if (least..=most).contains(number) => Ok(Some(*number)),
            Some(other) => {
                Err(self.invalid(key, format!("is {other:?}, not a number of {least} to {most}")))
            }
        }
    }

    /// A number of layers, heads or experts, if given.
    pub fn count(&self, key: &str) -> Result<Option<u64>, ModelError> {
        self.number(key, 0, MAX_COUNT)
    }

    /// A width, if given.
    pub fn width(&self, key: &str) -> Result<Option<u64>, ModelError> {
        self.number(key, 1, MAX_WIDTH)
    }

    /// A number of tokens, if given.
    pub fn tokens(&self, key: &str) -> Result<Option<u64>, ModelError> {
        self.number(key, 0, 1 << 40)
    }

    /// A count that the architecture needs, at least 1.
    pub fn need_count(&self, key: &str) -> Result<u64, ModelError> {
        self.number(key, 1, MAX_COUNT)?.ok_or_else(|| self.missing(key))
    }

    /// A width that the architecture needs.
    pub fn need_width(&self, key: &str) -> Result<u64, ModelError> {
        self.width(key)?.ok_or_else(|| self.missing(key))
    }

    /// The number of blocks.
    pub fn layers(&self) -> Result<u64, ModelError> {
        self.number("block_count", 1, MAX_LAYERS)?.ok_or_else(|| self.missing("block_count"))
    }

    /// The vocabulary: rows of the embedding, else its key.
    pub fn vocab(&self, rows: Option<u64>) -> Result<u64, ModelError> {
        match rows {
            Some(rows @ 1..=0x0100_0000) => Ok(rows),
            _ => self.number("vocab_size", 1, 1 << 24)?.ok_or_else(|| self.missing("vocab_size")),
        }
    }

    /// A number that may differ by layer.
    pub fn of_layer(&self, key: &str, layer: u64) -> Result<Option<u64>, ModelError> {
        let Some(Value::List(list)) = self.get(key) else { return self.count(key) };
        match list.get(layer as usize) {
            Some(number) if *number <= MAX_COUNT => Ok(Some(*number)),
            _ => {
                Err(self.invalid(key, format!("has no value for layer {layer} below {MAX_COUNT}")))
            }
        }
    }

    /// A key that holds what no model has.
    pub fn invalid(&self, key: &str, why: impl Into<String>) -> ModelError {
        ModelError::invalid(self.origin, key, why)
    }

    /// A key that the architecture needs is absent.
    pub fn missing(&self, key: &str) -> ModelError {
        ModelError::Missing {
            origin: self.origin.into(),
            architecture: self.architecture.into(),
            fields: vec![format!("{}.{key}", self.architecture)],
        }
    }

    /// A part that cannot be guessed.
    pub fn unknown(&self, why: impl Into<String>) -> ModelError {
        ModelError::UnknownArchitecture {
            origin: self.origin.into(),
            architecture: self.architecture.into(),
            why: why.into(),
        }
    }
}
