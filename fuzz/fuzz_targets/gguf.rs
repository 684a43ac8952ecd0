//! GGUF: importance matrices.
#![no_main]

use hotset_traces::{Histogram, HistogramFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    Histogram::from_bytes(HistogramFormat::Imatrix, "x.gguf", file).ok();
});
