//! For tests only: where the shared data lie, and a small trace with every column.
//!
//! Tests that need recorded traces ask here, and skip loudly on a machine that lacks them.

pub mod inputs;

use std::io::Write as _;
use std::path::PathBuf;

use crate::{Ids, LayerShape, Sequence, Shape, Trace, TraceBuilder, Weights};

/// The shared folder's entry `relative`, or `None`, loudly, where this machine has no such folder.
///
/// Looked for in `HOTSET_SHARED`, else in `shared` beside the repository.
///
/// # Panics
/// Where the entry is absent and the environment has `CI`: there the data must be.
pub fn shared(relative: &str) -> Option<PathBuf> {
    let root = std::env::var_os("HOTSET_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let path = root.join(relative);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "CI lacks {}: set HOTSET_SHARED", path.display());
    // Not eprintln!: the test runner would keep that to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is absent", path.display());
    None
}

/// A trace of 3 sequences of 2, 3 and 2 tokens over two unequal layers (8 experts with top-2, 4
/// with top-1), with every column there can be.
pub fn full_trace() -> Trace {
    full_builder().build().expect("the trace is sound")
}

/// [`full_trace`] before it is built, for tests that spoil a column.
pub fn full_builder() -> TraceBuilder {
    let layer = |number, experts, top_k| LayerShape { number, experts, top_k, expert_bytes: 1000 };
    let shape = Shape::new(vec![layer(1, 8, 2), layer(2, 4, 1)]).expect("the shape is sound");
    let ids: Vec<u8> = (0..7).flat_map(|t| [t, t + 1, t % 4]).collect();
    let sequence = |id: u32, rows: std::ops::Range<usize>| Sequence {
        id,
        label: format!("label {id}"),
        document: Some(100 + id),
        prompt_tokens: 1,
        has_repetition: Some(id == 11),
        rows,
    };
    // Two lookaheads: nothing is predicted two layers before the second layer of two.
    let predictions = (0..2u8)
        .flat_map(|a| (0..7u8).map(move |t| (a, t)))
        .flat_map(|(a, t)| [0xff, 0xff, if a == 0 { t % 4 } else { 0xff }, 0xff])
        .collect();
    TraceBuilder::new("every column", shape, Ids::U8(ids))
        .sequences(vec![sequence(10, 0..2), sequence(11, 2..5), sequence(12, 5..7)])
        .positions(vec![0, 1, 0, 1, 2, 4, 9])
        .phases(vec![0, 1, 0, 1, 2, 0, 1])
        .steps(vec![0, 2, 0, 2, 3, 1, 3])
        .token_ids((1000..1007).collect())
        .weights(Weights::F16((0..21).map(|n| 0x3c00 + n).collect()))
        .predictions(2, 2, Ids::U8(predictions))
        .embeddings(2, vec![1, 2, 3, 4, 5, 6], vec![7, 8, 9, 10, 11, 12])
        .provenance(r#"{"made":"by hand"}"#)
}
