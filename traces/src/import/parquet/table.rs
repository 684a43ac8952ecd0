//! Columns of a Parquet file, row by row: numbers, and lists of numbers or weights, whichever
//! integer and float types they have. Columns that nobody wants are not read.
//!
//! Memory: what [`pages`](super::pages) allows of the file's own sizes, and a block of rows.

use std::fs::File;

use parquet::basic::{ConvertedType, Type};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, Length, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;

use super::guard::guarded;
use super::pages::{Lists, check_footer, check_pages};
use crate::error::{Error, Result};
use crate::import::input::Input;

/// Rows that are read at a time, of all files that are open side by side.
const BLOCK: usize = 256;
/// Memory for what a file declares, besides three times its length.
const MEMORY: u64 = 40 << 20;

/// What a column must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Holds {
    /// A whole number or a truth.
    Number,
    /// A list of whole numbers.
    Ids,
    /// A list of numbers with fractions.
    Weights,
}

/// A column that is wanted: its name, what it must hold, whether it must be there.
pub(in crate::import) type Wanted = (&'static str, Holds, bool);

/// An opened file.
pub(in crate::import) struct Table<'a> {
    input: Input<'a>,
    file: File,
    reader: SerializedFileReader<File>,
    wanted: &'static [Wanted],
    /// Of each wanted column its number among the file's, if it is there.
    leaves: Vec<Option<usize>>,
    columns: Vec<Option<Column>>,
    memory: u64,
    /// Rows that are read at a time.
    block: usize,
    group: usize,
    /// Rows of the open row group that were not begun.
    left: u64,
    row: u64,
}

impl<'a> Table<'a> {
    /// Opens it and looks for the columns. `files`: how many are open side by side, and share what
    /// memory there is.
    pub(in crate::import) fn open(
        input: &Input<'a>,
        wanted: &'static [Wanted],
        files: usize,
    ) -> Result<Self> {
        let file = input.as_file()?;
        let memory = MEMORY / files.max(1) as u64 + file.len().saturating_mul(3);
        let (reader, leaves, file) = guarded(input, || {
            check_footer(&file, memory)?;
            let reader = SerializedFileReader::new(file.try_clone()?)?;
            let leaves = wanted.iter().map(|wanted| leaf(&reader, wanted));
            let leaves = leaves.collect::<ParquetResult<Vec<_>>>()?;
            Ok((reader, leaves, file))
        })?;
        Ok(Self {
            input: *input,
            file,
            reader,
            wanted,
            leaves,
            columns: Vec::new(),
            memory,
            block: (BLOCK / files.max(1)).max(1),
            group: 0,
            left: 0,
            row: 0,
        })
    }

    /// Moves to the next row; whether there is one.
    pub(in crate::import) fn next(&mut self) -> Result<bool> {
        while self.left == 0 {
            if self.group == self.reader.num_row_groups() {
                return Ok(false);
            }
            self.open_group()?;
        }
        for (column, (name, ..)) in self.columns.iter_mut().zip(self.wanted) {
            let Some(column) = column else { continue };
            column.at += 1;
            if column.at < column.values.rows() {
                continue;
            }
            guarded(&self.input, || {
                let read = column.read(self.block).and_then(|()| match column.values.rows() {
                    0 => Err(ParquetError::General("fewer rows than its row group".to_owned())),
                    _ => Ok(()),
                });
                read.map_err(|e| ParquetError::General(format!("column {name}: {e}")))
            })?;
        }
        self.left -= 1;
        self.row += 1;
        Ok(true)
    }

    fn open_group(&mut self) -> Result<()> {
        let Self { reader, file, leaves, group, memory, wanted, .. } = self;
        let (columns, rows, bytes) = guarded(&self.input, || {
            let group = reader.get_row_group(*group)?;
            let found = leaves.iter().flatten().copied();
            check_pages(file, group.metadata(), found.clone(), *memory)?;
            let columns = leaves.iter().zip(*wanted).map(|(leaf, (_, holds, _))| {
                let open = |leaf: usize| {
                    let pages = group.get_column_page_reader(leaf)?;
                    Ok(Column::new(group.metadata().column(leaf).column_descr_ptr(), pages, *holds))
                };
                leaf.map(open).transpose()
            });
            let bytes = found.map(|leaf| group.metadata().column(leaf).compressed_size().max(0));
            let rows = u64::try_from(group.metadata().num_rows());
            let rows = rows.map_err(|_| ParquetError::General("negative row count".to_owned()))?;
            Ok((columns.collect::<ParquetResult<Vec<_>>>()?, rows, bytes.sum::<i64>()))
        })?;
        self.input.advance(bytes.unsigned_abs())?;
        self.columns = columns;
        self.left = rows;
        self.group += 1;
        Ok(())
    }

