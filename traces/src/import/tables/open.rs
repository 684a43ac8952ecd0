//! Files of arrays as trees: what is listed, what is named, and arrays as the leaves.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::store::{Layout, Store};
use crate::error::Result;
use crate::hst::ratio_accepted;
use crate::import::array::{Header, Place};
use crate::import::element::Element;
use crate::import::input::Input;
use crate::import::pickle::{Object, Pickle, Value};
use crate::import::safetensors::SafeTensors;
use crate::import::torch::{Torch, decode};

/// What a file holds.
#[derive(Debug, Clone)]
pub(in crate::import) enum Node {
    /// An array, by its place in the store.
    Table(usize),
    List(Vec<Node>),
    /// Names and what they name.
    Map(Vec<(String, Node)>),
    Int(i64),
    Text(String),
    /// Nothing that says how a token was routed.
    Other,
}

impl Node {
    /// Whether there is an array in it.
    pub(super) fn has_table(&self) -> bool {
        match self {
            Self::Table(_) => true,
            Self::List(nodes) => nodes.iter().any(Self::has_table),
            Self::Map(entries) => entries.iter().any(|(_, node)| node.has_table()),
            _ => false,
        }
    }

    /// What a name names.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, n)| n),
            _ => None,
        }
    }
}

/// Opens a file of arrays.
pub(super) fn open<'a>(input: &Input<'a>, store: &mut Store<'a>) -> Result<Node> {
    let mut reader = input.open()?;
    let mut start = Vec::new();
    reader.by_ref().take(9).read_to_end(&mut start).map_err(|e| input.io(e))?;
    drop(reader);
    match start[..] {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => npy(input, store),
        [b'P', b'K', 3, 4, ..] => match Torch::open(input) {
            Ok(torch) => torch_tree(input, torch, store),
            Err(e) if is_torch(input)? => Err(e),
            Err(_) => npz(input, store),
        },
        [_, _, _, _, _, 0, 0, 0, b'{'] => safetensors(input, store),
        _ => Err(input.error("file", "no array: .npy, .npz, .pt and .safetensors are read here")),
    }
}

/// Whether a zip is one of `torch.save`.
pub(in crate::import) fn is_torch(input: &Input<'_>) -> Result<bool> {
    let Ok(archive) = ZipArchive::new(input.open()?) else { return Ok(false) };
    let mut names = archive.file_names().filter_map(|name| name.ok());
    Ok(names.any(|name| name.ends_with("/data.pkl") || name == "data.pkl"))
}

/// The values of an `.npy` file of so many bytes, which begins at `at` of its source.
pub(in crate::import) fn npy_layout(
    header: &Header,
    header_bytes: u64,
    length: u64,
    place: Place<'_>,
) -> Result<Layout> {
    let descr = header.descr.as_str();
    let code = descr.trim_start_matches(['<', '>', '|', '=']);
    if code.starts_with('O') {
        return Err(place.error(
            "holds Python objects (type |O): reading them would run code of the file, which is \
             never done; save an array of numbers",
        ));
    }
    let element = Element::of_numpy(code).ok_or_else(|| {
        place.error(format!("elements of type {descr}; whole numbers, bool and floats are read"))
    })?;
    let shape: Vec<usize> = header.shape.iter().map(|&dim| dim as usize).collect();
    let strides = Layout::strides_of(&shape, header.fortran);
    let bytes = (header_bytes, length.saturating_sub(header_bytes));
    Ok(Layout { element, big_endian: descr.starts_with('>'), shape, strides, bytes })
}

fn npy<'a>(input: &Input<'a>, store: &mut Store<'a>) -> Result<Node> {
    let mut reader = input.open()?;
    let length = reader.len();
    let place = Place { path: input.path(), name: "of the file" };
    let (header, header_bytes) = Header::read(&mut reader, place)?;
    let layout = npy_layout(&header, header_bytes, length, place)?;
    let source = store.reader(input, reader);
    store.add(input, "", source, layout).map(Node::Table)
}

fn npz<'a>(input: &Input<'a>, store: &mut Store<'a>) -> Result<Node> {
    let reader = input.open()?;
    let whole = reader.len();
    let refuse = |problem: String| input.error("zip", problem);
    let mut archive =
        ZipArchive::new(reader).map_err(|e| refuse(format!("not an npz file: {e}")))?;
    let source = store.reader(input, input.open()?);
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|e| refuse(e.to_string()))?;
        let full = member.name().map_err(|e| refuse(e.to_string()))?.into_owned();
        let Some(name) = full.strip_suffix(".npy") else { continue };
        let place = Place { path: input.path(), name };
        let length = member.size();
        if !ratio_accepted(whole, length) {
            return Err(place.error(format!("states {length} bytes in a file of {whole}")));
        }
        let stored = member.compression() == zip::CompressionMethod::Stored;
        let start = member.data_start().filter(|_| stored);
        let (header, header_bytes) = Header::read(&mut member, place)?;
        let mut layout = match npy_layout(&header, header_bytes, length, place) {
            Ok(layout) => layout,
            // Text and objects beside the ids are no numbers.
            Err(_) => {
                entries.push((name.to_owned(), Node::Other));
                continue;
            }
        };
        let source = match start {
            Some(start) => {
                layout.bytes.0 += start;
                if layout.bytes.0.saturating_add(layout.bytes.1) > whole {
                    return Err(place.error("its bytes are not in the file"));
                }
                source
            }
            None => {
                let values = member.take(layout.bytes.1);
                let (scratch, first, found) = store.scratch(input, values)?;
                layout.bytes = (first, found);
                scratch
            }
        };
        let table = store.add(input, name, source, layout)?;
        entries.push((name.to_owned(), Node::Table(table)));
    }
    Ok(Node::Map(entries))
}

