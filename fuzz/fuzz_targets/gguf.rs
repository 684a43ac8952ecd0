//! GGUF: importance matrices; the first byte says whose.
#![no_main]

use hotset_traces::testing::inputs::{FuzzTarget, fuzz};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz(FuzzTarget::Gguf, input));
