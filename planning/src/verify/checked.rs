//! One report and what was predicted of it.

use serde::Serialize;

/// One figure of a report beside its prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedRow {
    /// The report's own id.
    pub id: String,
    /// What is reported.
    pub kind: String,
    /// As reported, in `unit`.
    pub reported: f64,
    /// As predicted; absent where it was not.
    pub predicted: Option<f64>,
    /// The lower end of the range.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Whether the report lies in the range.
    pub inside: Option<bool>,
    /// Why it was not predicted.
    pub why_not: Option<String>,
    /// The engine's name, else as the report has it.
    pub engine: String,
    /// The model as the report has it.
    pub model: String,
    /// The unit of all figures of the row.
    pub unit: String,
    /// Predicted over reported less one; of yes and no, 0 where they agree and 1 where not.
    pub error: Option<f64>,
}
