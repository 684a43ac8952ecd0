//! The header of one GGUF file: keys and tensor infos.
//!
//! The tokenizer makes up most of a header and is skipped, not stored. Every count and length is held against what is
//! left of the file before anything is read or allocated for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::model::ModelError;

/// Strings up to this many bytes are kept, longer ones (chat templates) skipped.
const KEPT_STRING: u64 = 1 << 12;
/// Arrays of numbers up to this many entries are kept: one value a layer.
const KEPT_ARRAY: u64 = 1 << 12;
/// Names of keys and tensors are at most so long.
const MAX_NAME: u64 = 1 << 16;
/// A tensor has at most so many dimensions.
const MAX_DIMENSIONS: u32 = 8;

/// A value of a key, as far as a plan needs it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number that is not negative.
    Number(u64),
    /// A short text.
    Text(String),
    /// A truth value.
    Flag(bool),
    /// Whole numbers or truth values, one a layer.
    List(Vec<u64>),
    /// Anything else.
    Skipped,
}

/// A tensor as the header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Its dimensions, the contracted one first.
    pub dimensions: Vec<u64>,
    /// The id of its type.
    pub kind: u32,
    /// Where it begins in the data.
    pub offset: u64,
}

/// The header of one file.
#[derive(Clone, Debug)]
pub struct Header {
    /// Keys and values.
    pub keys: BTreeMap<String, Value>,
    /// Tensors, in the order of the file.
    pub tensors: Vec<TensorInfo>,
    /// Bytes of tensor data that the file has after its header.
    pub data_bytes: u64,
    /// The alignment of tensors.
    pub alignment: u64,
}

/// Reads the header of one GGUF file.
///
/// # Errors
/// [`ModelError::Header`] with the section and the byte: not GGUF, another version, cut short, or lengths that the
/// file cannot hold.
pub fn read_header(path: &Path) -> Result<Header, ModelError> {
    let io = |source| ModelError::io(path, source);
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let origin = path.display().to_string();
    let mut reader =
        Reader { file: BufReader::new(file), at: 0, size, origin, section: "magic".into() };
    reader.header()
}

struct Reader<R> {
    file: R,
    at: u64,
    size: u64,
    origin: String,
    section: String,
}

impl<R: Read + Seek> Reader<R> {
    fn header(&mut self) -> Result<Header, ModelError> {
        if &self.bytes::<4>()? != b"GGUF" {
            self.at = 0;
            return Err(self.wrong("is not GGUF: the file does not begin with those letters"));
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return Err(self.wrong(format!("version {version}: 2 and 3 are known")));
        }
        self.section = "counts".into();
        let tensor_count = self.u64()?;
        let key_count = self.u64()?;
        // A key takes at least 13 bytes, a tensor's info 24.
        self.plausible(key_count, 13, "keys")?;
        self.plausible(tensor_count, 24, "tensors")?;
        let mut keys = BTreeMap::new();
        for index in 0..key_count {
            self.section = format!("key {index}");
            let name = self.text(MAX_NAME)?;
            self.section = format!("key `{name}`");
            let kind = self.u32()?;
            let value = self.value(kind)?;
            keys.insert(name, value);
        }
        let mut tensors = Vec::new();
        for index in 0..tensor_count {
            self.section = format!("tensor {index}");
            tensors.push(self.tensor()?);
        }
        let alignment = match keys.get("general.alignment") {
            None => 32,
            Some(Value::Number(alignment)) if alignment.is_power_of_two() => *alignment,
            Some(other) => return Err(self.wrong(format!("general.alignment is {other:?}"))),
        };
        let data = self.at.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
        let data_bytes = self.size.saturating_sub(data);
        Ok(Header { keys, tensors, data_bytes, alignment })
    }

    fn tensor(&mut self) -> Result<TensorInfo, ModelError> {
        let name = self.text(MAX_NAME)?;
        self.section = format!("tensor `{name}`");
        let count = self.u32()?;
        if count > MAX_DIMENSIONS {
            return Err(self.wrong(format!("has {count} dimensions")));
        }
        let dimensions = (0..count).map(|_| self.u64()).collect::<Result<_, _>>()?;
        let kind = self.u32()?;
        let offset = self.u64()?;
        Ok(TensorInfo { name, dimensions, kind, offset })
    }

