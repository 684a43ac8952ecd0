//! Fields that hold a list.

use serde_json::Value;

use super::{Fields, MAX_LAYERS, MAX_WIDTH};
use crate::model::ModelError;

impl<'a> Fields<'a> {
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

    /// A list of numbers of any length, if it is there; some write it as one text with commas.
    pub fn list(&self, name: &str) -> Result<Option<Vec<u64>>, ModelError> {
        let number = |value: &Value| self.bounded(name, value, 0, MAX_LAYERS);
        match self.value(&[name]) {
            Some((_, Value::Array(values))) => {
                values.iter().map(number).collect::<Result<_, _>>().map(Some)
            }
            Some((_, Value::String(text))) => {
                let of_word = |word: &str| match word.trim().parse::<u64>() {
                    Ok(layer) => number(&layer.into()),
                    Err(_) => Err(self.invalid(name, format!("holds `{word}`, not a layer"))),
                };
                text.split(',').map(of_word).collect::<Result<_, _>>().map(Some)
            }
            _ => Ok(None),
        }
    }
}
