//! Token-major arrays in one file: `hotset-npz/1`, or what a Hugging Face recording has.
//!
//! `hotset-npz/1` requires `expert_ids` u8 or u16 `[T, L, K]`, `sequence` u32 `[T]`, `position`
//! u32 `[T]`, `phase` u8 `[T]`; kept where present: `expert_weights`, `predicted_ids`
//! `[A, T, L, M]`, `token_id`, `step` u32 `[T]`, both prompt embeddings `[S, D]`, `info` (JSON).
//! A file with `topk_ids` instead is read by the neighbouring `hf`.

use serde_json::{Map, Value};

use super::array::{Dtype, Place, top_ks};
use super::arrays::{AnyArray, Arrays, Npz, column_u32, mismatch, required};
use super::collect::Collector;
use super::hf;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::{Contents, Sniff};
use super::token_arrays::{Prompts, layer_numbers, runs, weights};
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "npz",
    description: "token-major NumPy arrays in one zip: hotset-npz/1 (hotset's recorder), or \
                  topk_ids, seq_id, position, is_decode of a Hugging Face recording",
    columns: &[
        "ids",
        "positions",
        "phases",
        "steps",
        "token_ids",
        "weights",
        "predictions",
        "embeddings",
    ],
    extensions: &["npz"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Binary,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let Contents::Npz(names) = &sniff.contents else { return Ok(Claim::No) };
    let has = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
    let columns = has(&["sequence", "position", "phase", "seq_id", "is_decode"]);
    Claim::Sure.when(columns && has(&["expert_ids", "topk_ids"]))
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut file = Npz::open(input)?;
    import_arrays(input, &mut file, into)
}

/// Either layout, by the name of the array of ids.
pub(super) fn import_arrays(
    input: &Input<'_>,
    file: &mut dyn Arrays,
    into: &mut Collector<'_>,
) -> Result<()> {
    if file.array("expert_ids")?.is_none() && file.array("topk_ids")?.is_some() {
        hf::import(input, file, into)?;
    } else {
        import_hotset(input, file, into)?;
    }
    into.read(input.source()?);
    Ok(())
}

const LAYOUT: &str = "hotset-npz/1 needs expert_ids, sequence, position and phase";

fn import_hotset(input: &Input<'_>, file: &mut dyn Arrays, into: &mut Collector<'_>) -> Result<()> {
    let info = info(input, file)?;
    let mut ids = required(file, input, "expert_ids", LAYOUT)?;
    let place = |name| Place { path: input.path(), name };
    let [tokens, layers, top_k] = ids.shape[..] else {
        return Err(mismatch(input, "expert_ids", "[tokens, layers, top-k] of u8 or u16", &ids));
    };
    if !matches!(ids.dtype, Dtype::U8 | Dtype::U16) {
        return Err(mismatch(input, "expert_ids", "u8 or u16", &ids));
    }
    let top_ks = top_ks(place("expert_ids"), layers, top_k)?;
    state_info(input, &info, layers, top_k, into)?;
    let numbers = layer_numbers(input, &info, "moe_layer_ids", layers)?;
    let numbering = match &numbers {
        Some(numbers) => Numbering::Numbered(numbers),
        None => Numbering::Unknown,
    };
    into.layers(input, numbering, &top_ks)?;
    let first = into.sequences();
    ids.ids(input, "expert_ids", into)?;
    drop(ids);

    let runs = runs(input, "sequence", tokens, file.array("sequence")?)?
        .ok_or_else(|| input.error("array sequence", format!("is missing; {LAYOUT}")))?;
    let positions = file.array("position")?;
    let mut keep = |block: &[u32]| into.places(block, &[]);
    if !column_u32(input, "position", tokens, positions, &mut keep)? {
        return Err(input.error("array position", format!("is missing; {LAYOUT}")));
    }
    let mut phase = required(file, input, "phase", LAYOUT)?;
    if phase.shape != [tokens] || phase.dtype != Dtype::U8 {
        return Err(mismatch(input, "phase", &format!("[{tokens}] of u8"), &phase));
    }
    let mut prompts = Prompts::new(&runs);
    phase.blocks::<u8>(place("phase"), 1, |block| {
        prompts.see(block, |&phase| phase == Phase::Prefill as u8);
        into.places(&[], block)
    })?;
    drop(phase);
    let prompts = prompts.lengths();
    into.backdated(&runs, &prompts);
    describe(input, &info, first, into)?;

    column_u32(input, "token_id", tokens, file.array("token_id")?, &mut |b| into.token_ids(b))?;
    column_u32(input, "step", tokens, file.array("step")?, &mut |b| into.steps(b))?;
    if let Some(array) = file.array("expert_weights")? {
        weights(input, "expert_weights", [tokens, layers, top_k], array, into)?;
    }
    if let Some(array) = file.array("predicted_ids")? {
        predictions(input, array, tokens, layers, into)?;
    }
    embeddings(input, file, runs.len(), into)
}

