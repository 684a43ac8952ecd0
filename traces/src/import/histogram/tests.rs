//! The shared samples: every tool counted the same routing, so all must say the same.

use serde_json::Value;

use super::{Histogram, HistogramFormat, histogram_formats};
use crate::shape::Shape;
use crate::testing::shared;

fn read(format: HistogramFormat, name: &str) -> Option<Histogram> {
    let path = shared(&format!("formats/{name}"))?;
    Some(Histogram::read(format, &[path]).unwrap_or_else(|e| panic!("{name}: {e}")))
}

fn expected() -> Option<Value> {
    let text = std::fs::read(shared("formats/expected.json")?).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

fn counts(histogram: &Histogram) -> Value {
    let counts: Vec<&[u64]> = histogram.per_layer().map(|(_, counts)| counts).collect();
    serde_json::to_value(counts).unwrap()
}

#[test]
fn all_tools_counted_the_same() {
    let Some(expected) = expected() else { return };
    let all = &expected["hf_trace.npz"]["counts_per_layer"];
    let samples = [
        (HistogramFormat::SglangStat, "sglang_stat.pt"),
        (HistogramFormat::SglangStat, "sglang_stat_cuda_location.pt"),
        (HistogramFormat::SglangPerPass, "sglang_per_pass.pt"),
        (HistogramFormat::TensorrtLlm, "trtllm_expert_statistic"),
        (HistogramFormat::MoeInfinity, "moe_infinity_trace.npy"),
    ];
    for (format, name) in samples {
        let Some(histogram) = read(format, name) else { return };
        assert_eq!(&counts(&histogram), all, "{name}");
        assert_eq!(histogram.total(), 3584, "{name}");
        assert_eq!(histogram.format, format.info().name);
    }
    // All ranks have the counts of all tokens: a second rank changes nothing.
    let path = shared("formats/sglang_per_pass.pt").unwrap();
    let twice = Histogram::read(HistogramFormat::SglangPerPass, &[path.clone(), path]).unwrap();
    assert_eq!(&counts(&twice), all);
    let tokens = read(HistogramFormat::TensorrtLlm, "trtllm_expert_statistic").unwrap().tokens;
    assert_eq!(tokens, Some(224));
}

#[test]
fn importance_matrices() {
    let (Some(histogram), Some(expected)) =
        (read(HistogramFormat::Imatrix, "llama_imatrix.gguf"), expected())
    else {
        return;
    };
    let expected = &expected["llama_imatrix.gguf"]["expert_counts"];
    for (layer, counts) in histogram.per_layer() {
        let key = format!("blk.{layer}.ffn_up_exps.weight.counts");
        assert_eq!(serde_json::to_value(counts).unwrap(), expected[key]);
    }
    assert_eq!((histogram.total(), histogram.tokens), (4 * 2048, Some(512)));
    let Some(dat) = shared("formats/llama_imatrix.dat") else { return };
    let refused = Histogram::read(HistogramFormat::ImatrixDat, &[dat]).unwrap_err().to_string();
    assert!(refused.contains("not each expert's uses"), "{refused}");
}

#[test]
fn uses_need_the_models_shape() {
    let array = |values: &[f64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        crate::import::array::tests::npy("<f8", "(1, 2, 2)", &bytes)
    };
    let read = |values: &[f64]| {
        Histogram::from_bytes(HistogramFormat::MoeInfinity, "eam.npy", &array(values))
    };
    let histogram = read(&[3.0, 1.0, 0.0, 4.0]).unwrap();
    assert_eq!(histogram.uses(&Shape::uniform(2, 2, 1).unwrap()).unwrap(), [3, 1, 0, 4]);
    let wrong = |shape: Shape| histogram.uses(&shape).unwrap_err().to_string();
    assert_eq!(
        wrong(Shape::uniform(2, 3, 1).unwrap()),
        "model shape: eam.npy counts 2 experts in layer 0, the model has 3"
    );
    assert!(wrong(Shape::uniform(3, 2, 1).unwrap()).contains("has no counts of layer 2"));
    assert!(wrong(Shape::uniform(1, 2, 1).unwrap()).contains("counts 2 layers, the model has 1"));
    assert!(read(&[0.5, 1.0, 0.0, 4.0]).unwrap_err().to_string().contains("no whole count"));
    let dense = read(&[0.0, 0.0, 1.0, 4.0]).unwrap();
    assert_eq!(dense.per_layer().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    assert!(dense.notes[0].contains("layers 0 have no counts"));
    assert!(histogram.refusal().contains("not in which order"));
}

#[test]
fn every_format_is_registered_under_its_name() {
    for info in histogram_formats() {
        let format = HistogramFormat::from_name(info.name).unwrap();
        assert_eq!(format.info().name, info.name);
    }
    assert_eq!(HistogramFormat::from_name("lru"), None);
}

#[test]
fn counts_of_both_float_types_and_no_more_than_a_model_has() {
    use crate::testing::inputs::npy;
    let read = |bytes: &[u8]| Histogram::from_bytes(HistogramFormat::MoeInfinity, "a", bytes);
    let f64s: Vec<u8> = (0..8).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    let f32s: Vec<u8> = (0..8).flat_map(|n| (n as f32).to_le_bytes()).collect();
    let [wide, narrow] = [("<f8", &f64s), ("<f4", &f32s)]
        .map(|(kind, data)| read(&npy(kind, "(1, 2, 4)", data)).unwrap());
    assert_eq!(counts(&wide), counts(&narrow));
    assert_eq!(wide.total(), 28);
    let refused =
        read(&npy("<f4", "(1, 2000, 1000)", &vec![0; 8_000_000])).unwrap_err().to_string();
    assert!(refused.contains("2000 layers of 1000 experts"), "{refused}");
}

#[test]
fn ranks_of_other_models_are_not_added_up() {
    let folder = tempfile::tempdir().unwrap();
    for (rank, experts) in [(0, 8u64), (1, 4)] {
        let data: Vec<u8> = (0..experts).flat_map(u64::to_le_bytes).collect();
        let header = format!(
            "{{\"1_0\":{{\"dtype\":\"I64\",\"shape\":[{experts}],\"data_offsets\":[0,{}]}}}}",
            data.len()
        );
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
        std::fs::write(folder.path().join(format!("rank{rank}.safetensors")), bytes).unwrap();
    }
    let read = Histogram::read(HistogramFormat::TensorrtLlm, &[folder.path().to_owned()]);
    let refused = read.unwrap_err().to_string();
    assert!(refused.contains("layer 0 has 4 experts in one rank, 8 before"), "{refused}");
}
