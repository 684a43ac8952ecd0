//! What a file is, by its contents: its beginning is read once, and every format is asked.
//!
//! The surest claim gets the file. What two formats claim alike, and what nobody claims, cannot be
//! told, and the caller names the format.

use std::path::Path;

use super::folder::BESIDE;
use super::histogram::{self, HistogramFormat};
use super::info::{Claim, Recognise};
use super::input::Input;
use super::lookalikes;
use super::options::ImportOptions;
use super::registry::{self, Format};
use super::sniff::{self, Sniff};
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

/// What a file or folder is, by its contents.
///
/// # Errors
/// [`Error::Io`] where it cannot be read; [`Error::Import`] where it is empty or no regular file,
/// and, with what was found in it, where its contents are nobody's.
pub fn recognise(path: impl AsRef<Path>) -> Result<Option<Detected>> {
    recognise_with(path, &ImportOptions::default())
}

/// The same where the caller says something of the file: names of columns, top-k.
///
/// # Errors
/// As [`recognise`].
pub fn recognise_with(path: impl AsRef<Path>, options: &ImportOptions) -> Result<Option<Detected>> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(|e| Error::io("open", path, e))?;
    let input = Input::file(path, &());
    // Looking into a pipe takes away what is looked at, and waits for whoever writes to it.
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(input
            .error("file", "is no regular file, so that it is read once: give `import::Format`"));
    }
    let sniff = Sniff::open(&input, options)?;
    let told = tell(&sniff);
    match &sniff.contents {
        sniff::Contents::Folder(names) if matches!(told, Ok(None)) => files(path, names, options),
        _ => told,
    }
}

