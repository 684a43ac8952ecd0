//! One bare NumPy array of ids `[tokens, layers, top-k]`, with what lies beside it.
//!
//! From the same folder: `weights_bf16.npy` (u16 bit patterns) or `weights.npy` (f32 or f16), of
//! the same shape, and `sequences.csv` (`first_row`, `decode_tokens` and optionally `sequence`,
//! `prompt_tokens`, `dataset`, `category`, `has_repetition`). All tokens are decode tokens.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::array::{Array, Place, Values};
use super::{ImportOptions, experts, name, source, uniform_shape};
use crate::builder::TraceBuilder;
use crate::column::Weights;
use crate::error::{Error, Result};
use crate::trace::{Phase, Sequence, Trace};

pub(super) fn import(path: &Path, options: &ImportOptions) -> Result<Trace> {
    let place = Place { path, name: "ids" };
    let array = read(path, place)?;
    let shape = array.shape.clone();
    let [tokens, layers, top_k] = shape[..] else {
        let problem = format!("expected [tokens, layers, top-k], found {shape:?}");
        return Err(place.error(problem));
    };
    let ids = array.into_ids(place)?;
    let (experts, experts_from) = experts(path, options, None, ids.view())?;
    let model = uniform_shape(path, options, layers, top_k, experts)?;
    let weights = weights_beside(path, &shape)?;
    let sequences = sequences_beside(path, tokens)?;
    let provenance = json!({
        "importer": "npy",
        "source": source(path)?,
        "experts_from": experts_from,
        "weights_from": weights.as_ref().map(|(file, _)| *file),
        "sequences_from": sequences.as_ref().map(|_| "sequences.csv"),
    });
    let phase = options.phase.unwrap_or(Phase::Decode);
    let mut builder = TraceBuilder::new(name(path, options, None), model, ids)
        .phases(vec![phase as u8; tokens])
        .provenance(provenance.to_string());
    if let Some((_, weights)) = weights {
        builder = builder.weights(weights);
    }
    if let Some(sequences) = sequences {
        builder = builder.sequences(sequences);
    }
    builder.build()
}

fn read(path: &Path, place: Place<'_>) -> Result<Array> {
    let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let length = file.metadata().map_err(|e| Error::io("read", path, e))?.len();
    Array::read(BufReader::new(file), length, place)
}

fn beside(path: &Path, file: &str) -> Option<PathBuf> {
    Some(path.with_file_name(file)).filter(|other| other != path && other.exists())
}

fn weights_beside(path: &Path, shape: &[usize]) -> Result<Option<(&'static str, Weights)>> {
    for file in ["weights_bf16.npy", "weights.npy"] {
        let Some(path) = beside(path, file) else { continue };
        let place = Place { path: &path, name: "weights" };
        let array = read(&path, place)?;
        if array.shape != shape {
            let found = array.shape;
            return Err(
                place.error(format!("expected the shape of the ids, {shape:?}, found {found:?}"))
            );
        }
        let weights = match (file, array.type_name(), array.values) {
            ("weights_bf16.npy", _, Values::U16(w)) => Weights::Bf16(w),
            ("weights.npy", _, Values::F32(w)) => Weights::F32(w),
            ("weights.npy", _, Values::F16(w)) => Weights::F16(w),
            (_, found, _) => {
                let expected = "u16 in weights_bf16.npy, f32 or f16 in weights.npy";
                return Err(place.error(format!("expected {expected}, found {found}")));
            }
        };
        return Ok(Some((file, weights)));
    }
    Ok(None)
}

fn sequences_beside(path: &Path, tokens: usize) -> Result<Option<Vec<Sequence>>> {
    let Some(path) = beside(path, "sequences.csv") else { return Ok(None) };
    let refuse =
        |line: usize, problem: String| Error::import(&path, format!("line {line}"), problem);
    let mut reader =
        csv::Reader::from_path(&path).map_err(|e| Error::import(&path, "line 1", e.to_string()))?;
    let header = reader.headers().map_err(|e| refuse(1, e.to_string()))?.clone();
    let columns: HashMap<&str, usize> =
        header.iter().enumerate().map(|(index, name)| (name, index)).collect();
    for required in ["first_row", "decode_tokens"] {
        if !columns.contains_key(required) {
            return Err(refuse(1, format!("column {required} is missing")));
        }
    }
    let mut sequences: Vec<Sequence> = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let line = index + 2;
        let record = record.map_err(|e| refuse(line, e.to_string()))?;
        let text = |name: &str| columns.get(name).and_then(|&column| record.get(column));
        let number = |name: &str| match text(name) {
            None => Ok(None),
            Some(value) => value.trim().parse::<u32>().map(Some).map_err(|_| {
                refuse(line, format!("column {name}: {value:?} is not a whole number"))
            }),
        };
        let start = sequences.last().map_or(0, |before| before.rows.end);
        let first_row = number("first_row")?.unwrap_or(0) as usize;
        if first_row != start {
            return Err(refuse(line, format!("first_row is {first_row}, expected {start}")));
        }
        let labels: Vec<&str> = ["dataset", "category"].iter().filter_map(|c| text(c)).collect();
        sequences.push(Sequence {
            id: number("sequence")?.unwrap_or(index as u32),
            label: labels.join("/"),
            document: None,
            prompt_tokens: number("prompt_tokens")?.unwrap_or(0),
            has_repetition: number("has_repetition")?.map(|flag| flag != 0),
            rows: start..start + number("decode_tokens")?.unwrap_or(0) as usize,
        });
    }
    let rows = sequences.last().map_or(0, |last| last.rows.end);
    if rows != tokens {
        let problem = format!("its sequences have {rows} rows, the array of ids has {tokens}");
        return Err(Error::import(&path, "column decode_tokens", problem));
    }
    Ok(Some(sequences))
}
