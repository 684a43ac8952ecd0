//! The numbers that a speed rests on, each with its source.

use hotset_cost_models::hardware::Basis;
use serde::Serialize;

/// One number that a speed rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coefficient {
    /// What it is.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// How far to trust it.
    pub basis: Basis,
    /// Where it comes from; of an assumption, what was assumed.
    pub source: String,
}

impl Coefficient {
    pub(crate) fn new(
        name: impl Into<String>,
        value: impl Into<String>,
        basis: Basis,
        source: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), value: value.into(), basis, source: source.into() }
    }
}
