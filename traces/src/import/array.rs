//! Reading one NumPy array (`.npy`) without trusting it.
//!
//! Only what router traces use: little-endian integers and floats in C order. The header is a
//! Python literal of a fixed form, so a few lines parse it; no length in it is believed before it
//! agrees with the bytes that are there, and memory grows only as they arrive.

use std::io::Read;
use std::path::Path;

use crate::column::Ids;
use crate::error::{Error, Result};

/// An array's values, by element type. Half precision stays bit patterns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F16(Vec<u16>),
    F32(Vec<f32>),
}

/// An array in C order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Values,
}

/// Where an array is from, for errors: the file, and the array's name in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) name: &'a str,
}

impl Place<'_> {
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Error::import(self.path, format!("array {}", self.name), problem)
    }
}

/// The most that a header of plain arrays ever takes is 200 bytes.
const MAX_HEADER: usize = 1 << 16;

impl Array {
    /// Reads an array from `reader`, which states that it has `length` bytes.
    pub(super) fn read(mut reader: impl Read, length: u64, place: Place<'_>) -> Result<Self> {
        let io = |e: std::io::Error| place.error(format!("cannot be read: {e}"));
        let mut magic = [0; 8];
        reader.read_exact(&mut magic).map_err(io)?;
        if &magic[..6] != b"\x93NUMPY" || !(1..=3).contains(&magic[6]) {
            return Err(place.error("not a NumPy array of format 1, 2 or 3"));
        }
        let mut size = [0; 4];
        let size_len = if magic[6] == 1 { 2 } else { 4 };
        reader.read_exact(&mut size[..size_len]).map_err(io)?;
        let header_len = u32::from_le_bytes(size) as usize;
        if header_len > MAX_HEADER {
            return Err(place.error(format!("a header of {header_len} bytes; 64 KiB are accepted")));
        }
        let mut text = vec![0; header_len];
        reader.read_exact(&mut text).map_err(io)?;
        let header = std::str::from_utf8(&text).ok().and_then(Header::parse);
        let header =
            header.ok_or_else(|| place.error("its header is not that of a plain array"))?;
        if header.fortran && header.shape.len() > 1 {
            return Err(place.error("in Fortran order; save numpy.ascontiguousarray of it"));
        }
        let width = element_bytes(&header.descr).ok_or_else(|| {
            let descr = &header.descr;
            place.error(format!(
                "elements of type {descr}; u1, <u2, <u4, <i4, <i8, <f2, <f4 can be read"
            ))
        })?;
        let stated = header.shape.iter().try_fold(width, |n, &dim| n.checked_mul(dim));
        let there = length.checked_sub((8 + size_len + header_len) as u64);
        let Some(bytes) = stated.filter(|&stated| Some(stated) == there) else {
            let (shape, there) = (&header.shape, there.unwrap_or(0));
            return Err(place.error(format!(
                "shape {shape:?} of {width}-byte elements does not fit its {there} bytes of data"
            )));
        };
        let mut data = Vec::new();
        reader.take(bytes).read_to_end(&mut data).map_err(io)?;
        if data.len() as u64 != bytes {
            let has = data.len();
            return Err(place.error(format!("truncated: {has} of {bytes} bytes are there")));
        }
        let shape = header.shape.iter().map(|&dim| dim as usize).collect();
        Ok(Self { shape, values: values(&header.descr, data) })
    }

    /// Ids of any integer type, each 0 to 65,535.
    pub(super) fn into_ids(self, place: Place<'_>) -> Result<Ids> {
        fn narrow<T: Copy + Into<i64>>(values: &[T], place: Place<'_>) -> Result<Ids> {
            let id = |(index, &value): (usize, &T)| {
                u16::try_from(value.into()).map_err(|_| {
                    let value: i64 = value.into();
                    place.error(format!("entry {index} is {value}; expert ids are 0 to 65535"))
                })
            };
            Ok(Ids::U16(values.iter().enumerate().map(id).collect::<Result<_>>()?))
        }
        match self.values {
            Values::U8(ids) => Ok(Ids::U8(ids)),
            Values::U16(ids) => Ok(Ids::U16(ids)),
            Values::U32(ids) => narrow(&ids, place),
            Values::I32(ids) => narrow(&ids, place),
            Values::I64(ids) => narrow(&ids, place),
            Values::F16(_) | Values::F32(_) => Err(place.error("floats, expected integer ids")),
        }
    }

    /// The element type's name.
    pub(super) fn type_name(&self) -> &'static str {
        match self.values {
            Values::U8(_) => "u8",
            Values::U16(_) => "u16",
            Values::U32(_) => "u32",
            Values::I32(_) => "i32",
            Values::I64(_) => "i64",
            Values::F16(_) => "f16",
            Values::F32(_) => "f32",
        }
    }
}

