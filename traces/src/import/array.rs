//! Reading one NumPy array (`.npy`) without trusting it.
//!
//! Only what router traces use: little-endian integers and floats in C order. The header is a
//! Python literal of a fixed form, so a few lines parse it; no length in it is believed before it
//! agrees with the bytes that are there, and memory grows only as they arrive.

use std::io::Read;
use std::path::Path;

use bytemuck::Pod;

use super::collect::Collector;
use super::input::Input;
use crate::error::{Error, Result};

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

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dtype {
    U8,
    U16,
    U32,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
}

impl Dtype {
    fn parse(descr: &str) -> Option<Self> {
        Some(match descr {
            "|u1" | "<u1" | "|b1" => Self::U8,
            "<u2" => Self::U16,
            "<u4" => Self::U32,
            "<i2" => Self::I16,
            "<i4" => Self::I32,
            "<i8" => Self::I64,
            "<f2" => Self::F16,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of an element.
    pub(super) fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// Bytes that a block holds.
const BLOCK: usize = 1 << 18;
/// Bytes of an array that is read in one piece.
const MAX_SMALL: u64 = 24 << 20;
/// Values in a row of an array that is read block by block: far more than any model has.
const MAX_ROW: usize = 1 << 20;

/// An array of which the header was read, in C order.
pub(super) struct Array<R> {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    data: R,
    bytes: u64,
}

impl<R: Read> Array<R> {
    /// Reads the header from `reader`, which states that it has `length` bytes.
    pub(super) fn open(mut reader: R, length: u64, place: Place<'_>) -> Result<Self> {
        let (header, header_bytes) = Header::read(&mut reader, place)?;
        if header.fortran && header.shape.len() > 1 {
            return Err(place.error("in Fortran order; save numpy.ascontiguousarray of it"));
        }
        let dtype = Dtype::parse(&header.descr).ok_or_else(|| {
            let descr = &header.descr;
            place.error(format!(
                "elements of type {descr}; u1, <u2, <u4, <i2, <i4, <i8, <f2, <f4, <f8 can be read"
            ))
        })?;
        let width = dtype.size();
        let stated = header.shape.iter().try_fold(width as u64, |n, &dim| n.checked_mul(dim));
        let there = length.checked_sub(header_bytes);
        let Some(bytes) = stated.filter(|&stated| Some(stated) == there) else {
            let (shape, there) = (&header.shape, there.unwrap_or(0));
            return Err(place.error(format!(
                "shape {shape:?} of {width}-byte elements does not fit its {there} bytes of data"
            )));
        };
        let shape = header.shape.iter().map(|&dim| dim as usize).collect();
        Ok(Self { dtype, shape, data: reader, bytes })
    }

    /// An array whose values begin where `data` does; the shape was checked against its length.
    pub(super) fn new(dtype: Dtype, shape: Vec<usize>, data: R, bytes: u64) -> Self {
        Self { dtype, shape, data, bytes }
    }

    /// What the values were read from.
    pub(super) fn into_inner(self) -> R {
        self.data
    }

    /// Reads the values, block by block, each whole rows of `row` values. `T` has the size of the
    /// element type.
    pub(super) fn blocks<T: Pod>(
        &mut self,
        place: Place<'_>,
        row: usize,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        if row == 0 || row > MAX_ROW {
            return Err(place.error(format!("rows of {row} values; 1 to {MAX_ROW} are accepted")));
        }
        let each = (BLOCK / size_of::<T>() / row).max(1) * row;
        let mut left = (self.bytes / size_of::<T>() as u64) as usize;
        let mut block = vec![T::zeroed(); each.min(left)];
        while left > 0 {
            let values = &mut block[..each.min(left)];
            self.data.read_exact(bytemuck::cast_slice_mut(values)).map_err(|e| {
                let all = self.bytes;
                place.error(format!("its {all} bytes of data cannot be read to their end: {e}"))
            })?;
            left -= values.len();
            visit(values)?;
        }
        Ok(())
    }

    /// All values of a small array.
    pub(super) fn values<T: Pod>(&mut self, place: Place<'_>) -> Result<Vec<T>> {
        if self.bytes > MAX_SMALL {
            let (has, most) = (self.bytes >> 20, MAX_SMALL >> 20);
            return Err(place.error(format!("{has} MiB; at most {most} MiB are read here")));
        }
        let mut all = Vec::with_capacity((self.bytes / size_of::<T>() as u64) as usize);
        self.blocks(place, 1, |block| {
            all.extend_from_slice(block);
            Ok(())
        })?;
        Ok(all)
    }

    /// Ids of any integer type, into the trace.
    pub(super) fn ids(
        &mut self,
        input: &Input<'_>,
        name: &str,
        into: &mut Collector<'_>,
    ) -> Result<()> {
        let place = Place { path: input.path(), name };
        let row = self.shape.iter().skip(1).try_fold(1usize, |row, &dim| row.checked_mul(dim));
        let row = row.unwrap_or(usize::MAX);
        match self.dtype {
            Dtype::U8 => self.blocks::<u8>(place, row, |ids| into.ids(input, ids)),
            Dtype::U16 => self.blocks::<u16>(place, row, |ids| into.ids(input, ids)),
            Dtype::U32 => self.blocks::<u32>(place, row, |ids| into.ids(input, ids)),
            Dtype::I16 => self.blocks::<i16>(place, row, |ids| into.ids(input, ids)),
            Dtype::I32 => self.blocks::<i32>(place, row, |ids| into.ids(input, ids)),
            Dtype::I64 => self.blocks::<i64>(place, row, |ids| into.ids(input, ids)),
            Dtype::F16 | Dtype::F32 | Dtype::F64 => {
                Err(place.error("floats, expected integer ids"))
            }
        }
    }
}

/// The top-k of each layer, from an array's axes: numbers that a model may have.
pub(super) fn top_ks(place: Place<'_>, layers: usize, top_k: usize) -> Result<Vec<u32>> {
    let fits = |n: usize| u32::try_from(n).ok().filter(|&n| (1..=1 << 16).contains(&n));
    let row = layers.checked_mul(top_k).filter(|&row| row <= MAX_ROW);
    match (fits(layers), fits(top_k), row) {
        (Some(_), Some(k), Some(_)) => Ok(vec![k; layers]),
        _ => Err(place.error(format!(
            "{layers} layers with top-k {top_k}; 1 to 65536 of each are possible, and {MAX_ROW} ids \
             a token"
        ))),
    }
}

/// `{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }`
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran: bool,
    pub(super) shape: Vec<u64>,
}

impl Header {
    /// Reads the header, and says how many bytes came before the values.
    pub(super) fn read(reader: &mut impl Read, place: Place<'_>) -> Result<(Self, u64)> {
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
        let header = std::str::from_utf8(&text).ok().and_then(Self::parse);
        let header =
            header.ok_or_else(|| place.error("its header is not that of a plain array"))?;
        Ok((header, (8 + size_len + header_len) as u64))
    }

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

    pub(in crate::import) use crate::testing::inputs::npy;

    fn place() -> Place<'static> {
        Place { path: Path::new("a.npz"), name: "x" }
    }

    fn read(bytes: &[u8]) -> Result<(Vec<usize>, Dtype, Vec<u8>), String> {
        let array = Array::open(bytes, bytes.len() as u64, place());
        let mut array = array.map_err(|e| e.to_string())?;
        // Blocks have the size of the elements.
        let values = match array.dtype.size() {
            4 => bytemuck::cast_slice(&array.values::<u32>(place()).unwrap()).to_vec(),
            2 => bytemuck::cast_slice(&array.values::<u16>(place()).unwrap()).to_vec(),
            _ => array.values::<u8>(place()).unwrap(),
        };
        Ok((array.shape, array.dtype, values))
    }

    #[test]
    fn arrays_are_read() {
        let array = read(&npy("<i4", "(2, 1)", &[1, 0, 0, 0, 255, 255, 255, 255])).unwrap();
        assert_eq!(array, (vec![2, 1], Dtype::I32, vec![1, 0, 0, 0, 255, 255, 255, 255]));
        let scalar = read(&npy("|u1", "()", &[7])).unwrap();
        assert_eq!(scalar, (vec![], Dtype::U8, vec![7]));
        let bytes = npy("<u2", "(300000, 2)", &[9; 1_200_000]);
        let mut array = Array::open(bytes.as_slice(), bytes.len() as u64, place()).unwrap();
        let mut blocks = Vec::new();
        array
            .blocks::<u16>(place(), 2, |block| {
                blocks.push(block.len());
                Ok(())
            })
            .unwrap();
        assert_eq!(blocks.iter().sum::<usize>(), 600_000);
        assert!(blocks.len() > 1 && blocks.iter().all(|n| n % 2 == 0));
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
        let mut lying = Array::open(&cut[..cut.len() - 1], cut.len() as u64, place()).unwrap();
        let cut = lying.values::<u16>(place()).unwrap_err().to_string();
        assert!(cut.contains("cannot be read to their end"), "{cut}");
    }

    #[test]
    fn fortran_order_is_refused_and_explained() {
        let mut bytes = npy("<u2", "(2, 2)", &[0; 8]);
        let at = bytes.windows(5).position(|w| w == b"False").unwrap();
        bytes[at..at + 5].copy_from_slice(b"True ");
        assert!(read(&bytes).unwrap_err().contains("numpy.ascontiguousarray"));
    }
}
