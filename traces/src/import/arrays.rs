//! Named arrays: a zip of `.npy` files (`.npz`) or a safetensors file, read alike.

use std::io::{Cursor, Read};

use serde_json::{Map, Value};
use zip::ZipArchive;

use super::array::{Array, Dtype, Place};
use super::input::{Input, Reader};
use crate::error::{Error, Result};
use crate::hst::ratio_accepted;

/// An opened array, wherever its values come from.
pub(super) type AnyArray<'a> = Array<Box<dyn Read + 'a>>;

/// A file of named arrays.
pub(super) trait Arrays {
    /// The array of that name, if there is one.
    fn array(&mut self, name: &str) -> Result<Option<AnyArray<'_>>>;

    /// Text beside the arrays.
    fn metadata(&self) -> &Map<String, Value>;
}

/// An array that must be there.
pub(super) fn required<'a>(
    arrays: &'a mut dyn Arrays,
    input: &Input<'_>,
    name: &str,
    layout: &str,
) -> Result<AnyArray<'a>> {
    arrays
        .array(name)?
        .ok_or_else(|| input.error(format!("array {name}"), format!("is missing; {layout}")))
}

/// An array of another shape or type than its place asks for.
pub(super) fn mismatch<R: Read>(
    input: &Input<'_>,
    name: &str,
    expected: &str,
    found: &Array<R>,
) -> Error {
    let problem = format!("expected {expected}, found {:?} of {}", found.shape, found.dtype.name());
    input.error(format!("array {name}"), problem)
}

/// A column of one 32-bit number a token, block by block; `what` is its type in messages.
pub(super) fn column_u32(
    input: &Input<'_>,
    name: &str,
    tokens: usize,
    array: Option<AnyArray<'_>>,
    visit: &mut dyn FnMut(&[u32]) -> Result<()>,
) -> Result<bool> {
    let Some(mut array) = array else { return Ok(false) };
    if array.shape != [tokens] || !matches!(array.dtype, Dtype::U32 | Dtype::I32) {
        return Err(mismatch(input, name, &format!("[{tokens}] of u32 or i32"), &array));
    }
    let place = Place { path: input.path(), name };
    let signed = array.dtype == Dtype::I32;
    array.blocks::<u32>(place, 1, |block| {
        if signed && let Some(at) = block.iter().position(|&n| n > i32::MAX as u32) {
            return Err(place.error(format!("{} is negative", block[at] as i32)));
        }
        visit(block)
    })?;
    Ok(true)
}

/// An `.npz` file.
pub(super) struct Npz<'a> {
    input: Input<'a>,
    /// Bytes of the whole file.
    length: u64,
    archive: ZipArchive<Reader<'a>>,
    metadata: Map<String, Value>,
}

impl<'a> Npz<'a> {
    pub(super) fn open(input: &Input<'a>) -> Result<Self> {
        let reader = input.open()?;
        let length = reader.len();
        let archive = ZipArchive::new(reader)
            .map_err(|e| input.error("zip", format!("not an npz file: {e}")))?;
        Ok(Self { input: *input, length, archive, metadata: Map::new() })
    }

    /// The names of its arrays.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(|name| name.ok());
        names.filter_map(|name| name.strip_suffix(".npy").map(str::to_owned)).collect()
    }
}

impl Arrays for Npz<'_> {
    fn array(&mut self, name: &str) -> Result<Option<AnyArray<'_>>> {
        let place = Place { path: self.input.path(), name };
        let Some(index) = self.archive.index_for_name(&format!("{name}.npy")) else {
            return Ok(None);
        };
        let member = self.archive.by_index(index).map_err(|e| place.error(e.to_string()))?;
        let length = member.size();
        if !ratio_accepted(self.length, length) {
            let whole = self.length;
            return Err(place.error(format!("states {length} bytes in a file of {whole}")));
        }
        let member: Box<dyn Read + '_> = Box::new(member);
        Array::open(member, length, place).map(Some)
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }
}

/// Bytes of an array that lies in memory.
pub(super) fn in_memory<'a>(bytes: &'a [u8], place: Place<'_>) -> Result<Array<Cursor<&'a [u8]>>> {
    Array::open(Cursor::new(bytes), bytes.len() as u64, place)
}
