//! What is asked of a routing, and what it answers: a kind of step, and the experts that it needs.

use serde::Serialize;

/// A kind of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepKind {
    /// Sequences at once.
    pub users: u32,
    /// Consecutive tokens of each.
    pub tokens: u32,
}

impl StepKind {
    /// Tokens of all sequences together.
    pub(crate) fn tokens_in_all(self) -> u64 {
        u64::from(self.users) * u64::from(self.tokens)
    }
}

/// What a step needs of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoutingNeed {
    /// Distinct experts.
    pub distinct: f64,
    /// Of them, those without a slot.
    pub misses: f64,
}
