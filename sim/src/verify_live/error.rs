//! Why live points cannot be checked.

use std::path::PathBuf;

use thiserror::Error;

use crate::SimError;

/// Why live points cannot be checked.
#[derive(Debug, Error)]
pub enum LiveError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A column is missing.
    #[error("{}: there is no column '{column}'", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A row is wrong.
    #[error("{}, line {line}: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// Routes are absent or do not fit their point.
    #[error("routes of a live point, {}: {problem}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The machine lacks what the prediction needs.
    #[error("the profile of machine '{machine}' has no {what}, which live points need")]
    Machine {
        /// The machine.
        machine: String,
        /// What is missing.
        what: &'static str,
    },
    /// The setting cannot be replayed.
    #[error("point {point}: {source}")]
    Replay {
        /// The setting.
        point: String,
        /// Why.
        source: SimError,
    },
}
