//! Parquet, one row a token and layer: what `--from parquet` reads. Needs the cargo feature
//! `parquet`. Token by token, layer by layer; compressed with zstd.

use std::path::Path;

use super::{ExportFormat, ExportInfo, Out};
use crate::error::{Error, Result};
use crate::trace::Trace;

pub(super) const INFO: ExportInfo = ExportInfo {
    name: "parquet",
    description: "Parquet, one row a token and layer (builds with the feature parquet)",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    format: ExportFormat::Parquet,
    exporter: export,
};

#[cfg(not(feature = "parquet"))]
fn export(_: &Trace, _: Out<'_, '_>, path: &Path) -> Result<()> {
    let problem = "this build writes no Parquet: build hotset with --features parquet";
    Err(Error::import(path, "file", problem))
}

#[cfg(feature = "parquet")]
fn export(trace: &Trace, out: Out<'_, '_>, path: &Path) -> Result<()> {
    table::write(trace, out, table::properties())
        .map_err(|e| Error::import(path, "file", format!("Parquet: {e}")))
}

/// The key of the note that states what the columns do not: the header line of `jsonl`.
#[cfg(feature = "parquet")]
pub(crate) const NOTE: &str = "hotset";

#[cfg(feature = "parquet")]
pub(crate) mod table {
    use std::io::Write;
    use std::ops::Range;
    use std::sync::Arc;

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::data_type::{BoolType, DataType, FloatType, Int32Type};
    use parquet::errors::Result;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use super::Trace;
    use crate::export::npz::sequence_numbers;
    use crate::sequence::Phase;

    /// Tokens of a row group.
    const GROUP: usize = 1 << 14;

    pub(crate) fn properties() -> WriterProperties {
        let compression = Compression::ZSTD(ZstdLevel::default());
        WriterProperties::builder().set_compression(compression).build()
    }

    pub(crate) fn write(
        trace: &Trace,
        out: impl Write + Send,
        properties: WriterProperties,
    ) -> Result<()> {
        let schema = Arc::new(parse_message_type(&schema(trace))?);
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        let numbers = sequence_numbers(trace);
        for (sequence, number) in trace.sequences().iter().zip(numbers) {
            for start in sequence.rows.clone().step_by(GROUP) {
                let rows = start..(start + GROUP).min(sequence.rows.end);
                let mut group = writer.next_row_group()?;
                write_group(trace, number, rows, &mut group)?;
                group.close()?;
            }
        }
        let header = super::super::jsonl::header(trace).to_string();
        writer.append_key_value_metadata(KeyValue::new(super::NOTE.to_owned(), header));
        writer.close()?;
        Ok(())
    }

    fn schema(trace: &Trace) -> String {
        let mut text =
            "message trace { required int32 seq_id; required int32 position; ".to_owned();
        if trace.token_ids().is_some() {
            text.push_str("required int32 token_id; ");
        }
        if trace.steps().is_some() {
            text.push_str("required int32 step; ");
        }
        text.push_str(
            "required boolean is_decode; required int32 phase; required int32 layer; required \
             group experts (LIST) { repeated group list { required int32 element; } } ",
        );
        if trace.weights().is_some() {
            text.push_str(
                "required group weights (LIST) { repeated group list { required float element; } }",
            );
        }
        text + "}"
    }

    fn write_group<W: Write + Send>(
        trace: &Trace,
        sequence: u32,
        rows: Range<usize>,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let layers = trace.shape().layers();
        // A value a token, as often as there are layers.
        let each = |value: &dyn Fn(usize) -> u32| -> Vec<i32> {
            rows.clone().flat_map(|row| layers.iter().map(move |_| value(row) as i32)).collect()
        };
        column::<Int32Type, _>(group, &each(&|_| sequence), None)?;
        column::<Int32Type, _>(group, &each(&|row| trace.positions()[row]), None)?;
        if let Some(token_ids) = trace.token_ids() {
            column::<Int32Type, _>(group, &each(&|row| token_ids[row]), None)?;
        }
        if let Some(steps) = trace.steps() {
            column::<Int32Type, _>(group, &each(&|row| steps[row]), None)?;
        }
        let phases = each(&|row| trace.phase(row) as u32);
        let decode: Vec<bool> = phases.iter().map(|&p| p != Phase::Prefill as i32).collect();
        column::<BoolType, _>(group, &decode, None)?;
        column::<Int32Type, _>(group, &phases, None)?;
        let numbers: Vec<i32> =
            rows.clone().flat_map(|_| layers.iter().map(|layer| layer.number as i32)).collect();
        column::<Int32Type, _>(group, &numbers, None)?;
        // Every list has a value at least: the first repeats at 0, others at 1.
        let repeats: Vec<i16> = rows
            .clone()
            .flat_map(|_| layers.iter())
            .flat_map(|layer| (0..layer.top_k).map(|rank| i16::from(rank > 0)))
            .collect();
        let row_len = trace.shape().row_len();
        let values = rows.start * row_len..rows.end * row_len;
        let ids: Vec<i32> = trace.ids().slice(values.clone()).iter().map(|id| id as i32).collect();
        column::<Int32Type, _>(group, &ids, Some(&repeats))?;
        if let Some(weights) = trace.weights() {
            let weights: Vec<f32> = values.map(|index| weights.get(index)).collect();
            column::<FloatType, _>(group, &weights, Some(&repeats))?;
        }
        Ok(())
    }

    pub(crate) fn column<T: DataType, W: Write + Send>(
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: &[T::T],
        repeats: Option<&[i16]>,
    ) -> Result<()> {
        let defined = repeats.map(|repeats| vec![1i16; repeats.len()]);
        if let Some(mut writer) = group.next_column()? {
            writer.typed::<T>().write_batch(values, defined.as_deref(), repeats)?;
            writer.close()?;
        }
        Ok(())
    }
}
