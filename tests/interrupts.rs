//! Ctrl-C: whatever work is under way ends within a second, says what it was, and leaves nothing.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::stderr;
use hotset::traces::{Codec, SynthConfig, synth, write_hst};

/// A trace whose replays and compression take many seconds.
fn long_trace(folder: &Path) -> String {
    let config = SynthConfig { layers: 24, tokens: 60_000, ..SynthConfig::default() };
    let path = folder.join("long.hst");
    write_hst(&synth::generate(&config).unwrap(), &path, Codec::Raw).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Interrupts a run once it is at work; how it ended, and how long that took.
fn interrupted(args: &[&str]) -> (Output, Duration) {
    let child = Command::new(env!("CARGO_BIN_EXE_hotset"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(900));
    let then = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    (output, then.elapsed())
}

#[test]
fn every_long_work_ends_soon_and_says_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let trace = long_trace(folder.path());
    let [out, journal] = ["out.hst", "journal"].map(|name| folder.path().join(name));
    let (out, journal) = (out.to_str().unwrap(), journal.to_str().unwrap());
    let policies = "td-logistic,td-table,lecar,lirs,lru-k";
    let each = [
        (
            vec!["replay", &trace, "--policy", "td-logistic", "--expert-size", "1MiB"],
            "hotset replay",
        ),
        (vec!["compare", &trace, "--policy", policies, "--no-timeline"], "hotset compare"),
        (vec!["sweep", &trace, "--policy", policies, "--resume", journal], "hotset sweep"),
        (vec!["trace", "shuffle", &trace, "-o", out, "--zstd", "19"], "hotset trace shuffle"),
        (
            vec!["experiment", "prefetch", &trace, "--expert-size", "1MiB"],
            "hotset experiment prefetch",
        ),
    ];
    for (args, name) in each {
        let (output, took) = interrupted(&args);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?} gave a result");
        let told = format!("interrupted; nothing was written ({name})\n");
        assert_eq!(error.matches(&told).count(), 1, "{args:?}: {error}");
        let goes_on = error.contains("the same command goes on with what ");
        assert_eq!(goes_on, name == "hotset sweep", "{error}");
        // A second, and what a busy machine takes to end a process.
        assert!(took < Duration::from_secs(3), "{args:?} took {took:?}");
        let left = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name != "long.hst" && name != "journal").collect();
        assert!(left.is_empty(), "{args:?} left {left:?}");
    }
}
