//! The recorded sets, imported: what comes out is what NumPy reads from the same files (the
//! expected values were computed with it, apart from this code).

use hotset_traces::testing::shared;
use hotset_traces::{
    Codec, Format, ImportOptions, Phase, ReuseHistogram, Spread, Stats, Trace, WeightColumn,
    import, write_hst,
};

fn recorded(format: Format, relative: &str) -> Option<Trace> {
    shared(relative).map(|path| import(format, path, &ImportOptions::default()).unwrap())
}

fn by_phase(trace: &Trace) -> [usize; 3] {
    Phase::ALL.map(|phase| trace.phases().iter().filter(|&&p| p == phase as u8).count())
}

fn entry(trace: &Trace, ahead: usize, token: usize, layer: usize) -> Vec<u32> {
    trace.predictions().unwrap().entry(ahead, token, layer).iter().collect()
}

fn bytes_of(trace: &Trace) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.hst");
    write_hst(trace, &path, Codec::Zstd(3)).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn h200_moe() {
    let Some(trace) = recorded(Format::Npz, "data/h200-moe/routes.npz") else { return };
    assert_eq!(trace.name(), "hotset-proving MoE (16 layers, 64 experts, top-8, d_model 512)");
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
    let Some(WeightColumn::U8(weights)) = trace.weights() else { panic!("weights of one byte") };
    assert_eq!(weights[..8], [128, 34, 24, 18, 14, 13, 12, 11]);
    assert_eq!(entry(&trace, 0, 0, 0), [255; 8]);
    assert_eq!(entry(&trace, 0, 0, 1), [52, 59, 56, 33, 49, 11, 30, 10]);
    assert_eq!(trace.predictions().unwrap().experts(0, 0, 0).count(), 0);
    assert_eq!(trace.token_ids().unwrap()[..3], [44, 994, 517]);
    let embeddings = trace.embeddings().unwrap();
    let bits = |values: &[half::f16]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&embeddings.input(95)[..3]), [39_503, 8058, 40_189]);
    assert_eq!(bits(&embeddings.output(95)[510..]), [48_469, 48_556]);
    trace.validate().unwrap();
}

#[test]
fn importing_and_storing_twice_gives_the_same_bytes() {
    let Some(trace) = recorded(Format::Npz, "data/h200-moe/routes.npz") else { return };
    let again = recorded(Format::Npz, "data/h200-moe/routes.npz").unwrap();
    let bytes = bytes_of(&trace);
    assert!(bytes == bytes_of(&again));
    let opened = Trace::from_bytes(bytes).unwrap();
    assert!(opened == trace);
    opened.validate().unwrap();
}

#[test]
fn statistics_of_h200_moe() {
    let Some(trace) = recorded(Format::Npz, "data/h200-moe/routes.npz") else { return };
    let stats = Stats::of(&trace);
    assert_eq!(stats.accesses, 5_505_024);
    assert_eq!(stats.locality, Some(1_100_182.0 / 3_145_728.0));
    assert_eq!(stats.popularity.top_10_percent, 1_012_294.0 / 5_505_024.0);
    assert_eq!(stats.popularity.top_25_percent, 2_038_557.0 / 5_505_024.0);
    assert!((stats.popularity.normalised_entropy - 0.983_158_254_260_640_7).abs() < 1e-12);
    assert_eq!(stats.distinct_experts, Spread { min: 64, mean: 64.0, max: 64 });
    let mean = 97_321.0 / 1536.0;
    assert_eq!(stats.distinct_experts_in_sequence, Spread { min: 45, mean, max: 64 });
    assert_eq!(stats.sequence_tokens, Spread { min: 448, mean: 448.0, max: 448 });
    assert_eq!(stats.sequences_with_repetition, None);
}

