//! safetensors: a recording's arrays, TensorRT-LLM's counts.
#![no_main]

use hotset_traces::{Format, Histogram, HistogramFormat, ImportOptions, import_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    import_bytes(Format::Safetensors, "x", file, &ImportOptions::default()).ok();
    Histogram::from_bytes(HistogramFormat::TensorrtLlm, "rank0.safetensors", file).ok();
});
