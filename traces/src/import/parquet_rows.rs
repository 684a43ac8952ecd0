//! Rows of a Parquet file, whichever integer and float types it has.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};

use super::input::Input;
use crate::error::{Error, Result};

/// An opened file.
pub(super) struct Table<'a> {
    pub(super) input: Input<'a>,
    rows: RowIter<'static>,
}

impl<'a> Table<'a> {
    /// Opens it and checks that it has these columns.
    pub(super) fn open(input: &Input<'a>, columns: &[&str]) -> Result<Self> {
        let file = input.as_file()?;
        let rows = guarded(input, || {
            let reader: SerializedFileReader<File> = SerializedFileReader::new(file)?;
            let schema = reader.metadata().file_metadata().schema();
            let has = |name: &&&str| schema.get_fields().iter().any(|field| field.name() == **name);
            if let Some(missing) = columns.iter().find(|name| !has(name)) {
                let problem = format!("column {missing} is missing");
                return Err(parquet::errors::ParquetError::General(problem));
            }
            Ok(RowIter::from_file_into(Box::new(reader)))
        })?;
        Ok(Self { input: *input, rows })
    }

    /// The next row, and nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        let rows = &mut self.rows;
        guarded(&self.input, || rows.next().transpose())
    }
}

/// The Parquet crate panics on some damaged files: that is an error here like any other.
fn guarded<T>(input: &Input<'_>, read: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            Err(input.error("file", format!("not Parquet that can be read: {error}")))
        }
        Err(_) => Err(input.error("file", "damaged Parquet")),
    }
}

fn refuse(input: &Input<'_>, place: &str, name: &str, field: &Field) -> Error {
    input.error(place, format!("column {name}: {field} is not what belongs there"))
}

/// A whole number of 32 bits; a truth value is 0 or 1.
pub(super) fn number(input: &Input<'_>, place: &str, name: &str, field: &Field) -> Result<u32> {
    let wide = match *field {
        Field::Bool(truth) => i64::from(truth),
        Field::Byte(n) => n.into(),
        Field::Short(n) => n.into(),
        Field::Int(n) => n.into(),
        Field::Long(n) => n,
        Field::UByte(n) => n.into(),
        Field::UShort(n) => n.into(),
        Field::UInt(n) => n.into(),
        Field::ULong(n) => i64::try_from(n).unwrap_or(-1),
        _ => -1,
    };
    u32::try_from(wide).map_err(|_| refuse(input, place, name, field))
}

/// Appends a list of ids; answers how many there were.
pub(super) fn ids(
    input: &Input<'_>,
    place: &str,
    field: &Field,
    into: &mut Vec<u16>,
) -> Result<u32> {
    let Field::ListInternal(list) = field else {
        return Err(refuse(input, place, "experts", field));
    };
    for element in list.elements() {
        let id = u16::try_from(number(input, place, "experts", element)?);
        into.push(id.map_err(|_| refuse(input, place, "experts", element))?);
    }
    Ok(list.elements().len() as u32)
}

/// Appends a list of weights.
pub(super) fn weights(
    input: &Input<'_>,
    place: &str,
    field: &Field,
    into: &mut Vec<f32>,
) -> Result<()> {
    let Field::ListInternal(list) = field else {
        return Err(refuse(input, place, "weights", field));
    };
    for element in list.elements() {
        into.push(match *element {
            Field::Float16(weight) => weight.to_f32(),
            Field::Float(weight) => weight,
            Field::Double(weight) => weight as f32,
            _ => return Err(refuse(input, place, "weights", element)),
        });
    }
    Ok(())
}
