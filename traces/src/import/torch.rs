//! `.pt` files: a zip with a pickle and the tensors' values, read without running anything.

use std::io::Read;

use zip::ZipArchive;

use super::input::{Input, Reader};
use super::pickle::{Element, Object, Pickle, Value};
use crate::error::{Error, Result};

/// An opened file.
pub(super) struct Torch<'a> {
    input: Input<'a>,
    /// Bytes of the whole file.
    length: u64,
    archive: ZipArchive<Reader<'a>>,
    /// The folder that all entries lie in.
    prefix: String,
    pub(super) pickle: Pickle,
    /// Bytes of values that may still be read: a small file may not ask for the same ones forever.
    budget: u64,
}

/// An array of integers.
pub(super) struct Ints<T> {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<T>,
}

impl<'a> Torch<'a> {
    pub(super) fn open(input: &Input<'a>) -> Result<Self> {
        let refuse = |problem: String| input.error("file", problem);
        let reader = input.open()?;
        let length = reader.len();
        let mut archive = ZipArchive::new(reader)
            .map_err(|e| refuse(format!("not a .pt file (a zip of torch.save): {e}")))?;
        let mut names = archive.file_names().filter_map(Result::ok);
        let name = names.find(|name| name.ends_with("/data.pkl")).map(|name| name.into_owned());
        drop(names);
        let name = name.ok_or_else(|| refuse("has no data.pkl".to_owned()))?;
        let prefix = name.trim_end_matches("data.pkl").to_owned();
        if let Some(order) = entry(input, &mut archive, &format!("{prefix}byteorder"), length)?
            && order != b"little"
        {
            return Err(refuse("written on a big-endian machine".to_owned()));
        }
        let pickle = entry(input, &mut archive, &name, length)?.unwrap_or_default();
        let budget = length.saturating_mul(2).saturating_add(32 << 20);
        let pickle =
            Pickle::read(pickle, budget).map_err(|e| input.error("data.pkl", e.to_string()))?;
        let budget = length.saturating_mul(8).saturating_add(64 << 20);
        Ok(Self { input: *input, length, archive, prefix, pickle, budget })
    }

    fn refuse(&self, place: &str, problem: impl Into<String>) -> Error {
        self.input.error(place, problem)
    }

    /// The records, samples or whatever a dict lists under a key.
    pub(super) fn list_of(&self, key: &str) -> Result<Vec<Value>> {
        let list = self.pickle.get(self.pickle.root(), key).and_then(|list| self.pickle.list(list));
        list.ok_or_else(|| self.refuse("data.pkl", format!("has no list {key}")))
    }

    /// A tensor or NumPy array of integers, each within `T`. `place` names it in errors.
    pub(super) fn ints<T: TryFrom<i64>>(&mut self, value: Value, place: &str) -> Result<Ints<T>> {
        match self.pickle.object(value).cloned() {
            Some(Object::Tensor { storage, offset, shape, strides }) => {
                let Some(Object::Storage { element, key }) =
                    self.pickle.object(Value::Object(storage)).cloned()
                else {
                    return Err(self.refuse(place, "a tensor without a storage"));
                };
                let (shape, count) = self.extent::<T>(&shape, place)?;
                let size = self.size_of(element, place)?;
                // The last element that is reached, from which the bytes that are needed.
                let last = shape.iter().zip(&strides).try_fold(offset, |last, (&dim, &stride)| {
                    last.checked_add((dim as u64).saturating_sub(1).checked_mul(stride)?)
                });
                let last = if count == 0 { Some(0) } else { last.map(|last| last + 1) };
                let key = String::from_utf8_lossy(self.pickle.slice(key.0, key.1)).into_owned();
                let bytes = self.storage(&key, place)?;
                if last
                    .and_then(|n| n.checked_mul(size as u64))
                    .is_none_or(|n| n > bytes.len() as u64)
                {
                    let there = bytes.len() / size;
                    let problem = format!("shape {shape:?} reaches past its {there} values");
                    return Err(self.refuse(place, problem));
                }
                let values = gather(&bytes, element, offset, &shape, &strides, count);
                Ok(Ints { values: self.narrow(values, count, place)?, shape })
            }
            Some(Object::Array { element, shape, data }) => {
                let (shape, count) = self.extent::<T>(&shape, place)?;
                let size = self.size_of(element, place)?;
                let latin1;
                let bytes = match data {
                    Value::Bytes(start, len) => self.pickle.slice(start, len),
                    Value::Latin1(start, len) => {
                        latin1 = decode(self.pickle.slice(start, len))
                            .ok_or_else(|| self.refuse(place, "text that is not of bytes"))?;
                        &latin1
                    }
                    _ => return Err(self.refuse(place, "an array without values")),
                };
                if count.checked_mul(size) != Some(bytes.len()) {
                    let found = bytes.len();
                    let problem = format!("shape {shape:?} does not fit its {found} bytes");
                    return Err(self.refuse(place, problem));
                }
                let values = bytes.chunks_exact(size).map(|bytes| integer(bytes, element));
                Ok(Ints { values: self.narrow(values, count, place)?, shape })
            }
            _ => Err(self.refuse(place, "no tensor or array")),
        }
    }

