//! As much of GGUF as an importance matrix needs: numbers and texts of the header, tensors of f32.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use crate::error::Result;
use crate::import::input::{Input, Reader};

/// An opened file.
pub(super) struct Gguf<'a> {
    input: Input<'a>,
    reader: Reader<'a>,
    /// Numbers of the header.
    pub(super) numbers: BTreeMap<String, u64>,
    /// Texts of the header.
    pub(super) texts: BTreeMap<String, String>,
    pub(super) tensors: Vec<Tensor>,
    data: u64,
}

/// A tensor's place.
pub(super) struct Tensor {
    pub(super) name: String,
    /// Elements in all.
    pub(super) count: u64,
    f32: bool,
    offset: u64,
}

const F32: u32 = 0;
/// The longest name or text that is kept.
const MAX_TEXT: u64 = 1 << 12;
/// Entries and tensors of a header: a large model's importance matrix has some thousands.
const MAX_ENTRIES: u64 = 1 << 16;

impl<'a> Gguf<'a> {
    pub(super) fn open(input: &Input<'a>) -> Result<Self> {
        let mut file = Self {
            input: *input,
            reader: input.open()?,
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            tensors: Vec::new(),
            data: 0,
        };
        let mut magic = [0; 4];
        file.reader.read_exact(&mut magic).map_err(|e| input.io(e))?;
        let version = file.u32()?;
        if &magic != b"GGUF" || !(2..=3).contains(&version) {
            return Err(input.error("header", "not GGUF of version 2 or 3"));
        }
        let (tensors, entries) = (file.u64()?, file.u64()?);
        if tensors > MAX_ENTRIES || entries > MAX_ENTRIES {
            let problem = format!("states {entries} entries and {tensors} tensors");
            return Err(input.error("header", problem));
        }
        for _ in 0..entries {
            let key = file.text()?;
            let kind = file.u32()?;
            file.value(&key, kind)?;
        }
        for _ in 0..tensors {
            let tensor = file.tensor()?;
            file.tensors.push(tensor);
        }
        let at = file.reader.stream_position().map_err(|e| input.io(e))?;
        let alignment = file.numbers.get("general.alignment").copied().unwrap_or(32).max(1);
        let data = at.checked_next_multiple_of(alignment);
        file.data = data.ok_or_else(|| input.error("header", "an absurd alignment"))?;
        Ok(file)
    }

    /// The values of a tensor.
    pub(super) fn values(&mut self, index: usize) -> Result<Vec<f32>> {
        let Tensor { name, count, f32, offset } = &self.tensors[index];
        let refuse = |problem: String| self.input.error(format!("tensor {name}"), problem);
        if !f32 {
            return Err(refuse("is not of f32".to_owned()));
        }
        let start = self.data.checked_add(*offset);
        let end = start.and_then(|start| start.checked_add(count.checked_mul(4)?));
        let whole = self.reader.len();
        let (Some(start), true) = (start, end.is_some_and(|end| end <= whole)) else {
            return Err(refuse(format!(
                "{count} values at {offset} reach past the file's {whole}"
            )));
        };
        let mut values = vec![0f32; *count as usize];
        self.reader.seek(SeekFrom::Start(start)).map_err(|e| self.input.io(e))?;
        self.reader
            .read_exact(bytemuck::cast_slice_mut(&mut values))
            .map_err(|e| self.input.io(e))?;
        Ok(values)
    }

    fn tensor(&mut self) -> Result<Tensor> {
        let name = self.text()?;
        let dimensions = self.u32()?;
        if dimensions > 4 {
            let problem = format!("{dimensions} dimensions; GGUF has at most 4");
            return Err(self.input.error(format!("tensor {name}"), problem));
        }
        let mut count = Some(1u64);
        for _ in 0..dimensions {
            let size = self.u64()?;
            count = count.and_then(|count| count.checked_mul(size));
        }
        let (kind, offset) = (self.u32()?, self.u64()?);
        let absurd = || self.input.error(format!("tensor {name}"), "an absurd size");
        Ok(Tensor { count: count.ok_or_else(absurd)?, f32: kind == F32, offset, name })
    }

    /// Reads a value, keeping numbers and texts; lists are passed over.
    fn value(&mut self, key: &str, kind: u32) -> Result<()> {
        let size = |kind: u32| match kind {
            0 | 1 | 7 => Some(1u64),
            2 | 3 => Some(2),
            4..=6 => Some(4),
            10..=12 => Some(8),
            _ => None,
        };
        let unknown =
            |input: Input<'_>| input.error(key, format!("a value of unknown kind {kind}"));
        match kind {
            8 => {
                let text = self.text()?;
                self.texts.insert(key.to_owned(), text);
            }
            9 => {
                let (of, count) = (self.u32()?, self.u64()?);
                if of == 8 {
                    // Each text is at least its length.
                    if count > self.left()? / 8 {
                        return Err(self.input.error(key, format!("a list of {count} texts")));
                    }
                    for _ in 0..count {
                        let length = self.u64()?;
                        self.skip(length)?;
                    }
                } else {
                    let size = size(of).ok_or_else(|| unknown(self.input))?;
                    let bytes = count.checked_mul(size);
                    self.skip(bytes.ok_or_else(|| self.input.error(key, "an absurd length"))?)?;
                }
            }
            _ => {
                let size = size(kind).ok_or_else(|| unknown(self.input))?;
                let mut bytes = [0; 8];
                self.fill(&mut bytes[..size as usize])?;
                // Floats are no counts.
                if !matches!(kind, 6 | 12) {
                    self.numbers.insert(key.to_owned(), u64::from_le_bytes(bytes));
                }
            }
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.reader
            .read_exact(bytes)
            .map_err(|e| self.input.error("header", format!("it ends inside its header: {e}")))
    }

    fn u32(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Result<String> {
        let length = self.u64()?;
        if length > MAX_TEXT {
            self.skip(length)?;
            return Ok(String::new());
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.input.error("header", "text that is not UTF-8"))
    }

    /// Bytes after the place that was read up to.
    fn left(&mut self) -> Result<u64> {
        let at = self.reader.stream_position().map_err(|e| self.input.io(e))?;
        Ok(self.reader.len().saturating_sub(at))
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        let left = self.left()?;
        let step = i64::try_from(bytes).ok().filter(|_| bytes <= left);
        let step = step.ok_or_else(|| {
            self.input.error("header", format!("{bytes} bytes are stated, {left} are left"))
        })?;
        self.reader.seek(SeekFrom::Current(step)).map_err(|e| self.input.io(e))?;
        Ok(())
    }
}
