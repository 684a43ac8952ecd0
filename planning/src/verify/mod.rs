//! Plans held against what people measured: reports in, predictions with ranges and errors out.
//!
//! A report is a line of CSV with the columns of memory figures or of speeds. Each is predicted from the model's shape,
//! its format and the engine's profile alone, or says why it cannot be.

mod check;
pub mod memory;
mod models;
mod numbers;
mod reader;
pub mod row;
mod settings;
pub mod speed;
mod summary;

use serde::Serialize;

use crate::engine::{Engine, builtin_engines, called};

pub use check::{CheckedRow, VerifyReport, verify};
pub use models::Models;
pub use reader::{MOST_ROWS, ReportError, Reports};
pub use row::{MemoryRow, SpeedKind, SpeedRow};
pub use summary::SummaryRow;

/// What predictions are made from.
#[derive(Debug)]
pub struct Known {
    /// Models by the names that people give them.
    pub models: Models,
    /// Engines.
    pub engines: Vec<Engine>,
}

impl Known {
    /// What comes with the crate.
    #[must_use]
    pub fn builtin() -> Self {
        Self { models: Models::builtin(), engines: builtin_engines() }
    }

    /// The engine that a report's text begins with.
    ///
    /// # Errors
    /// [`WhyNot`] where none is called so.
    pub fn engine(&self, text: &str) -> Result<&Engine, WhyNot> {
        let found = called(&self.engines, text).and_then(|index| self.engines.get(index));
        found.ok_or_else(|| WhyNot::new(format!("engine '{text}' is not known")))
    }
}

/// A figure with its range, in the unit of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The figure.
    pub predicted: f64,
    /// The lower end of its range.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Prediction {
    /// A figure with `share` of it to both sides.
    #[must_use]
    pub fn within(predicted: f64, share: f64) -> Self {
        let width = predicted.abs() * share;
        Self { predicted, low: predicted - width, high: predicted + width }
    }

    /// A figure between two factors of it.
    #[must_use]
    pub fn between(predicted: f64, low: f64, high: f64) -> Self {
        Self { predicted, low: predicted * low, high: predicted * high }
    }
}

/// Why a row was not predicted, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct WhyNot(pub String);

impl WhyNot {
    /// With this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
