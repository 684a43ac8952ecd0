//! CSV and other text; the first byte says whose.
#![no_main]

use hotset_traces::{Format, ImportOptions, import_bytes};
use libfuzzer_sys::fuzz_target;

const FORMATS: [Format; 6] = [
    Format::Ids,
    Format::LlamaPr28544,
    Format::LlamaCartaz,
    Format::LlamaThecodacus,
    Format::LlamaEvalCallback,
    Format::Bigmoe,
];

fuzz_target!(|input: &[u8]| {
    let Some((&first, file)) = input.split_first() else { return };
    let format = FORMATS[usize::from(first) % FORMATS.len()];
    let top_k = (format == Format::LlamaPr28544).then_some(2);
    let options = ImportOptions { top_k, ..ImportOptions::default() };
    import_bytes(format, "x.csv", file, &options).ok();
});
