//! The shared folder of data and golden figures, where there is one.
//!
//! It is found beside the workspace or where `HOTSET_SHARED` says. Without it the tests that need it say so and
//! pass, but on continuous integration (`CI` set) its absence is a failure.
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file or folder in the shared folder, or `None` (said loudly) where it is missing.
pub fn shared(inside: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let root = std::env::var_os("HOTSET_SHARED").map_or(beside, PathBuf::from);
    let path = root.join(inside);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs {}", path.display());
    // Not eprintln!: the test runner would keep that to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is absent", path.display());
    None
}

/// The receipts of `receipts/seeds.toml`.
pub fn seeds() -> Option<Vec<toml::Value>> {
    let text = std::fs::read_to_string(shared("receipts/seeds.toml")?).expect("readable seeds");
    let seeds: toml::Table = toml::from_str(&text).expect("seeds are TOML");
    Some(seeds["receipt"].as_array().expect("a list of receipts").clone())
}