    fn wrong(&self, column: usize, value: impl std::fmt::Display) -> Error {
        let (name, ..) = self.wanted[column];
        let problem = format!("column {name}: {value} is not what belongs there");
        self.input.error(self.place(), problem)
    }

    fn values(&self, column: usize) -> Option<(&Values, std::ops::Range<usize>)> {
        let column = self.columns[column].as_ref()?;
        Some((&column.values, column.values.row(column.at)))
    }

    /// The number of a column of [`Holds::Number`] in this row; nothing where the file lacks it.
    pub(in crate::import) fn number(&self, column: usize) -> Result<Option<u32>> {
        let Some((values, range)) = self.values(column) else { return Ok(None) };
        let number = values.ints[range.start];
        u32::try_from(number).map(Some).map_err(|_| self.wrong(column, number))
    }

    /// Appends the ids of a column of [`Holds::Ids`]; answers how many there were.
    pub(in crate::import) fn ids(&self, column: usize, into: &mut Vec<u16>) -> Result<u32> {
        let Some((values, range)) = self.values(column) else { return Ok(0) };
        let ids = &values.ints[range];
        for &id in ids {
            into.push(u16::try_from(id).map_err(|_| self.wrong(column, id))?);
        }
        Ok(ids.len() as u32)
    }

    /// Appends the weights of a column of [`Holds::Weights`], which must be as many as the row has
    /// ids, `count`.
    pub(in crate::import) fn weights(
        &self,
        column: usize,
        count: u32,
        into: &mut Vec<f32>,
    ) -> Result<()> {
        let Some((values, range)) = self.values(column) else { return Ok(()) };
        if range.len() != count as usize {
            let (name, ..) = self.wanted[column];
            let problem = format!("column {name}: {} weights of {count} experts", range.len());
            return Err(self.input.error(self.place(), problem));
        }
        into.extend_from_slice(&values.floats[range]);
        Ok(())
    }

    fn place(&self) -> String {
        format!("row {}", self.row.saturating_sub(1))
    }

    /// What the file's writer noted under a key.
    pub(in crate::import) fn noted(&self, key: &str) -> Option<&str> {
        let notes = self.reader.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }
}

/// The column of that name among the leaves of the schema.
fn leaf(
    reader: &SerializedFileReader<File>,
    &(name, holds, must): &Wanted,
) -> ParquetResult<Option<usize>> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut found = (0..schema.num_columns())
        .filter(|&leaf| schema.column(leaf).path().parts().first().is_some_and(|n| n == name));
    let Some(leaf) = found.next() else {
        let problem = format!("column {name} is missing");
        return if must { Err(ParquetError::General(problem)) } else { Ok(None) };
    };
    let column = schema.column(leaf);
    let lists = i16::from(holds != Holds::Number);
    let kind = column.physical_type();
    let fits = match holds {
        Holds::Weights => {
            matches!(kind, Type::FLOAT | Type::DOUBLE)
                || (kind, column.type_length()) == (Type::FIXED_LEN_BYTE_ARRAY, 2)
        }
        Holds::Number | Holds::Ids => matches!(kind, Type::BOOLEAN | Type::INT32 | Type::INT64),
    };
    if found.next().is_some() || column.max_rep_level() != lists || !fits {
        let what = match holds {
            Holds::Number => "a whole number",
            Holds::Ids => "a list of whole numbers",
            Holds::Weights => "a list of floats of 16, 32 or 64 bits",
        };
        return Err(ParquetError::General(format!("column {name} is not {what}")));
    }
    Ok(Some(leaf))
}

/// A block of rows of a column: row `r` has the values up to `ends[r]`.
#[derive(Default)]
struct Values {
    ends: Vec<usize>,
    ints: Vec<i64>,
    floats: Vec<f32>,
}

