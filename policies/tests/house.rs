//! What a new policy still lacks is told here, with how to make it.

use std::path::{Path, PathBuf};
use std::process::Command;

use hotset_policies::{Need, POLICIES, PolicySpec};

/// (The scenarios are asked for by the `hotset` package's own tests.)
#[test]
fn every_policy_has_a_naive_reference() {
    let tests = include_str!("against_reference/mod.rs");
    for info in POLICIES.iter().filter(|info| info.needs != Need::Future) {
        let spec: PolicySpec = info.name.parse().unwrap();
        let debug = format!("{spec:?}");
        let policy = debug.split('(').next().unwrap();
        assert!(
            tests.contains(&format!("{policy}::")),
            "'{0}' is compared with no naive reference. Write its definition out plainly as \
             'Naive{policy}' in a file of policies/tests/against_reference/, and a test \
             'check_all(..{policy}::new.., Naive{policy}::new)' in its mod.rs. Then make its \
             scenarios: cargo run --example scenarios",
            info.name
        );
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `cargo fmt` does not see the modules that the list's macro makes.
#[test]
fn the_policies_files_are_formatted() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/eviction"), &mut files);
    assert!(files.len() > 30, "{files:?}");
    match Command::new("rustfmt").args(["--check", "--edition", "2024"]).args(&files).output() {
        Ok(done) => assert!(
            done.status.success(),
            "run: rustfmt --edition 2024 policies/src/eviction/*/{{,*/}}*.rs\n{}",
            String::from_utf8_lossy(&done.stdout)
        ),
        Err(absent) => println!("SKIPPED: no rustfmt ({absent})"),
    }
}