fn element_bytes(descr: &str) -> Option<u64> {
    match descr {
        "|u1" | "<u1" => Some(1),
        "<u2" | "<f2" => Some(2),
        "<u4" | "<i4" | "<f4" => Some(4),
        "<i8" => Some(8),
        _ => None,
    }
}

/// The bytes as elements; `descr` is one that [`element_bytes`] knows.
fn values(descr: &str, data: Vec<u8>) -> Values {
    use bytemuck::pod_collect_to_vec as collect;
    match descr {
        "<u2" => Values::U16(collect(&data)),
        "<u4" => Values::U32(collect(&data)),
        "<i4" => Values::I32(collect(&data)),
        "<i8" => Values::I64(collect(&data)),
        "<f2" => Values::F16(collect(&data)),
        "<f4" => Values::F32(collect(&data)),
        _ => Values::U8(data),
    }
}

/// `{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }`
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                "descr" => {
                    let (value, after) = quoted(value)?;
                    descr = Some(value.to_owned());
                    after
                }
                "fortran_order" => {
                    let after = value.strip_prefix("True").or(value.strip_prefix("False"))?;
                    fortran = Some(value.starts_with("True"));
                    after
                }
                "shape" => {
                    let (list, after) = value.strip_prefix('(')?.split_once(')')?;
                    let dims = list.split(',').map(str::trim).filter(|dim| !dim.is_empty());
                    shape = Some(dims.map(|dim| dim.parse().ok()).collect::<Option<_>>()?);
                    after
                }
                _ => return None,
            };
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Some(Self { descr: descr?, fortran: fortran?, shape: shape? })
    }
}

/// A quoted string at the beginning of `text`, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|&c| c == '\'' || c == '"')?;
    text[1..].split_once(quote)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An `.npy` file as NumPy writes it.
    pub(in crate::import) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        text.push_str(&" ".repeat(63 - (10 + text.len()) % 64));
        text.push('\n');
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), data]
            .concat()
    }

    fn read(bytes: &[u8]) -> Result<Array, String> {
        let place = Place { path: Path::new("a.npz"), name: "x" };
        Array::read(bytes, bytes.len() as u64, place).map_err(|e| e.to_string())
    }

    #[test]
    fn arrays_are_read() {
        let array = read(&npy("<i4", "(2, 1)", &[1, 0, 0, 0, 255, 255, 255, 255])).unwrap();
        assert_eq!(array, Array { shape: vec![2, 1], values: Values::I32(vec![1, -1]) });
        let place = Place { path: Path::new("a.npz"), name: "x" };
        assert_eq!(
            array.into_ids(place).unwrap_err().to_string(),
            "a.npz: array x: entry 1 is -1; expert ids are 0 to 65535"
        );
        let scalar = read(&npy("|u1", "()", &[7])).unwrap();
        assert_eq!(scalar, Array { shape: vec![], values: Values::U8(vec![7]) });
    }

    #[test]
    fn hostile_headers_are_refused() {
        let huge = read(&npy("<u2", "(4294967296, 4294967296, 2)", &[0; 8])).unwrap_err();
        assert!(huge.contains("does not fit its 8 bytes of data"), "{huge}");
        let large = read(&npy("<u2", "(1152921504606846976,)", &[0; 8])).unwrap_err();
        assert!(large.contains("does not fit its 8 bytes of data"), "{large}");
        assert!(read(&npy(">u2", "(4,)", &[0; 8])).unwrap_err().contains("type >u2"));
        assert!(read(&npy("|O", "(4,)", &[0; 8])).unwrap_err().contains("type |O"));
        assert!(read(&npy("<u2", "(-4,)", &[0; 8])).unwrap_err().contains("not that of a plain"));
        assert!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap_err().contains("64 KiB"));
        assert!(read(b"\x93NUMPX\x01\x00").unwrap_err().contains("not a NumPy array"));
        let cut = npy("<u2", "(4,)", &[0; 8]);
        assert!(read(&cut[..40]).unwrap_err().contains("cannot be read"));
        assert!(read(&cut[..cut.len() - 1]).unwrap_err().contains("does not fit its 7 bytes"));
    }

    #[test]
    fn fortran_order_is_refused_and_explained() {
        let mut bytes = npy("<u2", "(2, 2)", &[0; 8]);
        let at = bytes.windows(5).position(|w| w == b"False").unwrap();
        bytes[at..at + 5].copy_from_slice(b"True ");
        assert!(read(&bytes).unwrap_err().contains("numpy.ascontiguousarray"));
    }
}
