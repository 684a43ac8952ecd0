//! Published figures and golden counts, reached by replaying recorded traces.

use crate::common::shared;
use hotset::policies::{PolicySpec, Slots};
use hotset::sim::{Futures, PREFILL_CHUNK, PhaseFilter, Semantics, Setting, Steps, Window, replay};
use hotset::traces::{Format, ImportOptions, Phase, Trace, import};

fn misses(trace: &Trace, policy: &str, slots: u32) -> (u64, u64) {
    let steps = Steps::of(trace, PREFILL_CHUNK);
    let phase = PhaseFilter::Decode;
    let futures = Futures::new(trace, &steps, Semantics::Sequential, phase);
    let setting = Setting {
        semantics: Semantics::Sequential,
        phase,
        ..Setting::new(policy.parse::<PolicySpec>().unwrap(), Slots::Global(slots))
    };
    let bucket =
        replay(trace, &steps, &futures, &setting).unwrap().bucket(Phase::Decode, Window::All);
    (bucket.misses(), bucket.accesses)
}

/// `residency-curve`: FreeToken on one A100 misses 9.0% on gpt-oss-20b with half of the experts
/// resident. The set here is four fifths of the public one.
#[test]
fn residency_curve_of_gpt_oss_20b() {
    let Some(experts) = shared("data/gpt-oss-20b/experts.npy") else { return };
    let trace = import(Format::Npy, experts, &ImportOptions::default()).unwrap();
    let (misses, accesses) = misses(&trace, "lru", 384);
    assert_eq!((misses, accesses), (1_467_761, 16_191_072));
    let percent = 100.0 * misses as f64 / accesses as f64;
    assert!((percent - 9.0).abs() <= 0.5, "{percent}% of accesses miss, the receipt says 9.0");
}

/// The golden counts of libCacheSim, through import and replay.
#[test]
fn golden_counts_through_the_whole_path() {
    let Some(golden) = shared("golden") else { return };
    for sequence in ["moe_global", "moe_layer17", "zipf", "loopscan"] {
        let path = golden.join(format!("{sequence}.txt"));
        let trace = import(Format::Ids, path, &ImportOptions::default()).unwrap();
        let table = std::fs::read_to_string(golden.join(format!("{sequence}.csv"))).unwrap();
        let mut rows = 0;
        for row in table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()) {
            let policy = row[0].to_lowercase();
            if ["fifo", "lru", "lfu", "clock", "belady"].contains(&policy.as_str()) {
                let expected = (row[3].parse().unwrap(), row[2].parse().unwrap());
                assert_eq!(misses(&trace, &policy, row[1].parse().unwrap()), expected, "{row:?}");
                rows += 1;
            }
        }
        assert_eq!(rows, 25, "{sequence}");
    }
}
