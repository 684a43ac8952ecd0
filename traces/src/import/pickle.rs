//! A pickle reader that runs nothing: protocol 2 and later, plain data and a short list of names.
//!
//! Python's own unpickler calls whatever a file names. This one knows the calls by which tensors
//! and arrays are rebuilt and makes plain records of them; any other name is refused. Objects live
//! in one list and refer to each other by number, so that neither cycles nor depth matter, and
//! what they take is counted against the size of the file.

use std::fmt;

use super::pickle_ops as op;

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

/// Types of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    U8,
    I8,
    I16,
    I32,
    I64,
    Float,
}

impl Element {
    /// Bytes of an integer; floats are never read.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 => Some(1),
            Self::I16 => Some(2),
            Self::I32 => Some(4),
            Self::I64 => Some(8),
            Self::Float => None,
        }
    }
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

/// Values on the stack: Python writes at most a thousand of a list at a time.
const MAX_STACK: usize = 1 << 18;

impl Pickle {
    /// Reads a pickle; its objects may take `budget` bytes of memory.
    pub(super) fn read(bytes: Vec<u8>, budget: u64) -> Result<Self, Refusal> {
        let mut machine = Machine {
            pickle: Self { bytes, objects: Vec::new(), root: Value::None },
            at: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            budget,
        };
        match machine.run() {
            Ok(root) => Ok(Self { root, ..machine.pickle }),
            Err(problem) => Err(Refusal { at: machine.at, problem }),
        }
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

/// The stack machine that a pickle is a program for.
struct Machine {
    pickle: Pickle,
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Value>,
    budget: u64,
}

type Step<T> = Result<T, String>;

impl Machine {
    fn run(&mut self) -> Step<Value> {
        if self.byte()? != op::PROTO || !(2..=5).contains(&self.byte()?) {
            return Err("not a pickle of protocol 2 to 5".to_owned());
        }
        loop {
            let code = self.byte()?;
            if code == op::STOP {
                return self.pop();
            }
            self.step(code)?;
            if self.stack.len() > MAX_STACK || self.marks.len() > MAX_STACK {
                return Err(format!("over {MAX_STACK} values on the stack"));
            }
        }
    }

    fn step(&mut self, code: u8) -> Step<()> {
        match code {
            op::FRAME => drop(self.take(8)?),
            op::MARK => self.marks.push(self.stack.len()),
            op::POP => drop(self.pop()?),
            op::POP_MARK => drop(self.since_mark()?),
            op::DUP => {
                let top = self.top()?;
                self.push(top)?;
            }
            op::NONE => self.push(Value::None)?,
            op::NEWTRUE => self.push(Value::Bool(true))?,
            op::NEWFALSE => self.push(Value::Bool(false))?,
            op::BININT1 => {
                let int = self.byte()?;
                self.push(Value::Int(int.into()))?;
            }
            op::BININT2 => {
                let int = self.uint(2)?;
                self.push(Value::Int(int as i64))?;
            }
            op::BININT => {
                let int = self.uint(4)? as u32 as i32;
                self.push(Value::Int(int.into()))?;
            }
            op::LONG1 => self.long(1)?,
            op::LONG4 => self.long(4)?,
            op::BINFLOAT => {
                let bytes = self.uint(8)?;
                self.push(Value::Float(f64::from_bits(bytes.swap_bytes())))?;
            }
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING => self.text(1)?,
            op::BINUNICODE | op::BINSTRING => self.text(4)?,
            op::BINUNICODE8 => self.text(8)?,
            op::SHORT_BINBYTES => self.blob(1)?,
            op::BINBYTES => self.blob(4)?,
            op::BINBYTES8 | op::BYTEARRAY8 => self.blob(8)?,
            op::EMPTY_LIST => self.make(Object::List(Vec::new()), 0)?,
            op::EMPTY_DICT => self.make(Object::Dict(Vec::new()), 0)?,
            op::EMPTY_TUPLE => self.make(Object::Tuple(Box::new([])), 0)?,
            op::TUPLE => {
                let values = self.since_mark()?;
                self.make_tuple(values)?;
            }
            op::TUPLE1 | op::TUPLE2 | op::TUPLE3 => {
                let count = usize::from(code - op::TUPLE1) + 1;
                let from = self.stack.len().checked_sub(count).ok_or("the stack is empty")?;
                let values = self.stack.split_off(from);
                self.make_tuple(values)?;
            }
            op::LIST => {
                let values = self.since_mark()?;
                self.make(Object::List(Vec::new()), 0)?;
                self.append(&values)?;
            }
            op::DICT => {
                let values = self.since_mark()?;
                self.make(Object::Dict(Vec::new()), 0)?;
                self.set(&values)?;
            }
            op::APPEND => {
                let value = self.pop()?;
                self.append(&[value])?;
            }
            op::APPENDS => {
                let values = self.since_mark()?;
                self.append(&values)?;
            }
            op::SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(&[key, value])?;
            }
            op::SETITEMS => {
                let values = self.since_mark()?;
                self.set(&values)?;
            }
            op::BINPUT | op::LONG_BINPUT => {
                let index = self.uint(if code == op::BINPUT { 1 } else { 4 })? as usize;
                self.memoize(index)?;
            }
            op::MEMOIZE => self.memoize(self.memo.len())?,
            op::BINGET | op::LONG_BINGET => {
                let index = self.uint(if code == op::BINGET { 1 } else { 4 })? as usize;
                let value = self.memo.get(index).copied();
                self.push(value.ok_or_else(|| format!("memo {index} was never set"))?)?;
            }
            op::GLOBAL => {
                let module = self.line()?;
                let name = self.line()?;
                let name = find(&module, &name)?;
                self.push(Value::Name(name))?;
            }
            op::STACK_GLOBAL => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |value| self.pickle.text(value).map(str::to_owned);
                let (Some(module), Some(name)) = (text(module), text(name)) else {
                    return Err("a name that is no text".to_owned());
                };
                self.push(Value::Name(find(&module, &name)?))?;
            }
            op::REDUCE => self.reduce()?,
            op::BUILD => self.build()?,
            op::BINPERSID => self.persistent()?,
            other => return Err(format!("opcode {other:#04x}, which data never needs")),
        }
        Ok(())
    }

