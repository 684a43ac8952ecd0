//! Bare NumPy arrays.
#![no_main]

use hotset_traces::{Format, Histogram, HistogramFormat, ImportOptions, import_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    for format in [Format::Npy, Format::Vllm] {
        import_bytes(format, "x.npy", file, &ImportOptions::default()).ok();
    }
    Histogram::from_bytes(HistogramFormat::MoeInfinity, "x.npy", file).ok();
});
