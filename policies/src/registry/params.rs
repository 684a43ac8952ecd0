//! Policy parameters as people type them, `key=value,key=value`, read into typed configs.

use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};

/// Reads `key=value,key=value` into a config; an empty text gives the defaults.
///
/// # Errors
/// An unknown or repeated key, a value of the wrong type, or text that is not `key=value`.
pub fn parse<'a, C: Deserialize<'a>>(text: &'a str) -> Result<C, String> {
    let pairs: Vec<(&str, Value<'_>)> = text
        .split(',')
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.trim(), Value(value.trim()))),
            None => Err(format!("'{pair}' is not key=value")),
        })
        .collect::<Result<_, _>>()?;
    C::deserialize(MapDeserializer::<_, Error>::new(pairs.into_iter()))
        .map_err(|error| error.to_string())
}

/// A typed-in value: a number if it reads as one, else true or false, else text.
#[derive(Clone, Copy)]
struct Value<'a>(&'a str);

impl<'de> IntoDeserializer<'de, Error> for Value<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Ok(number) = self.0.parse::<u64>() {
            visitor.visit_u64(number)
        } else if let Ok(number) = self.0.parse::<i64>() {
            visitor.visit_i64(number)
        } else if let Ok(number) = self.0.parse::<f64>() {
            if !number.is_finite() {
                return Err(de::Error::custom(format!("'{}' is not a finite number", self.0)));
            }
            visitor.visit_f64(number)
        } else if let Ok(truth) = self.0.parse::<bool>() {
            visitor.visit_bool(truth)
        } else {
            visitor.visit_borrowed_str(self.0)
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.into_deserializer().deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Config {
        window: u32,
        share: f64,
        by_event: bool,
    }

    impl Default for Config {
        fn default() -> Self {
            Self { window: 256, share: 0.1, by_event: false }
        }
    }

    #[test]
    fn keys_are_optional_and_typed() {
        assert_eq!(parse::<Config>(""), Ok(Config::default()));
        let given = parse::<Config>("window=64, share=1,by_event=true");
        assert_eq!(given, Ok(Config { window: 64, share: 1.0, by_event: true }));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let told = |text| parse::<Config>(text).unwrap_err();
        assert_eq!(told("window"), "'window' is not key=value");
        assert!(told("windows=3").contains("unknown field `windows`, expected one of `window`"));
        assert!(told("window=-1").contains("expected u32"));
        assert!(told("window=1,window=2").contains("duplicate field"));
        assert!(told("share=nan").contains("not a finite number"));
    }
}
