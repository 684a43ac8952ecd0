//! A line of a plan's memory: bytes for one purpose, and where they come from.

use hotset_cost_models::hardware::Basis;
use serde::Serialize;

/// Bytes for one purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryLine {
    /// The purpose.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// How far to trust them.
    pub basis: Basis,
    /// Where they come from.
    pub source: String,
}

impl MemoryLine {
    pub(crate) fn new(
        name: &'static str,
        bytes: u64,
        basis: Basis,
        source: impl Into<String>,
    ) -> Self {
        Self { name, bytes, basis, source: source.into() }
    }
}
