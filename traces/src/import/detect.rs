//! What a file is, by its contents: magic numbers, names of entries, the first line.
//!
//! Where contents leave it open (a bare array may be anyone's), the name decides if it says so;
//! what cannot be told is `None`, and the caller names the format.

use std::io::{BufRead, Read};
use std::path::Path;

use super::array::{Array, Dtype, Place};
use super::arrays::{Arrays, Npz};
use super::histogram::HistogramFormat;
use super::input::Input;
use super::torch::Torch;
use super::{BESIDE, Format};
use crate::error::{Error, Result};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detected {
    /// An `.hst` file.
    Hst,
    /// Routes, to be imported.
    Trace(Format),
    /// Counts without order.
    Histogram(HistogramFormat),
}

/// What a file or folder is, by its contents; `None` where that cannot be told, for whatever
/// reason ([`recognise`] says which).
pub fn detect(path: impl AsRef<Path>) -> Option<Detected> {
    recognise(path).ok().flatten()
}

/// What a file or folder is, by its contents; `None` where they are nobody's.
///
/// # Errors
/// [`Error::Io`] where it cannot be read; [`Error::Import`] where it is empty or no regular file,
/// and where it is an array or an archive that no format can be read from.
pub fn recognise(path: impl AsRef<Path>) -> Result<Option<Detected>> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(|e| Error::io("open", path, e))?;
    if metadata.is_dir() {
        return folder(path);
    }
    let input = Input::file(path, &());
    // Looking into a pipe takes away what is looked at, and waits for whoever writes to it.
    if !metadata.is_file() {
        return Err(input.error("file", "is no regular file, so that it is read once: give --from"));
    }
    let mut start = [0; 16];
    let mut reader = input.open()?;
    let read = read_up_to(&mut reader, &mut start).map_err(|e| input.io(e))?;
    let start = &start[..read];
    Ok(match start {
        [] => return Err(input.error("file", "is empty")),
        [0x89, b'H', b'S', b'T', ..] => Some(Detected::Hst),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(npy(&input)?),
        [b'P', b'K', 3, 4, ..] => zip(&input)?,
        [b'G', b'G', b'U', b'F', ..] => Some(Detected::Histogram(HistogramFormat::Imatrix)),
        [b'P', b'A', b'R', b'1', ..] => Some(Detected::Trace(Format::Parquet)),
        [_, _, _, _, _, 0, 0, 0, b'{', ..] => Some(Detected::Trace(Format::Safetensors)),
        // An old importance matrix: entries, the length of the first name, the name.
        [_, _, 0, 0, _, 0, 0, 0, name @ ..]
            if name.starts_with(b"blk") || name.starts_with(b"out") =>
        {
            Some(Detected::Histogram(HistogramFormat::ImatrixDat))
        }
        _ => text(&input)?,
    })
}

fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match reader.read(&mut buffer[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

fn folder(path: &Path) -> Result<Option<Detected>> {
    if path.join("meta_info.json").is_file() {
        return Ok(Some(Detected::Histogram(HistogramFormat::TensorrtLlm)));
    }
    if path.join("actives").is_dir() {
        return Ok(Some(Detected::Trace(Format::FlameMoe)));
    }
    let io = |e| Error::io("read the folder", path, e);
    let entries = std::fs::read_dir(path).map_err(io)?;
    let files: std::io::Result<Vec<_>> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = files.map_err(io)?;
    let beside = |file: &Path| BESIDE.iter().any(|name| file.ends_with(name));
    files.retain(|file| file.is_file() && !beside(file));
    files.sort();
    // A folder is what all of its files are.
    let Some(file) = files.first() else {
        return Err(Error::import(path, "folder", "has no files"));
    };
    let first = recognise(file)?;
    for file in &files[1..] {
        if recognise(file)? != first {
            return Ok(None);
        }
    }
    Ok(first)
}

fn npy(input: &Input<'_>) -> Result<Detected> {
    let reader = input.open()?;
    let length = reader.len();
    let place = Place { path: input.path(), name: "ids" };
    let array = Array::open(reader, length, place)?;
    let name = input.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(match (array.shape.len(), array.dtype) {
        (3, Dtype::F64) => Detected::Histogram(HistogramFormat::MoeInfinity),
        (3, Dtype::F16 | Dtype::F32) => {
            let found = array.dtype.name();
            return Err(
                place.error(format!("expected ids, which are whole numbers, found {found}"))
            );
        }
        (3, _) if name.contains("routed_experts") => Detected::Trace(Format::Vllm),
        (3, _) => Detected::Trace(Format::Npy),
        _ => {
            let shape = &array.shape;
            return Err(place.error(format!("expected [tokens, layers, top-k], found {shape:?}")));
        }
    })
}

fn zip(input: &Input<'_>) -> Result<Option<Detected>> {
    if let Ok(torch) = Torch::open(input) {
        let root = torch.pickle.root();
        let has = |key: &str| torch.pickle.get(root, key).is_some();
        if has("logical_count") {
            return Ok(Some(Detected::Histogram(HistogramFormat::SglangStat)));
        }
        if has("samples") {
            let miles = has("metadata");
            return Ok(Some(Detected::Trace(if miles { Format::Miles } else { Format::Slime })));
        }
        let records = torch.list_of("records")?;
        let Some(record) = records.first().copied() else {
            return Err(input.error("records", "there are none"));
        };
        let per_token = torch.pickle.get(record, "topk_ids_of_layer").is_some();
        return Ok(Some(match per_token {
            true => Detected::Trace(Format::Sglang),
            false => Detected::Histogram(HistogramFormat::SglangPerPass),
        }));
    }
    let mut npz = Npz::open(input)?;
    let has = |npz: &mut Npz<'_>, name: &str| matches!(npz.array(name), Ok(Some(_)));
    let known = has(&mut npz, "expert_ids") || has(&mut npz, "topk_ids");
    Ok(known.then_some(Detected::Trace(Format::Npz)))
}

/// Bytes of a first line that are looked at.
const LINE: u64 = 1 << 16;

fn text(input: &Input<'_>) -> Result<Option<Detected>> {
    let stream = input.stream()?;
    let mut lines = stream.take(LINE);
    let (mut first, mut bytes) = (String::new(), Vec::new());
    while first.is_empty() {
        bytes.clear();
        if lines.read_until(b'\n', &mut bytes).map_err(|e| input.io(e))? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&bytes).trim().to_owned();
        if line.starts_with("# route_trace") {
            return Ok(Some(Detected::Trace(Format::Bigmoe)));
        }
        first = if line.starts_with('#') { String::new() } else { line };
    }
    let parts: Vec<&str> = first.split(',').map(str::trim).collect();
    let whole = |text: &&str| text.parse::<i64>().is_ok();
    let format = if first.starts_with(['{', '[']) {
        match json(&first) {
            Some(format) => format,
            None => return Ok(None),
        }
    } else if first.contains("cb_eval:") {
        Format::LlamaEvalCallback
    } else if parts.starts_with(&["phase", "token", "layer"]) {
        Format::LlamaCartaz
    } else if parts.contains(&"slot") && parts.contains(&"expert") {
        Format::Bigmoe
    } else if parts == ["layer", "expert"] || (parts.len() == 2 && parts.iter().all(whole)) {
        Format::LlamaPr28544
    } else if parts.len() > 2 && parts.iter().all(whole) {
        Format::LlamaThecodacus
    } else if first.parse::<u64>().is_ok() {
        Format::Ids
    } else {
        return Ok(None);
    };
    Ok(Some(Detected::Trace(format)))
}

/// By the keys that only one format has; the line may be cut.
fn json(line: &str) -> Option<Format> {
    let has = |key: &str| line.contains(&format!("\"{key}\""));
    let lattice = has("layer_idx") && has("selected_ids");
    Some(match () {
        () if line.starts_with("[[") || line.starts_with("[ [") => Format::Nvmoe,
        () if has("meta_info") || has("sglext") => Format::SglangJson,
        () if has("choices") => Format::VllmJson,
        () if has("model_name") && has("num_layers") => Format::Policylang,
        () if lattice => Format::Lattice,
        () if has("tok") && has("layers") => Format::Warp,
        () if has("l") && has("t") && has("e") && has("p") => Format::Policylang,
        () if has("l") && has("t") && has("e") => Format::LlamaNvmoe,
        () if has("experts") || (has("type") && has("header")) => Format::Jsonl,
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shared;

    #[test]
    fn every_sample_is_told() {
        use Format::*;
        let routes = [
            ("hf_trace.npz", Npz),
            ("hf_trace_deflate.npz", Npz),
            ("hf_trace.safetensors", Safetensors),
            ("hf_trace.jsonl", Jsonl),
            ("long_trace.parquet", Parquet),
            ("flame_moe", FlameMoe),
            ("vllm_routed_experts_req0.npy", Vllm),
            ("vllm_u16_routed_experts.npy", Vllm),
            ("vllm_i32_routed_experts.npy", Vllm),
            ("vllm_dense_layer0.npy", Npy),
            ("vllm_chat_completion.json", VllmJson),
            ("vllm_0_21_chat_completion_nested.json", VllmJson),
            ("sglang_generate.jsonl", SglangJson),
            ("sglang_per_token.pt", Sglang),
            ("sglang_per_token_cuda_location.pt", Sglang),
            ("slime_rollout_0.pt", Slime),
            ("miles_rollout_0.pt", Miles),
            ("llama_eval_callback_5tok.txt", LlamaEvalCallback),
            ("llamacpp_pr28544_moe_trace.csv", LlamaPr28544),
            ("llamacpp_phase_token_layer_rank_expert.csv", LlamaCartaz),
            ("llamacpp_thecodacus_pos_layer_ids.csv", LlamaThecodacus),
            ("llamacpp_nvmoe_raw.jsonl", LlamaNvmoe),
            ("nvmoe_tokens.jsonl", Nvmoe),
            ("../data/warp/trace_kimi_300.jsonl", Warp),
        ];
        for (name, format) in routes {
            let Some(path) = shared(&format!("formats/{name}")) else { return };
            assert_eq!(detect(path), Some(Detected::Trace(format)), "{name}");
        }
        let counts = [
            ("llama_imatrix.gguf", HistogramFormat::Imatrix),
            ("llama_imatrix.dat", HistogramFormat::ImatrixDat),
            ("sglang_stat.pt", HistogramFormat::SglangStat),
            ("sglang_per_pass.pt", HistogramFormat::SglangPerPass),
            ("trtllm_expert_statistic", HistogramFormat::TensorrtLlm),
            ("moe_infinity_trace.npy", HistogramFormat::MoeInfinity),
        ];
        for (name, format) in counts {
            let Some(path) = shared(&format!("formats/{name}")) else { return };
            assert_eq!(detect(path), Some(Detected::Histogram(format)), "{name}");
        }
    }

    #[test]
    fn what_keeps_from_telling_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let reason = |path: &Path| recognise(path).unwrap_err().to_string();
        assert!(reason(folder.path()).ends_with("folder: has no files"));
        assert!(reason(&path).starts_with("cannot open"));
        let says = |bytes: &[u8], part: &str| {
            std::fs::write(&path, bytes).unwrap();
            let reason = reason(&path);
            assert!(reason.contains(part), "{reason}");
        };
        says(b"", "is empty");
        says(b"PK\x03\x04 broken", "x.npy");
        let npy = crate::import::array::tests::npy;
        says(&npy("<f4", "(1, 1, 1)", &[0; 4]), "whole numbers");
        says(&npy("|u1", "(1, 1)", &[0]), "expected [tokens, layers, top-k], found [1, 1]");
        says(&npy("<c8", "(1, 1, 1)", &[0; 8]), "elements of type <c8");
        // Weights beside the ids are not looked at; the folder's first file is at fault.
        std::fs::write(folder.path().join("weights.npy"), b"").unwrap();
        assert!(reason(folder.path()).contains("<c8"));
        #[cfg(unix)]
        assert!(reason(Path::new("/dev/null")).contains("give --from"));
    }

    #[test]
    fn what_is_nothing_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            detect(&path)
        };
        assert_eq!(told(b""), None);
        assert_eq!(told(b"hello\n"), None);
        assert_eq!(told(b"{\"a\": 1}\n"), None);
        assert_eq!(told(b"PK\x03\x04 broken"), None);
        assert_eq!(told(b"# a comment\n7\n"), Some(Detected::Trace(Format::Ids)));
        let cell = br#"{"layer_idx": 0, "token_idx": 0, "selected_ids": [1]}"#;
        assert_eq!(told(cell), Some(Detected::Trace(Format::Lattice)));
        let header = br#"{"model_name": "m", "num_layers": 1, "num_experts": 4, "top_k": 1}"#;
        assert_eq!(told(header), Some(Detected::Trace(Format::Policylang)));
        assert_eq!(told(b"# route_trace v1\n"), Some(Detected::Trace(Format::Bigmoe)));
        assert_eq!(detect(folder.path()), Some(Detected::Trace(Format::Bigmoe)));
        assert_eq!(detect(folder.path().join("absent")), None);
    }
}
