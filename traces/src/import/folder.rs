//! Folders: which of their files are inputs, and in which order.

use std::path::PathBuf;

use super::info::{FormatInfo, Importer};
use crate::error::{Error, Result};

/// Files that lie beside ids and are not ids.
pub(super) const BESIDE: [&str; 2] = ["weights_bf16.npy", "weights.npy"];

/// Folders as the files in them.
pub(super) fn expand(info: &FormatInfo, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() || matches!(info.importer, Importer::Folder(_) | Importer::Parts(_)) {
            all.push(path.clone());
            continue;
        }
        let io = |e| Error::io("read the folder", path, e);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io)? {
            let file = entry.map_err(io)?.path();
            let extension = file.extension().and_then(|text| text.to_str()).unwrap_or_default();
            let beside = BESIDE.iter().any(|name| file.ends_with(name));
            if file.is_file() && !beside && info.extensions.contains(&extension) {
                files.push(file);
            }
        }
        if files.is_empty() {
            let wanted = info.extensions.join(", .");
            return Err(Error::import(
                path,
                "folder",
                format!("has no file that ends in .{wanted}"),
            ));
        }
        files.sort_by_cached_key(|file| natural(&file.to_string_lossy()));
        all.extend(files);
    }
    Ok(all)
}

/// A key by which numbers in names are compared as numbers.
pub(super) fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        key.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    key
}