fn predictions(
    input: &Input<'_>,
    mut array: AnyArray<'_>,
    tokens: usize,
    layers: usize,
    into: &mut Collector<'_>,
) -> Result<()> {
    let expected = || format!("[lookaheads, {tokens}, {layers}, width] of u8 or u16");
    let (ahead, width) = match array.shape[..] {
        [ahead, t, l, width] if t == tokens && l == layers => (ahead, width),
        _ => return Err(mismatch(input, "predicted_ids", &expected(), &array)),
    };
    if !matches!(array.dtype, Dtype::U8 | Dtype::U16) {
        return Err(mismatch(input, "predicted_ids", "u8 or u16", &array));
    }
    let place = Place { path: input.path(), name: "predicted_ids" };
    // A layer can be predicted from each layer before it, and no better than in full.
    if !(1..=layers).contains(&ahead) || !(1..=1 << 16).contains(&width) {
        let problem = format!("{ahead} lookaheads of width {width} over {layers} layers");
        return Err(place.error(problem));
    }
    let spool = into.predictions(ahead, width);
    if spool.extent() != (ahead, width) {
        let problem = format!("{ahead} lookaheads of width {width}, not as the inputs before it");
        return Err(place.error(problem));
    }
    let row = layers.saturating_mul(width);
    let mut seen = 0usize;
    let mut lookahead = |rows: usize| {
        let at = seen / tokens.max(1);
        let left = (at + 1) * tokens - seen;
        let now = rows.min(left);
        seen += now;
        (at, now)
    };
    if array.dtype == Dtype::U8 {
        array.blocks::<u8>(place, row, |mut block| {
            while !block.is_empty() {
                let (at, rows) = lookahead(block.len() / row);
                let (now, later) = block.split_at(rows * row);
                spool.extend_u8(at, now)?;
                block = later;
            }
            Ok(())
        })
    } else {
        array.blocks::<u16>(place, row, |mut block| {
            while !block.is_empty() {
                let (at, rows) = lookahead(block.len() / row);
                let (now, later) = block.split_at(rows * row);
                spool.extend_u16(at, now)?;
                block = later;
            }
            Ok(())
        })
    }
}

/// Both embeddings or neither.
fn embeddings(
    input: &Input<'_>,
    file: &mut dyn Arrays,
    sequences: usize,
    into: &mut Collector<'_>,
) -> Result<()> {
    let names = ["prompt_embedding_in", "prompt_embedding_out"];
    let mut read = |name: &str, dim: Option<usize>| -> Result<Option<(usize, Vec<u16>)>> {
        let Some(mut array) = file.array(name)? else { return Ok(None) };
        let dim = dim.or(array.shape.get(1).copied()).unwrap_or(0);
        if array.shape != [sequences, dim] || array.dtype != Dtype::F16 {
            return Err(mismatch(input, name, &format!("[{sequences}, {dim}] of f16"), &array));
        }
        Ok(Some((dim, array.values(Place { path: input.path(), name })?)))
    };
    let lacks = |name: &str, other: &str| {
        Err(input.error(format!("array {name}"), format!("is missing beside {other}")))
    };
    let prompt_in = read(names[0], None)?;
    let prompt_out = read(names[1], prompt_in.as_ref().map(|(dim, _)| *dim))?;
    match (prompt_in, prompt_out) {
        (None, None) => Ok(()),
        (Some((dim, prompt_in)), Some((_, prompt_out))) => {
            into.embeddings(dim, &prompt_in, &prompt_out);
            Ok(())
        }
        (None, _) => lacks(names[0], names[1]),
        (_, None) => lacks(names[1], names[0]),
    }
}

