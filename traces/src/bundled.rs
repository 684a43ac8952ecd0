//! The trace that comes with the program: the first sequences of one recorded on an H200.
//!
//! See `traces/bundled/README.md` for what it is and how it was cut.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::Result;
use crate::import::{Format, ImportOptions, import};
use crate::trace::Trace;

/// Puts the file where its sections can be read in place.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!("../bundled/h200-moe.hst"));

/// Sequences that the bundled trace keeps of the 96 recorded ones.
pub const SEQUENCES: usize = 48;

/// Bytes of one expert slot in the live runs of this trace: an NVFP4 expert of a model of the
/// class of Qwen3.5-35B-A3B (1.6875 MiB). The recorded model's own experts are smaller.
pub const EXPERT_BYTES: u64 = 1_769_472;

/// The bundled trace: 16 layers of 64 experts with top-8, prompts of 192 tokens and 256 generated
/// ones a sequence, with weights, predictions one layer ahead and prompt embeddings.
///
/// # Errors
/// None in a sound build; those of [`Trace::open`] where the program's own bytes are damaged.
pub fn bundled() -> Result<Trace> {
    Trace::from_static_bytes(&FILE.0)
}

/// Cuts the bundled trace from the recorded `routes.npz`.
///
/// # Errors
/// As [`import`] and [`Trace::select_sequences`].
#[doc(hidden)]
pub fn cut(routes: &Path) -> Result<Trace> {
    let options = ImportOptions {
        expert_bytes: Some(EXPERT_BYTES),
        name: Some("h200-moe".to_owned()),
        ..ImportOptions::default()
    };
    let whole = import(Format::Npz, routes, &options)?;
    let first: Vec<usize> = (0..SEQUENCES).collect();
    let made: Value = serde_json::from_str(whole.provenance()).unwrap_or(Value::Null);
    let provenance = json!({
        "bundled": format!("the first {SEQUENCES} of {} sequences", whole.sequences().len()),
        "expert_bytes": "1769472 is the size of an expert slot in the live runs of this trace \
                         (an NVFP4 expert of a model like Qwen3.5-35B-A3B), not that of the \
                         recorded model's own experts",
        "of": { "digest": whole.digest(), "made": made },
    });
    whole.selection(&first)?.provenance(provenance.to_string()).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, testing::shared, write_hst};

    #[test]
    fn it_opens_and_is_what_it_says() {
        let trace = bundled().unwrap();
        trace.validate().unwrap();
        assert_eq!((trace.name(), trace.tokens()), ("h200-moe", SEQUENCES * 448));
        assert_eq!(trace.sequences().len(), SEQUENCES);
        assert_eq!(trace.shape().as_uniform(), Some((64, 8)));
        assert_eq!(trace.shape().total_bytes(), Some(1024 * EXPERT_BYTES));
        assert!(trace.weights().is_some() && trace.predictions().is_some());
        assert_eq!(trace.embeddings().map(|e| e.dim), Some(512));
        assert!(FILE.0.len() < 6 << 20, "{} bytes", FILE.0.len());
    }

    #[test]
    fn cutting_it_again_gives_the_same_bytes() {
        let Some(routes) = shared("data/h200-moe/routes.npz") else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("again.hst");
        write_hst(&cut(&routes).unwrap(), &path, Codec::Zstd(19)).unwrap();
        let again = std::fs::read(&path).unwrap();
        assert!(again == FILE.0, "{} bytes against {}", again.len(), FILE.0.len());
    }
}
