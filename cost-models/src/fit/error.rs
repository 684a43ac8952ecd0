//! Why measurements were refused.
//!
//! A fit never guesses around a broken file: it says which rows or columns are wrong and what would be right.

use thiserror::Error;

/// Measurements that cannot be fitted.
#[derive(Debug, Error)]
pub enum FitError {
    /// The text is not CSV.
    #[error("the links file cannot be read: {0}")]
    Csv(#[from] csv::Error),
    /// The header lacks columns.
    #[error("the links file lacks the columns {}; it needs {}", missing.join(", "), needed.join(","))]
    MissingColumns {
        /// Which.
        missing: Vec<String>,
        /// All that there must be.
        needed: &'static [&'static str],
    },
    /// A row holds a value that no measurement gives.
    #[error("links file, line {line}: {why}")]
    BadRow {
        /// Line in the file, from 1.
        line: u64,
        /// What is wrong and what would be right.
        why: String,
    },
    /// There are no rows, or none that measure a link.
    #[error("the links file has no measurement of a link")]
    NoLinks,
    /// There are no rows of reads.
    #[error("the file has no measurement of a read")]
    NoReads,
    /// Reads at a rate that no disk has, and that no profile may say.
    #[error(
        "reads of {bytes} bytes come out at {rate}, and a disk gives 0.1 MB/s to 10 TB/s: are `seconds` in \
         seconds, for the whole batch, and sizes in bytes?"
    )]
    DiskRate {
        /// Bytes of a request.
        bytes: u64,
        /// The rate with its unit.
        rate: String,
    },
    /// A link's mode has too few points for a curve.
    #[error("{link}, {mode}: {why}")]
    TooFewPoints {
        /// The link.
        link: String,
        /// The mode.
        mode: String,
        /// What is missing.
        why: String,
    },
    /// The text is not a FreeToken calibration.
    #[error("the calibration is not valid JSON of the expected fields: {0}")]
    Json(#[from] serde_json::Error),
    /// A calibration of a version that is not known.
    #[error("calibration version {0} is not known, only 4 is")]
    Version(u64),
    /// A calibration's figure is impossible.
    #[error("calibration, {field}: {why}")]
    BadFigure {
        /// The field, dotted.
        field: String,
        /// What is wrong.
        why: String,
    },
}
