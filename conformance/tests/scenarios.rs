//! The scenario files: as the reference policies make them, sound, and right where a person worked
//! the answer out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hotset_conformance::scenario::{Call, Mismatch, Planned, ScenarioFile, reference_files};
use hotset_policies::{POLICIES, PolicySpec};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scenarios")
}

fn read(name: &str) -> ScenarioFile {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{name}: {error}; run 'cargo run --example scenarios'"));
    ScenarioFile::from_text(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_files_are_the_ones_that_the_reference_makes() {
    let files = reference_files().unwrap();
    for (name, file) in &files {
        let stored = std::fs::read_to_string(folder().join(name)).unwrap_or_default();
        // Not assert_eq: two files of 27 KB in a panic help nobody.
        assert!(stored == file.text(), "{name} is another: run 'cargo run --example scenarios'");
        assert_eq!(ScenarioFile::from_text(&stored).unwrap(), *file, "{name}");
    }
    let made: BTreeSet<String> = files.into_iter().map(|(name, _)| name).collect();
    let stored: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(made, stored, "run 'cargo run --example scenarios'");
}

#[test]
fn every_file_runs_through_the_cache() {
    let mut scenarios = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let file = read(&name);
        assert_eq!(file.check(), Ok(()), "{name}");
        assert_eq!(file.mistake.is_some(), name.starts_with("engine-"), "{name}");
        scenarios += file.scenarios.len();
    }
    assert!(scenarios >= 60, "{scenarios} scenarios");
}

#[test]
fn every_policy_that_an_engine_can_run_has_a_file_with_hits_and_evictions() {
    for info in POLICIES {
        if !info.name.parse::<PolicySpec>().unwrap().is_online() {
            assert!(!folder().join(format!("{}.json", info.name)).exists());
            continue;
        }
        for scenario in read(&format!("{}.json", info.name)).scenarios {
            let plans = plans(&scenario.calls);
            let hits: usize = plans.iter().map(|plan| plan.hits.len()).sum();
            let fetches: usize = plans.iter().map(|plan| plan.fetches.len()).sum();
            assert!(hits > 10 && fetches > 10, "{}: {hits} hits, {fetches} fetches", info.name);
        }
    }
}

#[test]
fn a_wrong_answer_is_pinned_to_its_call() {
    let mut file = read("lru.json");
    let calls = &mut file.scenarios[0].calls;
    let (index, victim) = calls
        .iter_mut()
        .enumerate()
        .skip(40)
        .find_map(|(index, call)| match call {
            Call::Demand { plan, .. } => plan.fetches.first_mut().map(|fetched| (index, fetched)),
            _ => None,
        })
        .unwrap();
    victim.evicted = hotset_conformance::Evicted::Nobody;
    match file.check() {
        Err(Mismatch::Answer { index: found, expected, answered, .. }) => {
            assert_eq!(found, index);
            assert_ne!(expected, answered);
        }
        other => panic!("{other:?}"),
    }
    let unknown = read("lru.json").text().replacen("\"experts\":[", "\"experts\":[9,", 1);
    let error = ScenarioFile::from_text(&unknown).unwrap().check().unwrap_err();
    assert!(error.to_string().contains("names what the model does not have"), "{error}");
    let other = read("lru.json").text().replace("hotset-scenario/1", "hotset-scenario/9");
    assert!(matches!(ScenarioFile::from_text(&other).unwrap().check(), Err(Mismatch::Schema(_))));
}

fn plans(calls: &[Call]) -> Vec<&Planned> {
    let plan = |call| match call {
        &Call::Demand { ref plan, .. } | &Call::Prefetch { ref plan, .. } => Some(plan),
        _ => None,
    };
    calls.iter().filter_map(plan).collect()
}

/// Experts hit, fetched with who left (`-`: nobody), and without a slot.
fn told(plan: &Planned) -> String {
    let hits: Vec<String> = plan.hits.iter().map(|held| held.expert.to_string()).collect();
    let mut text = format!("hits {}", hits.join(" "));
    for fetched in &plan.fetches {
        let left = match fetched.evicted {
            hotset_conformance::Evicted::Expert(left) => left.expert.to_string(),
            _ => "-".to_owned(),
        };
        text += &format!(", {} for {left}", fetched.expert);
    }
    for expert in &plan.unplaced {
        text += &format!(", {expert} nowhere");
    }
    text
}

fn told_by(file: &str, scenario: usize) -> Vec<String> {
    plans(&read(file).scenarios[scenario].calls).into_iter().map(told).collect()
}

/// Worked out by hand, from the rules alone.
#[test]
fn nobody_leaves_for_another_of_the_same_event() {
    // FIFO: [0 1]; 0 is the oldest but needed, so 1 leaves for 2; then both leave, 0 first; then
    // 3 is the oldest but needed.
    let fifo = [
        "hits , 0 for -, 1 for -",
        "hits 0, 2 for 1",
        "hits , 3 for 0, 4 for 2",
        "hits 3, 5 for 4",
    ];
    assert_eq!(told_by("engine-evicts-needed.json", 0), fifo);
    // LRU: the hit of 0 comes before the miss of 2, and 3 is touched before 5 comes in.
    assert_eq!(told_by("engine-evicts-needed.json", 1), fifo);
    // LFU: 0 has two uses, 2 has one, so 2 leaves first; of 3 and 4, 3 is needed.
    let lfu = [
        "hits , 0 for -, 1 for -",
        "hits 0, 2 for 1",
        "hits , 3 for 2, 4 for 0",
        "hits 3, 5 for 4",
    ];
    assert_eq!(told_by("engine-evicts-needed.json", 2), lfu);
    // CLOCK: 0 has its bit set and goes round once, behind 2.
    assert_eq!(told_by("engine-evicts-needed.json", 3), lfu);
}

#[test]
fn duplicates_are_one_demand() {
    let expected = ["hits , 1 for -, 2 for -", "hits 2 1", "hits 1, 3 for 2"];
    assert_eq!(told_by("engine-duplicates.json", 0), expected);
}

#[test]
fn prefetches_are_told_apart() {
    let used = read("engine-prefetch-hit.json");
    let of_prefetch: Vec<usize> =
        plans(&used.scenarios[0].calls).into_iter().map(|plan| plan.prefetch_hits.len()).collect();
    assert_eq!(of_prefetch, [0, 1, 0]);
    let wasted: Vec<u32> =
        plans(&used.scenarios[1].calls).into_iter().map(|plan| plan.wasted).collect();
    assert_eq!(wasted, [0, 1]);
    // The prediction of 0 did not make it recent: it leaves before 1.
    assert_eq!(told_by("engine-prefetch-hit.json", 2)[3], "hits , 2 for 0");
}

#[test]
fn a_slot_in_flight_is_neither_read_nor_taken() {
    let file = read("engine-in-flight.json");
    let slots: Vec<Option<u32>> = file.scenarios[0]
        .calls
        .iter()
        .filter_map(|call| match call {
            Call::SlotOf { slot, .. } => Some(*slot),
            _ => None,
        })
        .collect();
    assert_eq!(slots, [None, Some(0)]);
    let pending: Vec<usize> =
        plans(&file.scenarios[1].calls).into_iter().map(|plan| plan.pending.len()).collect();
    assert_eq!(pending, [0, 1, 0]);
    let told = told_by("engine-in-flight.json", 2);
    assert_eq!(told, ["hits , 0 for -", "hits , 1 nowhere", "hits , 1 for 0"]);
}

#[test]
fn borrowed_and_lost_slots_are_not_hits() {
    let told = told_by("engine-borrowed-slots.json", 0);
    assert_eq!(told, ["hits , 0 for -, 1 for -", "hits , 2 for -, 3 for -", "hits 2, 0 for -"]);
    let refused: Vec<bool> = read("engine-resize.json").scenarios[0]
        .calls
        .iter()
        .filter_map(|call| match call {
            Call::Resize { refused, .. } => Some(*refused),
            _ => None,
        })
        .collect();
    // 3 is in flight, then the demand of 2 and 3 is open, then nothing holds it up.
    assert_eq!(refused, [true, true, false]);
    // Experts of 0 and 1 left, so 2 and 3 are hits from their new slots.
    assert_eq!(told_by("engine-resize.json", 0)[2], "hits 2 3");
    assert_eq!(told_by("engine-overflow.json", 0)[1], "hits 0, 2 nowhere, 3 nowhere, 4 nowhere");
}
