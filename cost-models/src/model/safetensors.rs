//! Exact sizes from safetensors: headers of shards, or an index's total.
//!
//! A shard begins with the length of a JSON header that gives each tensor's type, shape and place; the tensors
//! themselves are never read. Experts are found by name, one tensor each or fused over a layer, so packed types need
//! no decoding: bytes are bytes.

mod headers;
mod names;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::bytes::{LayerExperts, WeightBytes};
use super::{Model, ModelError, Parallel, Stored};
use crate::bounded::read_text;
pub use headers::{ShardHeader, TensorEntry, read_header};
use names::{Part, part_of};

/// The file that lists which shard holds which tensor.
const INDEX: &str = "model.safetensors.index.json";
/// The one file of a model in a single shard.
const SINGLE: &str = "model.safetensors";
/// An index of more is not one (DeepSeek-V3's is 8.9 MB).
const MAX_INDEX_MIB: u64 = 256;

#[derive(Deserialize)]
struct Index {
    metadata: IndexMetadata,
    weight_map: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct IndexMetadata {
    total_size: u64,
}

impl Model {
    /// Takes exact sizes from the safetensors files in `folder`.
    ///
    /// With all shards there (whole, or their headers alone) every byte is known; with the index alone its total is
    /// compared with the formulas and the difference noted; with neither the model is as it was.
    ///
    /// # Errors
    /// [`ModelError`]: a header or index that is truncated, hostile, or does not fit the configuration.
    pub fn with_safetensors(mut self, folder: &Path) -> Result<Self, ModelError> {
        let index_path = folder.join(INDEX);
        if index_path.is_file() {
            let index = read_index(&index_path)?;
            let mut shards: Vec<&String> = index.weight_map.values().collect();
            shards.sort_unstable();
            shards.dedup();
            if let Some(name) = shards.iter().find(|name| name.contains(['/', '\\'])) {
                let why = format!("names the shard `{name}`, which is not a file beside it");
                return Err(ModelError::invalid(
                    &index_path.display().to_string(),
                    "weight_map",
                    why,
                ));
            }
            let present = shards.iter().filter(|name| folder.join(name).is_file()).count();
            if present < shards.len() {
                self.notes.push(self.compare_total(index.metadata.total_size));
                if present > 0 {
                    let why = format!(
                        "{present} of {} shards are there: sizes are formulas",
                        shards.len()
                    );
                    self.notes.push(why);
                }
                return Ok(self);
            }
            let headers = shards.iter().map(|name| read_header(&folder.join(name)));
            let headers = headers.collect::<Result<Vec<_>, _>>()?;
            let stored: u64 = headers.iter().map(ShardHeader::data_bytes).sum();
            if stored != index.metadata.total_size {
                self.notes.push(format!(
                    "the index says {} bytes, the headers {stored}: the headers count",
                    index.metadata.total_size
                ));
            }
            return self.store(&headers, &folder.display().to_string());
        }
        let single = folder.join(SINGLE);
        if single.is_file() {
            return self.store(&[read_header(&single)?], &single.display().to_string());
        }
        Ok(self)
    }

    /// What an index's total says about the formulas.
    fn compare_total(&self, total: u64) -> String {
        let Ok(formats) = self.native_formats() else {
            return format!(
                "the index says {total} bytes; shard headers would say how they are spread"
            );
        };
        let computed = self.weights(&formats, Parallel::NONE).with_mtp();
        let off = (computed as f64 - total as f64) / total.max(1) as f64 * 100.0;
        format!(
            "the index says {total} bytes; the formulas give {computed} ({off:+.2}%), draft layers included"
        )
    }

    /// Sorts every tensor to its part of the model.
    fn store(mut self, headers: &[ShardHeader], origin: &str) -> Result<Self, ModelError> {
        let layers = self.layers.len() as u64;
        let mut weights = WeightBytes::default();
        let mut routed: BTreeMap<u64, u64> = BTreeMap::new();
        let mut types: BTreeMap<String, u64> = BTreeMap::new();
        let mut skipped = 0u64;
        for tensor in headers.iter().flat_map(|header| &header.tensors) {
            let sum = match part_of(&tensor.name, layers) {
                Part::Expert(layer) => {
                    *types.entry(tensor.dtype.clone()).or_default() += 1;
                    routed.entry(layer).or_default()
                }
                Part::Shared => &mut weights.shared,
                Part::Embedding => &mut weights.embed,
                Part::Head => &mut weights.lm_head,
                Part::Draft => &mut weights.mtp_dense,
                Part::DraftExpert => &mut weights.mtp_experts,
                Part::Tower => &mut skipped,
                Part::Dense => &mut weights.dense,
            };
            *sum = sum.saturating_add(tensor.bytes);
        }
        for (layer, experts) in self.moe_layers() {
            let Some(bytes) = routed.remove(&u64::from(layer)) else {
                let why = format!(
                    "has no expert tensors in layer {layer}, where the configuration has experts"
                );
                return Err(ModelError::invalid(origin, "the header", why));
            };
            let count = u64::from(experts.count);
            if !bytes.is_multiple_of(count) {
                let why = format!(
                    "holds {bytes} bytes of {count} experts in layer {layer}: they are not equal"
                );
                return Err(ModelError::invalid(origin, "the header", why));
            }
            let stored = bytes / count;
            weights.experts.push(LayerExperts {
                layer,
                count: experts.count,
                top_k: experts.top_k,
                stored,
                slot: stored,
            });
        }
        if let Some(layer) = routed.keys().next() {
            let why =
                format!("has expert tensors in layer {layer}, where the configuration has none");
            return Err(ModelError::invalid(origin, "the header", why));
        }
        if skipped > 0 {
            self.notes.push(format!("{skipped} bytes of towers for images or sound are left out"));
        }
        self.stored = Some(Stored {
            source: format!("safetensors headers of {origin}"),
            weights,
            parameters: None,
            skipped,
            by_rules: false,
            expert_types: types.iter().map(|(dtype, count)| format!("{count} x {dtype}")).collect(),
        });
        Ok(self)
    }
}

fn read_index(path: &Path) -> Result<Index, ModelError> {
    let origin = path.display().to_string();
    let text = read_text(path, MAX_INDEX_MIB, "index");
    let text = text.map_err(|source| ModelError::io(path, source))?;
    serde_json::from_str(&text).map_err(|source| ModelError::Json { origin, source })
}

#[cfg(test)]
mod tests;
