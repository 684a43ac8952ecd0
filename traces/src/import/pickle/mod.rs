//! A pickle reader that runs nothing: protocol 2 and later, plain data and a short list of names.
//!
//! Python's own unpickler calls whatever a file names. This one knows the calls by which tensors
//! and arrays are rebuilt and makes plain records of them; any other name is refused. Objects live
//! in one list and refer to each other by number, so that neither cycles nor depth matter, and
//! what they take is counted against the size of the file.

mod machine;
mod ops;

use std::fmt;

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
}

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
        let pickle = Self { bytes, objects: Vec::new(), root: Value::None };
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
            let array = matches!(object, Some(Object::Tensor { .. } | Object::Array { .. }));
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

    /// Bytes of the pickle.
    pub(super) fn slice(&self, start: u32, len: u32) -> &[u8] {
        &self.bytes[start as usize..][..len as usize]
    }

    /// The entry of a dict under a text key.
    pub(super) fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let Some(Object::Dict(entries)) = self.object(dict) else { return None };
        entries.iter().find(|(name, _)| self.text(*name) == Some(key)).map(|(_, value)| *value)
    }

    pub(super) fn int(&self, value: Option<Value>) -> Option<i64> {
        match value {
            Some(Value::Int(int)) => Some(int),
            _ => None,
        }
    }

    /// A list's values.
    pub(super) fn list(&self, value: Value) -> Option<Vec<Value>> {
        match self.object(value)? {
            Object::List(values) => Some(values.clone()),
            Object::Tuple(values) => Some(values.to_vec()),
            Object::Ints(ints) => Some(ints.iter().map(|&int| Value::Int(int.into())).collect()),
            _ => None,
        }
    }

    /// A list of numbers of 32 bits.
    pub(super) fn ints(&self, value: Value) -> Option<&[i32]> {
        match self.object(value)? {
            Object::Ints(ints) => Some(ints),
            Object::List(values) if values.is_empty() => Some(&[]),
            _ => None,
        }
    }
}
