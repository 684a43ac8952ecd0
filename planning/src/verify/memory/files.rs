//! Files that reports of the same log describe: a load log prints a file's tensor types once.

use std::collections::HashMap;

use super::super::MemoryRow;

/// What reports say of files, by source, model and format.
#[derive(Debug, Default)]
pub struct Files(HashMap<(String, String, String), File>);

/// A file of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct File {
    /// The format with its table of types.
    pub table: Option<String>,
    /// Its bytes.
    pub bytes: Option<f64>,
}

impl Files {
    /// Of all rows of memory.
    #[must_use]
    pub fn of(rows: &[MemoryRow]) -> Self {
        let mut files = Self::default();
        for row in rows.iter().filter(|row| row.kind == "file_size" && !row.source.is_empty()) {
            let file = files.0.entry(key(row)).or_default();
            if row.format.contains('[') {
                file.table.get_or_insert_with(|| row.format.clone());
            }
            let unit = match row.unit.as_str() {
                "bytes" => 1.0,
                "MiB" => f64::from(1 << 20),
                "GiB" => f64::from(1 << 30),
                _ => continue,
            };
            file.bytes.get_or_insert(row.value * unit);
        }
        files
    }

    pub(super) fn get(&self, row: &MemoryRow) -> Option<&File> {
        self.0.get(&key(row))
    }
}

fn key(row: &MemoryRow) -> (String, String, String) {
    let format = row.format.split('[').next().unwrap_or_default().trim().to_owned();
    (row.source.clone(), row.model.clone(), format)
}