    fn byte(&mut self) -> Step<u8> {
        let byte = self.pickle.bytes.get(self.at).copied().ok_or("it ends too early")?;
        self.at += 1;
        Ok(byte)
    }

    /// The next so many bytes, as start and length.
    fn take(&mut self, len: u64) -> Step<(u32, u32)> {
        let end = (self.at as u64).checked_add(len);
        let end = end.filter(|&end| end <= self.pickle.bytes.len() as u64 && end < 1 << 32);
        let end = end.ok_or_else(|| format!("{len} bytes are stated, it ends before"))?;
        let start = std::mem::replace(&mut self.at, end as usize);
        Ok((start as u32, len as u32))
    }

    fn uint(&mut self, len: usize) -> Step<u64> {
        let (start, len) = self.take(len as u64)?;
        let mut bytes = [0; 8];
        bytes[..len as usize].copy_from_slice(self.pickle.slice(start, len));
        Ok(u64::from_le_bytes(bytes))
    }

    fn line(&mut self) -> Step<String> {
        let rest = &self.pickle.bytes[self.at..];
        let end = rest.iter().take(256).position(|&byte| byte == b'\n');
        let end = end.ok_or("a name without an end")?;
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| "a name that is no text")?;
        let line = line.to_owned();
        self.at += end + 1;
        Ok(line)
    }

    fn long(&mut self, len: usize) -> Step<()> {
        let count = self.uint(len)?;
        if count > 8 {
            return Err(format!("a number of {count} bytes; 8 are enough for any count"));
        }
        let (start, count) = self.take(count)?;
        let bytes = self.pickle.slice(start, count);
        let sign = if bytes.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 };
        let mut wide = [sign; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(wide)))
    }

    fn text(&mut self, len: usize) -> Step<()> {
        let count = self.uint(len)?;
        let (start, count) = self.take(count)?;
        self.push(Value::Text(start, count))
    }

    fn blob(&mut self, len: usize) -> Step<()> {
        let count = self.uint(len)?;
        let (start, count) = self.take(count)?;
        self.push(Value::Bytes(start, count))
    }

    fn charge(&mut self, bytes: usize) -> Step<()> {
        self.budget = self
            .budget
            .checked_sub(bytes as u64)
            .ok_or("its objects take more memory than a file of this size explains")?;
        Ok(())
    }

    fn push(&mut self, value: Value) -> Step<()> {
        self.stack.push(value);
        Ok(())
    }

    fn top(&self) -> Step<Value> {
        self.stack.last().copied().ok_or_else(|| "the stack is empty".to_owned())
    }

    fn pop(&mut self) -> Step<Value> {
        if self.marks.last() == Some(&self.stack.len()) {
            return Err("a mark where a value was expected".to_owned());
        }
        self.stack.pop().ok_or_else(|| "the stack is empty".to_owned())
    }

    fn since_mark(&mut self) -> Step<Vec<Value>> {
        let mark = self.marks.pop().ok_or("no mark")?;
        if mark > self.stack.len() {
            return Err("the stack is shorter than its mark".to_owned());
        }
        Ok(self.stack.split_off(mark))
    }

    fn make(&mut self, object: Object, values: usize) -> Step<()> {
        self.charge(3 * size_of::<Object>() + values * size_of::<Value>())?;
        let index = self.pickle.objects.len() as u32;
        self.pickle.objects.push(object);
        self.push(Value::Object(index))
    }

    fn make_tuple(&mut self, values: Vec<Value>) -> Step<()> {
        let count = values.len();
        self.make(Object::Tuple(values.into()), count)
    }

    fn memoize(&mut self, index: usize) -> Step<()> {
        let value = self.top()?;
        match index.cmp(&self.memo.len()) {
            std::cmp::Ordering::Less => self.memo[index] = value,
            std::cmp::Ordering::Equal => {
                self.charge(3 * size_of::<Value>())?;
                self.memo.push(value);
            }
            std::cmp::Ordering::Greater => return Err(format!("memo {index} leaves a gap")),
        }
        Ok(())
    }

    fn target(&mut self) -> Step<usize> {
        match self.top()? {
            Value::Object(index) => Ok(index as usize),
            _ => Err("values are added to what holds none".to_owned()),
        }
    }

    fn append(&mut self, values: &[Value]) -> Step<()> {
        let target = self.target()?;
        let small = |value: &Value| match value {
            Value::Int(int) => i32::try_from(*int).ok(),
            _ => None,
        };
        let ints: Option<Vec<i32>> = values.iter().map(small).collect();
        let count = values.len();
        let list = &mut self.pickle.objects[target];
        match (&mut *list, ints) {
            (Object::Ints(all), Some(ints)) => {
                all.extend_from_slice(&ints);
                self.charge(3 * size_of::<i32>() * count)
            }
            (Object::List(all), Some(ints)) if all.is_empty() => {
                *list = Object::Ints(ints);
                self.charge(3 * size_of::<i32>() * count)
            }
            (Object::Ints(ints), None) => {
                let mut all: Vec<Value> = ints.iter().map(|&int| Value::Int(int.into())).collect();
                all.extend_from_slice(values);
                let count = all.len();
                *list = Object::List(all);
                self.charge(3 * size_of::<Value>() * count)
            }
            (Object::List(all), _) => {
                all.extend_from_slice(values);
                self.charge(3 * size_of::<Value>() * count)
            }
            _ => Err("values are appended to what is no list".to_owned()),
        }
    }

    fn set(&mut self, values: &[Value]) -> Step<()> {
        let target = self.target()?;
        let pairs = values.as_chunks::<2>();
        if !pairs.1.is_empty() {
            return Err("a key without a value".to_owned());
        }
        let Object::Dict(entries) = &mut self.pickle.objects[target] else {
            return Err("entries are set in what is no dict".to_owned());
        };
        entries.extend(pairs.0.iter().map(|[key, value]| (*key, *value)));
        self.charge(3 * size_of::<Value>() * values.len())
    }

    fn tuple(&self, value: Value) -> Step<Box<[Value]>> {
        match self.pickle.object(value) {
            // A call's arguments are few.
            Some(Object::Tuple(values)) if values.len() <= 64 => Ok(values.clone()),
            _ => Err("a tuple was expected".to_owned()),
        }
    }

    /// A tuple of sizes.
    fn extent(&self, value: Value) -> Step<Box<[u64]>> {
        let size = |value: &Value| match value {
            Value::Int(int) => u64::try_from(*int).ok(),
            _ => None,
        };
        let sizes: Option<Box<[u64]>> = self.tuple(value)?.iter().map(size).collect();
        sizes.ok_or_else(|| "a size that is no whole number".to_owned())
    }

    /// `("storage", type, key, location, count)`: the location (`cuda:0`) does not matter here.
    fn persistent(&mut self) -> Step<()> {
        let id = self.pop()?;
        let id = self.tuple(id)?;
        let (Some(&Value::Name(Name::Storage(element))), Some(&Value::Text(start, len))) =
            (id.get(1), id.get(2))
        else {
            return Err("a persistent id that is no storage".to_owned());
        };
        self.make(Object::Storage { element, key: (start, len) }, 0)
    }

    fn reduce(&mut self) -> Step<()> {
        let arguments = self.pop()?;
        let arguments = self.tuple(arguments)?;
        let Value::Name(name) = self.pop()? else {
            return Err("a call of what is no name".to_owned());
        };
        match (name, &arguments[..]) {
            (Name::OrderedDict, []) => self.make(Object::Dict(Vec::new()), 0),
            (Name::RebuildTensor, [storage, Value::Int(offset), shape, strides, ..]) => {
                let storage = match (storage, self.pickle.object(*storage)) {
                    (Value::Object(index), Some(Object::Storage { .. })) => *index,
                    _ => return Err("a tensor without a storage".to_owned()),
                };
                let offset = u64::try_from(*offset).map_err(|_| "a negative offset")?;
                let (shape, strides) = (self.extent(*shape)?, self.extent(*strides)?);
                if shape.len() != strides.len() {
                    return Err("a tensor with more or fewer strides than sizes".to_owned());
                }
                let values = 2 * shape.len();
                self.make(Object::Tensor { storage, offset, shape, strides }, values)
            }
            (Name::Reconstruct, [Value::Name(Name::NdArray), ..]) => {
                let shape = Box::new([]);
                self.make(Object::Array { element: Element::U8, shape, data: Value::None }, 0)
            }
            (Name::NumpyDtype, [code, ..]) => {
                let element = match self.pickle.text(*code) {
                    Some("u1") => Element::U8,
                    Some("i1") => Element::I8,
                    Some("i2") => Element::I16,
                    Some("i4") => Element::I32,
                    Some("i8") => Element::I64,
                    Some(other) if other.starts_with('f') => Element::Float,
                    other => return Err(format!("an array of {:?}", other.unwrap_or_default())),
                };
                self.make(Object::Dtype { element, little: true }, 0)
            }
            (Name::Encode, [Value::Text(start, len), ..]) => self.push(Value::Latin1(*start, *len)),
            _ => Err(format!("a call of {name:?} with other arguments than data have")),
        }
    }

    fn build(&mut self) -> Step<()> {
        let state = self.pop()?;
        let state = self.tuple(state)?;
        let target = self.target()?;
        match (&self.pickle.objects[target], &state[..]) {
            (&Object::Dtype { element, .. }, [_, order, ..]) => {
                let little = self.pickle.text(*order) != Some(">");
                self.pickle.objects[target] = Object::Dtype { element, little };
                Ok(())
            }
            (Object::Array { .. }, [_, shape, dtype, fortran, data]) => {
                let element = match self.pickle.object(*dtype) {
                    Some(&Object::Dtype { element, little: true }) => element,
                    _ => return Err("an array that is not little-endian".to_owned()),
                };
                if *fortran != Value::Bool(false) {
                    return Err("an array in Fortran order".to_owned());
                }
                let (shape, data) = (self.extent(*shape)?, *data);
                self.charge(size_of_val(&*shape))?;
                self.pickle.objects[target] = Object::Array { element, shape, data };
                Ok(())
            }
            _ => Err("state is set of what has none".to_owned()),
        }
    }
}

