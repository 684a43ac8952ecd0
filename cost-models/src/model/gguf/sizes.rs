//! Bytes of GGUF tensors: by type where the type is known, else by where the next tensor begins.
//!
//! Forks give ids from 42 on to types of their own, so there a known size must also agree with the next offset.

use std::collections::BTreeMap;

use super::reader::{Header, TensorInfo};
use crate::format::GgmlType;
use crate::model::{MAX_PARAMETERS, ModelError};

/// Ids from here on mean different types in different forks.
const REUSED_FROM: u32 = 42;

/// A tensor with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sized {
    /// Its name.
    pub name: String,
    /// Its dimensions, the contracted one first.
    pub dimensions: Vec<u64>,
    /// Its elements.
    pub elements: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its type's name, or `type N` for one that is not known.
    pub kind: String,
}

/// A layer's tensors by the ends of their names.
pub type LayerTensors<'a> = BTreeMap<&'a str, &'a Sized>;

/// Every tensor of a header with its size.
///
/// # Errors
/// [`ModelError::Header`]: more elements than any model has, tensors that overlap, or a last tensor of unknown type in
/// a file without its data.
pub fn sized(
    header: &Header,
    origin: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<Sized>, ModelError> {
    let wrong = |tensor: &TensorInfo, why: String| ModelError::Header {
        origin: origin.into(),
        section: format!("GGUF tensor `{}`", tensor.name),
        at: tensor.offset,
        why,
    };
    let mut order: Vec<usize> = (0..header.tensors.len()).collect();
    order.sort_by_key(|index| header.tensors[*index].offset);
    let mut room = vec![0; order.len()];
    let mut ends =
        order.iter().skip(1).map(|index| Some(header.tensors[*index].offset)).chain([None]);
    for index in &order {
        let offset = header.tensors[*index].offset;
        room[*index] = match ends.next().flatten() {
            Some(next) => next - offset,
            None => header.data_bytes.saturating_sub(offset),
        };
    }
    let last = order.last().copied();
    let mut unknown: Vec<u32> = Vec::new();
    let mut sized = Vec::with_capacity(order.len());
    for (index, tensor) in header.tensors.iter().enumerate() {
        let elements = tensor.dimensions.iter().try_fold(1u64, |all, side| all.checked_mul(*side));
        let elements = elements.filter(|elements| *elements <= MAX_PARAMETERS);
        let Some(elements) = elements else {
            return Err(wrong(
                tensor,
                format!("has dimensions {:?}: more than 2^53 elements", tensor.dimensions),
            ));
        };
        let is_last = Some(index) == last;
        let known = known_bytes(tensor, elements, header.alignment, room[index], is_last);
        let (bytes, kind) = match known {
            Some((kind, bytes)) => {
                if !is_last && bytes > room[index] {
                    let why = format!(
                        "takes {bytes} bytes as {}, the next begins after {}",
                        kind.name(),
                        room[index]
                    );
                    return Err(wrong(tensor, why));
                }
                (bytes, kind.name().to_owned())
            }
            None => {
                if is_last && header.data_bytes <= tensor.offset {
                    let why = format!(
                        "has the unknown type {}, and no data or next tensor gives its size",
                        tensor.kind
                    );
                    return Err(wrong(tensor, why));
                }
                unknown.push(tensor.kind);
                (room[index], format!("type {}", tensor.kind))
            }
        };
        sized.push(Sized {
            name: tensor.name.clone(),
            dimensions: tensor.dimensions.clone(),
            elements,
            bytes,
            kind,
        });
    }
    unknown.sort_unstable();
    unknown.dedup();
    for kind in unknown {
        notes.push(format!(
            "tensor type {kind} is not known (forks reuse ids from {REUSED_FROM} on): sized by where the next tensor \
             begins, padding included"
        ));
    }
    Ok(sized)
}

/// The size by type, unless the id is one that forks reuse and the next offset says otherwise.
fn known_bytes(
    tensor: &TensorInfo,
    elements: u64,
    alignment: u64,
    room: u64,
    is_last: bool,
) -> Option<(GgmlType, u64)> {
    let kind = GgmlType::from_id(tensor.kind)?;
    let columns = tensor.dimensions.first().copied().unwrap_or(1);
    if !columns.is_multiple_of(kind.block()) {
        return None;
    }
    let bytes = (elements / kind.block()).checked_mul(kind.block_bytes())?;
    let padded = bytes.checked_next_multiple_of(alignment)?;
    if tensor.kind >= REUSED_FROM && !is_last && padded != room {
        return None;
    }
    Some((kind, bytes))
}
