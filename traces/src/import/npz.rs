//! `hotset-npz/1`: token-major NumPy arrays in one zip, as the recording scripts write them.
//!
//! Required: `expert_ids` u8 or u16 `[T, L, K]`, `sequence` u32 `[T]`, `position` u32 `[T]`,
//! `phase` u8 `[T]`. Kept where present: `expert_weights`, `predicted_ids` `[A, T, L, M]`,
//! `token_id`, both prompt embeddings `[S, D]`, and `info` (JSON).

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde_json::{Map, Value, json};
use zip::ZipArchive;

use super::array::{Array, Place, Values};
use super::{ImportOptions, experts, name, source, uniform_shape};
use crate::builder::TraceBuilder;
use crate::column::{Ids, Weights};
use crate::error::{Error, Result};
use crate::hst::ratio_accepted;
use crate::trace::{Phase, Sequence, Trace};

pub(super) fn import(path: &Path, options: &ImportOptions) -> Result<Trace> {
    let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let length = file.metadata().map_err(|e| Error::io("read", path, e))?.len();
    let archive = ZipArchive::new(BufReader::new(file))
        .map_err(|e| Error::import(path, "zip", format!("not an npz file: {e}")))?;
    let mut file = Npz { path, length, archive };

    let ids = file.required("expert_ids")?;
    let [tokens, layers, top_k] = ids.shape[..] else {
        return Err(file.mismatch("expert_ids", "[tokens, layers, top-k] of u8 or u16", &ids));
    };
    let ids = file.ids("expert_ids", ids)?;
    let sequence = file.column_u32("sequence", tokens)?.ok_or_else(|| file.lacks("sequence"))?;
    let position = file.column_u32("position", tokens)?.ok_or_else(|| file.lacks("position"))?;
    let phase = file.required("phase")?;
    let phases = match (&phase.shape[..], phase.values) {
        ([n], Values::U8(phases)) if *n == tokens => phases,
        (_, values) => {
            let phase = Array { values, ..phase };
            return Err(file.mismatch("phase", &format!("[{tokens}] of u8"), &phase));
        }
    };
    let info = file.info()?;
    let phases = options.phase.map_or(phases, |phase| vec![phase as u8; tokens]);
    let sequences = sequences(path, &info, &sequence, &phases)?;

    let stated = |key: &str| info.get(key).and_then(Value::as_u64);
    for (key, found) in [("layers", layers), ("top_k", top_k)] {
        if let Some(stated) = stated(key).filter(|&stated| stated != found as u64) {
            let problem = format!("says {key} {stated}, expert_ids has {found}");
            return Err(Error::import(path, "array info", problem));
        }
    }
    let in_info = stated("experts").and_then(|n| u32::try_from(n).ok());
    let (experts, experts_from) = experts(path, options, in_info, ids.view())?;
    let shape = uniform_shape(path, options, layers, top_k, experts)?;
    let name = name(path, options, info.get("model").and_then(Value::as_str));

    let mut builder = TraceBuilder::new(name, shape, ids)
        .positions(position)
        .phases(phases)
        .provenance(provenance(path, info, experts_from)?);
    if let Some(token_ids) = file.column_u32("token_id", tokens)? {
        builder = builder.token_ids(token_ids);
    }
    if let Some(weights) = file.weights([tokens, layers, top_k])? {
        builder = builder.weights(weights);
    }
    if let Some((lookaheads, width, ids)) = file.predictions(tokens, layers)? {
        builder = builder.predictions(lookaheads, width, ids);
    }
    if let Some((dim, prompt_in, prompt_out)) = file.embeddings(sequences.len())? {
        builder = builder.embeddings(dim, prompt_in, prompt_out);
    }
    builder.sequences(sequences).build()
}

/// The dimension, and the bits of the embeddings of input and output.
type EmbeddingBits = (usize, Vec<u16>, Vec<u16>);

struct Npz<'a> {
    path: &'a Path,
    /// Bytes of the whole file.
    length: u64,
    archive: ZipArchive<BufReader<File>>,
}

