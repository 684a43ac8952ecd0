//! For tests only: where the shared data lie.
//!
//! Tests that need recorded traces ask here, and skip loudly on a machine that lacks them.

use std::path::PathBuf;

/// The shared folder's entry `relative`, or `None`, loudly, where this machine has no such folder.
///
/// Looked for in `HOTSET_SHARED`, else in `shared` beside the repository.
///
/// # Panics
/// Where the entry is absent and the environment has `CI`: there the data must be.
pub fn shared(relative: &str) -> Option<PathBuf> {
    let root = std::env::var_os("HOTSET_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let path = root.join(relative);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "CI lacks {}: set HOTSET_SHARED", path.display());
    eprintln!("SKIPPED: {} is absent; set HOTSET_SHARED to the shared folder", path.display());
    None
}