    fn value(&mut self, kind: u32) -> Result<Value, ModelError> {
        Ok(match kind {
            8 => match self.u64()? {
                length if length <= KEPT_STRING => Value::Text(self.text_of(length)?),
                length => {
                    self.skip(length)?;
                    Value::Skipped
                }
            },
            9 => self.array()?,
            kind => self.scalar(kind)?,
        })
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, ModelError> {
        let signed = |value: i64| u64::try_from(value).map_or(Value::Skipped, Value::Number);
        Ok(match kind {
            0 => Value::Number(self.bytes::<1>()?[0].into()),
            1 => signed(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Number(u16::from_le_bytes(self.bytes()?).into()),
            3 => signed(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Number(self.u32()?.into()),
            5 => signed(i32::from_le_bytes(self.bytes()?).into()),
            7 => Value::Flag(self.bytes::<1>()?[0] != 0),
            10 => Value::Number(self.u64()?),
            11 => signed(i64::from_le_bytes(self.bytes()?)),
            6 => {
                self.skip(4)?;
                Value::Skipped
            }
            12 => {
                self.skip(8)?;
                Value::Skipped
            }
            other => return Err(self.wrong(format!("has a value of the unknown type {other}"))),
        })
    }

    fn array(&mut self) -> Result<Value, ModelError> {
        let kind = self.u32()?;
        let count = self.u64()?;
        let width = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            // A string: its length at least.
            8 => 8,
            other => return Err(self.wrong(format!("is an array of the unknown type {other}"))),
        };
        self.plausible(count, width, "entries")?;
        if kind == 8 {
            for _ in 0..count {
                let length = self.u64()?;
                self.skip(length)?;
            }
            return Ok(Value::Skipped);
        }
        if count > KEPT_ARRAY || kind == 6 || kind == 12 {
            // Held against the file above.
            self.skip(count * width)?;
            return Ok(Value::Skipped);
        }
        let mut list = Vec::new();
        let mut whole = true;
        for _ in 0..count {
            match self.scalar(kind)? {
                Value::Number(number) => list.push(number),
                Value::Flag(flag) => list.push(flag.into()),
                _ => whole = false,
            }
        }
        Ok(if whole { Value::List(list) } else { Value::Skipped })
    }

    fn text(&mut self, most: u64) -> Result<String, ModelError> {
        let length = self.u64()?;
        if length > most {
            return Err(self.wrong(format!("has a name of {length} bytes")));
        }
        self.text_of(length)
    }

    fn text_of(&mut self, length: u64) -> Result<String, ModelError> {
        self.plausible(length, 1, "bytes of text")?;
        let mut text = vec![0u8; length as usize];
        self.fill(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn u32(&mut self) -> Result<u32, ModelError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ModelError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), ModelError> {
        if self.size - self.at < bytes.len() as u64 {
            return Err(self.cut(bytes.len() as u64));
        }
        self.file.read_exact(bytes).map_err(|source| self.io(source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, length: u64) -> Result<(), ModelError> {
        if self.size - self.at < length {
            return Err(self.cut(length));
        }
        self.at += length;
        if length < 4096 {
            // Stays within the buffer where it can; below 2^63.
            let mut rest = (&mut self.file).take(length);
            std::io::copy(&mut rest, &mut std::io::sink()).map_err(|source| self.io(source))?;
        } else {
            self.file.seek(SeekFrom::Start(self.at)).map_err(|source| self.io(source))?;
        }
        Ok(())
    }

    /// Refuses a count of things of at least `least` bytes that the rest of the file cannot hold.
    fn plausible(&self, count: u64, least: u64, what: &str) -> Result<(), ModelError> {
        let left = self.size - self.at;
        if count > left / least {
            return Err(self.wrong(format!(
                "says {count} {what}; {left} bytes are left: the file is cut or hostile"
            )));
        }
        Ok(())
    }

    fn cut(&self, needed: u64) -> ModelError {
        self.wrong(format!("is cut: {needed} bytes more, {} are left", self.size - self.at))
    }

    fn io(&self, source: std::io::Error) -> ModelError {
        ModelError::io(Path::new(&self.origin), source)
    }

    fn wrong(&self, why: impl Into<String>) -> ModelError {
        ModelError::Header {
            origin: self.origin.clone(),
            section: format!("GGUF {}", self.section),
            at: self.at,
            why: why.into(),
        }
    }
}
