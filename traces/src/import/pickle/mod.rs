//! A pickle reader that runs nothing: protocol 2 and later, plain data and a short list of names.
//!
//! Python's own unpickler calls whatever a file names. This one knows the calls by which tensors
//! and arrays are rebuilt and makes plain records of them; any other name is refused. Objects live
//! in one list and refer to each other by number, so that neither cycles nor depth matter, and
//! what they take is counted against the size of the file.

mod machine;
mod ops;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use machine::Machine;

pub(super) use super::element::Element;

/// A value; text and bytes stay where they are in the pickle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// UTF-8 from `start`, so many bytes.
    Text(u32, u32),
    /// Bytes from `start`, so many.
    Bytes(u32, u32),
    /// UTF-8 whose characters are bytes: what protocol 2 makes of bytes.
    Latin1(u32, u32),
    Name(Name),
    Object(u32),
}

/// The names that a pickle may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    OrderedDict,
    Storage(Element),
    RebuildTensor,
    NdArray,
    NumpyDtype,
    Reconstruct,
    Encode,
}

/// What a value may refer to.
#[derive(Debug, Clone)]
pub(super) enum Object {
    List(Vec<Value>),
    /// A list of small numbers: most of what is in these files.
    Ints(Vec<i32>),
    Dict(Vec<(Value, Value)>),
    Tuple(Box<[Value]>),
    /// A tensor's values: the entry `data/<key>` of the archive.
    Storage {
        element: Element,
        key: (u32, u32),
    },
    Tensor {
        storage: u32,
        offset: u64,
        shape: Box<[u64]>,
        strides: Box<[u64]>,
    },
    /// The element type of a NumPy array.
    Dtype {
        element: Element,
        little: bool,
    },
    /// A NumPy array, complete once its state was set.
    Array {
        element: Element,
        shape: Box<[u64]>,
        data: Value,
    },
}

/// Everything that a pickle holds.
pub(super) struct Pickle {
    bytes: Vec<u8>,
    objects: Vec<Object>,
    root: Value,
    /// Entries that were passed over so far.
    passed: AtomicU64,
}

/// Names and codes are shorter than this; a longer text is none.
const LONGEST_NAME: u32 = 256;
/// Entries that may be passed over for each byte of a pickle: thousands of times what files need
/// whose objects are not all one object.
const PASSES_PER_BYTE: u64 = 256;

/// Why a pickle is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    at: usize,
    problem: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.problem)
    }
}

impl Pickle {
    /// Reads a pickle; its objects may take `budget` bytes of memory.
    pub(super) fn read(bytes: Vec<u8>, budget: u64) -> Result<Self, Refusal> {
        let pickle =
            Self { bytes, objects: Vec::new(), root: Value::None, passed: AtomicU64::new(0) };
        let mut machine = Machine::new(pickle, budget);
        match machine.run() {
            Ok(root) => Ok(Self { root, ..machine.into_pickle() }),
            Err(problem) => Err(Refusal { at: machine.at(), problem }),
        }
    }

    /// Whether there is any tensor or array in it.
    pub(super) fn has_arrays(&self) -> bool {
        let array =
            |object: &Object| matches!(object, Object::Tensor { .. } | Object::Array { .. });
        self.objects.iter().any(array)
    }

    /// Whether a dictionary has a tensor or array under a name of that kind.
    pub(super) fn names_array(&self, dict: Value, wanted: impl Fn(&str) -> bool) -> bool {
        let Some(Object::Dict(entries)) = self.object(dict) else { return false };
        entries.iter().any(|&(name, value)| {
            let object = self.object(value);
            let array = |object: Option<&Object>| {
                matches!(object, Some(Object::Tensor { .. } | Object::Array { .. }))
            };
            let array = match object {
                Some(Object::Dict(inner)) => {
                    !inner.is_empty() && inner.iter().all(|&(_, one)| array(self.object(one)))
                }
                other => array(other),
            };
            array && self.text(name).is_some_and(&wanted)
        })
    }

    pub(super) fn root(&self) -> Value {
        self.root
    }