#[test]
fn h200_two_turn() {
    let Some(trace) = recorded(Format::Npz, "data/h200-two-turn/routes.npz") else { return };
    assert_eq!((trace.tokens(), trace.sequences().len()), (20_480, 40));
    assert_eq!(trace.shape().as_uniform(), Some((128, 8)));
    assert_eq!(by_phase(&trace), [10_240, 10_240, 0]);
    // Two turns: prompt 192, answer 128, second text 64, answer 128.
    let runs: Vec<usize> = trace.phases()[..512].chunk_by(|a, b| a == b).map(<[u8]>::len).collect();
    assert_eq!(runs, [192, 128, 64, 128]);
    assert_eq!(trace.sequences()[39].prompt_tokens, 192);
    assert_eq!(trace.predictions().map(|p| (p.lookaheads, p.width)), Some((2, 8)));
    assert_eq!(entry(&trace, 1, 0, 1), [255; 8]);
    assert_eq!(entry(&trace, 1, 0, 2), [35, 29, 69, 17, 49, 126, 64, 42]);
    assert_eq!(entry(&trace, 0, 5, 3), [3, 32, 1, 28, 47, 91, 56, 2]);
    assert_eq!(entry(&trace, 1, 20_479, 23), [92, 10, 21, 49, 33, 0, 61, 12]);
    assert!(trace.layer_ids(20_479, 23).iter().eq([92, 10, 21, 49, 33, 12, 76, 26]));
    trace.validate().unwrap();
}

#[test]
fn gpt_oss_20b() {
    let Some(trace) = recorded(Format::Npy, "data/gpt-oss-20b/experts.npy") else { return };
    assert_eq!((trace.tokens(), trace.sequences().len()), (168_657, 563));
    assert_eq!((trace.shape().as_uniform(), trace.shape().layers().len()), (Some((32, 4)), 24));
    assert_eq!(by_phase(&trace), [0, 168_657, 0]);
    assert!(trace.layer_ids(0, 0).iter().eq([31, 21, 22, 6]));
    assert!(trace.layer_ids(0, 23).iter().eq([14, 19, 1, 23]));
    assert!(trace.layer_ids(168_656, 23).iter().eq([16, 28, 31, 14]));
    let weights = trace.weights().unwrap();
    assert_eq!(weights.precision(), "bf16");
    let first: Vec<f32> = (0..4).map(|i| weights.get(i)).collect();
    assert_eq!(first, [0.496_093_75, 0.176_757_81, 0.170_898_44, 0.156_25]);
    let Some(second) = trace.sequences().get(1) else { panic!("a second sequence") };
    assert_eq!(second.label, "Polyglot-or-Not_Fact-Completion/fact_checking");
    assert_eq!((second.rows.clone(), second.prompt_tokens), (511..1022, 97));
    assert_eq!(second.has_repetition, Some(true));
    let last = &trace.sequences()[562];
    assert_eq!(last.rows, 168_417..168_657);
    let loops = trace.sequences().iter().filter(|s| s.has_repetition == Some(true)).count();
    assert_eq!(loops, 163);
    assert!(trace.provenance().contains(r#""experts_from":"inferred: highest id + 1""#));
    let opened = Trace::from_bytes(bytes_of(&trace)).unwrap();
    assert!(opened == trace);
}

#[test]
fn arrays_of_live_runs() {
    let Some(trace) = recorded(Format::Npy, "data/live/h200-moe_1020.npy") else { return };
    assert_eq!((trace.tokens(), trace.sequences().len()), (1020, 1));
    assert_eq!((trace.shape().as_uniform(), trace.weights().is_none()), (Some((64, 8)), true));
}

/// Reuse distances against another program's LRU: libCacheSim's miss counts at every size.
#[test]
fn golden_lru_misses() {
    for name in ["moe_global", "moe_layer17", "zipf", "loopscan"] {
        let Some(trace) = recorded(Format::Ids, &format!("golden/{name}.txt")) else { return };
        let histogram = ReuseHistogram::of(&trace);
        let golden = shared(&format!("golden/{name}.csv")).expect("it lies beside the text");
        let mut checked = 0;
        for record in csv::Reader::from_path(golden).unwrap().records() {
            let record = record.unwrap();
            if &record[0] != "LRU" {
                continue;
            }
            let [size, requests, misses] = [1, 2, 3].map(|i| record[i].parse::<u64>().unwrap());
            assert_eq!(histogram.accesses(), requests);
            assert_eq!(requests - histogram.lru_hits(size as usize), misses, "{name}, {size}");
            checked += 1;
        }
        assert_eq!(checked, 5, "{name}");
    }
}
