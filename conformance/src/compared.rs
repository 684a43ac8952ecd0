//! How much of a log there was to compare.

use serde::Serialize;

/// How much there was to compare: a log without victims or slots says less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Events.
    pub events: u64,
    /// Experts found resident.
    pub hits: u64,
    /// Experts copied into slots.
    pub fetches: u64,
    /// Experts served without a slot.
    pub unplaced: u64,
    /// Fetches of which the engine says who left for them (or that nobody did).
    pub victims: u64,
    /// Hits and fetches of which the engine says the slot.
    pub slots: u64,
}