fn safetensors<'a>(input: &Input<'a>, store: &mut Store<'a>) -> Result<Node> {
    let file = SafeTensors::open(input)?;
    let source = store.reader(input, input.open()?);
    let mut entries = Vec::new();
    for (name, tensor) in &file.tensors {
        let Some(element) = Element::of_safetensors(tensor.dtype()) else {
            entries.push((name.clone(), Node::Other));
            continue;
        };
        let shape: Vec<usize> = tensor.shape.iter().map(|&dim| dim as usize).collect();
        let strides = Layout::strides_of(&shape, false);
        let bytes = file.span(tensor);
        let layout = Layout { element, big_endian: false, shape, strides, bytes };
        entries.push((name.clone(), Node::Table(store.add(input, name, source, layout)?)));
    }
    Ok(Node::Map(entries))
}

/// How deep a tree of lists and dictionaries may be.
const DEPTH: usize = 8;

/// A `.pt` file on its way into a tree.
struct Tree<'t, 'a> {
    input: &'t Input<'a>,
    torch: Torch<'a>,
    source: usize,
    /// Nodes that may still be made: shared objects may not multiply.
    left: u64,
}

fn torch_tree<'a>(input: &Input<'a>, torch: Torch<'a>, store: &mut Store<'a>) -> Result<Node> {
    let reader = input.open()?;
    let left = reader.len() / 2 + (1 << 12);
    let source = store.reader(input, reader);
    let root = torch.pickle.root();
    let mut tree = Tree { input, torch, source, left };
    tree.node(root, "", DEPTH, store)
}

impl<'a> Tree<'_, 'a> {
    fn node(
        &mut self,
        value: Value,
        name: &str,
        depth: usize,
        store: &mut Store<'a>,
    ) -> Result<Node> {
        let refuse = |problem: &str| Err(self.input.error("data.pkl", problem));
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return refuse("more entries than a file of this size explains"),
        };
        let Some(depth) = depth.checked_sub(1) else { return Ok(Node::Other) };
        let object = match value {
            Value::Int(int) => return Ok(Node::Int(int)),
            Value::Text(..) => return Ok(text(&self.torch.pickle, value)),
            Value::Object(_) => self.torch.pickle.object(value).cloned(),
            _ => None,
        };
        let under =
            |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
        match object {
            Some(Object::Dict(entries)) => {
                let mut named = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = match key {
                        Value::Int(int) => int.to_string(),
                        key => match text(&self.torch.pickle, key) {
                            Node::Text(key) => key,
                            _ => continue,
                        },
                    };
                    let node = self.node(value, &under(&key), depth, store)?;
                    named.push((key, node));
                }
                Ok(Node::Map(named))
            }
            Some(Object::List(values)) => self.list(&values, name, depth, store),
            Some(Object::Tuple(values)) => self.list(&values, name, depth, store),
            Some(Object::Tensor { storage, offset, shape, strides }) => {
                let Some(Object::Storage { element, key }) =
                    self.torch.pickle.object(Value::Object(storage)).cloned()
                else {
                    return refuse("a tensor without a storage");
                };
                let key =
                    String::from_utf8_lossy(self.torch.pickle.slice(key.0, key.1)).into_owned();
                let (start, length) = self.torch.storage_span(&key, name)?;
                let skipped = offset.checked_mul(element.size() as u64).filter(|&n| n <= length);
                let Some(skipped) = skipped else {
                    return refuse("a tensor that begins past its storage");
                };
                let layout = Layout {
                    element,
                    big_endian: false,
                    shape: shape.iter().map(|&dim| dim as usize).collect(),
                    strides: strides.to_vec(),
                    bytes: (start + skipped, length - skipped),
                };
                store.add(self.input, name, self.source, layout).map(Node::Table)
            }
            Some(Object::Array { element, shape, data }) => {
                let latin1;
                let bytes = match data {
                    Value::Bytes(start, len) => self.torch.pickle.slice(start, len),
                    Value::Latin1(start, len) => {
                        latin1 = decode(self.torch.pickle.slice(start, len)).unwrap_or_default();
                        &latin1
                    }
                    _ => return refuse("an array without values"),
                };
                let (source, first, length) = store.scratch(self.input, Cursor::new(bytes))?;
                let shape: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
                let strides = Layout::strides_of(&shape, false);
                let bytes = (first, length);
                let layout = Layout { element, big_endian: false, shape, strides, bytes };
                store.add(self.input, name, source, layout).map(Node::Table)
            }
            _ => Ok(Node::Other),
        }
    }

    fn list(
        &mut self,
        values: &[Value],
        name: &str,
        depth: usize,
        store: &mut Store<'a>,
    ) -> Result<Node> {
        let mut nodes = Vec::with_capacity(values.len());
        for (index, &value) in values.iter().enumerate() {
            let name = if name.is_empty() { index.to_string() } else { format!("{name}.{index}") };
            nodes.push(self.node(value, &name, depth, store)?);
        }
        Ok(Node::List(nodes))
    }
}

fn text(pickle: &Pickle, value: Value) -> Node {
    pickle.text(value).map_or(Node::Other, |text| Node::Text(text.to_owned()))
}
