//! A figure of an engine: its value, how far to trust it, and between what reports put it.

use hotset_cost_models::hardware::Basis;
use serde::{Deserialize, Serialize};

/// A number of an engine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// The number, in the unit that its field's name gives.
    pub value: f64,
    /// How far to trust it.
    pub basis: Basis,
    /// The engine's code, document or the reports that it was fitted to.
    pub source: String,
    /// Between what reports put it, where it was fitted to some.
    pub spread: Option<Spread>,
}

/// What reports say of a figure: so many of them, and of these so many between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The lower end, in the figure's unit, or as a factor where the field says so.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Reports.
    pub reports: u32,
    /// Of them, those inside.
    pub inside: u32,
}

impl Fitted {
    /// The lower end; the value itself where no spread is known.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.spread.map_or(self.value, |spread| spread.low)
    }

    /// The upper end; the value itself where no spread is known.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.spread.map_or(self.value, |spread| spread.high)
    }

    /// Of ten reports, how many lie inside; `None` where there are none.
    #[must_use]
    pub fn of_ten_inside(&self) -> Option<f64> {
        let spread = self.spread.filter(|spread| spread.reports > 0)?;
        Some(10.0 * f64::from(spread.inside) / f64::from(spread.reports))
    }
}
