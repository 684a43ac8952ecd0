//! Arrays and tensors of ids or router scores in any of the files that hold arrays: `.npy`,
//! `.npz`, `.pt`, `.safetensors`; one of everything, one a layer, or one file a layer.
//!
//! A file is opened as a tree of arrays (`open`), names and shapes say which is which layer
//! (`plan`), all values say whether they are ids, a map or scores (`inspect`), and what they name
//! is written (`emit`). Everything is read in place, a block of tokens at a time.

mod by_layer;
mod by_name;
mod counts;
mod emit;
mod files;
mod inspect;
mod names;
mod open;
mod plan;
mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use self::files::{Group, groups, is_layered_folder};
use self::plan::{Plan, Planner, Told};
use self::store::{Layout, Store};
use super::array::{Header, Place};
use super::collect::Collector;
use super::element::Element;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::safetensors::SafeTensors;
use super::sniff::{Contents, Sniff};
use crate::error::Result;

pub(super) use counts::counts;
pub(super) use inspect::twice;
pub(super) use names::{is_counts, is_ids, is_weights, layer_of, plain};
pub(super) use open::{Node, is_torch, npy_layout};

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "arrays",
    description: "ids or router scores (--top-k) as .npy, .npz, .pt or .safetensors: one array \
                  [tokens, layers, top-k or experts], one a layer, or one file a layer",
    columns: &["ids", "positions", "steps", "weights"],
    extensions: files::EXTENSIONS,
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Binary,
    importer: Importer::Parts(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    match &sniff.contents {
        Contents::Folder(names) => Claim::Likely.when(is_layered_folder(sniff.path(), names)),
        Contents::Npy { .. } | Contents::Ndarray => recognise_npy(sniff),
        Contents::Npz(names) => {
            let columns = ["sequence", "position", "phase", "seq_id", "is_decode"];
            let recording = names.iter().any(|name| columns.contains(&name.as_str()));
            Claim::Likely.when(!recording && recordings(names.iter().map(String::as_str)))
        }
        Contents::Torch(torch) => Claim::Possible.when(torch.pickle.has_arrays()),
        Contents::Binary | Contents::Text(_)
            if matches!(sniff.start[..], [_, _, _, _, _, 0, 0, 0, b'{', ..]) =>
        {
            let file = SafeTensors::open(&sniff.input)?;
            let recording = ["sequence", "position", "phase", "seq_id", "is_decode"];
            let known = recording.iter().any(|name| file.tensors.contains_key(*name));
            Claim::Sure.when(!known && recordings(file.tensors.keys().map(String::as_str)))
        }
        _ => Ok(Claim::No),
    }
}

/// Whether names are those of recorded arrays.
fn recordings<'n>(names: impl Iterator<Item = &'n str>) -> bool {
    let parameter = |name: &str| name.ends_with(".weight") || name.ends_with(".bias");
    let names: Vec<&str> = names.filter(|name| !parameter(name)).collect();
    names.iter().any(|name| names::is_ids(name) || names::is_scores(name))
        || names::layers_of(names.iter().copied()).is_some_and(|all| !all.is_empty())
}

/// Why whole numbers as f64 may be two things.
const EITHER: &str = "whole numbers [_, layers, _] as f64, none twice in a row: too few to tell ids of \
                      experts [tokens, layers, top-k] from counts [sequences, layers, experts]. Save \
                      ids as whole numbers (astype int32), or give `import::Format` arrays; call counts \
                      expert_counts.npy";

/// Whether rows without a number twice are ids: so many numbers of so few values would come twice
/// in some row if they were counts (four times on average, so that none has a chance of 1 in 50).
fn can_only_be_ids(numbers: &[f64], width: usize) -> bool {
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let pairs = (numbers.len() / width) as f64 * (width * (width - 1)) as f64 / 2.0;
    // No router chooses more of them.
    width <= 32 && pairs / (most + 1.0) >= 4.0
}

/// Whether a file's own name says that it holds counts.
pub(super) fn is_named_counts(sniff: &Sniff<'_>) -> bool {
    let name = sniff.name();
    is_counts(name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem))
}

