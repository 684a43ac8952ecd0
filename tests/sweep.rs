//! Sweeps: the same rows as a comparison, the same bytes however often they are killed, resumed
//! and spread over threads; and the controls, training and shuffling.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{hotset, json, refused, stderr, stdout};
use hotset::traces::{Codec, SynthConfig, synth, write_hst};

const FLAGS: [&str; 7] = [
    "sweep",
    "--policy",
    "lru,fifo,belady",
    "--capacity",
    "10%..50%:20%,128",
    "--scope",
    "global,layer",
];

/// A trace that is replayed in no time: prompts and answers over 3 layers of 16 experts.
fn small_trace(folder: &Path) -> String {
    let config = SynthConfig {
        layers: 3,
        experts: 16,
        top_k: 3,
        tokens: 400,
        sequence_tokens: 50,
        prompt_tokens: 20,
        ..SynthConfig::default()
    };
    let path = folder.join("small.hst");
    write_hst(&synth::generate(&config).unwrap(), &path, Codec::Raw).unwrap();
    path.to_str().unwrap().to_owned()
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&FLAGS[..], more].concat()
}

#[test]
fn its_rows_are_those_of_a_comparison() {
    let sweep = json(&FLAGS);
    let mut flags = FLAGS;
    flags[0] = "compare";
    assert_eq!(sweep["rows"], json(&flags)["rows"]);
    assert_eq!(sweep["schema"], "hotset/1");
    // A chord knee for each of 3 policies, 2 scopes, 2 phases and 2 links, unless it is a line.
    let knees = sweep["knees"].as_array().unwrap();
    assert!(knees.len() > 12, "{} knees", knees.len());
    assert!(knees.iter().all(|knee| knee["rule"] == "chord" && knee["price"] == "timeline"));
    let table = stdout(&FLAGS);
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
    assert!(table.contains("decode · layer scope · hit rate, %"), "{table}");
}

#[test]
fn lru_at_every_size_agrees_with_its_rows() {
    for semantics in ["event", "sequential"] {
        // Many sizes and no timeline: rows then come from the curve; few sizes are replayed.
        let flags =
            ["--policy", "lru", "--scope", "global,layer", "--phase", "decode", "--no-timeline"];
        let flags = [&flags[..], &["--semantics", semantics]].concat();
        let many = json(&[&["sweep", "--capacity", "4%..100%:4%"], &flags[..]].concat());
        let few = json(&[&["compare", "--capacity", "20%,48%,100%"], &flags[..]].concat());
        let rows = |report: &serde_json::Value| report["rows"].as_array().unwrap().clone();
        for row in rows(&few) {
            assert!(rows(&many).contains(&row), "no row {row}");
        }
        for row in rows(&many).iter().filter(|row| row["window"] == "all") {
            let slots = row["capacity_slots"].as_u64().unwrap();
            let curves = many["lru_curves"].as_array().unwrap();
            let curve = curves.iter().find(|curve| curve["scope"] == row["scope"]).unwrap();
            let part = |name: &str| curve[name].as_u64().unwrap();
            let Some(above) = slots.checked_sub(part("from_slots")) else { continue };
            let misses = &curve["misses"][(above / part("step_slots")) as usize];
            assert_eq!(*misses, row["misses"], "{semantics}, {slots} slots");
        }
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let bytes = |threads| {
        let more = ["--format", "json", "--phase", "decode", "--threads", threads];
        stdout(&with(&more))
    };
    assert_eq!(bytes("1"), bytes("2"));
}

/// The journal of one whole run, cut at every line and in the middle of each.
#[test]
fn a_resumed_sweep_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let path = journal.to_str().unwrap();
    let trace = small_trace(folder.path());
    let flags = ["sweep", &trace, "--policy", "lru,fifo,belady", "--scope", "global,layer"];
    let more = ["--capacity", "10%..50%:20%,9", "--expert-size", "2MiB", "--format", "json"];
    let flags = [&flags[..], &more].concat();
    let plain = stdout(&flags);
    let flags = [&flags[..], &["--resume", path]].concat();
    assert_eq!(stdout(&flags), plain, "with a journal");
    let whole = std::fs::read(&journal).unwrap();
    let ends: Vec<usize> =
        (0..whole.len()).filter(|&at| whole[at] == b'\n').map(|at| at + 1).collect();
    // All sizes but the global 24 have fewer slots than the 16 experts that a prompt needs of a layer.
    let replays = 24 + 8 + 7;
    assert_eq!(
        ends.len(),
        1 + replays,
        "a header, 3 policies at 8 sizes, bounds, those with bypass"
    );
    let mut start = 0;
    for end in ends {
        for length in [start, (start + end) / 2, end - 1] {
            std::fs::write(&journal, &whole[..length]).unwrap();
            assert!(stdout(&flags) == plain, "other bytes from a journal cut at {length}");
        }
        start = end;
    }
    // A finished journal: nothing is replayed again, nothing is written.
    let before = std::fs::read(&journal).unwrap();
    assert!(stdout(&flags) == plain);
    assert_eq!(std::fs::read(&journal).unwrap(), before);
}

