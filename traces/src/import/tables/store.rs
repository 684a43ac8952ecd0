//! Arrays wherever they lie: a file, a storage in it, an unpacked copy; read a few tokens at a time.
//!
//! A view names three axes of an array (tokens, layers, width) by their strides, so that any order
//! of axes, C or Fortran, reads alike. What lies together is read in one piece.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::import::element::Element;
use crate::import::input::{Input, Reader};

/// Values that a block of tokens has, at most: 4 MiB as they are looked at. In Fortran order each
/// piece that is read has the tokens of a block alone, so that few of them cost many reads.
const BLOCK: usize = 1 << 19;
/// How much more than what is needed may be read in one piece.
const SPARSE: u64 = 8;
/// Arrays that inputs may have.
const MAX_TABLES: usize = 1 << 20;

/// Bytes that can be read anywhere.
enum Source<'a> {
    Reader(Box<Reader<'a>>),
    /// What was unpacked.
    Scratch(File),
}

impl Source<'_> {
    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Reader(reader) => {
                reader.seek(SeekFrom::Start(at))?;
                reader.read_exact(bytes)
            }
            Self::Scratch(file) => {
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(bytes)
            }
        }
    }
}

/// An array.
#[derive(Debug, Clone)]
pub(super) struct Table {
    source: usize,
    /// Where its first value lies, in bytes.
    base: u64,
    pub(super) element: Element,
    big_endian: bool,
    pub(super) shape: Vec<usize>,
    /// Of each axis, in values.
    strides: Vec<u64>,
    /// Its name in the file; empty where it has none.
    pub(super) name: String,
}

/// Where an array's values lie and in which order.
pub(in crate::import) struct Layout {
    pub(in crate::import) element: Element,
    pub(in crate::import) big_endian: bool,
    pub(in crate::import) shape: Vec<usize>,
    pub(in crate::import) strides: Vec<u64>,
    /// The first byte, and how many there are.
    pub(in crate::import) bytes: (u64, u64),
}

impl Layout {
    /// Strides of values that follow each other, the last axis fastest (or the first: Fortran).
    pub(super) fn strides_of(shape: &[usize], fortran: bool) -> Vec<u64> {
        let mut strides = vec![1u64; shape.len()];
        let mut all = 1u64;
        let mut set = |axis: usize| {
            strides[axis] = all;
            all = all.saturating_mul(shape[axis] as u64);
        };
        if fortran {
            (0..shape.len()).for_each(&mut set);
        } else {
            (0..shape.len()).rev().for_each(&mut set);
        }
        strides
    }
}

/// Three axes of an array: tokens, layers and what each token has in a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) table: usize,
    /// Values before the first.
    offset: u64,
    pub(super) tokens: usize,
    pub(super) layers: usize,
    pub(super) width: usize,
    strides: [u64; 3],
}

/// Which axes of an array are which; `None` is an axis of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes {
    pub(super) tokens: usize,
    pub(super) layers: Option<usize>,
    pub(super) width: Option<usize>,
}

/// All arrays of the inputs.
pub(super) struct Store<'a> {
    sources: Vec<Source<'a>>,
    /// The file that each source is from.
    paths: Vec<PathBuf>,
    pub(super) tables: Vec<Table>,
    /// The source of what was unpacked, and its bytes so far.
    scratch: Option<(usize, u64)>,
    /// Values that may still be taken from files of these sizes.
    budget: u64,
    buffer: Vec<u8>,
}

impl<'a> Store<'a> {
    pub(super) fn new() -> Self {
        Self {
            sources: Vec::new(),
            paths: Vec::new(),
            tables: Vec::new(),
            scratch: None,
            budget: 8 << 20,
            buffer: Vec::new(),
        }
    }

    /// A file whose arrays are added next.
    pub(super) fn reader(&mut self, input: &Input<'_>, reader: Reader<'a>) -> usize {
        self.paths.push(input.path().to_owned());
        self.budget = self.budget.saturating_add(reader.len().saturating_mul(8));
        self.sources.push(Source::Reader(Box::new(reader)));
        self.sources.len() - 1
    }

    /// A copy of what cannot be read in place: its source, first byte and length.
    pub(super) fn scratch(
        &mut self,
        input: &Input<'_>,
        mut from: impl Read,
    ) -> Result<(usize, u64, u64)> {
        let (source, start) = match self.scratch {
            Some(there) => there,
            None => {
                let file = tempfile::tempfile().map_err(|e| input.io(e))?;
                self.paths.push(input.path().to_owned());
                self.sources.push(Source::Scratch(file));
                (self.sources.len() - 1, 0)
            }
        };
        let Source::Scratch(file) = &mut self.sources[source] else {
            return Err(input.error("file", "nowhere to unpack it"));
        };
        file.seek(SeekFrom::Start(start)).map_err(|e| input.io(e))?;
        let length = io::copy(&mut from, file).map_err(|e| input.io(e))?;
        file.flush().map_err(|e| input.io(e))?;
        self.scratch = Some((source, start + length));
        self.budget = self.budget.saturating_add(length.saturating_mul(8));
        Ok((source, start, length))
    }

