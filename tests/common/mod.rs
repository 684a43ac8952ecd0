//! What the tests of the whole share: running the binary, and finding `../shared`.

pub mod console;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs `hotset` with these arguments.
pub fn hotset(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotset")).args(args).output().expect("the binary runs")
}

/// The same in a folder.
pub fn hotset_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotset"));
    command.args(args).current_dir(folder).output().expect("the binary runs")
}

/// Standard output of a run that must succeed.
pub fn stdout(args: &[&str]) -> String {
    let output = hotset(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// What a run wrote to standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON of a run that must succeed.
pub fn json(args: &[&str]) -> serde_json::Value {
    let args = [args, &["--format", "json"]].concat();
    serde_json::from_str(&stdout(&args)).expect("output is JSON")
}

/// Exit code 2 and an error that says all of `parts`.
pub fn refused(args: &[&str], parts: &[&str]) {
    let output = hotset(args);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?} was not refused: {error}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    assert!(!error.contains("panicked"), "{error}");
    for part in parts {
        assert!(error.contains(part), "{args:?} does not say '{part}': {error}");
    }
}

/// A file or folder of `../shared`; `None`, loudly, where it is absent.
pub fn shared(relative: &str) -> Option<PathBuf> {
    hotset::traces::testing::shared(relative)
}

/// Counts of 16 layers of 64 experts as MoE-Infinity keeps them, `.npy` of doubles.
pub fn counts_file(path: &std::path::Path, counts: impl Iterator<Item = f64>) {
    let header =
        format!("{:<117}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 16, 64), }");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    counts.for_each(|count| bytes.extend(count.to_le_bytes()));
    std::fs::write(path, bytes).unwrap();
}
