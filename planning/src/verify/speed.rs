//! Predictions of speeds.

use super::{Known, Prediction, SpeedKind, SpeedRow, WhyNot};

/// Predicts one speed of a report, in the unit of its kind.
///
/// # Errors
/// [`WhyNot`]: what the row does not say, or what no rule is known for.
pub fn predict(row: &SpeedRow, kind: SpeedKind, known: &Known) -> Result<Prediction, WhyNot> {
    known.engine(&row.engine)?;
    Err(WhyNot::new(format!("no rule for {} of mode '{}'", kind.name(), row.mode)))
}
