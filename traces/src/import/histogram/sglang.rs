//! SGLang's recorder in the modes that count: `stat` (logical experts, a ring of passes) and
//! `per_pass` (physical experts of each pass, mapped to logical ones).

use std::collections::BTreeMap;

use super::info::{ExpertCounts, HistogramInfo, experts_fit};
use crate::error::Result;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::sniff::Sniff;
use crate::import::torch::{Ints, Torch};

pub(super) const STAT: HistogramInfo = HistogramInfo {
    name: "sglang-stat",
    description: "SGLang's recorder, modes stat and stat_approx (.pt): counts over all passes",
    recognise: is_stat,
    fuzz: FuzzTarget::Unpickler,
    reader: stat,
};

pub(super) const PER_PASS: HistogramInfo = HistogramInfo {
    name: "sglang-per-pass",
    description: "SGLang's recorder, mode per_pass (.pt): counts of each pass",
    recognise: is_per_pass,
    fuzz: FuzzTarget::Unpickler,
    reader: per_pass,
};

fn is_stat(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(
        sniff
            .torch()
            .is_some_and(|torch| torch.pickle.get(torch.pickle.root(), "logical_count").is_some()),
    )
}

fn is_per_pass(sniff: &Sniff<'_>) -> Result<Claim> {
    let Some(torch) = sniff.torch() else { return Ok(Claim::No) };
    let records = torch.list_of("records").unwrap_or_default();
    let record = records.first().copied();
    Claim::Sure
        .when(record.is_some_and(|record| torch.pickle.get(record, "topk_ids_of_layer").is_none()))
}

/// Adds counts of a pass, `[layer][expert]`, each at its logical expert.
fn add(
    input: &Input<'_>,
    sums: &mut Vec<Vec<u64>>,
    counts: &[i64],
    layers: usize,
    logical: impl Fn(usize, usize) -> Option<usize>,
    experts: usize,
) -> Result<()> {
    if layers > 1 << 16 || !experts_fit(experts) {
        return Err(input.error("counts", format!("{layers} layers of {experts} experts")));
    }
    if sums.is_empty() {
        *sums = vec![vec![0; experts]; layers];
    }
    if sums.len() != layers || sums.iter().any(|counts| counts.len() != experts) {
        let (found, before) = (layers, sums.len());
        let problem = format!("{found} layers of {experts} experts, {before} layers before it");
        return Err(input.error("counts", problem));
    }
    let width = counts.len() / layers.max(1);
    for (place, &count) in counts.iter().enumerate() {
        let (layer, physical) = (place / width.max(1), place % width.max(1));
        let refuse = |problem: String| input.error(format!("layer {layer}"), problem);
        let count = u64::try_from(count).map_err(|_| refuse(format!("a count of {count}")))?;
        let expert = logical(layer, physical)
            .ok_or_else(|| refuse(format!("physical expert {physical} is not in the map")))?;
        let cell = &mut sums[layer][expert];
        *cell = cell.saturating_add(count);
    }
    Ok(())
}

/// What a plain tensor-parallel server does to `stat`.
const TIMES_RANKS: &str = "a server with plain tensor parallelism counts each token once a rank: \
                           shares are right, totals may be a multiple";

fn stat(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut sums = Vec::new();
    for input in inputs {
        let mut torch = Torch::open(input)?;
        let tensor = torch.pickle.get(torch.pickle.root(), "logical_count");
        let tensor = tensor.ok_or_else(|| input.error("data.pkl", "has no logical_count"))?;
        let counts: Ints<i64> = torch.ints(tensor, "logical_count")?;
        let [_, layers, experts] = counts.shape[..] else {
            let problem = format!("{:?}, not [passes, layers, experts]", counts.shape);
            return Err(input.error("logical_count", problem));
        };
        let Some(pass) = layers.checked_mul(experts).filter(|&n| n > 0 && experts_fit(experts))
        else {
            let problem = format!("{layers} layers of {experts} experts");
            return Err(input.error("logical_count", problem));
        };
        for counts in counts.values.chunks_exact(pass) {
            add(input, &mut sums, counts, layers, |_, expert| Some(expert), experts)?;
        }
    }
    let mut counts = ExpertCounts::of_hidden(sums);
    counts.notes.push(TIMES_RANKS.to_owned());
    Ok(counts)
}

fn per_pass(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut sums = Vec::new();
    // Every rank has the counts of all: of each pass one record is taken, the lowest rank's.
    let mut passes: BTreeMap<i64, (i64, usize)> = BTreeMap::new();
    let mut files = Vec::new();
    for (file, input) in inputs.iter().enumerate() {
        let torch = Torch::open(input)?;
        for record in torch.list_of("records")? {
            let number = |key| torch.pickle.int(torch.pickle.get(record, key));
            let pass = number("forward_pass_id");
            let pass = pass.ok_or_else(|| input.error("records", "a record without a pass"))?;
            let rank = number("rank").unwrap_or(0);
            let known = passes.entry(pass).or_insert((rank, file));
            *known = (*known).min((rank, file));
        }
        files.push(torch);
    }
    for (file, (input, torch)) in inputs.iter().zip(&mut files).enumerate() {
        let place = "last_physical_to_logical_map";
        let map = torch.pickle.get(torch.pickle.root(), place);
        let map = map.ok_or_else(|| input.error(place, "is missing"))?;
        let map: Ints<u16> = torch.ints(map, place)?;
        let &[layers, physical] = &map.shape[..] else {
            return Err(input.error(place, "expected [layers, physical experts]"));
        };
        let experts = map.values.iter().max().map_or(0, |&highest| usize::from(highest) + 1);
        let logical = |layer: usize, expert: usize| {
            map.values.get(layer * physical + expert).map(|&logical| usize::from(logical))
        };
        for record in torch.list_of("records")? {
            let pass = torch.pickle.int(torch.pickle.get(record, "forward_pass_id")).unwrap_or(0);
            let rank = torch.pickle.int(torch.pickle.get(record, "rank")).unwrap_or(0);
            if passes.get(&pass) != Some(&(rank, file)) {
                continue;
            }
            let tensor = torch.pickle.get(record, "global_physical_count");
            let tensor = tensor
                .ok_or_else(|| input.error("records", "a record without global_physical_count"))?;
            let counts: Ints<i64> = torch.ints(tensor, "global_physical_count")?;
            if counts.shape != [layers, physical] {
                let problem = format!("counts are {:?}, the map {:?}", counts.shape, map.shape);
                return Err(input.error("global_physical_count", problem));
            }
            add(input, &mut sums, &counts.values, layers, logical, experts)?;
        }
    }
    Ok(ExpertCounts::of_hidden(sums))
}
