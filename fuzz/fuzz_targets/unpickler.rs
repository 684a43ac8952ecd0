//! The pickle of a `.pt` file, with a few storages for its tensors.
#![no_main]

use hotset_traces::testing::inputs::torch_file;
use hotset_traces::{Format, Histogram, HistogramFormat, ImportOptions, import_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|pickle: &[u8]| {
    let storages = (0..4u8).map(|n| vec![n, 0, 0, 0].repeat(64)).collect();
    let file = torch_file(pickle.to_vec(), storages).bytes();
    for format in [Format::Sglang, Format::Slime] {
        import_bytes(format, "x.pt", &file, &ImportOptions::default()).ok();
    }
    for format in [HistogramFormat::SglangStat, HistogramFormat::SglangPerPass] {
        Histogram::from_bytes(format, "x.pt", &file).ok();
    }
});
