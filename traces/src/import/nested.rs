//! Nested lists of JSON numbers, read straight into flat arrays.
//!
//! A list of lists as vectors of vectors would take many times the text; these take what the ids
//! take.

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};

/// `[3, 14, 10]`, appended to the ids; answers how many there were.
pub(super) struct IdList<'a>(pub(super) &'a mut Vec<u16>);

/// `[0.5, 0.25]` or `null`, appended; answers how many there were. Text such as NaN is refused.
pub(super) struct WeightList<'a>(pub(super) &'a mut Vec<f32>);

/// `[[3, 14], [0, 5]]`, appended; answers the lists and the length that all of them have.
pub(super) struct IdLists<'a>(pub(super) &'a mut Vec<u16>);

/// `[[[3, 14], [0, 5]], ...]`, appended; answers rows, lists and the lists' length.
pub(super) struct IdRows<'a>(pub(super) &'a mut Vec<u16>);

/// `[[layer, expert], ...]`: experts appended to `ids`; neighbours of one layer are its list.
pub(super) struct LayerPairs<'a> {
    pub(super) ids: &'a mut Vec<u16>,
    pub(super) layers: &'a mut Vec<(u32, u32)>,
}

macro_rules! seq_seed {
    ($name:ident, $value:ty, $expecting:literal, |$self:ident, $seq:ident| $body:expr) => {
        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<$value, D::Error> {
                deserializer.deserialize_any(self)
            }
        }

        impl<'de> Visitor<'de> for $name<'_> {
            type Value = $value;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($expecting)
            }

            fn visit_unit<E>(self) -> Result<$value, E> {
                Ok(Default::default())
            }

            fn visit_seq<A: SeqAccess<'de>>($self, mut $seq: A) -> Result<$value, A::Error> {
                $body
            }
        }
    };
}

seq_seed!(IdList, u32, "a list of expert ids", |self, seq| {
    let before = self.0.len();
    while let Some(id) = seq.next_element::<u16>()? {
        self.0.push(id);
    }
    Ok((self.0.len() - before) as u32)
});

seq_seed!(WeightList, u32, "a list of weights", |self, seq| {
    let before = self.0.len();
    while let Some(weight) = seq.next_element::<f32>()? {
        self.0.push(weight);
    }
    Ok((self.0.len() - before) as u32)
});

seq_seed!(IdLists, (u32, u32), "a list of lists of expert ids", |self, seq| {
    let (mut lists, mut length) = (0u32, 0);
    while let Some(found) = seq.next_element_seed(IdList(&mut *self.0))? {
        if lists > 0 && found != length {
            return Err(A::Error::custom(format!(
                "a list of {found} ids after lists of {length}; every layer has one top-k"
            )));
        }
        (lists, length) = (lists + 1, found);
    }
    Ok((lists, length))
});

seq_seed!(IdRows, (u32, u32, u32), "a list of tokens, each a list of layers", |self, seq| {
    let (mut rows, mut shape) = (0u32, (0, 0));
    while let Some(found) = seq.next_element_seed(IdLists(&mut *self.0))? {
        if rows > 0 && found != shape {
            return Err(A::Error::custom(format!(
                "token {rows} has {} layers of top-{}, the tokens before it {} of top-{}",
                found.0, found.1, shape.0, shape.1
            )));
        }
        (rows, shape) = (rows + 1, found);
    }
    Ok((rows, shape.0, shape.1))
});

seq_seed!(LayerPairs, (), "a list of [layer, expert]", |self, seq| {
    while let Some((layer, id)) = seq.next_element::<(u32, u16)>()? {
        match self.layers.last_mut() {
            Some((last, count)) if *last == layer => *count += 1,
            Some((last, _)) if *last > layer => {
                let problem = format!("layer {layer} after layer {last}");
                return Err(A::Error::custom(problem));
            }
            _ => self.layers.push((layer, 1)),
        }
        self.ids.push(id);
    }
    Ok(())
});
