//! safetensors: an 8-byte length, a JSON header, then the tensors' bytes.
//!
//! The arrays are those of `hotset-npz/1`, or those that a Hugging Face recording has, under the
//! same names. Only the header is held in memory.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::array::{Array, Dtype};
use super::arrays::{AnyArray, Arrays};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::{Input, Reader};
use super::npz;
use super::sniff::Sniff;
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "safetensors",
    description: "the arrays of npz (hotset's or a Hugging Face recording's) as safetensors",
    columns: npz::INFO.columns,
    extensions: &["safetensors"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Safetensors,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    if !matches!(sniff.start[..], [_, _, _, _, _, 0, 0, 0, b'{', ..]) {
        return Ok(Claim::No);
    }
    let file = SafeTensors::open(&sniff.input)?;
    if ["expert_ids", "topk_ids"].iter().any(|name| file.tensors.contains_key(*name)) {
        return Ok(Claim::Likely);
    }
    let names: Vec<&str> = file.tensors.keys().take(8).map(String::as_str).collect();
    let problem = format!(
        "tensors {}: none is called as ids or scores of experts are (a model's weights are no \
         recording). Name the one that has them topk_ids or router_logits, or one for each layer \
         layer_0, layer_1, ...",
        names.join(", ")
    );
    Err(sniff.input.error("contents", problem))
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut file = SafeTensors::open(input)?;
    npz::import_arrays(input, &mut file, into)
}

/// Where a tensor lies.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Tensor {
    dtype: String,
    pub(super) shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl Tensor {
    /// The type of its elements, as the file has it.
    pub(super) fn dtype(&self) -> &str {
        &self.dtype
    }
}

/// A file of which the header was read and checked.
pub(super) struct SafeTensors<'a> {
    input: Input<'a>,
    reader: Reader<'a>,
    pub(super) tensors: BTreeMap<String, Tensor>,
    metadata: Map<String, Value>,
    data: u64,
}

/// The most that a header may take in any file; it may also take an eighth of the file.
const MAX_HEADER: u64 = 4 << 20;

/// The header's two kinds of entries, told apart by the name.
#[derive(Default)]
struct Header {
    tensors: BTreeMap<String, Tensor>,
    metadata: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        header.metadata = map.next_value()?;
                    } else {
                        header.tensors.insert(name, map.next_value()?);
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl<'a> SafeTensors<'a> {
    pub(super) fn open(input: &Input<'a>) -> Result<Self> {
        let refuse = |problem: String| input.error("header", problem);
        let mut reader = input.open()?;
        let whole = reader.len();
        let mut length = [0; 8];
        reader.read_exact(&mut length).map_err(|e| refuse(format!("no header: {e}")))?;
        let length = u64::from_le_bytes(length);
        let there = whole - 8;
        if length > there || length > MAX_HEADER.max(whole / 8) {
            return Err(refuse(format!("states {length} bytes, the file has {there} after it")));
        }
        let mut text = vec![0; length as usize];
        reader.read_exact(&mut text).map_err(|e| input.io(e))?;
        let Header { tensors, metadata } =
            serde_json::from_slice(&text).map_err(|e| refuse(format!("not safetensors: {e}")))?;
        let data = 8 + length;
        for (name, tensor) in &tensors {
            let [start, end] = tensor.data_offsets;
            let bytes = dtype(&tensor.dtype).map(|dtype| dtype.size() as u64);
            let stated = bytes.and_then(|bytes| {
                tensor.shape.iter().try_fold(bytes, |all, &dim| all.checked_mul(dim))
            });
            let length = end.checked_sub(start).filter(|_| end <= whole - data);
            if length.is_none() || (bytes.is_some() && stated != length) {
                return Err(refuse(format!(
                    "tensor {name}: {} of {:?} does not fit bytes {start} to {end} of {}",
                    tensor.dtype,
                    tensor.shape,
                    whole - data
                )));
            }
        }
        let metadata = metadata.into_iter().map(|(key, text)| (key, text.into())).collect();
        Ok(Self { input: *input, reader, tensors, metadata, data })
    }

    /// Where a tensor lies in the file: its first byte, and how many it has.
    pub(super) fn span(&self, tensor: &Tensor) -> (u64, u64) {
        let [start, end] = tensor.data_offsets;
        (self.data + start, end - start)
    }
}

fn dtype(name: &str) -> Option<Dtype> {
    Some(match name {
        "U8" | "BOOL" => Dtype::U8,
        "U16" => Dtype::U16,
        "U32" => Dtype::U32,
        "I16" => Dtype::I16,
        "I32" => Dtype::I32,
        "I64" => Dtype::I64,
        "F16" => Dtype::F16,
        "F32" => Dtype::F32,
        "F64" => Dtype::F64,
        _ => return None,
    })
}

impl Arrays for SafeTensors<'_> {
    fn array(&mut self, name: &str) -> Result<Option<AnyArray<'_>>> {
        let Some(tensor) = self.tensors.get(name) else { return Ok(None) };
        let Some(dtype) = dtype(&tensor.dtype) else {
            let problem = format!("elements of type {}, which no trace has", tensor.dtype);
            return Err(self.input.error(format!("array {name}"), problem));
        };
        let [start, end] = tensor.data_offsets;
        let shape = tensor.shape.iter().map(|&dim| dim as usize).collect();
        self.reader.seek(SeekFrom::Start(self.data + start)).map_err(|e| self.input.io(e))?;
        let data: Box<dyn Read + '_> = Box::new(self.reader.by_ref().take(end - start));
        Ok(Some(Array::new(dtype, shape, data, end - start)))
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }
}
