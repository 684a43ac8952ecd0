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

/// Profiles of links have one source for all their figures: published or measured by it.
pub(crate) fn link_basis(source: &str) -> Basis {
    if source.contains("this project") || source.contains("measure") {
        Basis::Measured
    } else {
        Basis::Published
    }
}
