//! The beginning of a file, read once: what every format is asked to recognise.

use std::io::Read;
use std::path::Path;

use super::array::{Array, Dtype, Header, Place};
use super::arrays::Npz;
use super::element::Element;
use super::input::Input;
use super::options::ImportOptions;
use super::tables::{is_torch, npy_layout};
use super::torch::Torch;
use crate::error::{Error, Result};

/// Bytes of a file that are looked at.
const START: u64 = 1 << 16;

/// What a file is by its magic number, opened as far as its headers.
pub(super) enum Contents<'a> {
    /// A folder, with the names of what is in it, sorted.
    Folder(Vec<String>),
    Hst,
    /// A NumPy array.
    Npy {
        dtype: Dtype,
        shape: Vec<usize>,
    },
    /// A NumPy array of another order or type than [`Array`] reads.
    Ndarray,
    /// A file of `torch.save`.
    Torch(Box<Torch<'a>>),
    /// Any other zip, with the names of the arrays in it.
    Npz(Vec<String>),
    /// Text, as far as it was read: UTF-8, without a byte order mark.
    Text(String),
    /// Anything else; [`Sniff::start`] has its first bytes.
    Binary,
}

/// A file that formats look at.
pub(super) struct Sniff<'a> {
    pub(super) input: Input<'a>,
    /// What the caller says.
    pub(super) options: &'a ImportOptions,
    /// The first bytes, unpacked; of text as UTF-8.
    pub(super) start: Vec<u8>,
    pub(super) contents: Contents<'a>,
    /// The first line that is no comment, as a range of the text.
    first: Option<(usize, usize)>,
}

impl<'a> Sniff<'a> {
    /// Looks at a file or folder.
    pub(super) fn open(input: &Input<'a>, options: &'a ImportOptions) -> Result<Self> {
        let path = input.path();
        if path.is_dir() {
            let io = |e| Error::io("read the folder", path, e);
            let entries = std::fs::read_dir(path).map_err(io)?;
            let names: std::io::Result<Vec<String>> = entries
                .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
                .collect();
            let mut names = names.map_err(io)?;
            names.sort();
            return Ok(Self::new(*input, options, Vec::new(), Contents::Folder(names)));
        }
        let mut start = Vec::new();
        let stream = input.stream()?;
        stream.take(START).read_to_end(&mut start).map_err(|e| input.io(e))?;
        if start.is_empty() {
            return Err(input.error("file", "is empty"));
        }
        let contents = match start[..] {
            [0x89, b'H', b'S', b'T', ..] => Contents::Hst,
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => npy(input)?,
            [b'P', b'K', 3, 4, ..] => zip(input)?,
            _ if start.contains(&0) => Contents::Binary,
            _ => Contents::Text(String::from_utf8_lossy(&start).into_owned()),
        };
        Ok(Self::new(*input, options, start, contents))
    }

    fn new(
        input: Input<'a>,
        options: &'a ImportOptions,
        start: Vec<u8>,
        contents: Contents<'a>,
    ) -> Self {
        let first = match &contents {
            Contents::Text(text) => first_line(text),
            _ => None,
        };
        Self { input, options, start, contents, first }
    }

    pub(super) fn path(&self) -> &'a Path {
        self.input.path()
    }

    /// Whether all of it was read.
    pub(super) fn is_whole(&self) -> bool {
        (self.start.len() as u64) < START
    }

    /// The file's own name.
    pub(super) fn name(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The text, where it is one.
    pub(super) fn text(&self) -> &str {
        match &self.contents {
            Contents::Text(text) => text,
            _ => "",
        }
    }

    /// The first line of a text that is neither blank nor a comment (`#`), which may be cut.
    pub(super) fn first_line(&self) -> &str {
        self.first.map_or("", |(start, end)| &self.text()[start..end])
    }

    /// The comments (`#`) before [`Sniff::first_line`].
    pub(super) fn comments(&self) -> impl Iterator<Item = &str> {
        let text = self.text();
        let end = self.first.map_or(text.len(), |(start, _)| start);
        text[..end].lines().map(str::trim).filter(|line| line.starts_with('#'))
    }

    /// The columns of the first line, where commas part them.
    pub(super) fn columns(&self) -> Vec<&str> {
        match self.first_line() {
            "" => Vec::new(),
            line => line.split(',').map(str::trim).collect(),
        }
    }

    /// Whether the first line is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.first_line().starts_with(['{', '['])
    }

    /// Whether the first line is JSON and has all of these keys, at any depth.
    pub(super) fn has_keys(&self, keys: &[&str]) -> bool {
        self.is_json() && have_keys(self.first_line(), keys)
    }

    /// Whether the text is JSON and has all of these keys, at any depth and on any line.
    pub(super) fn document_has_keys(&self, keys: &[&str]) -> bool {
        self.is_json() && have_keys(self.text(), keys)
    }

    /// The opened `.pt` file, where it is one.
    pub(super) fn torch(&self) -> Option<&Torch<'a>> {
        match &self.contents {
            Contents::Torch(torch) => Some(torch),
            _ => None,
        }
    }
}

fn have_keys(text: &str, keys: &[&str]) -> bool {
    let is_key = |(at, key): (usize, &str)| text[at + key.len()..].trim_start().starts_with(':');
    keys.iter().all(|key| text.match_indices(&format!("\"{key}\"")).any(is_key))
}

fn first_line(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            let start = at + (line.len() - line.trim_start().len());
            return Some((start, start + trimmed.len()));
        }
        at += line.len();
    }
    None
}

fn npy<'a>(input: &Input<'a>) -> Result<Contents<'a>> {
    let place = Place { path: input.path(), name: "ids" };
    let mut reader = input.open()?;
    let length = reader.len();
    let (header, header_bytes) = Header::read(&mut reader, place)?;
    let layout = npy_layout(&header, header_bytes, length, place)?;
    let fortran = header.fortran && layout.shape.len() > 1;
    if layout.big_endian
        || fortran
        || matches!(layout.element, Element::Bool | Element::I8 | Element::U64)
    {
        return Ok(Contents::Ndarray);
    }
    let array = Array::open(input.open()?, length, place)?;
    Ok(Contents::Npy { dtype: array.dtype, shape: array.shape })
}

fn zip<'a>(input: &Input<'a>) -> Result<Contents<'a>> {
    match Torch::open(input) {
        Ok(torch) => Ok(Contents::Torch(Box::new(torch))),
        // What keeps a file of torch.save from being read is said, and no zip.
        Err(e) if is_torch(input)? => Err(e),
        Err(_) => Ok(Contents::Npz(Npz::open(input)?.names())),
    }
}
