//! Parquet: a row a token and layer, and FLAME-MoE's folder.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType, Int32Type};
use parquet::errors::Result;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{Contents, IDS, Reader, Sample, text, weights};
use crate::export::parquet::table::{column, properties, write};
use crate::{Format, ImportOptions, import_bytes};

pub(super) fn samples() -> Vec<Sample> {
    let sample = |format, contents| Sample {
        reader: Reader::Trace(format),
        contents,
        options: ImportOptions::default(),
    };
    let jsonl = import_bytes(Format::Jsonl, "x", text::jsonl().as_bytes(), &Default::default());
    let files = jsonl.into_iter().flat_map(|trace| {
        // As exported; and open to mutation: nothing compressed, pages of the second version, and
        // deltas where there is no dictionary.
        let bare = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_dictionary_enabled(false)
            .set_column_encoding("position".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_encoding(
                ["experts", "list", "element"].map(String::from).to_vec().into(),
                Encoding::DELTA_BINARY_PACKED,
            );
        [properties(), bare.build()].map(|properties| {
            let mut file = Vec::new();
            // Writing to memory does not fail; a sample that lacks rows is refused by its test.
            write(&trace, &mut file, properties).ok();
            file
        })
    });
    let files = files.map(|file| sample(Format::Parquet, Contents::Plain(file)));
    let flame = flame().map(|files| sample(Format::FlameMoe, Contents::Folder(files)));
    files.chain(flame).collect()
}

fn flame() -> Result<Vec<(String, Vec<u8>)>> {
    let weights: Vec<FixedLenByteArray> = weights()
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .map(|weight| half::f16::from_f32(weight).to_le_bytes().to_vec().into())
        .collect();
    let layer = "message layer { required group indices (LIST) { repeated group list { required \
                 int32 element; } } required group scores (LIST) { repeated group list { required \
                 fixed_len_byte_array(2) element; } } }";
    let mut files = Vec::new();
    for number in 0..2 {
        let ids: Vec<i32> = IDS.iter().flat_map(|token| token[number]).map(i32::from).collect();
        let weights: Vec<FixedLenByteArray> =
            weights.chunks_exact(4).flat_map(|token| &token[2 * number..][..2]).cloned().collect();
        let repeats: Vec<i16> = (0..ids.len()).map(|place| (place % 2) as i16).collect();
        let file = file(layer, |group| {
            column::<Int32Type, _>(group, &ids, Some(&repeats))?;
            column::<FixedLenByteArrayType, _>(group, &weights, Some(&repeats))
        })?;
        files.push((format!("actives/iter_0007/layer_{number:02}.parquet"), file));
    }
    let tokens = file("message sample { required int32 token_id; }", |group| {
        column::<Int32Type, _>(group, &[0, 1, 2, 3, 4], None)
    })?;
    files.push(("samples/000.parquet".to_owned(), tokens));
    Ok(files)
}

/// A file of one row group.
pub(crate) fn file(
    schema: &str,
    write: impl FnOnce(&mut SerializedRowGroupWriter<'_, &mut Vec<u8>>) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let compression = Compression::SNAPPY;
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = Arc::new(parse_message_type(schema)?);
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    write(&mut group)?;
    group.close()?;
    writer.close()?;
    Ok(file)
}