/// Whether an `.npy` file is read here: what no other reader of arrays takes.
fn recognise_npy(sniff: &Sniff<'_>) -> Result<Claim> {
    let mut start = &sniff.start[..];
    let place = Place { path: sniff.path(), name: "of the file" };
    let (header, header_bytes) = Header::read(&mut start, place)?;
    let layout = npy_layout(&header, header_bytes, u64::MAX, place)?;
    let width = layout.shape.last().copied().unwrap_or(0);
    let values = layout.shape.iter().fold(1usize, |all, &dim| all.saturating_mul(dim));
    let float = layout.element.is_float();
    if values < 2 || width == 0 || (float && width < 2) || is_named_counts(sniff) {
        return Ok(Claim::No);
    }
    let plain = matches!(sniff.contents, Contents::Npy { .. });
    match layout.shape.len() {
        2 | 4 => Ok(Claim::Likely),
        3 if !plain => Ok(Claim::Likely),
        3 => {
            let size = layout.element.size();
            let numbers = start.chunks_exact(size);
            let numbers: Vec<f64> =
                numbers.map(|bytes| layout.element.value(bytes, layout.big_endian)).collect();
            let repeats = numbers
                .chunks_exact(width)
                .any(|row| row.iter().any(|&value| value != 0.0) && twice(row).is_some());
            let whole = numbers.iter().all(|value| value.fract() == 0.0);
            match layout.element {
                // Counts of [sequence, layer, expert] are whole, and many are alike, or their sum is
                // the same in every layer: where neither is so in a few rows, they can only be ids.
                Element::F64 if !whole => Ok(Claim::Sure),
                Element::F64 if !may_be_ids(sniff) => Ok(Claim::No),
                Element::F64 if can_only_be_ids(&numbers, width) => Ok(Claim::Sure),
                Element::F64 => Err(sniff.input.error("array", EITHER)),
                element if element.is_float() => Ok(Claim::Likely),
                _ if sniff.name().contains("routed_experts") => Ok(Claim::No),
                _ => {
                    let padded =
                        numbers.iter().any(|&value| value < 0.0 || inspect::is_padding(value));
                    let row = layout.shape[1..].iter().product::<usize>().saturating_mul(size);
                    Claim::Sure.when(padded || repeats || (width > 1 && ends_empty(sniff, row)?))
                }
            }
        }
        _ => Ok(Claim::No),
    }
}

/// Whether whole numbers `[_, layers, _]` may be ids: no row has one twice, and not every layer has the
/// same sum.
pub(super) fn may_be_ids(sniff: &Sniff<'_>) -> bool {
    let mut start = &sniff.start[..];
    let place = Place { path: sniff.path(), name: "of the file" };
    let Ok((header, bytes)) = Header::read(&mut start, place) else { return false };
    let Ok(layout) = npy_layout(&header, bytes, u64::MAX, place) else { return false };
    let [_, layers, width @ 1..=usize::MAX] = layout.shape[..] else { return false };
    let numbers = start.chunks_exact(layout.element.size());
    let numbers: Vec<f64> =
        numbers.map(|bytes| layout.element.value(bytes, layout.big_endian)).collect();
    let repeats = |row: &[f64]| row.iter().any(|&value| value != 0.0) && twice(row).is_some();
    let once = !numbers.chunks_exact(width).any(repeats);
    once && !same_sums(&numbers, layers, width)
}

/// Whether all layers of a sequence have the same sum, as counts have: a token uses as many experts
/// in every layer.
fn same_sums(numbers: &[f64], layers: usize, width: usize) -> bool {
    let sums: Vec<f64> = numbers.chunks_exact(width).map(|row| row.iter().sum()).collect();
    layers > 1 && sums.len() > 1 && sums.chunks(layers).all(|of| of.iter().all(|sum| *sum == of[0]))
}

/// Whether the last token's row of so many bytes was never filled.
fn ends_empty(sniff: &Sniff<'_>, row: usize) -> Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    if row == 0 || row > 1 << 20 {
        return Ok(false);
    }
    let mut reader = sniff.input.open()?;
    let Some(start) = reader.len().checked_sub(row as u64) else { return Ok(false) };
    reader.seek(SeekFrom::Start(start)).map_err(|e| sniff.input.io(e))?;
    let mut last = Vec::new();
    reader.read_to_end(&mut last).map_err(|e| sniff.input.io(e))?;
    Ok(last.iter().all(|&byte| byte == 0))
}

/// A list of lists of numbers: its name, lengths from the outermost, and its first number.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) first: usize,
}