/// The most that `info` may take in any file; it may also take a sixteenth of the file.
const MAX_INFO: usize = 1 << 20;

fn info(input: &Input<'_>, file: &mut dyn Arrays) -> Result<Map<String, Value>> {
    let not_json = |e| input.error("array info", format!("not a JSON object: {e}"));
    if let Some(text) = file.metadata().get("info").and_then(Value::as_str) {
        return serde_json::from_str(text).map_err(not_json);
    }
    let beside = file.metadata().clone();
    let most = MAX_INFO.max((input.open()?.len() / 16) as usize);
    let Some(mut array) = file.array("info")? else { return Ok(beside) };
    if array.dtype != Dtype::U8 {
        return Err(mismatch(input, "info", "u8 (JSON text)", &array));
    }
    let text: Vec<u8> = array.values(Place { path: input.path(), name: "info" })?;
    if text.len() > most {
        let problem = format!("{} bytes; at most {most} are read", text.len());
        return Err(input.error("array info", problem));
    }
    serde_json::from_slice(&text).map_err(not_json)
}

/// What `info` says of the model.
fn state_info(
    input: &Input<'_>,
    info: &Map<String, Value>,
    layers: usize,
    top_k: usize,
    into: &mut Collector<'_>,
) -> Result<()> {
    let stated = |key: &str| info.get(key).and_then(Value::as_u64);
    for (key, found) in [("layers", layers), ("top_k", top_k)] {
        if let Some(stated) = stated(key).filter(|&stated| stated != found as u64) {
            let problem = format!("says {key} {stated}, expert_ids has {found}");
            return Err(input.error("array info", problem));
        }
    }
    let small = |key: &str| stated(key).and_then(|n| u32::try_from(n).ok());
    into.stated.experts = into.stated.experts.max(small("experts"));
    let model = info.get("model").and_then(Value::as_str);
    into.stated.name = into.stated.name.take().or(model.map(str::to_owned));
    if let Some(bytes) = info.get("expert_bytes").and_then(Value::as_array) {
        let numbers = layer_numbers(input, info, "moe_layer_ids", layers)?;
        let number = |index: usize| numbers.as_ref().map_or(index as u32, |all| all[index]);
        let all = bytes.iter().take(layers).enumerate();
        into.stated.bytes =
            all.filter_map(|(index, bytes)| Some((number(index), bytes.as_u64()?))).collect();
    }
    // Labels and documents live on in the sequences; the rest is kept as it is.
    let mut rest = info.clone();
    ["sequence_labels", "doc"].iter().for_each(|key| drop(rest.remove(*key)));
    into.facts.insert("info".to_owned(), Value::Object(rest));
    Ok(())
}

/// What `info` says of each sequence, in the order of the sequences.
fn describe(
    input: &Input<'_>,
    info: &Map<String, Value>,
    first: usize,
    into: &mut Collector<'_>,
) -> Result<()> {
    let count = into.sequences() - first;
    let list = |key: &str| -> Result<Option<&Vec<Value>>> {
        let Some(list) = info.get(key).and_then(Value::as_array) else { return Ok(None) };
        if list.len() != count {
            let found = list.len();
            let problem = format!("{key} has {found} entries, there are {count} sequences");
            return Err(input.error("array info", problem));
        }
        Ok(Some(list))
    };
    let small = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let (labels, documents) = (list("sequence_labels")?, list("doc")?);
    let (prompts, loops) = (list("prompt_tokens")?, list("has_repetition")?);
    // One number for all sequences; where there are several turns, the first is the prompt.
    let first_turn = info.get("turns").and_then(|turns| turns.get(0));
    let prompt = info.get("prompt_tokens").filter(|value| value.is_u64()).or(first_turn);
    let prompt = prompt.and_then(small);
    for (index, sequence) in into.since(first).iter_mut().enumerate() {
        let label = labels.and_then(|list| list[index].as_str());
        sequence.label = label.unwrap_or_default().to_owned();
        sequence.document = documents.and_then(|list| small(&list[index]));
        let own = prompts.and_then(|list| small(&list[index]));
        sequence.prompt_tokens = own.or(prompt).unwrap_or(sequence.prompt_tokens);
        sequence.has_repetition = loops.and_then(|list| list[index].as_bool());
    }
    Ok(())
}
