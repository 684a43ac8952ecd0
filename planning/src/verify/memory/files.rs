//! Files that reports of the same log describe: a load log prints a file's tensor types once.

use std::collections::HashMap;

use super::super::MemoryRow;
use super::super::settings::Told;

/// What reports say of files and runs, by source, model and format.
#[derive(Debug, Default)]
pub struct Files {
    files: HashMap<Key, File>,
    /// By settings too: notes of rows that say where weights are.
    placed: HashMap<(Key, String), String>,
}

type Key = (String, String, String);

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
            let file = files.files.entry(key(row)).or_default();
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
        for row in rows.iter().filter(|row| !row.source.is_empty()) {
            if Told::of(&row.notes, "").placement.is_some() {
                let run = (key(row), row.settings.clone());
                files.placed.entry(run).or_insert_with(|| row.notes.clone());
            }
        }
        files
    }

    pub(super) fn get(&self, row: &MemoryRow) -> Option<&File> {
        self.files.get(&key(row))
    }

    /// Notes of this run that say where weights are: the row's own, else those of another row of its log.
    pub(super) fn notes(&self, row: &MemoryRow) -> String {
        if Told::of(&row.notes, "").placement.is_some() || row.source.is_empty() {
            return row.notes.clone();
        }
        let of_run = self.placed.get(&(key(row), row.settings.clone()));
        of_run.map_or_else(|| row.notes.clone(), |notes| format!("{}; {notes}", row.notes))
    }
}

fn key(row: &MemoryRow) -> Key {
    let format = row.format.split('[').next().unwrap_or_default().trim().to_owned();
    (row.source.clone(), row.model.clone(), format)
}