/// The known names; all others are refused.
fn find(module: &str, name: &str) -> Step<Name> {
    Ok(match (module, name) {
        ("collections", "OrderedDict") => Name::OrderedDict,
        ("torch", "ByteStorage" | "BoolStorage") => Name::Storage(Element::U8),
        ("torch", "CharStorage") => Name::Storage(Element::I8),
        ("torch", "ShortStorage") => Name::Storage(Element::I16),
        ("torch", "IntStorage") => Name::Storage(Element::I32),
        ("torch", "LongStorage") => Name::Storage(Element::I64),
        ("torch", "HalfStorage" | "BFloat16Storage" | "FloatStorage" | "DoubleStorage") => {
            Name::Storage(Element::Float)
        }
        ("torch._utils", "_rebuild_tensor_v2") => Name::RebuildTensor,
        ("numpy", "ndarray") => Name::NdArray,
        ("numpy", "dtype") => Name::NumpyDtype,
        ("numpy._core.multiarray" | "numpy.core.multiarray", "_reconstruct") => Name::Reconstruct,
        ("_codecs", "encode") => Name::Encode,
        _ => {
            return Err(format!(
                "names {}.{}, which is not on the list of what data need; nothing in it is run",
                module.escape_debug(),
                name.escape_debug()
            ));
        }
    })
}
