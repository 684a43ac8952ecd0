//! One bare NumPy array of ids `[tokens, layers, top-k]`, with what lies beside it.
//!
//! From the same folder: `weights_bf16.npy` (u16 bit patterns) or `weights.npy` (f32 or f16), of
//! the same shape, and `sequences.csv` (`first_row`, `decode_tokens` and optionally `sequence`,
//! `prompt_tokens`, `dataset`, `category`, `has_repetition`). All tokens are decode tokens.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;

use super::array::{Array, Dtype, Place, top_ks};
use super::collect::{Collector, Precision, sequence_limit};
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::{Contents, Sniff};
use super::tables;
use crate::error::{Error, Result};
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "npy",
    description: "one NumPy array of ids [tokens, layers, top-k]; weights_bf16.npy or \
                  weights.npy and sequences.csv are taken from the same folder",
    columns: &["ids", "positions", "phases", "weights"],
    extensions: &["npy"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Npy,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let Contents::Npy { dtype, shape } = &sniff.contents else { return Ok(Claim::No) };
    let place = Place { path: sniff.path(), name: "ids" };
    match (shape.len(), dtype) {
        (3, Dtype::F64) => Ok(Claim::No),
        (3, Dtype::F16 | Dtype::F32) => {
            let found = dtype.name();
            Err(place.error(format!("expected ids, which are whole numbers, found {found}")))
        }
        (3, _) => Ok(Claim::Likely),
        _ => Err(place.error(format!("expected [tokens, layers, top-k], found {shape:?}"))),
    }
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let place = Place { path: input.path(), name: "ids" };
    let (stream, length) = input.sized()?;
    let mut array = Array::open(stream, length, place)?;
    let [tokens, layers, top_k] = array.shape[..] else {
        let shape = &array.shape;
        return Err(place.error(format!("expected [tokens, layers, top-k], found {shape:?}")));
    };
    // The caller says that the first axis is the layers.
    let asked = into.options.layers.map(|asked| asked as usize);
    if asked.is_some_and(|asked| asked != layers && asked == tokens) {
        return tables::import(std::slice::from_ref(input), into);
    }
    let top_ks = top_ks(place, layers, top_k)?;
    into.layers(input, Numbering::Unknown, &top_ks)?;
    let beside = sequences_beside(input)?;
    if beside.is_none() {
        into.sequence(input, None)?;
    }
    array.ids(input, "ids", into)?;
    into.read(array.into_inner().source()?);
    if let Some(sequences) = &beside {
        let rows: u64 = sequences.iter().map(|sequence| sequence.tokens).sum();
        if rows != tokens as u64 {
            let problem = format!("its sequences have {rows} rows, the array of ids has {tokens}");
            let path = input.path().with_file_name("sequences.csv");
            return Err(Error::import(&path, "column decode_tokens", problem));
        }
        add(sequences, input, into)?;
    } else {
        into.run(input, 0, tokens as u64, Phase::Decode)?;
    }
    let weights = weights_beside(input, [tokens, layers, top_k], into)?;
    into.facts.insert("weights_from".to_owned(), json!(weights));
    let from = beside.map(|_| "sequences.csv");
    into.facts.insert("sequences_from".to_owned(), json!(from));
    Ok(())
}

fn weights_beside(
    input: &Input<'_>,
    shape: [usize; 3],
    into: &mut Collector<'_>,
) -> Result<Option<&'static str>> {
    for file in ["weights_bf16.npy", "weights.npy"] {
        let Some(path) = input.beside(file) else { continue };
        let beside = input.other(&path);
        let place = Place { path: &path, name: "weights" };
        let reader = beside.open()?;
        let length = reader.len();
        let mut array = Array::open(reader, length, place)?;
        if array.shape != shape {
            let found = &array.shape;
            return Err(
                place.error(format!("expected the shape of the ids, {shape:?}, found {found:?}"))
            );
        }
        let row = shape[1] * shape[2];
        match (file, array.dtype) {
            ("weights_bf16.npy", Dtype::U16) => {
                array.blocks::<u16>(place, row, |w| into.weights(Precision::Bf16, w))?;
            }
            ("weights.npy", Dtype::F32) => {
                array.blocks::<f32>(place, row, |w| into.weights(Precision::F32, w))?;
            }
            ("weights.npy", Dtype::F16) => {
                array.blocks::<u16>(place, row, |w| into.weights(Precision::F16, w))?;
            }
            (_, found) => {
                let expected = "u16 in weights_bf16.npy, f32 or f16 in weights.npy";
                return Err(place.error(format!("expected {expected}, found {}", found.name())));
            }
        }
        return Ok(Some(file));
    }
    Ok(None)
}

/// A line of `sequences.csv`.
struct Described {
    id: Option<u32>,
    label: String,
    prompt_tokens: u32,
    has_repetition: Option<bool>,
    tokens: u64,
}

fn add(sequences: &[Described], input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let first = into.sequences();
    let runs: Vec<(u32, u64)> = sequences
        .iter()
        .zip(0..)
        .map(|(sequence, index)| (sequence.id.unwrap_or(index), sequence.tokens))
        .collect();
    let prompts: Vec<u32> = sequences.iter().map(|sequence| sequence.prompt_tokens).collect();
    into.backdated(&runs, &prompts);
    for (sequence, described) in into.since(first).iter_mut().zip(sequences) {
        sequence.label.clone_from(&described.label);
        sequence.has_repetition = described.has_repetition;
    }
    sequences.iter().try_for_each(|sequence| into.run(input, 0, sequence.tokens, Phase::Decode))
}

fn sequences_beside(input: &Input<'_>) -> Result<Option<Vec<Described>>> {
    let Some(path) = input.beside("sequences.csv") else { return Ok(None) };
    read_sequences(&path, sequence_limit(input.size())).map(Some)
}

fn read_sequences(path: &Path, limit: u64) -> Result<Vec<Described>> {
    let refuse =
        |line: usize, problem: String| Error::import(path, format!("line {line}"), problem);
    let mut reader =
        csv::Reader::from_path(path).map_err(|e| Error::import(path, "line 1", e.to_string()))?;
    let header = reader.headers().map_err(|e| refuse(1, e.to_string()))?.clone();
    let columns: HashMap<&str, usize> =
        header.iter().enumerate().map(|(index, name)| (name, index)).collect();
    for required in ["first_row", "decode_tokens"] {
        if !columns.contains_key(required) {
            return Err(refuse(1, format!("column {required} is missing")));
        }
    }
    let mut sequences: Vec<Described> = Vec::new();
    let mut start = 0u64;
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
        let first_row = number("first_row")?.unwrap_or(0);
        if u64::from(first_row) != start {
            return Err(refuse(line, format!("first_row is {first_row}, expected {start}")));
        }
        if sequences.len() as u64 >= limit {
            return Err(refuse(
                line,
                format!("over {limit} sequences, more than the ids can have"),
            ));
        }
        let labels: Vec<&str> = ["dataset", "category"].iter().filter_map(|c| text(c)).collect();
        let tokens = u64::from(number("decode_tokens")?.unwrap_or(0));
        if tokens == 0 {
            return Err(refuse(line, "a sequence without tokens".to_owned()));
        }
        sequences.push(Described {
            id: number("sequence")?,
            label: labels.join("/"),
            prompt_tokens: number("prompt_tokens")?.unwrap_or(0),
            has_repetition: number("has_repetition")?.map(|flag| flag != 0),
            tokens,
        });
        start += tokens;
    }
    Ok(sequences)
}