    pub(super) fn object(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(index) => self.objects.get(index as usize),
            _ => None,
        }
    }

    pub(super) fn text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(start, len) => std::str::from_utf8(self.slice(start, len)).ok(),
            _ => None,
        }
    }

    /// A text that may be a name or a code: looked at in time that no file can drive up by naming
    /// one long text again and again.
    fn name(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(_, len) if len <= LONGEST_NAME => self.text(value),
            _ => None,
        }
    }

    /// Whether so many entries more may be passed over. A few bytes can name one long list or dict a
    /// million times; what has to be read of a file must not grow faster than the file.
    fn pass(&self, entries: usize) -> Option<()> {
        let passed = self.passed.fetch_add(entries as u64, Ordering::Relaxed);
        let most = (self.bytes.len() as u64 + (1 << 16)).saturating_mul(PASSES_PER_BYTE);
        (passed <= most).then_some(())
    }

    /// Bytes of the pickle.
    pub(super) fn slice(&self, start: u32, len: u32) -> &[u8] {
        &self.bytes[start as usize..][..len as usize]
    }

    /// The entry of a dict under a text key.
    pub(super) fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let Some(Object::Dict(entries)) = self.object(dict) else { return None };
        self.pass(entries.len())?;
        let found = entries.iter().find(|(name, _)| match *name {
            Value::Text(start, len) => self.slice(start, len) == key.as_bytes(),
            _ => false,
        });
        found.map(|(_, value)| *value)
    }

    pub(super) fn int(&self, value: Option<Value>) -> Option<i64> {
        match value {
            Some(Value::Int(int)) => Some(int),
            _ => None,
        }
    }

    /// A list's values.
    pub(super) fn list(&self, value: Value) -> Option<Vec<Value>> {
        let object = self.object(value)?;
        self.pass(match object {
            Object::List(values) => values.len(),
            Object::Tuple(values) => values.len(),
            Object::Ints(ints) => ints.len(),
            _ => 0,
        })?;
        match object {
            Object::List(values) => Some(values.clone()),
            Object::Tuple(values) => Some(values.to_vec()),
            Object::Ints(ints) => Some(ints.iter().map(|&int| Value::Int(int.into())).collect()),
            _ => None,
        }
    }

    /// A list of numbers of 32 bits.
    pub(super) fn ints(&self, value: Value) -> Option<&[i32]> {
        match self.object(value)? {
            Object::Ints(ints) => self.pass(ints.len()).map(|()| &ints[..]),
            Object::List(values) if values.is_empty() => Some(&[]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
    }

    /// A code of half a megabyte that 100,000 calls name again: each used to look at all of it.
    #[test]
    fn a_long_text_is_no_code() {
        let call = b"h\x00h\x01\x85R0";
        let pickle = [
            b"\x80\x02cnumpy\ndtype\nq\x00".to_vec(),
            [text(&"f".repeat(500_000)), b"q\x01".to_vec()].concat(),
            call.repeat(100_000),
            b"N.".to_vec(),
        ];
        let refusal = Pickle::read(pickle.concat(), 1 << 30).err().unwrap().to_string();
        assert!(refusal.contains("an array of \"\""), "{refusal}");
    }

    /// A dict that is named again and again is passed over so often as its file's length explains.
    #[test]
    fn a_dict_cannot_be_searched_for_ever() {
        let entries: Vec<u8> =
            (0..5000).flat_map(|n| [text(&n.to_string()), b"N".to_vec()].concat()).collect();
        let whole = [b"\x80\x02}(".to_vec(), entries, b"u.".to_vec()].concat();
        let most = (whole.len() as u64 + (1 << 16)) * PASSES_PER_BYTE / 5000;
        let pickle = Pickle::read(whole, 1 << 30).unwrap();
        assert_eq!(pickle.get(pickle.root(), "4999"), Some(Value::None));
        let found = (0..2 * most).filter(|_| pickle.get(pickle.root(), "0").is_some()).count();
        assert!((most - 2..=most).contains(&(found as u64)), "{found} of {most}");
    }
}