/// Lists of numbers that were read already; `tree` has them by their places.
pub(super) fn import_lists(
    input: &Input<'_>,
    numbers: &[f32],
    lists: Vec<Shape>,
    tree: &Node,
    into: &mut Collector<'_>,
) -> Result<()> {
    let mut store = Store::new();
    let (source, start, length) = store.scratch(input, bytemuck::cast_slice::<f32, u8>(numbers))?;
    for Shape { name, shape, first } in lists {
        let strides = Layout::strides_of(&shape, false);
        let skipped = 4 * first as u64;
        let bytes = (start + skipped, length.saturating_sub(skipped));
        let big_endian = cfg!(target_endian = "big");
        let layout = Layout { element: Element::F32, big_endian, shape, strides, bytes };
        store.add(input, &name, source, layout)?;
    }
    let told = Told { undocumented: true, ..told(into) };
    let mut planner = Planner { input, store: &store, told, plan: Plan::default() };
    let sequences = planner.sequences(tree)?;
    let plan = Plan { sequences, ..planner.plan };
    emit::emit(input, &mut store, &plan, into)
}

/// What the caller says of the shape.
fn told(into: &Collector<'_>) -> Told {
    let layers = into.options.layers.or(into.config.as_ref().map(|config| config.layers));
    Told {
        layers: layers.map(|layers| layers as usize),
        top_k: into.options.top_k.map(|k| k as usize),
        undocumented: false,
    }
}

/// Files and folders as one recording.
pub(super) fn import(inputs: &[Input<'_>], into: &mut Collector<'_>) -> Result<()> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for input in inputs {
        if input.path().is_dir() {
            paths.extend(files::listed(input, into)?);
        } else {
            paths.push(input.path().to_owned());
        }
    }
    let folders = inputs.iter().any(|input| input.path().is_dir());
    let all: Vec<Input<'_>> = if folders {
        paths.iter().map(|path| inputs[0].other(path)).collect()
    } else {
        inputs.to_vec()
    };
    let mut store = Store::new();
    let mut nodes = Vec::with_capacity(all.len());
    for input in &all {
        nodes.push(open::open(input, &mut store)?);
    }
    nodes.iter().for_each(|node| state(node, into));
    let plan = plan_files(&all, &nodes, &store, into)?;
    emit::emit(&all[0], &mut store, &plan, into)?;
    all.iter().try_for_each(|input| {
        into.read(input.source()?);
        Ok(())
    })
}

/// What files say beside their arrays.
fn state(node: &Node, into: &mut Collector<'_>) {
    let configured =
        [Some(node), node.get("collection_config"), node.get("config"), node.get("meta")];
    for node in configured.into_iter().flatten() {
        for key in ["num_experts", "n_experts", "num_local_experts", "n_routed_experts"] {
            if let Some(&Node::Int(experts)) = node.get(key) {
                let experts = u32::try_from(experts).ok().filter(|&experts| experts > 0);
                into.stated.experts = into.stated.experts.max(experts);
            }
        }
        for key in ["model_name", "model_id", "model"] {
            if let Some(Node::Text(name)) = node.get(key) {
                into.stated.name = into.stated.name.take().or_else(|| Some(name.clone()));
            }
        }
    }
}

/// One plan of all files: a file a layer where their names say so, else a file a sequence.
fn plan_files(
    inputs: &[Input<'_>],
    nodes: &[Node],
    store: &Store<'_>,
    into: &Collector<'_>,
) -> Result<Plan> {
    let told = told(into);
    let planner = |input| Planner { input, store, told, plan: Plan::default() };
    let layered = groups(inputs, nodes, store)?;
    let Some(groups) = layered else {
        let mut all = planner(&inputs[0]);
        let mut sequences = Vec::new();
        for (input, node) in inputs.iter().zip(nodes) {
            all.input = input;
            let before = all.plan.numbers.take();
            sequences.append(&mut all.sequences(node)?);
            if before.is_some() && before != all.plan.numbers {
                return Err(plan::refuse(input, "has other layers than the inputs before it"));
            }
        }
        return Ok(Plan { sequences, ..all.plan });
    };
    let mut all = planner(&inputs[0]);
    let mut sequences = Vec::new();
    for Group { entries, .. } in groups {
        all.input = &inputs[entries[0].1];
        let named = entries.iter().map(|&(layer, at)| (layer.to_string(), nodes[at].clone()));
        sequences.append(&mut all.sequences(&Node::Map(named.collect()))?);
    }
    Ok(Plan { sequences, ..all.plan })
}
