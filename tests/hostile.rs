//! What others do to files while they are used, and files that are not what they say: a sentence
//! and an exit code, nothing wrong kept, nothing lost.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{hotset, json, refused, stderr, stdout};
use hotset::traces::{
    Codec, Ids, LayerShape, Shape, SynthConfig, Trace, TraceBuilder, synth, write_hst,
};
use xxhash_rust::xxh3::xxh3_64;

fn trace(path: &Path, tokens: usize, seed: u64) -> String {
    let config =
        SynthConfig { layers: 6, experts: 32, top_k: 4, tokens, seed, ..Default::default() };
    write_hst(&synth::generate(&config).unwrap(), path, Codec::Raw).unwrap();
    path.to_str().unwrap().to_owned()
}

/// One stray id made the default comparison abort: td-table would take 16 GiB and more.
#[test]
fn a_stray_id_costs_one_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stray.hst");
    let layer = |number| LayerShape { number, experts: 65_536, top_k: 1, expert_bytes: 1 << 20 };
    let shape = Shape::new(vec![layer(0), layer(1)]).unwrap();
    let ids = vec![3, 1, 65_535, 2, 3, 1, 4, 2];
    let stray = TraceBuilder::new("stray", shape, Ids::U16(ids)).build().unwrap();
    write_hst(&stray, &path, Codec::Raw).unwrap();
    let path = path.to_str().unwrap();
    let flags = ["compare", path, "--capacity", "25%", "--no-timeline"];
    let report = json(&[&flags[..], &["--policy", "lru,td-table"]].concat());
    let rows = report["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["policy"] == "lru"));
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("policy 'td-table'") && warnings.contains("left out"), "{warnings}");
    let output = hotset(&flags);
    assert_eq!(output.status.code(), Some(0), "the default comparison: {}", stderr(&output));
    let told = stderr(&hotset(&[&flags[..], &["--policy", "lru,td-table"]].concat()));
    assert!(told.contains("--policy-memory"), "{told}");
    refused(&[&flags[..], &["--policy", "td-table"]].concat(), &["td-table", "--policy-memory"]);
    let small = ["--policy", "lru,fifo", "--policy-memory", "1KiB"];
    refused(&[&flags[..], &small].concat(), &["policy 'lru'", "may take 1024"]);
}

/// Rewritten and truncated while a sweep runs: the results are those of what was opened.
#[test]
fn a_trace_that_is_changed_during_a_sweep_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [trace_at, other_at, journal] =
        ["trace.hst", "other.hst", "journal"].map(|name| folder.path().join(name));
    let path = trace(&trace_at, 20_000, 1);
    trace(&other_at, 20_000, 2);
    let good = std::fs::read(&trace_at).unwrap();
    let other = std::fs::read(&other_at).unwrap();
    let flags = ["sweep", &path, "--policy", "lfu,lirs,arc", "--capacity", "10%..90%:20%"];
    let flags = [&flags[..], &["--expert-size", "1MiB", "--format", "json"]].concat();
    let plain = stdout(&flags);
    let resumed = [&flags[..], &["--resume", journal.to_str().unwrap()]].concat();
    for bytes in [&other[..], &good[..200]] {
        std::fs::write(&trace_at, &good).unwrap();
        let _ = std::fs::remove_file(&journal);
        let child = Command::new(env!("CARGO_BIN_EXE_hotset"))
            .args(&resumed)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !journal.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::write(&trace_at, bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}: {}", output.status, stderr(&output));
        assert!(output.stdout == plain.as_bytes(), "results of other bytes");
        std::fs::write(&trace_at, &good).unwrap();
        assert!(stdout(&resumed) == plain, "other results were kept");
    }
    std::fs::write(&trace_at, &good[..200]).unwrap();
    refused(&resumed, &["truncated"]);
}

/// Another routing under the digests of a known one.
#[test]
fn digests_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let [good, forged] = ["good.hst", "forged.hst"].map(|name| folder.path().join(name));
    let path = trace(&good, 500, 1);
    let journal = folder.path().join("journal");
    let flags = ["--policy", "lru", "--capacity", "25%", "--expert-size", "1MiB"];
    let resumed = ["--resume", journal.to_str().unwrap()];
    stdout(&[&["sweep", &path], &flags[..], &resumed].concat());
    trace(&forged, 500, 2);
    let digests = |path: &Path| {
        let trace = Trace::open(path).unwrap();
        [trace.digest().to_owned(), trace.content_digest().to_owned()]
    };
    let bytes = under_digests(std::fs::read(&forged).unwrap(), &digests(&forged), &digests(&good));
    std::fs::write(&forged, bytes).unwrap();
    let forged = forged.to_str().unwrap();
    let told = ["column digest: the file states"];
    refused(&[&["compare", forged], &flags[..]].concat(), &told);
    refused(&[&["sweep", forged], &flags[..], &resumed].concat(), &told);
}

/// An `.hst` file with its digests replaced and every checksum made right again.
fn under_digests(mut bytes: Vec<u8>, own: &[String], stated: &[String]) -> Vec<u8> {
    let header = 64 + u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    for (own, stated) in own.iter().zip(stated) {
        let at = bytes[..header].windows(32).position(|text| text == own.as_bytes()).unwrap();
        bytes[at..at + 32].copy_from_slice(stated.as_bytes());
    }
    let sum = xxh3_64(&bytes[64..header]);
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    let sum = xxh3_64(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// A disk that fills up while threads write the journal.
#[cfg(unix)]
#[test]
fn a_journal_on_a_full_disk_keeps_what_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(&folder.path().join("trace.hst"), 2000, 1);
    let journal = folder.path().join("journal");
    let journal = journal.to_str().unwrap();
    let flags = ["sweep", &path, "--policy", "lru,fifo,sieve", "--capacity", "10%..90%:20%"];
    let flags = [&flags[..], &["--expert-size", "1MiB", "--format", "json"]].concat();
    let plain = stdout(&flags);
    let resumed = [&flags[..], &["--resume", journal]].concat();
    // A file may not become longer than this many KiB: a write then ends in the middle of a line.
    for most in [1, 5, 9, 16] {
        let limited = format!("trap '' XFSZ; ulimit -f {most}; exec \"$0\" \"$@\"");
        let output = Command::new("bash")
            .args(["-c", &limited, env!("CARGO_BIN_EXE_hotset")])
            .args(&resumed)
            .output()
            .unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("cannot write it") && error.contains("goes on with"), "{error}");
        let text = std::fs::read_to_string(journal).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "a torn line was left");
    }
    assert!(stdout(&resumed) == plain);
}

#[cfg(unix)]
#[test]
fn devices_and_folders_are_no_journals() {
    for path in ["/dev/zero", "/dev/null", "/"] {
        refused(&["sweep", "--policy", "lru", "--resume", path], &[path]);
    }
}