/// Every format with what it says of a file.
fn claims<'a>(
    sniff: &'a Sniff<'_>,
) -> impl Iterator<Item = (Detected, &'static str, Result<Claim>)> + 'a {
    let traces = registry::all()
        .map(|(format, info)| (Detected::Trace(format), info.name, info.recognise as Recognise));
    let histograms = histogram::all()
        .map(|(format, info)| (Detected::Histogram(format), info.name, info.recognise));
    traces.chain(histograms).map(|(told, name, recognise)| (told, name, recognise(sniff)))
}

/// What a file is: the surest claim, else what keeps it from being told.
fn tell(sniff: &Sniff<'_>) -> Result<Option<Detected>> {
    if matches!(sniff.contents, sniff::Contents::Hst) {
        return Ok(Some(Detected::Hst));
    }
    let (mut best, mut names, mut fault) = (None, Vec::new(), None);
    let mut surest = Claim::No;
    for (told, name, claim) in claims(sniff) {
        match claim {
            Ok(claim) if claim > surest => {
                (best, names, surest) = (Some(told), vec![name], claim);
            }
            Ok(claim) if claim == surest && claim > Claim::No => names.push(name),
            Ok(_) => {}
            Err(e) => fault = fault.or(Some(e)),
        }
    }
    match (best, fault) {
        (Some(_), _) if names.len() > 1 => {
            let names = names.join(" or ");
            Err(sniff.input.error("format", format!("may be {names}: give `import::Format`")))
        }
        (Some(best), _) => Ok(Some(best)),
        (None, Some(fault)) => Err(fault),
        // A folder may be one of files that are told one by one.
        (None, None) if matches!(sniff.contents, sniff::Contents::Folder(_)) => Ok(None),
        (None, None) => Err(sniff.input.error("contents", lookalikes::refusal(sniff))),
    }
}

/// A folder is what all of its files are.
fn files(path: &Path, names: &[String], options: &ImportOptions) -> Result<Option<Detected>> {
    let mut files = names
        .iter()
        .map(|name| path.join(name))
        .filter(|file| file.is_file() && !BESIDE.iter().any(|name| file.ends_with(name)));
    let Some(first) = files.next() else {
        return Err(Error::import(path, "folder", "has no files"));
    };
    let first = recognise_with(&first, options)?;
    for file in files {
        if recognise_with(&file, options)? != first {
            let problem = "its files are of several formats: name those that are to be read";
            return Err(Error::import(path, "folder", problem));
        }
    }
    Ok(first)
}

#[cfg(test)]
mod people;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::inputs::{Contents, Reader, samples};
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
            ("vllm_routed_experts_req1.npy", Vllm),
            ("vllm_routed_experts_req2.npy", Vllm),
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
            ("llama_eval_callback_5tok_full.txt.gz", LlamaEvalCallback),
            ("llama_eval_callback_22tok_elided.txt", LlamaEvalCallback),
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
            ("sglang_stat_cuda_location.pt", HistogramFormat::SglangStat),
            ("sglang_per_pass.pt", HistogramFormat::SglangPerPass),
            ("trtllm_expert_statistic", HistogramFormat::TensorrtLlm),
            ("moe_infinity_trace.npy", HistogramFormat::MoeInfinity),
        ];
        for (name, format) in counts {
            let Some(path) = shared(&format!("formats/{name}")) else { return };
            assert_eq!(detect(path), Some(Detected::Histogram(format)), "{name}");
        }
        let beside = ["README.md", "expected.json", "people"];
        let Some(folder) = shared("formats") else { return };
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let listed = routes.iter().any(|&(known, _)| known == name)
                || counts.iter().any(|&(known, _)| known == name);
            assert!(listed || beside.contains(&&*name), "{name} is no sample of the lists above");
        }
    }

    /// The formats that claim a file surest.
    pub(super) fn surest(path: &Path, options: &ImportOptions) -> Vec<Detected> {
        let input = Input::file(path, &());
        let sniff = Sniff::open(&input, options).unwrap();
        let claims: Vec<(Detected, Claim)> = claims(&sniff)
            .filter_map(|(told, _, claim)| claim.ok().map(|claim| (told, claim)))
            .filter(|&(_, claim)| claim > Claim::No)
            .collect();
        let most = claims.iter().map(|&(_, claim)| claim).max();
        claims.iter().filter(|claim| Some(claim.1) == most).map(|claim| claim.0).collect()
    }

    #[test]
    fn one_format_claims_each_of_our_samples() {
        let folder = tempfile::tempdir().unwrap();
        for (index, sample) in samples().iter().enumerate() {
            let root = folder.path().join(index.to_string());
            let expected = match sample.reader {
                // Counts of several ranks are a folder.
                Reader::Histogram(HistogramFormat::TensorrtLlm) => continue,
                Reader::Trace(format) => Detected::Trace(format),
                Reader::Histogram(format) => Detected::Histogram(format),
            };
            // vLLM's arrays are told from others by their name.
            let vllm = sample.reader == Reader::Trace(Format::Vllm);
            let mut path = root.join(if vllm { "routed_experts.npy" } else { "x" });
            std::fs::create_dir_all(&root).unwrap();
            match &sample.contents {
                Contents::Folder(files) => {
                    path = root;
                    for (name, bytes) in files {
                        let file = path.join(name);
                        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                        std::fs::write(file, bytes).unwrap();
                    }
                }
                contents => std::fs::write(&path, contents.bytes()).unwrap(),
            }
            assert_eq!(surest(&path, &ImportOptions::default()), [expected], "{}", sample.name());
        }
    }

    #[test]
    fn every_format_has_a_sample() {
        let samples = samples();
        let has = |reader| samples.iter().any(|sample| sample.reader == reader);
        for (format, info) in registry::all() {
            let built = cfg!(feature = "parquet") || !info.extensions.contains(&"parquet");
            assert!(!built || has(Reader::Trace(format)), "{}", info.name);
        }
        for (format, info) in histogram::all() {
            // It is refused whatever is in it.
            let refused = format == HistogramFormat::ImatrixDat;
            assert!(refused || has(Reader::Histogram(format)), "{}", info.name);
        }
    }

    #[test]
    fn packed_and_wide_files_are_what_they_hold() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for sample in samples() {
            let (Contents::Plain(_) | Contents::Zip(_)) = &sample.contents else { continue };
            let bytes = sample.contents.bytes();
            std::fs::write(&path, &bytes).unwrap();
            let told = detect(&path);
            let plain = sample.read(&sample.contents).unwrap();
            let zstd = zstd::encode_all(&bytes[..], 3).unwrap();
            std::io::Write::write_all(&mut packed, &bytes).unwrap();
            let fresh = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let gzip = std::mem::replace(&mut packed, fresh).finish().unwrap();
            let mut others = vec![zstd, gzip];
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let units = || text.encode_utf16();
                let marked = |mark: &[u8], rest: Vec<u8>| [mark, &rest[..]].concat();
                others.push(marked(b"\xff\xfe", units().flat_map(u16::to_le_bytes).collect()));
                others.push(marked(b"\xfe\xff", units().flat_map(u16::to_be_bytes).collect()));
                others.push(marked(b"\xef\xbb\xbf", bytes.clone()));
                others.push(text.replace('\n', "\r\n").into_bytes());
            }
            for other in others {
                std::fs::write(&path, &other).unwrap();
                assert_eq!(detect(&path), told, "{}", sample.name());
                let read = sample.read(&Contents::Plain(other)).unwrap();
                let digest = |trace: &Option<crate::Trace>| {
                    trace.as_ref().map(|trace| trace.digest().to_owned())
                };
                assert_eq!(digest(&read), digest(&plain), "{}", sample.name());
            }
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
        assert!(reason(Path::new("/dev/null")).contains("give `import::Format`"));
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
