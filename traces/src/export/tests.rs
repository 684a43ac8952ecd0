//! Exported and imported again, a trace is the same; what other tools read is worked out by hand.

use super::{ExportFormat, export, export_formats};
use crate::testing::{full_builder, full_trace};
use crate::{Format, Ids, ImportOptions, LayerShape, Shape, Trace, TraceBuilder, Weights, import};

fn there_and_back(trace: &Trace, to: ExportFormat, from: Format) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    export(trace, to, &path).unwrap();
    let options = ImportOptions { name: Some(trace.name().to_owned()), ..Default::default() };
    import(from, &path, &options).unwrap()
}

/// [`full_trace`] with the same top-k in both layers, which arrays need.
fn uniform() -> TraceBuilder {
    let layer = |number, experts| LayerShape { number, experts, top_k: 2, expert_bytes: 1000 };
    let shape = Shape::new(vec![layer(1, 8), layer(2, 8)]).unwrap();
    let ids: Vec<u8> = (0..7).flat_map(|t| [t, t + 1, t, 7]).collect();
    let full = full_trace();
    let predictions = full.predictions().unwrap();
    TraceBuilder::new("uniform", shape, Ids::U8(ids))
        .sequences(full.sequences().to_vec())
        .positions(full.positions().to_vec())
        .phases(full.phases().to_vec())
        .steps(full.steps().unwrap().to_vec())
        .token_ids(full.token_ids().unwrap().to_vec())
        .predictions(2, 2, predictions.ids.to_ids(0..predictions.ids.len()))
        .embeddings(2, vec![1, 2, 3, 4, 5, 6], vec![7, 8, 9, 10, 11, 12])
}

#[test]
fn arrays_keep_everything() {
    // The last token's experts 6, 7 and 6, 7.
    let ids: Vec<u8> = (0..7).flat_map(|t| [t, t + 1, t % 7, 7]).collect();
    assert_eq!(ids[24..], [6, 7, 6, 7]);
    let f16 = uniform().weights(Weights::F16((0..28).map(|n| 0x3c00 + n).collect()));
    let u8 = uniform().weights(Weights::U8((0..28).collect()));
    let f32 = uniform().weights(Weights::F32((0..28).map(|n| n as f32 / 7.0).collect()));
    for trace in [uniform(), f16, u8, f32] {
        let trace = trace.build().unwrap();
        let back = there_and_back(&trace, ExportFormat::Npz, Format::Npz);
        assert_eq!(back.digest(), trace.digest());
        assert_eq!(back.content_digest(), trace.content_digest());
        assert_eq!(back.sequences(), trace.sequences());
        assert_eq!(back.embeddings(), trace.embeddings());
    }
    let bf16 = uniform().weights(Weights::Bf16((0..28).map(|n| 0x3f00 + n).collect()));
    let trace = bf16.build().unwrap();
    let back = there_and_back(&trace, ExportFormat::Npz, Format::Npz);
    let weights = |trace: &Trace| -> Vec<f32> {
        let weights = trace.weights().unwrap();
        (0..weights.len()).map(|index| weights.get(index)).collect()
    };
    assert_eq!(weights(&back), weights(&trace), "f32 holds what bfloat16 holds");
}

#[test]
fn arrays_need_one_top_k_and_lines_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npz");
    let refused = export(&full_trace(), ExportFormat::Npz, &path).unwrap_err().to_string();
    assert!(refused.contains("top-k is 2 in layer 1, 1 in layer 2"), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left");

    let trace = full_builder().build().unwrap();
    let back = there_and_back(&trace, ExportFormat::Jsonl, Format::Jsonl);
    assert_eq!(back.digest(), trace.digest());
    assert_eq!(back.positions(), trace.positions());
    assert_eq!((back.phases(), back.steps()), (trace.phases(), trace.steps()));
    assert_eq!(back.token_ids(), trace.token_ids());
    let numbers =
        |trace: &Trace| trace.shape().layers().iter().map(|l| l.number).collect::<Vec<_>>();
    assert_eq!(numbers(&back), numbers(&trace));
    let (old, new) = (trace.weights().unwrap(), back.weights().unwrap());
    assert!((0..old.len()).all(|index| old.get(index) == new.get(index)));
    assert_eq!(back.shape().layers()[0].expert_bytes, 1000);
}

