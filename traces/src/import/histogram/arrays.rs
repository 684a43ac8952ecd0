//! Counts as an array, as load balancers dump them: `expert_load` or `expert_counts`
//! `[layers, experts]` in `.pt`, `.npz` or `.npy`.

use super::info::{ExpertCounts, HistogramInfo};
use crate::error::Result;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::sniff::{Contents, Sniff};
use crate::import::tables::{self, counts, is_counts};

pub(super) const INFO: HistogramInfo = HistogramInfo {
    name: "array-counts",
    description: "counts as an array expert_load or expert_counts [layers, experts] in .pt, .npz \
                  or .npy",
    recognise,
    fuzz: FuzzTarget::Unpickler,
    reader: read,
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    match &sniff.contents {
        Contents::Torch(torch) => {
            let pickle = &torch.pickle;
            let counted = |name: &str| is_counts(name);
            Claim::Likely.when(pickle.names_array(pickle.root(), counted))
        }
        Contents::Npz(names) => Claim::Sure.when(names.iter().any(|name| is_counts(name))),
        Contents::Npy { shape, .. } => {
            Claim::Sure.when(matches!(shape.len(), 2 | 3) && tables::is_named_counts(sniff))
        }
        _ => Ok(Claim::No),
    }
}

fn read(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut all: Option<ExpertCounts> = None;
    for input in inputs {
        let found = counts(input)?;
        let layers = found.numbers.into_iter().zip(found.layers).collect();
        let next = ExpertCounts { layers, tokens: found.tokens, notes: Vec::new() };
        let Some(before) = &mut all else {
            all = Some(next);
            continue;
        };
        let same = before.layers.len() == next.layers.len()
            && before
                .layers
                .iter()
                .zip(&next.layers)
                .all(|(a, b)| a.0 == b.0 && a.1.len() == b.1.len());
        if !same {
            return Err(input.error("counts", "has other layers or experts than those before it"));
        }
        for ((_, sums), (_, counts)) in before.layers.iter_mut().zip(next.layers) {
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum = sum.saturating_add(n));
        }
        before.tokens = before.tokens.zip(next.tokens).map(|(a, b)| a.saturating_add(b));
    }
    Ok(all.unwrap_or_default())
}
