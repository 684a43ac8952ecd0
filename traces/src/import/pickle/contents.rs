//! What a pickle holds: values, and the objects that they refer to by number.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::import::element::Element;

/// A value; text and bytes stay where they are in the pickle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::import) enum Value {
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
pub(in crate::import) enum Name {
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
pub(in crate::import) enum Object {
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
pub(in crate::import) struct Pickle {
    pub(super) bytes: Vec<u8>,
    pub(super) objects: Vec<Object>,
    root: Value,
    /// Entries that were passed over so far.
    passed: AtomicU64,
}

/// Names and codes are shorter than this; a longer text is none.
const LONGEST_NAME: u32 = 256;
/// Entries that may be passed over for each byte of a pickle: thousands of times what files need
/// whose objects are not all one object.
pub(super) const PASSES_PER_BYTE: u64 = 256;

impl Pickle {
    /// Nothing read yet.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, objects: Vec::new(), root: Value::None, passed: AtomicU64::new(0) }
    }

    /// With the value that is left at its end.
    pub(super) fn with_root(self, root: Value) -> Self {
        Self { root, ..self }
    }

    /// Whether there is any tensor or array in it.
    pub(in crate::import) fn has_arrays(&self) -> bool {
        let array =
            |object: &Object| matches!(object, Object::Tensor { .. } | Object::Array { .. });
        self.objects.iter().any(array)
    }

    /// Whether a dictionary has a tensor or array under a name of that kind.
    pub(in crate::import) fn names_array(
        &self,
        dict: Value,
        wanted: impl Fn(&str) -> bool,
    ) -> bool {
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

    pub(in crate::import) fn root(&self) -> Value {
        self.root
    }

    pub(in crate::import) fn object(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(index) => self.objects.get(index as usize),
            _ => None,
        }
    }

    pub(in crate::import) fn text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(start, len) => std::str::from_utf8(self.slice(start, len)).ok(),
            _ => None,
        }
    }

    /// A text that may be a name or a code: looked at in time that no file can drive up by naming
    /// one long text again and again.
    pub(super) fn name(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(_, len) if len <= LONGEST_NAME => self.text(value),
            _ => None,
        }
    }

    /// Whether so many entries more may be passed over. A few bytes can name one long list or dict a
    /// million times; what has to be read of a file must not grow faster than the file.
    pub(super) fn pass(&self, entries: usize) -> Option<()> {
        let passed = self.passed.fetch_add(entries as u64, Ordering::Relaxed);
        let most = (self.bytes.len() as u64 + (1 << 16)).saturating_mul(PASSES_PER_BYTE);
        (passed <= most).then_some(())
    }

    /// Bytes of the pickle.
    pub(in crate::import) fn slice(&self, start: u32, len: u32) -> &[u8] {
        &self.bytes[start as usize..][..len as usize]
    }

    /// The entry of a dict under a text key.
    pub(in crate::import) fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let Some(Object::Dict(entries)) = self.object(dict) else { return None };
        self.pass(entries.len())?;
        let found = entries.iter().find(|(name, _)| match *name {
            Value::Text(start, len) => self.slice(start, len) == key.as_bytes(),
            _ => false,
        });
        found.map(|(_, value)| *value)
    }

    pub(in crate::import) fn int(&self, value: Option<Value>) -> Option<i64> {
        match value {
            Some(Value::Int(int)) => Some(int),
            _ => None,
        }
    }

    /// A list's values.
    pub(in crate::import) fn list(&self, value: Value) -> Option<Vec<Value>> {
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
    pub(in crate::import) fn ints(&self, value: Value) -> Option<&[i32]> {
        match self.object(value)? {
            Object::Ints(ints) => self.pass(ints.len()).map(|()| &ints[..]),
            Object::List(values) if values.is_empty() => Some(&[]),
            _ => None,
        }
    }
}