#[test]
fn a_killed_sweep_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let path = journal.to_str().unwrap();
    let flags = ["sweep", "--policy", "lru,lfu", "--capacity", "10%..90%:20%", "--format", "json"];
    let flags = [&flags[..], &["--no-timeline", "--phase", "decode"]].concat();
    let plain = stdout(&flags);
    let flags = [&flags[..], &["--resume", path]].concat();
    let mut last = 0;
    for round in 0..50 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hotset"))
            .args(&flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(40 + 25 * round));
        // SIGKILL: no handler, no clean-up.
        child.kill().unwrap();
        child.wait().unwrap();
        let length = std::fs::metadata(&journal).map_or(0, |file| file.len());
        if length > last && last > 0 {
            break;
        }
        last = length;
    }
    assert!(stdout(&flags) == plain);
}

#[test]
fn a_journal_of_other_work_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let path = journal.to_str().unwrap();
    stdout(&with(&["--resume", path]));
    let before = std::fs::read(&journal).unwrap();
    refused(&with(&["--resume", path, "--phase", "decode"]), &["with other flags", path]);
    refused(&with(&["--resume", path, "--seed", "1"]), &["with other flags"]);
    let other = folder.path().join("shuffled.hst");
    let trace = other.to_str().unwrap();
    stdout(&["trace", "shuffle", "-o", trace]);
    refused(&with(&[trace, "--resume", path]), &["of another trace"]);
    assert_eq!(std::fs::read(&journal).unwrap(), before, "left as it was");
    // Neither threads nor format are part of the work.
    stdout(&with(&["--resume", path, "--threads", "1", "--format", "csv"]));
    let file = folder.path().join("a letter");
    std::fs::write(&file, "Dear reader,\n").unwrap();
    refused(&with(&["--resume", file.to_str().unwrap()]), &["not a hotset journal"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Dear reader,\n");
    let nowhere = Path::new("/nonexistent/journal").to_str().unwrap();
    refused(&with(&["--resume", nowhere]), &["cannot open it"]);
}

#[test]
fn an_adaptive_split_is_tested_on_other_sequences() {
    let flags = ["compare", "--scope", "layer,adaptive", "--policy", "lru", "--capacity", "256"];
    let report = json(&[&flags[..], &["--phase", "decode"]].concat());
    let split = &report["settings"]["split"];
    assert_eq!(split["training_sequences"], 24);
    assert_eq!(split["tested_sequences"], 24);
    let rows = report["rows"].as_array().unwrap();
    let all = |scope: &str| {
        let found = rows.iter().find(|row| row["scope"] == scope && row["window"] == "all");
        found.unwrap_or_else(|| panic!("no {scope} row"))
    };
    for scope in ["layer", "adaptive"] {
        assert_eq!(all(scope)["tokens"], 24 * 256, "the tested half alone");
        assert_eq!(all(scope)["capacity_slots"], 256);
    }
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("the last 24 sequences only"), "{warnings}");
    // The same part, whoever asks for it.
    let alone = ["compare", "--scope", "layer", "--policy", "lru", "--capacity", "256"];
    let tested = json(&[&alone[..], &["--phase", "decode", "--train", "50%"]].concat());
    assert_eq!(tested["rows"][0], *all("layer"));
    let static_top = json(&["compare", "--policy", "static", "--capacity", "25%"]);
    assert_eq!(static_top["settings"]["split"]["tested_sequences"], 24);
    refused(&["compare", "--train", "1%"], &["48 sequences", "at least one"]);
    refused(&["compare", "--train", "100%"], &["between 0% and 100%"]);
}

#[test]
fn shuffled_tokens_lose_their_locality_and_say_so() {
    let flags = ["compare", "--policy", "lru", "--capacity", "25%", "--phase", "decode"];
    let (plain, shuffled) = (json(&flags), json(&[&flags[..], &["--shuffle", "tokens"]].concat()));
    assert_ne!(plain["trace"]["digest"], shuffled["trace"]["digest"]);
    assert_eq!(shuffled["settings"]["shuffle"], "tokens");
    let hit_rate = |report: &serde_json::Value| report["rows"][0]["hit_rate"].as_f64().unwrap();
    assert!(
        hit_rate(&shuffled) < hit_rate(&plain) - 0.05,
        "{} of {}",
        hit_rate(&shuffled),
        hit_rate(&plain)
    );
    // The flag and the file are the same control.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.hst");
    let path = file.to_str().unwrap();
    let told = hotset(&["trace", "shuffle", "-o", path, "--seed", "0", "--zstd", "3"]);
    assert!(told.status.success(), "{}", stderr(&told));
    let from_file = json(&[&flags[..], &[path]].concat());
    assert_eq!(from_file["rows"], shuffled["rows"]);
    assert_eq!(from_file["trace"]["digest"], shuffled["trace"]["digest"]);
    stdout(&["trace", "validate", path]);
}

#[test]
fn sizes_are_ranges_and_what_is_no_size_is_told() {
    let small = ["sweep", "--scope", "layer", "--policy", "lru", "--no-timeline", "--capacity"];
    // 1% of 64 experts is no slot: left out, and said.
    let report = json(&[&small[..], &["1%..10%:3%,10%"]].concat());
    assert_eq!(report["settings"]["capacities"], serde_json::json!(["4%", "7%", "10%"]));
    assert!(report["warnings"].to_string().contains("1% is less than one slot"));
    refused(&[&small[..], &["1%"]].concat(), &["less than one slot"]);
    refused(&[&small[..], &["5%..50%"]].concat(), &["not a range", "5%..50%:5%"]);
    refused(&[&small[..], &["50%..150%:50%"]].concat(), &["more than all"]);
}