impl Values {
    fn rows(&self) -> usize {
        self.ends.len()
    }

    fn row(&self, row: usize) -> std::ops::Range<usize> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[row]
    }
}

/// An open column of a row group.
struct Column {
    reader: Leaf,
    values: Values,
    /// The current row of the block.
    at: usize,
}

impl Column {
    fn new(column: ColumnDescPtr, pages: Box<dyn PageReader>, holds: Holds) -> Self {
        let pages: Box<dyn PageReader> =
            if holds == Holds::Number { pages } else { Box::new(Lists { pages, open: 0 }) };
        let reader = match column.physical_type() {
            Type::BOOLEAN => Leaf::Bool(Reader::new(column, pages)),
            Type::INT32 => Leaf::Int32(Reader::new(column, pages)),
            Type::INT64 => Leaf::Int64(Reader::new(column, pages)),
            Type::FLOAT => Leaf::Float(Reader::new(column, pages)),
            Type::DOUBLE => Leaf::Double(Reader::new(column, pages)),
            _ => Leaf::Half(Reader::new(column, pages)),
        };
        Self { reader, values: Values::default(), at: 0 }
    }

    /// The next block of rows, none at the end.
    fn read(&mut self, block: usize) -> ParquetResult<()> {
        self.at = 0;
        let Self { reader, values, .. } = self;
        values.ints.clear();
        values.floats.clear();
        let Values { ends, ints, floats } = values;
        match reader {
            Leaf::Bool(reader) => reader.read(block, ends, |v| ints.push(v.into())),
            Leaf::Int32(reader) if reader.unsigned => {
                reader.read(block, ends, |v| ints.push((v as u32).into()))
            }
            Leaf::Int32(reader) => reader.read(block, ends, |v| ints.push(v.into())),
            Leaf::Int64(reader) => reader.read(block, ends, |v| ints.push(v)),
            Leaf::Float(reader) => reader.read(block, ends, |v| floats.push(v)),
            Leaf::Double(reader) => reader.read(block, ends, |v| floats.push(v as f32)),
            Leaf::Half(reader) => reader.read(block, ends, |v| {
                let bytes = v.data().first_chunk().copied().unwrap_or_default();
                floats.push(half::f16::from_le_bytes(bytes).to_f32());
            }),
        }
    }
}

enum Leaf {
    Bool(Reader<BoolType>),
    Int32(Reader<Int32Type>),
    Int64(Reader<Int64Type>),
    Float(Reader<FloatType>),
    Double(Reader<DoubleType>),
    Half(Reader<FixedLenByteArrayType>),
}

/// The library's reader of one column, and room for a block.
struct Reader<T: DataType> {
    reader: ColumnReaderImpl<T>,
    unsigned: bool,
    /// The definition level of a value that is there.
    there: i16,
    values: Vec<T::T>,
    defined: Vec<i16>,
    repeats: Vec<i16>,
}

impl<T: DataType> Reader<T> {
    fn new(column: ColumnDescPtr, pages: Box<dyn PageReader>) -> Self {
        let unsigned = column.converted_type() == ConvertedType::UINT_32;
        let there = column.max_def_level();
        let reader = ColumnReaderImpl::new(column, pages);
        let (values, defined, repeats) = Default::default();
        Self { reader, unsigned, there, values, defined, repeats }
    }

    /// Reads a block: every value to `push`, the ends of the rows to `ends`.
    fn read(
        &mut self,
        block: usize,
        ends: &mut Vec<usize>,
        push: impl FnMut(T::T),
    ) -> ParquetResult<()> {
        let Self { reader, there, values, defined, repeats, .. } = self;
        ends.clear();
        values.clear();
        defined.clear();
        repeats.clear();
        let (_, count, levels) =
            reader.read_records(block, Some(defined), Some(repeats), values)?;
        if count != levels || defined.iter().any(|defined| defined != there) {
            return Err(ParquetError::General("a null or an empty list".to_owned()));
        }
        let begins = |&level: &usize| repeats.get(level).is_none_or(|&repeats| repeats == 0);
        ends.extend((1..levels).filter(begins));
        if levels > 0 {
            ends.push(levels);
        }
        values.drain(..).for_each(push);
        Ok(())
    }
}
