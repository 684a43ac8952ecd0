//! Writes samples of our own for the fuzzing targets: `fuzz_corpus FOLDER`.

use std::path::Path;

use hotset_traces::testing::inputs::{Contents, Reader, samples};
use hotset_traces::{Format, HistogramFormat};

/// In the order of the targets' own lists: the first byte of an input names the format.
const JSON: [Format; 8] = [
    Format::Jsonl,
    Format::VllmJson,
    Format::SglangJson,
    Format::LlamaNvmoe,
    Format::Nvmoe,
    Format::Warp,
    Format::Policylang,
    Format::Lattice,
];
const LINES: [Format; 6] = [
    Format::Ids,
    Format::LlamaPr28544,
    Format::LlamaCartaz,
    Format::LlamaThecodacus,
    Format::LlamaEvalCallback,
    Format::Bigmoe,
];

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: fuzz_corpus FOLDER");
        std::process::exit(2);
    };
    for (index, sample) in samples().into_iter().enumerate() {
        let place = |list: &[Format]| match sample.reader {
            Reader::Trace(format) => list.iter().position(|&other| other == format),
            Reader::Histogram(_) => None,
        };
        let tagged = |first: usize| [&[first as u8][..], &sample.contents.bytes()].concat();
        let (target, bytes) = match (&sample.contents, sample.reader) {
            (Contents::Zip(entries), _) if entries[0].0.ends_with("data.pkl") => {
                ("unpickler", entries[0].1.clone())
            }
            (_, Reader::Histogram(HistogramFormat::Imatrix)) => ("gguf", sample.contents.bytes()),
            (_, Reader::Histogram(HistogramFormat::TensorrtLlm))
            | (_, Reader::Trace(Format::Safetensors)) => ("safetensors", sample.contents.bytes()),
            (_, Reader::Histogram(HistogramFormat::MoeInfinity))
            | (_, Reader::Trace(Format::Npy | Format::Vllm)) => ("npy", sample.contents.bytes()),
            (Contents::Folder(_), _) => continue,
            _ => match (place(&JSON), place(&LINES)) {
                (Some(first), _) => ("json", tagged(first)),
                (_, Some(first)) => ("lines", tagged(first)),
                _ => continue,
            },
        };
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("sample{index}")), bytes)?;
    }
    Ok(())
}