#[test]
fn next_uses_by_hand() {
    // Two layers of 4 experts, top-1; rows (0, 1), (0, 2), (3, 1).
    let shape = Shape::uniform(2, 4, 1).unwrap().with_expert_bytes(7);
    let trace = TraceBuilder::new("t", shape, Ids::U8(vec![0, 1, 0, 2, 3, 1]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let records = |trace: &Trace| -> Vec<(u32, u64, u32, i64)> {
        export(trace, ExportFormat::OracleGeneral, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let record = |r: &[u8]| {
            (
                u32::from_le_bytes(r[..4].try_into().unwrap()),
                u64::from_le_bytes(r[4..12].try_into().unwrap()),
                u32::from_le_bytes(r[12..16].try_into().unwrap()),
                i64::from_le_bytes(r[16..].try_into().unwrap()),
            )
        };
        bytes.chunks_exact(24).map(record).collect()
    };
    // Keys: layer 1 begins at 4.
    assert_eq!(
        records(&trace.clone().build().unwrap()),
        [(0, 0, 7, 2), (0, 5, 7, 5), (1, 0, 7, -1), (1, 6, 7, -1), (2, 3, 7, -1), (2, 5, 7, -1)]
    );
    // The first two tokens run together: layer by layer.
    assert_eq!(
        records(&trace.steps(vec![0, 0, 1]).build().unwrap()),
        [(0, 0, 7, 1), (0, 0, 7, -1), (0, 5, 7, 5), (0, 6, 7, -1), (1, 3, 7, -1), (1, 5, 7, -1)]
    );
}

#[test]
fn many_blocks_are_one_file() {
    let trace = crate::bundled().unwrap().select_sequences(&[0, 1, 2]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    export(&trace, ExportFormat::OracleGeneral, &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let keys: Vec<u64> = bytes
        .chunks_exact(24)
        .map(|record| u64::from_le_bytes(record[4..12].try_into().unwrap()))
        .collect();
    let shape = trace.shape();
    let expected: Vec<u64> = (0..trace.tokens())
        .flat_map(|row| (0..shape.layers().len()).map(move |layer| (row, layer)))
        .flat_map(|(row, layer)| {
            trace.layer_ids(row, layer).iter().map(move |id| (layer, id)).collect::<Vec<_>>()
        })
        .map(|(layer, id)| u64::from(shape.key_base(layer) + id))
        .collect();
    assert!(keys == expected);
    for (number, record) in bytes.chunks_exact(24).enumerate() {
        let next = i64::from_le_bytes(record[16..].try_into().unwrap());
        let after = keys[number + 1..].iter().take(20_000).position(|key| *key == keys[number]);
        if let Some(after) = after {
            assert_eq!(next, (number + 1 + after) as i64);
        }
        if number > 2000 {
            break;
        }
    }
}

#[test]
fn what_a_format_drops_is_named() {
    let trace = full_trace();
    assert_eq!(ExportFormat::Npz.dropped(&trace), [""; 0]);
    assert_eq!(ExportFormat::Jsonl.dropped(&trace), ["predictions", "embeddings"]);
    assert_eq!(ExportFormat::Parquet.dropped(&trace), ["predictions", "embeddings"]);
    assert!(ExportFormat::OracleGeneral.dropped(&trace).contains(&"weights"));
    let shape = Shape::uniform(1, 4, 1).unwrap();
    let bare = TraceBuilder::new("t", shape, Ids::U8(vec![0])).build().unwrap();
    assert_eq!(ExportFormat::Jsonl.dropped(&bare), [""; 0]);
}

#[test]
fn every_format_is_registered_under_its_name() {
    for info in export_formats() {
        let format = ExportFormat::from_name(info.name).unwrap();
        assert_eq!(format.info().name, info.name);
    }
    assert_eq!(ExportFormat::from_name("hst"), None);
}
