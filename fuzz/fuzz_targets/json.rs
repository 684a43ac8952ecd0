//! JSON and JSON lines; the first byte says whose.
#![no_main]

use hotset_traces::{Format, ImportOptions, import_bytes};
use libfuzzer_sys::fuzz_target;

const FORMATS: [Format; 8] = [
    Format::Jsonl,
    Format::VllmJson,
    Format::SglangJson,
    Format::LlamaNvmoe,
    Format::Nvmoe,
    Format::Warp,
    Format::Policylang,
    Format::Lattice,
];

fuzz_target!(|input: &[u8]| {
    let Some((&first, file)) = input.split_first() else { return };
    let format = FORMATS[usize::from(first) % FORMATS.len()];
    let shape = (format == Format::SglangJson).then_some(2);
    let options = ImportOptions { layers: shape, top_k: shape, ..ImportOptions::default() };
    import_bytes(format, "x.json", file, &options).ok();
});
