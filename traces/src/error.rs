//! What can go wrong with a trace, as typed errors.
//!
//! Every message says what is wrong, where (file, section, array, line, token) and what to do.
//! Nothing read from outside may panic: it ends here.

use std::path::{Path, PathBuf};

/// Everything that this crate can refuse.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file operation.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was attempted, as a verb: `open`, `read`, `map`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// A model shape that cannot be.
    #[error("model shape: {problem}")]
    Shape {
        /// What is wrong, naming the layer.
        problem: String,
    },
    /// A column of the wrong length or kind, or one that contradicts another.
    #[error("column {column}: {problem}")]
    Column {
        /// The column's name.
        column: &'static str,
        /// What was expected and what was found.
        problem: String,
    },
    /// A token whose values are impossible (an absent expert, one chosen twice, a NaN weight).
    #[error("column {column}, token {token}{}: {problem}", at_layer(.layer))]
    Token {
        /// The column's name.
        column: &'static str,
        /// The token's row, from 0.
        token: usize,
        /// The layer's index in the shape, from 0, where the fault has one.
        layer: Option<usize>,
        /// What is wrong.
        problem: String,
    },
    /// A workload that cannot be, or that the trace cannot support.
    #[error("workload: {problem}")]
    Workload {
        /// What is wrong and what is possible.
        problem: String,
    },
    /// Not an `.hst` file at all.
    #[error(
        "{file}: not an .hst file ({problem}); import other formats with `hotset trace import`"
    )]
    NotHst {
        /// The file, or where the bytes came from.
        file: String,
        /// What gave it away.
        problem: String,
    },
    /// An `.hst` file of a later format version.
    #[error(
        "{file}: written by a newer hotset (version {version}, this one reads up to {supported}){note}; \
         update hotset or export the trace again"
    )]
    Newer {
        /// The file, or where the bytes came from.
        file: String,
        /// The version that the file states.
        version: u32,
        /// The newest version that this build reads.
        supported: u32,
        /// Empty, or that the preamble is damaged too.
        note: &'static str,
    },
    /// An `.hst` file that ends too early.
    #[error(
        "{file}: truncated in {section}: needs {needs} bytes, the file has {has}; copy it again"
    )]
    Truncated {
        /// The file, or where the bytes came from.
        file: String,
        /// The part of the file that is cut.
        section: String,
        /// Bytes that the file must have for this part.
        needs: u64,
        /// Bytes that it has.
        has: u64,
    },
    /// An `.hst` file with damaged or contradicting contents.
    #[error("{file}: {section}: {problem}")]
    Corrupt {
        /// The file, or where the bytes came from.
        file: String,
        /// The part of the file at fault.
        section: String,
        /// What is wrong.
        problem: String,
    },
    /// An `.hst` file that somebody wrote into while it was open.
    #[error(
        "{file}: it was changed while it was being read, so nothing of this run can be kept; leave inputs \
         alone while they are used"
    )]
    Changed {
        /// The file.
        file: String,
    },
    /// A file of another format that an importer refuses.
    #[error("{path}: {place}: {problem}", path = .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The array, line or column in it.
        place: String,
        /// What is wrong and what was expected.
        problem: String,
    },
}

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn at_layer(layer: &Option<usize>) -> String {
    layer.map(|layer| format!(", layer {layer}")).unwrap_or_default()
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: std::io::Error,
    ) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    pub(crate) fn shape(problem: impl Into<String>) -> Self {
        Self::Shape { problem: problem.into() }
    }

    pub(crate) fn column(column: &'static str, problem: impl Into<String>) -> Self {
        Self::Column { column, problem: problem.into() }
    }

    pub(crate) fn workload(problem: impl Into<String>) -> Self {
        Self::Workload { problem: problem.into() }
    }

    pub(crate) fn import(
        path: &Path,
        place: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Import { path: path.to_owned(), place: place.into(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place() {
        let error =
            Error::Token { column: "ids", token: 7, layer: Some(3), problem: "no".to_owned() };
        assert_eq!(error.to_string(), "column ids, token 7, layer 3: no");
        let error = Error::Token { column: "phase", token: 7, layer: None, problem: "no".into() };
        assert_eq!(error.to_string(), "column phase, token 7: no");
    }
}