    fn size_of(&self, element: Element, place: &str) -> Result<usize> {
        if element.is_float() {
            return Err(self.refuse(place, "floats, expected integers"));
        }
        Ok(element.size())
    }

    /// The shape, and how many values it has: no more than a file of this size may give.
    fn extent<T>(&mut self, shape: &[u64], place: &str) -> Result<(Vec<usize>, usize)> {
        let count = shape.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim));
        let most = 2 * self.length + (16 << 20);
        let count = count.filter(|&count| count <= most / size_of::<T>() as u64);
        let sane = shape.iter().all(|&dim| dim <= 1 << 40);
        match count.filter(|_| sane) {
            // The same few values may not be read forever either.
            Some(count) if count <= self.budget => {
                self.budget -= count;
                Ok((shape.iter().map(|&dim| dim as usize).collect(), count as usize))
            }
            Some(_) => Err(self.refuse(place, "more values than a file of this size explains")),
            None => Err(self.refuse(place, format!("shape {shape:?} is more than the file holds"))),
        }
    }

    fn narrow<T: TryFrom<i64>>(
        &self,
        values: impl Iterator<Item = i64>,
        count: usize,
        place: &str,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(count);
        for value in values {
            let narrow = T::try_from(value);
            all.push(narrow.map_err(|_| self.refuse(place, format!("value {value} is absurd")))?);
        }
        Ok(all)
    }

    /// Where the values of a storage lie in the file: the first byte, and how many.
    pub(super) fn storage_span(&mut self, key: &str, place: &str) -> Result<(u64, u64)> {
        let name = format!("{}data/{key}", self.prefix);
        let missing = || self.input.error(place, format!("its storage {key} is missing"));
        let index = self.archive.index_for_name(&name).ok_or_else(missing)?;
        let refuse = |problem: String| self.input.error(name.as_str(), problem);
        let member = self.archive.by_index(index).map_err(|e| refuse(e.to_string()))?;
        if member.compression() != zip::CompressionMethod::Stored {
            return Err(refuse("compressed, which torch.save never does".to_owned()));
        }
        let length = member.size();
        match member.data_start() {
            Some(start) if start.checked_add(length).is_some_and(|end| end <= self.length) => {
                Ok((start, length))
            }
            _ => Err(refuse(format!("its {length} bytes are not in the file"))),
        }
    }

    fn storage(&mut self, key: &str, place: &str) -> Result<Vec<u8>> {
        let name = format!("{}data/{key}", self.prefix);
        let most = self.budget.min(self.length);
        let bytes = entry(&self.input, &mut self.archive, &name, most)?;
        let bytes =
            bytes.ok_or_else(|| self.refuse(place, format!("its storage {key} is missing")))?;
        self.budget -= bytes.len() as u64;
        Ok(bytes)
    }
}

/// An entry of the archive, stored as it is and no longer than `most`.
fn entry(
    input: &Input<'_>,
    archive: &mut ZipArchive<Reader<'_>>,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>> {
    let refuse = |problem: String| input.error(name, problem);
    let Some(index) = archive.index_for_name(name) else { return Ok(None) };
    let member = archive.by_index(index).map_err(|e| refuse(e.to_string()))?;
    let length = member.size();
    if member.compression() != zip::CompressionMethod::Stored {
        return Err(refuse("compressed, which torch.save never does".to_owned()));
    }
    if length > most {
        return Err(refuse(format!("{length} bytes, more than a file of this size explains")));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    member.take(length).read_to_end(&mut bytes).map_err(|e| refuse(e.to_string()))?;
    Ok(Some(bytes))
}

/// The values of a strided view.
fn gather<'a>(
    bytes: &'a [u8],
    element: Element,
    offset: u64,
    shape: &'a [usize],
    strides: &'a [u64],
    count: usize,
) -> impl Iterator<Item = i64> + 'a {
    let size = element.size();
    let mut place = vec![0usize; shape.len()];
    let mut at = offset;
    (0..count).map(move |_| {
        let start = at as usize * size;
        let found = integer(&bytes[start..start + size], element);
        for axis in (0..shape.len()).rev() {
            place[axis] += 1;
            at += strides[axis];
            if place[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as u64;
            place[axis] = 0;
        }
        found
    })
}

fn integer(bytes: &[u8], element: Element) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let wide = i64::from_le_bytes(wide);
    match element {
        Element::I8 => (wide as i8).into(),
        Element::I16 => (wide as i16).into(),
        Element::I32 => (wide as i32).into(),
        _ => wide,
    }
}

/// Bytes out of text whose characters are bytes.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(text).ok()?.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}
