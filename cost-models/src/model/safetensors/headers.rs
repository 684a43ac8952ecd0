//! The header of one safetensors file.
//!
//! Eight bytes give the length of the JSON; nothing is allocated before that length is held against the file and the
//! format's limit. A file cut after its header is welcome: the header is all that is read.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use crate::model::ModelError;

/// The format's own limit on a header.
const MAX_HEADER: u64 = 100_000_000;

/// One tensor of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// Its type as the file spells it.
    pub dtype: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// The header of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardHeader {
    /// Its tensors, in the order of the header.
    pub tensors: Vec<TensorEntry>,
}

impl ShardHeader {
    /// Bytes of all tensors.
    pub fn data_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add)
    }
}

/// Reads the header of a safetensors file; the file may end right after it.
///
/// # Errors
/// [`ModelError::Header`]: too short, a length beyond the file or the format's limit, tensors that overlap, run
/// backwards or past the end of a file that has its data.
pub fn read_header(path: &Path) -> Result<ShardHeader, ModelError> {
    let origin = path.display().to_string();
    let wrong = |at: u64, why: String| ModelError::Header {
        origin: origin.clone(),
        section: "safetensors header".into(),
        at,
        why,
    };
    let io = |source| ModelError::io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let mut length = [0u8; 8];
    if size < 8 {
        return Err(wrong(0, format!("the file has {size} bytes, a header begins with 8")));
    }
    file.read_exact(&mut length).map_err(io)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        return Err(wrong(
            0,
            format!("says {length} bytes of JSON; the format allows {MAX_HEADER}"),
        ));
    }
    if length > size - 8 {
        return Err(wrong(8, format!("is cut: {length} bytes of JSON, {} are there", size - 8)));
    }
    // Bounded by the file's own size.
    let mut json = vec![0u8; length as usize];
    file.read_exact(&mut json).map_err(io)?;
    let entries: Entries = serde_json::from_slice(&json)
        .map_err(|source| ModelError::Json { origin: format!("the header of {origin}"), source })?;
    let data = size - 8 - length;
    let tensors = check(entries.0, (data > 0).then_some(data)).map_err(|why| wrong(8, why))?;
    Ok(ShardHeader { tensors })
}

/// Places must follow one another from 0 without gaps, as the format demands, and end where the data does.
fn check(entries: Vec<(String, RawTensor)>, data: Option<u64>) -> Result<Vec<TensorEntry>, String> {
    let mut places: Vec<(u64, u64, &str)> = entries
        .iter()
        .map(|(name, raw)| (raw.data_offsets.0, raw.data_offsets.1, name.as_str()))
        .collect();
    places.sort_unstable();
    let mut end = 0;
    for (from, to, name) in places {
        if from != end || to < from {
            return Err(format!(
                "`{name}` lies at {from}..{to}; the tensor before it ends at {end}"
            ));
        }
        end = to;
    }
    if let Some(data) = data.filter(|data| *data != end) {
        return Err(format!("its tensors take {end} bytes, the file has {data}"));
    }
    let entry = |(name, raw): (String, RawTensor)| TensorEntry {
        name,
        dtype: raw.dtype,
        shape: raw.shape,
        bytes: raw.data_offsets.1 - raw.data_offsets.0,
    };
    Ok(entries.into_iter().map(entry).collect())
}

#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// Tensors in the order of the file, `__metadata__` left out; a name that comes twice is refused.
struct Entries(Vec<(String, RawTensor)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries: Vec<(String, RawTensor)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
            } else {
                entries.push((name, map.next_value()?));
            }
        }
        let mut names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(serde::de::Error::custom(format!("tensor `{}` comes twice", pair[0])));
        }
        Ok(Entries(entries))
    }
}
