//! llama.cpp's importance matrix: as GGUF it has exact counts of each expert, in the tensors
//! `blk.<layer>.ffn_{gate,up,down}_exps.weight.counts`. Its old format (`.dat`) has sums over all
//! experts only, and is refused.

use std::collections::BTreeMap;

use super::gguf::Gguf;
use super::info::{ExpertCounts, HistogramInfo, experts_fit, whole};
use crate::error::Result;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::sniff::Sniff;

pub(super) const INFO: HistogramInfo = HistogramInfo {
    name: "imatrix",
    description: "llama.cpp's importance matrix (GGUF): exact counts of each expert",
    recognise,
    fuzz: FuzzTarget::Gguf,
    reader: read,
};

pub(super) const DAT: HistogramInfo = HistogramInfo {
    name: "imatrix-dat",
    description: "llama.cpp's old importance matrix: refused, it has no counts of single experts",
    recognise: is_dat,
    fuzz: FuzzTarget::Binary,
    reader: refuse_dat,
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.start.starts_with(b"GGUF"))
}

fn is_dat(sniff: &Sniff<'_>) -> Result<Claim> {
    // Entries, the length of the first name, the name.
    Claim::Likely.when(match &sniff.start[..] {
        [_, _, 0, 0, _, 0, 0, 0, name @ ..] => name.starts_with(b"blk") || name.starts_with(b"out"),
        _ => false,
    })
}

fn refuse_dat(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let problem = "an importance matrix in the old format has sums over all experts of a layer, \
                   not each expert's uses: write it as GGUF (llama-imatrix --output-format gguf)";
    inputs.iter().try_for_each(|input| Err(input.error("counts", problem)))?;
    Ok(ExpertCounts::default())
}

fn read(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut all: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut tokens = Some(0u64);
    let mut notes = Vec::new();
    for input in inputs {
        let mut file = Gguf::open(input)?;
        if file.texts.get("general.type").map(String::as_str) != Some("imatrix") {
            return Err(input.error("general.type", "is not imatrix: a model, perhaps"));
        }
        let number = |key: &str| file.numbers.get(key).copied();
        let counted = number("imatrix.chunk_count")
            .and_then(|chunks| chunks.checked_mul(number("imatrix.chunk_size")?));
        tokens = tokens.and_then(|tokens| tokens.checked_add(counted?));
        let mut layers: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for index in 0..file.tensors.len() {
            let name = file.tensors[index].name.clone();
            let Some(layer) = layer_of(&name) else { continue };
            let refuse = |problem: String| input.error(format!("tensor {name}"), problem);
            if !experts_fit(file.tensors[index].count as usize) {
                let experts = file.tensors[index].count;
                return Err(refuse(format!("counts {experts} experts")));
            }
            let counts: Option<Vec<u64>> =
                file.values(index)?.into_iter().map(|count| whole(count.into())).collect();
            let counts = counts.ok_or_else(|| refuse("a count that is not whole".to_owned()))?;
            // From 2^24 on, adding one to such a number changes nothing.
            if counts.iter().any(|&count| count >= 1 << 24) {
                notes.push("counts of 16.7 million and more are rounded in this format".to_owned());
            }
            let before = layers.entry(layer).or_insert_with(|| counts.clone());
            if *before != counts {
                return Err(refuse(
                    "counts differ from those of the layer's other weights".to_owned(),
                ));
            }
        }
        for (layer, counts) in layers {
            let sums = all.entry(layer).or_insert_with(|| vec![0; counts.len()]);
            if sums.len() != counts.len() {
                let (found, before) = (counts.len(), sums.len());
                let problem = format!("{found} experts in layer {layer}, {before} before it");
                return Err(input.error("counts", problem));
            }
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
    }
    notes.dedup();
    Ok(ExpertCounts { layers: all.into_iter().collect(), tokens: tokens.filter(|&n| n > 0), notes })
}

/// `blk.3.ffn_up_exps.weight.counts`
fn layer_of(name: &str) -> Option<u32> {
    let (layer, weight) = name.strip_prefix("blk.")?.split_once('.')?;
    let expert = weight.starts_with("ffn_") && weight.ends_with("_exps.weight.counts");
    layer.parse().ok().filter(|_| expert)
}
