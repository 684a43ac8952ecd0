//! Predictions of memory figures.

use super::{Known, MemoryRow, Prediction, WhyNot};

/// Predicts what a report of memory gives.
///
/// # Errors
/// [`WhyNot`]: what the row does not say, or what no rule is known for.
pub fn predict(row: &MemoryRow, known: &Known) -> Result<Prediction, WhyNot> {
    known.engine(&row.engine)?;
    Err(WhyNot::new(format!("no rule for '{}'", row.kind)))
}
