//! The recorded sets, imported: what comes out is what NumPy reads from the same files.

use hotset_traces::testing::shared;
use hotset_traces::{Format, ImportOptions, Phase, Trace, import};

fn recorded(format: Format, relative: &str, options: &ImportOptions) -> Option<Trace> {
    shared(relative).map(|path| import(format, path, options).unwrap())
}

fn by_phase(trace: &Trace) -> [usize; 3] {
    Phase::ALL.map(|phase| trace.phases().iter().filter(|&&p| p == phase as u8).count())
}

#[test]
fn h200_moe() {
    let options = ImportOptions::default();
    let Some(trace) = recorded(Format::Npz, "data/h200-moe/routes.npz", &options) else { return };
    assert_eq!(trace.tokens(), 43_008);
    assert_eq!(trace.shape().as_uniform(), Some((64, 8)));
    assert_eq!(trace.shape().layers().len(), 16);
    assert_eq!(trace.sequences().len(), 96);
    assert_eq!(by_phase(&trace), [18_432, 24_576, 0]);
    assert!(trace.layer_ids(0, 0).iter().eq([6, 20, 25, 8, 15, 18, 16, 14]));
    assert!(trace.layer_ids(0, 1).iter().eq([52, 59, 33, 56, 44, 30, 49, 7]));
    let last = &trace.sequences()[95];
    assert_eq!((last.id, last.label.as_str(), last.document), (95, "handbook-it", Some(309)));
    assert_eq!((last.prompt_tokens, last.rows.clone()), (192, 42_560..43_008));
    assert_eq!(trace.sequence_of(42_559), 94);
    assert_eq!(trace.sequence_column()[42_560], 95);
    assert_eq!(trace.predictions().map(|p| (p.lookaheads, p.width)), Some((1, 8)));
    assert_eq!(trace.embeddings().map(|e| e.dim), Some(512));
    trace.validate().unwrap();
}