    /// Adds an array of a source, once all of it is known to be there.
    pub(super) fn add(
        &mut self,
        input: &Input<'_>,
        name: &str,
        source: usize,
        layout: Layout,
    ) -> Result<usize> {
        let Layout { element, big_endian, shape, strides, bytes: (base, length) } = layout;
        let refuse = |problem: String| Err(input.error(place(name), problem));
        let width = element.size() as u64;
        let count = shape.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim as u64));
        let last = shape.iter().zip(&strides).try_fold(0u64, |last, (&dim, &stride)| {
            last.checked_add((dim as u64).saturating_sub(1).checked_mul(stride)?)
        });
        let end = last.and_then(|last| last.checked_add(1)).and_then(|n| n.checked_mul(width));
        let fits = count == Some(0) || end.is_some_and(|end| end <= length);
        let Some(count) = count.filter(|_| fits && shape.len() <= 8) else {
            let name = element.name();
            return refuse(format!(
                "shape {shape:?} of {name} does not fit its {length} bytes of data"
            ));
        };
        let Some(left) = self.budget.checked_sub(count) else {
            return refuse("more values than a file of this size explains".to_owned());
        };
        if self.tables.len() >= MAX_TABLES {
            return refuse(format!("over {MAX_TABLES} arrays"));
        }
        self.budget = left;
        let name = name.to_owned();
        self.tables.push(Table { source, base, element, big_endian, shape, strides, name });
        Ok(self.tables.len() - 1)
    }

    /// A view of an array; `at` fixes the other axes.
    pub(super) fn view(&self, table: usize, axes: Axes, at: &[(usize, usize)]) -> View {
        let of = &self.tables[table];
        let axis = |axis: Option<usize>| axis.map_or((1, 0), |a| (of.shape[a], of.strides[a]));
        let (tokens, layers, width) =
            (axis(Some(axes.tokens)), axis(axes.layers), axis(axes.width));
        View {
            table,
            offset: at.iter().map(|&(axis, index)| index as u64 * of.strides[axis]).sum(),
            tokens: tokens.0,
            layers: layers.0,
            width: width.0,
            strides: [tokens.1, layers.1, width.1],
        }
    }

    /// A view of neighbouring columns as layers of `width` each, from an array `[tokens, columns]`.
    pub(super) fn folded(&self, table: usize, layers: usize, width: usize) -> View {
        let of = &self.tables[table];
        let (rows, column) = (of.strides[0], of.strides[1]);
        let strides = [rows, column.saturating_mul(width as u64), column];
        View { table, offset: 0, tokens: of.shape[0], layers, width, strides }
    }

    /// Tokens of such rows that are read at a time.
    pub(super) fn block(row: usize) -> usize {
        (BLOCK / row.max(1)).max(1)
    }

    /// The values of `count` tokens, `[tokens, layers, width]`.
    pub(super) fn read(
        &mut self,
        view: &View,
        first: usize,
        count: usize,
        out: &mut Vec<f64>,
    ) -> Result<()> {
        out.clear();
        out.resize(count * view.layers * view.width, 0.0);
        let offset = view.offset + first as u64 * view.strides[0];
        let axes = [
            Axis { len: count, stride: view.strides[0], out: view.layers * view.width },
            Axis { len: view.layers, stride: view.strides[1], out: view.width },
            Axis { len: view.width, stride: view.strides[2], out: 1 },
        ];
        self.fill(view.table, offset, axes, 0, out)
    }

    /// Reads a box of values: in one piece where it is dense enough, else slice by slice.
    fn fill(
        &mut self,
        table: usize,
        offset: u64,
        axes: [Axis; 3],
        at: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let needed: u64 = axes.iter().map(|axis| axis.len as u64).product();
        if needed == 0 {
            return Ok(());
        }
        let span = 1 + axes.iter().map(|axis| (axis.len as u64 - 1) * axis.stride).sum::<u64>();
        if span <= needed * SPARSE || needed == 1 {
            return self.piece(table, offset, span, axes, at, out);
        }
        let long = |&axis: &usize| (axes[axis].len > 1, axes[axis].stride);
        let Some(widest) = (0..3).max_by_key(long) else { return Ok(()) };
        let Axis { len, stride, out: step } = axes[widest];
        for index in 0..len {
            let mut rest = axes;
            rest[widest].len = 1;
            self.fill(table, offset + index as u64 * stride, rest, at + index * step, out)?;
        }
        Ok(())
    }

    fn piece(
        &mut self,
        table: usize,
        offset: u64,
        span: u64,
        axes: [Axis; 3],
        at: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let Self { sources, paths, tables, buffer, .. } = self;
        let Table { source, base, element, big_endian, name, .. } = &tables[table];
        let size = element.size();
        buffer.resize(span as usize * size, 0);
        let start = base + offset * size as u64;
        sources[*source].read_at(start, buffer).map_err(|e| {
            let problem = format!("cannot be read to its end: {e}");
            Error::import(&paths[*source], place(name), problem)
        })?;
        let [tokens, layers, width] = axes;
        for token in 0..tokens.len {
            for layer in 0..layers.len {
                let from = token as u64 * tokens.stride + layer as u64 * layers.stride;
                let to = at + token * tokens.out + layer * layers.out;
                for index in 0..width.len {
                    let from = (from + index as u64 * width.stride) as usize * size;
                    out[to + index * width.out] =
                        element.value(&buffer[from..from + size], *big_endian);
                }
            }
        }
        Ok(())
    }
}

/// An axis of a box that is read: its stride in the file and in what comes out.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    stride: u64,
    out: usize,
}

/// How messages name an array.
pub(super) fn place(name: &str) -> String {
    match name {
        "" => "array".to_owned(),
        name => format!("array {name}"),
    }
}
