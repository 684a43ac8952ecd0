//! `hotset live` where there is no GPU, and what is wrong with its flags anywhere.
#![cfg(feature = "cuda")]

use crate::common::{hotset, refused, stderr};

#[test]
fn where_there_is_no_gpu_every_command_says_so_in_one_line() {
    if hotset::live::attached().is_ok_and(|gpus| gpus > 0) {
        eprintln!("SKIPPED: there is a GPU");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out");
    let to = to.to_str().unwrap();
    for command in ["calibrate", "run", "check", "record"] {
        let output = hotset(&["live", command, "-o", to]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {error}");
        assert_eq!(error.lines().count(), 1, "{command}: {error}");
        assert!(error.contains("GPU"), "{command}: {error}");
        assert!(!folder.path().join("out").exists(), "{command} left something");
    }
}

#[test]
fn wrong_flags_are_told_before_a_gpu_is_asked_for() {
    for command in ["run", "check"] {
        refused(&["live", command, "--policy", "lrru"], &["lrru", "lru"]);
        refused(&["live", command, "--capacity", "0%"], &["0%"]);
        refused(&["live", command, "--links", "/nowhere/links.csv"], &["/nowhere/links.csv"]);
        refused(&["live", command, "--prefetch", "ahed"], &["ahed", "ahead"]);
    }
    refused(&["live", "check", "--most-error", "0%"], &["0%"]);
    refused(&["live", "run", "--miss", "balanced"], &["balanced", "--links"]);
    refused(&["live", "run", "--tokens", "0"], &["--tokens"]);
    let several = ["live", "record", "--policy", "lru,lfu", "-o", "/nowhere/x.jsonl"];
    refused(&several, &["one policy"]);
}

#[test]
fn what_no_engine_does_is_refused_by_name() {
    // The trace's experts are large enough; a row of them is not.
    let small = ["live", "run", "--expert-size", "3000"];
    refused(&small, &["3000", "3072"]);
}
