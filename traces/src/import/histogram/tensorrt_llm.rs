//! TensorRT-LLM's expert statistics: a folder with `meta_info.json` and, for each rank,
//! `rank<r>.safetensors` with tensors `<iteration>_<layer>` of i64 counts.
//!
//! Whether a rank counts its own tokens or all of them is not documented: files that say the same
//! are taken once, others are added up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::info::{ExpertCounts, HistogramInfo, experts_fit};
use crate::error::{Error, Result};
use crate::import::array::{Dtype, Place};
use crate::import::arrays::Arrays;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::safetensors::SafeTensors;
use crate::import::sniff::{Contents, Sniff};

pub(super) const INFO: HistogramInfo = HistogramInfo {
    name: "trtllm",
    description: "TensorRT-LLM's expert statistics: a folder of meta_info.json and \
                  rank<r>.safetensors",
    recognise,
    fuzz: FuzzTarget::Safetensors,
    reader: read,
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let folder = matches!(sniff.contents, Contents::Folder(_));
    Claim::Sure.when(folder && sniff.path().join("meta_info.json").is_file())
}

#[derive(Deserialize)]
struct Meta {
    num_experts: u32,
    num_experts_per_token: Option<u32>,
}

/// ExpertCounts by layer.
type Layers = BTreeMap<u32, Vec<u64>>;

fn read(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut all: Vec<Layers> = Vec::new();
    let mut meta: Option<Meta> = None;
    for input in inputs {
        let path = input.path();
        if !path.is_dir() {
            all.push(rank(input)?);
            continue;
        }
        let text = path.join("meta_info.json");
        if let Ok(bytes) = std::fs::read(&text) {
            let parsed = serde_json::from_slice(&bytes);
            meta = Some(parsed.map_err(|e| Error::import(&text, "file", e.to_string()))?);
        }
        let folder = std::fs::read_dir(path).map_err(|e| Error::io("read the folder", path, e))?;
        let before = files.len();
        files.extend(folder.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("rank") && name.ends_with(".safetensors")
        }));
        if files.len() == before {
            return Err(input.error("folder", "has no rank<r>.safetensors"));
        }
    }
    files.sort();
    for file in &files {
        all.push(rank(&Input::file(file, &()))?);
    }
    let ranks = all.len();
    let mut notes = Vec::new();
    all.dedup();
    if all.len() < ranks {
        notes.push("ranks that say the same are counted once".to_owned());
    } else if ranks > 1 {
        notes.push(
            "ranks are added up: whether each counts its own tokens is not documented".into(),
        );
    }
    let place = inputs.first().map(|input| input.path().to_owned()).unwrap_or_default();
    let mut sums = Layers::new();
    for (layer, counts) in all.into_iter().flatten() {
        let sum = sums.entry(layer).or_insert_with(|| vec![0; counts.len()]);
        if sum.len() != counts.len() {
            let (found, before) = (counts.len(), sum.len());
            let problem = format!("layer {layer} has {found} experts in one rank, {before} before");
            return Err(Error::import(&place, "ranks", problem));
        }
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    if let (Some(meta), Some(counts), Some(input)) = (&meta, sums.values().next(), inputs.first())
        && meta.num_experts as usize != counts.len()
    {
        let (stated, found) = (meta.num_experts, counts.len());
        let problem = format!("says {stated} experts, the counts have {found}");
        return Err(input.error("meta_info.json", problem));
    }
    let top_k = meta.and_then(|meta| meta.num_experts_per_token).map(u64::from);
    let add = |sum: u64, &count: &u64| sum.saturating_add(count);
    let selected = sums.values().next().map(|counts| counts.iter().fold(0, add));
    let tokens = selected.zip(top_k.filter(|&k| k > 0)).map(|(all, top_k)| all / top_k);
    Ok(ExpertCounts { layers: sums.into_iter().collect(), tokens, notes })
}

/// The counts of one file, over all iterations.
fn rank(input: &Input<'_>) -> Result<Layers> {
    let mut file = SafeTensors::open(input)?;
    let names: Vec<String> = file.tensors.keys().cloned().collect();
    let mut layers = Layers::new();
    for name in names {
        let refuse = |problem: String| input.error(format!("tensor {name}"), problem);
        let layer = name.split_once('_').and_then(|(iteration, layer)| {
            iteration.parse::<u64>().ok()?;
            layer.parse::<u32>().ok()
        });
        let layer = layer.ok_or_else(|| refuse("is not named <iteration>_<layer>".to_owned()))?;
        let Some(mut array) = file.array(&name)? else { continue };
        let experts = array.shape.first().copied().unwrap_or(0);
        if array.dtype != Dtype::I64 || array.shape.len() != 1 || !experts_fit(experts) {
            let found = format!("{:?} of {}", array.shape, array.dtype.name());
            return Err(refuse(format!("expected [experts] of i64, found {found}")));
        }
        let counts: Vec<i64> = array.values(Place { path: input.path(), name: &name })?;
        let sum = layers.entry(layer).or_insert_with(|| vec![0; experts]);
        if sum.len() != experts {
            let before = sum.len();
            return Err(refuse(format!("{experts} experts, {before} in other iterations")));
        }
        for (sum, count) in sum.iter_mut().zip(counts) {
            let count = u64::try_from(count).map_err(|_| refuse(format!("a count of {count}")))?;
            *sum = sum.saturating_add(count);
        }
    }
    Ok(layers)
}