impl Npz<'_> {
    fn get(&mut self, name: &str) -> Result<Option<Array>> {
        let place = Place { path: self.path, name };
        let Some(index) = self.archive.index_for_name(&format!("{name}.npy")) else {
            return Ok(None);
        };
        let member = self.archive.by_index(index).map_err(|e| place.error(e.to_string()))?;
        let length = member.size();
        if !ratio_accepted(self.length, length) {
            let whole = self.length;
            return Err(place.error(format!("states {length} bytes in a file of {whole}")));
        }
        Array::read(member, length, place).map(Some)
    }

    fn required(&mut self, name: &str) -> Result<Array> {
        self.get(name)?.ok_or_else(|| self.lacks(name))
    }

    fn lacks(&self, name: &str) -> Error {
        let required = "hotset-npz/1 needs expert_ids, sequence, position and phase";
        Error::import(self.path, format!("array {name}"), format!("is missing; {required}"))
    }

    fn mismatch(&self, name: &str, expected: &str, found: &Array) -> Error {
        let problem =
            format!("expected {expected}, found {:?} of {}", found.shape, found.type_name());
        Error::import(self.path, format!("array {name}"), problem)
    }

    fn ids(&self, name: &str, array: Array) -> Result<Ids> {
        match array.values {
            Values::U8(ids) => Ok(Ids::U8(ids)),
            Values::U16(ids) => Ok(Ids::U16(ids)),
            _ => Err(self.mismatch(name, "u8 or u16", &array)),
        }
    }

    fn column_u32(&mut self, name: &str, tokens: usize) -> Result<Option<Vec<u32>>> {
        let Some(array) = self.get(name)? else { return Ok(None) };
        match array {
            Array { shape, values: Values::U32(values) } if shape == [tokens] => Ok(Some(values)),
            other => Err(self.mismatch(name, &format!("[{tokens}] of u32"), &other)),
        }
    }

    fn weights(&mut self, shape: [usize; 3]) -> Result<Option<Weights>> {
        let Some(array) = self.get("expert_weights")? else { return Ok(None) };
        let expected = format!("{shape:?} of u8, f16 or f32");
        if array.shape != shape {
            return Err(self.mismatch("expert_weights", &expected, &array));
        }
        match array.values {
            Values::U8(w) => Ok(Some(Weights::U8(w))),
            Values::F16(w) => Ok(Some(Weights::F16(w))),
            Values::F32(w) => Ok(Some(Weights::F32(w))),
            _ => Err(self.mismatch("expert_weights", &expected, &array)),
        }
    }

    fn predictions(&mut self, tokens: usize, layers: usize) -> Result<Option<(usize, usize, Ids)>> {
        let Some(array) = self.get("predicted_ids")? else { return Ok(None) };
        match array.shape[..] {
            [ahead, t, l, width] if t == tokens && l == layers => {
                Ok(Some((ahead, width, self.ids("predicted_ids", array)?)))
            }
            _ => {
                let expected = format!("[lookaheads, {tokens}, {layers}, width] of u8 or u16");
                Err(self.mismatch("predicted_ids", &expected, &array))
            }
        }
    }

    /// Both embeddings or neither.
    fn embeddings(&mut self, sequences: usize) -> Result<Option<EmbeddingBits>> {
        let names = ["prompt_embedding_in", "prompt_embedding_out"];
        let (prompt_in, prompt_out) = match (self.get(names[0])?, self.get(names[1])?) {
            (None, None) => return Ok(None),
            (Some(prompt_in), Some(prompt_out)) => (prompt_in, prompt_out),
            (None, _) => return Err(self.lacks_pair(names[0], names[1])),
            (_, None) => return Err(self.lacks_pair(names[1], names[0])),
        };
        let dim = prompt_in.shape.get(1).copied().unwrap_or(0);
        let bits = |name, array: Array| match array {
            Array { shape, values: Values::F16(bits) } if shape == [sequences, dim] => Ok(bits),
            other => Err(self.mismatch(name, &format!("[{sequences}, {dim}] of f16"), &other)),
        };
        Ok(Some((dim, bits(names[0], prompt_in)?, bits(names[1], prompt_out)?)))
    }

    fn lacks_pair(&self, name: &str, other: &str) -> Error {
        Error::import(self.path, format!("array {name}"), format!("is missing beside {other}"))
    }

    fn info(&mut self) -> Result<Map<String, Value>> {
        let Some(array) = self.get("info")? else { return Ok(Map::new()) };
        let Values::U8(text) = array.values else {
            return Err(self.mismatch("info", "u8 (JSON text)", &array));
        };
        serde_json::from_slice(&text)
            .map_err(|e| Error::import(self.path, "array info", format!("not a JSON object: {e}")))
    }
}

/// Sequences from the runs of equal numbers in the `sequence` column; what `info` says of each is
/// in the order of the runs.
fn sequences(
    path: &Path,
    info: &Map<String, Value>,
    column: &[u32],
    phases: &[u8],
) -> Result<Vec<Sequence>> {
    let mut sequences: Vec<Sequence> = Vec::new();
    for run in column.chunk_by(|a, b| a == b) {
        let start = sequences.last().map_or(0, |before| before.rows.end);
        let id = run[0];
        if let Some(before) = sequences.last().filter(|before| before.id > id) {
            let problem = format!("row {start} has {id} after {}; sequences must rise", before.id);
            return Err(Error::import(path, "array sequence", problem));
        }
        let rows = start..start + run.len();
        let prefill = phases[rows.clone()].iter().take_while(|&&p| p == Phase::Prefill as u8);
        sequences.push(Sequence {
            id,
            label: String::new(),
            document: None,
            prompt_tokens: prefill.count() as u32,
            has_repetition: None,
            rows,
        });
    }
    let list = |key: &str| -> Result<Option<&Vec<Value>>> {
        let Some(list) = info.get(key).and_then(Value::as_array) else { return Ok(None) };
        if list.len() != sequences.len() {
            let (found, expected) = (list.len(), sequences.len());
            let problem = format!("{key} has {found} entries, there are {expected} sequences");
            return Err(Error::import(path, "array info", problem));
        }
        Ok(Some(list))
    };
    let (labels, documents) = (list("sequence_labels")?.cloned(), list("doc")?.cloned());
    let small = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    // One number for all sequences; where there are several turns, the first is the prompt.
    let first_turn = info.get("turns").and_then(|turns| turns.get(0));
    let prompt = info.get("prompt_tokens").or(first_turn).and_then(small);
    for (index, sequence) in sequences.iter_mut().enumerate() {
        let label = labels.as_ref().and_then(|list| list[index].as_str());
        sequence.label = label.unwrap_or_default().to_owned();
        sequence.document = documents.as_ref().and_then(|list| small(&list[index]));
        sequence.prompt_tokens = prompt.unwrap_or(sequence.prompt_tokens);
    }
    Ok(sequences)
}

/// Labels and documents live on in the sequences; the rest of `info` is kept as it is.
fn provenance(path: &Path, mut info: Map<String, Value>, experts_from: &str) -> Result<String> {
    info.remove("sequence_labels");
    info.remove("doc");
    let source = source(path)?;
    let made = json!({
        "importer": "npz", "source": source, "experts_from": experts_from, "info": info,
    });
    Ok(made.to_string())
}
