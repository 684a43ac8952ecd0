//! One file a layer: which files of a folder belong together, and which layer each is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::names::{Numbered, layers_of};
use super::open::Node;
use super::plan;
use super::store::Store;
use crate::error::{Error, Result};
use crate::import::array::{Header, Place};
use crate::import::collect::Collector;
use crate::import::folder::{BESIDE, natural};
use crate::import::input::Input;

/// Endings of files that hold arrays.
pub(super) const EXTENSIONS: &[&str] = &["npy", "npz", "pt", "pth", "safetensors"];

fn holds_arrays(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|text| text.to_str());
    extension.is_some_and(|text| EXTENSIONS.contains(&text)) && !BESIDE.contains(&name)
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Names by what they have in common besides the layer; the largest group comes first.
fn grouped<'n>(names: &[&'n str]) -> Option<Vec<Vec<(u32, &'n str)>>> {
    let numbered = layers_of(names.iter().map(|name| stem(name)))?;
    let mut groups: BTreeMap<String, Vec<(u32, &str)>> = BTreeMap::new();
    for (Numbered { rest, layer }, name) in numbered.into_iter().zip(names) {
        groups.entry(rest).or_default().push((layer, name));
    }
    let mut groups: Vec<Vec<(u32, &str)>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    Some(groups)
}

/// Whether a folder holds one file a layer.
pub(in crate::import) fn is_layered_folder(folder: &Path, names: &[String]) -> bool {
    let names: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| holds_arrays(name)).collect();
    let Some(groups) = grouped(&names) else { return false };
    let Some(group) = groups.first().filter(|group| group.len() > 1) else { return false };
    let name = group[0].1;
    if name.to_ascii_lowercase().contains("layer") {
        return true;
    }
    // A number may be a request's too: a layer's array has two axes, or a batch of one.
    let path = folder.join(name);
    let header = std::fs::File::open(&path).ok().and_then(|mut file| {
        Header::read(&mut file, Place { path: &path, name: "of the file" }).ok()
    });
    header.is_some_and(|(header, _)| matches!(header.shape[..], [_, _] | [1, _, _]))
}

/// The files of a folder that are read.
pub(super) fn listed(input: &Input<'_>, into: &mut Collector<'_>) -> Result<Vec<PathBuf>> {
    let folder = input.path();
    let io = |e| Error::io("read the folder", folder, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        if holds_arrays(&name) && folder.join(&name).is_file() {
            names.push(name);
        }
    }
    names.sort_by_cached_key(|name| natural(name));
    if names.is_empty() {
        let wanted = EXTENSIONS.join(", .");
        return Err(input.error("folder", format!("has no file that ends in .{wanted}")));
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut kept = all.clone();
    if let Some(groups) = grouped(&all).filter(|groups| groups[0].len() > 1) {
        let layers =
            |group: &[(u32, &str)]| -> Vec<u32> { group.iter().map(|one| one.0).collect() };
        let wanted = layers(&groups[0]);
        let same = |group: &&Vec<(u32, &str)>| layers(group) == wanted;
        kept = groups.iter().filter(same).flatten().map(|one| one.1).collect();
        kept.sort_by_cached_key(|name| natural(name));
    }
    let left: Vec<&str> = all.iter().copied().filter(|name| !kept.contains(name)).collect();
    if !left.is_empty() {
        let (count, first) = (left.len(), left[0]);
        into.note(format!("{count} files are left out: they are no layer of the others ({first})"));
    }
    Ok(kept.into_iter().map(|name| folder.join(name)).collect())
}

/// Files that are the layers of one sequence.
pub(super) struct Group {
    /// Layer, and place among the inputs.
    pub(super) entries: Vec<(u32, usize)>,
}

/// The inputs by sequence where each is one layer, else none.
pub(super) fn groups(
    inputs: &[Input<'_>],
    nodes: &[Node],
    store: &Store<'_>,
) -> Result<Option<Vec<Group>>> {
    // A layer's array has two axes, or a batch before them.
    let layer = |node: &Node| match node {
        Node::Table(table) => match store.tables[*table].shape[..] {
            [_, _] => true,
            [batch, _, _] => {
                batch == 1 || store.tables[*table].element.is_float() && inputs.len() > 1
            }
            _ => false,
        },
        _ => false,
    };
    if !nodes.iter().all(layer) {
        return Ok(None);
    }
    let names: Vec<String> = inputs
        .iter()
        .map(|input| input.path().file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let Some(numbered) = layers_of(names.iter().map(|name| stem(name))) else {
        if inputs.len() > 1 {
            return Err(plan::refuse(
                &inputs[0],
                format!(
                    "{} files with one layer each, and nothing in their names says which: name \
                     them layer0, layer1, ...",
                    inputs.len()
                ),
            ));
        }
        return Ok(None);
    };
    let mut groups: BTreeMap<Vec<(String, u64)>, Group> = BTreeMap::new();
    for (at, Numbered { rest, layer }) in numbered.into_iter().enumerate() {
        let group = groups.entry(natural(&rest)).or_insert(Group { entries: Vec::new() });
        group.entries.push((layer, at));
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    let layers = |group: &Group| -> Vec<u32> { group.entries.iter().map(|one| one.0).collect() };
    groups.iter_mut().for_each(|group| group.entries.sort_unstable());
    if let Some(other) = groups.iter().find(|group| layers(group) != layers(&groups[0])) {
        let (first, at) = (&names[groups[0].entries[0].1], other.entries[0].1);
        let problem = format!(
            "has other layers ({:?}) than {first} and its like ({:?}): name the files of one kind",
            layers(other),
            layers(&groups[0])
        );
        return Err(plan::refuse(&inputs[at], problem));
    }
    Ok(Some(groups))
}
