//! Two results held against each other.

use std::path::Path;

use crate::common::{hotset, json, refused, stdout};
use serde_json::Value;

fn write(path: &Path, result: &Value) -> String {
    std::fs::write(path, serde_json::to_vec(result).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_planted_miss_is_found_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["compare", "--policy", "lru,belady", "--capacity", "25%", "--link", "h200-pcie"];
    let before = json(&flags);
    let mut after = before.clone();
    let decode = |row: &&mut Value| row["phase"] == "decode" && row["window"] == "all";
    let row = after["rows"].as_array_mut().unwrap().iter_mut().find(decode).unwrap();
    let misses = row["misses"].as_u64().unwrap();
    row["misses"] = (misses + 1).into();
    let [one, same, planted] = ["one", "same", "planted"].map(|name| folder.path().join(name));
    let [one, same] = [one, same].map(|path| write(&path, &before));
    let planted = write(&planted, &after);

    assert!(stdout(&["diff", &one, &same]).starts_with("nothing differs: "));
    let output = hotset(&["diff", &one, &planted]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    for part in ["1 value differs", "policy=lru", "decode", "misses", &(misses + 1).to_string()] {
        assert!(told.contains(part), "no '{part}' in {told}");
    }
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let output = hotset(&["diff", &one, &planted, "--format", "markdown"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("### 1 value differs") && told.contains("| misses |"), "{told}");
    let output = hotset(&["diff", &one, &planted, "--format", "json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["same"], false);
    assert_eq!(told["changes"][0]["after"], misses + 1);
    // One of so many is less than a hundredth of a percent, and more than a millionth.
    assert!(misses > 10_000 && misses < 100_000_000);
    assert!(stdout(&["diff", &one, &planted, "--tolerance", "0.01%"]).contains("1 within it"));
    assert_eq!(
        hotset(&["diff", &one, &planted, "--tolerance", "0.000001%"]).status.code(),
        Some(1)
    );
}

#[test]
fn ways_to_handle_misses_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["compare", "--policy", "lru", "--capacity", "25%", "--link", "h200-pcie"];
    let result = |misses: &str| {
        let path = folder.path().join(misses.replace(',', "-"));
        write(&path, &crate::common::json(&[&few[..], &["--miss", misses]].concat()))
    };
    let (one, other) = (result("fetch,host"), result("host,fetch"));
    let told = hotset(&["diff", &one, &other, "--format", "json"]).stdout;
    let told: Value = serde_json::from_slice(&told).unwrap();
    let changes = told["changes"].as_array().unwrap();
    assert!(!changes.is_empty() && changes.iter().all(|change| change["of"] == ""), "{changes:?}");
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [text, other] = ["text", "other"].map(|name| folder.path().join(name));
    let other = write(&other, &serde_json::json!({ "a": 1 }));
    std::fs::write(&text, "policy,hits\n").unwrap();
    let text = text.to_str().unwrap();
    refused(&["diff", text, &other], &["text", "not a result in JSON"]);
    refused(&["diff", &other, &other], &["other", "schema", "--format json"]);
    refused(&["diff", "nowhere.json", &other], &["nowhere.json"]);
    refused(&["diff", &other, &other, "-o", &other], &["other"]);
}
